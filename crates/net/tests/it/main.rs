//! Listeners over real loopback sockets: admission, refusal, draining; and the client over scripted servers.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod reaching;
mod upstream;

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use newsreel_net::{Admission, Drain, Limits, ListenConfig, Listeners};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

fn config(connections_max: usize) -> ListenConfig {
    ListenConfig {
        addresses: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 0))],
        connections_max,
        drain_s: 1,
        ..ListenConfig::default()
    }
}

/// Answers every octet until the other side closes.
async fn echo(mut stream: TcpStream, admission: Admission) {
    let mut buf = [0; 64];
    while let Ok(len @ 1..) = stream.read(&mut buf).await {
        stream.write_all(&buf[..len]).await.unwrap();
    }
    drop(admission);
}

struct Server {
    addresses: Vec<SocketAddr>,
    limits: Arc<Limits>,
    drain: Drain,
    task: tokio::task::JoinHandle<usize>,
}

fn start(config: &ListenConfig) -> Server {
    let limits = Limits::new(config);
    let drain = Drain::new();
    let listeners = Listeners::bind(config, limits.clone(), drain.clone()).unwrap();
    let addresses = listeners.addresses();
    #[expect(
        clippy::disallowed_methods,
        reason = "a test's runtime ends all its tasks"
    )]
    let task = tokio::spawn(listeners.run(echo));
    Server {
        addresses,
        limits,
        drain,
        task,
    }
}

async fn echoes(stream: &mut TcpStream) -> bool {
    let mut buf = [0; 1];
    stream.write_all(b"x").await.unwrap();
    matches!(stream.read(&mut buf).await, Ok(1))
}

/// A hundred that come at once were all let in before anybody who was there had a turn.
#[tokio::test]
async fn who_comes_takes_turns_with_who_is_there() {
    let limits = Limits::new(&config(1000));
    let listeners = Listeners::bind(&config(1000), limits, Drain::new()).unwrap();
    let address = listeners.addresses()[0];
    let came: Vec<_> = (0..100)
        .map(|_| std::net::TcpStream::connect(address).unwrap())
        .collect();
    let let_in = Arc::new(AtomicUsize::new(0));
    let counting = let_in.clone();
    let accepting = listeners.run(move |stream, admission| {
        counting.fetch_add(1, Ordering::Relaxed);
        echo(stream, admission)
    });
    let mut turns = 0;
    let others = async {
        while let_in.load(Ordering::Relaxed) < came.len() {
            turns += 1;
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        _ = accepting => {}
        () = others => {}
    }
    assert!(turns >= came.len(), "only {turns} turns");
}

/// Who floods is kept out by the kernel; others come meanwhile, and what is open stays.
#[tokio::test]
async fn who_floods_is_shut_out() {
    let server = start(&ListenConfig {
        loopback_unlimited: false,
        ..config(1000)
    });
    let address = server.addresses[0];
    let connect = async |last: u8| {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(([127, 0, 0, last], 0).into()).unwrap();
        tokio::time::timeout(Duration::from_millis(500), socket.connect(address)).await
    };
    let mut first = connect(2).await.unwrap().unwrap();
    assert!(echoes(&mut first).await);
    let mut came = 0;
    while let Ok(connected) = connect(2).await {
        connected.unwrap();
        came += 1;
        assert!(came < 20_000, "the flood goes on");
    }
    let seen = server.limits.snapshot();
    assert!((100..500).contains(&seen.admitted), "{seen:?}");
    assert!(seen.refused_rate >= 200, "{seen:?}");
    assert!(echoes(&mut first).await);
    let mut other = connect(3).await.unwrap().unwrap();
    assert!(echoes(&mut other).await);
}

#[tokio::test]
async fn one_too_many_gets_400_and_a_place_is_given_back() {
    let server = start(&config(1));
    let mut first = TcpStream::connect(server.addresses[0]).await.unwrap();
    assert!(echoes(&mut first).await);
    let mut second = TcpStream::connect(server.addresses[0]).await.unwrap();
    let mut said = String::new();
    second.read_to_string(&mut said).await.unwrap();
    assert_eq!(said, "400 Too many connections, try again later\r\n");
    drop(first);
    while server.limits.snapshot().open > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let mut third = TcpStream::connect(server.addresses[0]).await.unwrap();
    assert!(echoes(&mut third).await);
}

#[tokio::test]
async fn several_addresses_serve() {
    let mut config = config(10);
    config
        .addresses
        .push(SocketAddr::from((Ipv4Addr::new(127, 0, 0, 2), 0)));
    if std::net::TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok() {
        config
            .addresses
            .push(SocketAddr::from((Ipv6Addr::LOCALHOST, 0)));
    }
    let server = start(&config);
    assert_eq!(server.addresses.len(), config.addresses.len());
    for address in &server.addresses {
        let mut stream = TcpStream::connect(address).await.unwrap();
        assert!(echoes(&mut stream).await);
    }
}

#[tokio::test]
async fn draining_waits_closes_the_port_and_cuts_who_stays() {
    let server = start(&config(10));
    let mut gentle = TcpStream::connect(server.addresses[0]).await.unwrap();
    let mut stubborn = TcpStream::connect(server.addresses[0]).await.unwrap();
    assert!(echoes(&mut gentle).await && echoes(&mut stubborn).await);
    server.drain.start();
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(
        TcpStream::connect(server.addresses[0]).await.is_err(),
        "the port is closed"
    );
    assert!(echoes(&mut gentle).await, "what is open goes on");
    drop(gentle);
    assert_eq!(server.task.await.unwrap(), 1);
    assert!(!matches!(stubborn.read(&mut [0; 1]).await, Ok(1)));
    assert_eq!(server.limits.snapshot().open, 0);
}

#[tokio::test]
async fn an_address_in_use_is_told_with_its_name() {
    let server = start(&config(1));
    let taken = ListenConfig {
        addresses: server.addresses.clone(),
        ..config(1)
    };
    let error = Listeners::bind(&taken, server.limits.clone(), Drain::new()).unwrap_err();
    assert!(
        error.to_string().contains(&server.addresses[0].to_string()),
        "{error}"
    );
    let none = ListenConfig {
        addresses: vec![],
        ..config(1)
    };
    assert!(Listeners::bind(&none, server.limits.clone(), Drain::new()).is_err());
}

#[expect(
    clippy::disallowed_methods,
    reason = "looks at this process, not at a spool"
)]
fn open_files() -> u64 {
    std::fs::read_dir("/proc/self/fd").unwrap().count() as u64
}

/// Lowers the limit of open files of this process, so it runs in a process of its own: see the next test.
#[tokio::test]
async fn accept_goes_on_after_too_many_open_files_child() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    if std::env::args().all(|argument| argument != "--ignored-by-name-only") {
        return;
    }
    let config = config(100);
    let limits = Limits::new(&config);
    let listeners = Listeners::bind(&config, limits.clone(), Drain::new()).unwrap();
    let address = listeners.addresses()[0];
    let mut clients = Vec::new();
    for _ in 0..8 {
        clients.push(TcpStream::connect(address).await.unwrap());
    }
    let before = getrlimit(Resource::Nofile);
    let in_use = open_files();
    let low = Rlimit {
        current: Some(in_use + 3),
        maximum: before.maximum,
    };
    setrlimit(Resource::Nofile, low).unwrap();
    #[expect(
        clippy::disallowed_methods,
        reason = "a test's runtime ends all its tasks"
    )]
    tokio::spawn(listeners.run(echo));
    assert!(echoes(&mut clients[0]).await);
    while limits.snapshot().accept_errors == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    setrlimit(Resource::Nofile, before).unwrap();
    for client in &mut clients {
        assert!(echoes(client).await);
    }
    println!("served after errors of accept");
}

#[test]
fn accept_goes_on_after_too_many_open_files() {
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "accept_goes_on_after_too_many_open_files_child",
            "--nocapture",
        ])
        .args(["--skip", "--ignored-by-name-only"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success(), "{said}");
    assert!(said.contains("served after errors of accept"), "{said}");
}
