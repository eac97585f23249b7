//! Servers that find their sockets made: by systemd (socket activation), and on the standard input as inetd has it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::client::NewsClient;
use crate::spool::{Server, Spool, newsreel, said};

/// A process that is killed when a test gives it up.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn socket() -> (TcpListener, SocketAddr) {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

/// A program with a socket as its standard input.
fn with_input(mut command: Command, input: impl Into<OwnedFd>) -> Running {
    command
        .stdin(Stdio::from(input.into()))
        .stdout(Stdio::null());
    Running(command.spawn().unwrap())
}

fn serve(spool: &Spool) -> Command {
    let mut command = newsreel();
    command.arg("serve").arg("--config").arg(spool.config());
    command
}

fn cache(upstream: SocketAddr, folder: &Path) -> Command {
    let mut command = newsreel();
    command.args(["cache", "--inetd", "--upstream"]);
    command.arg(upstream.to_string());
    command.arg("--directory").arg(folder.join("cache"));
    command
}

/// systemd's way: the socket is number 3, and the environment says so; nothing of the configuration is bound.
#[test]
fn a_socket_of_systemd_is_served_on_in_the_place_of_the_configurations() {
    let spool = Spool::new();
    let (socket, address) = socket();
    let mut shell = Command::new("sh");
    let script = "exec 3<&0 0</dev/null; export LISTEN_FDS=1 LISTEN_PID=$$ LISTEN_FDNAMES=nntp; exec \"$0\" \"$@\"";
    let server = serve(&spool);
    shell.arg("-c").arg(script).arg(server.get_program());
    shell.args(server.get_args()).stderr(Stdio::null());
    let _server = with_input(shell, socket);
    // It waits in the kernel until the server is there.
    let mut reader = NewsClient::connect(address);
    assert!(reader.ask("DATE").starts_with("111"));
    let status = spool.json(&["status"]);
    let listening = &status["server"]["listening"];
    assert_eq!(
        *listening,
        serde_json::json!([address.to_string()]),
        "{status}"
    );
}

/// What is no socket is told; sockets for another process are not taken.
#[test]
fn only_sockets_for_this_process_are_taken() {
    let spool = Spool::new();
    let mut command = serve(&spool);
    command.env("LISTEN_FDS", "1").env("LISTEN_PID", "1");
    let server = Server::start(command, spool.folder().join("log.txt"), |_| {
        let status = spool.run(&["status", "--json"]);
        let status: Value = serde_json::from_slice(&status.stdout).ok()?;
        status["server"].is_object().then_some(status)
    });
    assert!(
        NewsClient::connect(server.address)
            .ask("DATE")
            .starts_with("111")
    );
    server.stop();
    let mut command = serve(&spool);
    command.arg("--inetd").stdin(Stdio::null());
    let told = said(command.output().unwrap()).unwrap_err();
    assert!(told.contains("it is no TCP socket"), "{told}");
    let mut command = serve(&spool);
    command.args(["--inetd", "--listen", "127.0.0.1:0"]);
    let told = said(command.output().unwrap()).unwrap_err();
    assert!(told.contains("--listen"), "{told}");
}

/// inetd's `wait`: the standard input listens, and the server takes all that connect.
#[test]
fn a_standard_input_that_listens_is_served_on() {
    let spool = Spool::new();
    let upstream = spool.serve();
    spool.text(&["group", "add", "misc.test"]);
    let folder = tempfile::tempdir().unwrap();
    let (socket, address) = socket();
    let mut command = cache(upstream.address, folder.path());
    command.stderr(Stdio::null());
    let _cache = with_input(command, socket);
    for _ in 0..2 {
        let mut reader = NewsClient::connect(address);
        assert_eq!(reader.ask("GROUP misc.test"), "211 0 1 0 misc.test");
    }
    upstream.stop();
}

/// What comes on a connection until its end.
fn all_of(stream: TcpStream) -> Vec<String> {
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    BufReader::new(stream)
        .lines()
        .map_while(Result::ok)
        .collect()
}

/// A connection, and its other end, which a program is given as all it has.
fn given(mut command: Command) -> (TcpStream, Running) {
    let (socket, address) = socket();
    let reader = TcpStream::connect(address).unwrap();
    let (other, _) = socket.accept().unwrap();
    command.stderr(Stdio::from(OwnedFd::from(other.try_clone().unwrap())));
    (reader, with_input(command, other))
}

/// inetd's `nowait`: a connection is served, and then nothing more; nothing that is logged comes between.
#[test]
fn a_standard_input_that_is_connected_is_served_alone() {
    let spool = Spool::new();
    let upstream = spool.serve();
    spool.text(&["group", "add", "misc.test"]);
    let folder = tempfile::tempdir().unwrap();
    let (mut reader, mut running) = given(cache(upstream.address, folder.path()));
    let mut greeting = [0; 3];
    reader.read_exact(&mut greeting).unwrap();
    assert_eq!(&greeting, b"200");
    // One of two at the same time is told to come again.
    let (second, mut refused) = given(cache(upstream.address, folder.path()));
    let told = all_of(second);
    assert!(told[0].starts_with("400 "), "{told:?}");
    assert!(!refused.0.wait().unwrap().success());
    // Nobody has asked the server elsewhere yet what it can do.
    reader.write_all(b"CAPABILITIES\r\n").unwrap();
    let mut reader = BufReader::new(reader);
    let lines = reader.by_ref().lines().map_while(Result::ok);
    let offered: Vec<String> = lines.take_while(|line| line != ".").collect();
    for line in ["NEWNEWS", "OVER MSGID"] {
        assert!(offered.iter().any(|it| it == line), "{offered:?}");
    }
    let mut reader = reader.into_inner();
    reader.write_all(b"GROUP misc.test\r\nQUIT\r\n").unwrap();
    let said = all_of(reader);
    let codes: Vec<&str> = said.iter().map(|line| &line[..3]).collect();
    assert_eq!(codes, ["211", "205"], "{said:?}");
    assert!(running.0.wait().unwrap().success());
    upstream.stop();
    // A server with a spool of its own does the same, and the spool is as it was left.
    let mut command = serve(&spool);
    command.arg("--inetd");
    let (mut reader, mut running) = given(command);
    reader.write_all(b"LIST\r\nQUIT\r\n").unwrap();
    let said = all_of(reader);
    assert!(said.contains(&"misc.test 0 1 y".to_owned()), "{said:?}");
    assert!(running.0.wait().unwrap().success());
}
