//! Servers that send to each other: articles arrive, go on, come back to nobody, and wait for who is away.

use std::net::SocketAddr;
use std::time::Duration;

use newsreel_host::{RealDisk, read_whole, replace_file};
use newsreel_testkit::free_ports;

use crate::client::NewsClient;
use crate::spool::{Server, Spool};

/// A site that listens somewhere and sends to another one.
fn site(name: &str, listens: &str, peer: &str, address: SocketAddr) -> Spool {
    let config = Spool::changed(&[
        (
            "[articles]",
            &format!("[engine]\npath_identity = '{name}'\n\n[articles]"),
        ),
        ("127.0.0.1:0", listens),
    ]);
    Spool::with(&format!(
        "{config}\n[[peer]]\nname = '{peer}'\naddress = '{address}'\n"
    ))
}

/// An address that nobody listens on.
fn free() -> SocketAddr {
    ([127, 0, 0, 1], free_ports().unwrap()).into()
}

fn serve(spool: &Spool) -> Server {
    let server = spool.serve();
    spool.run(&["group", "add", "misc.test"]);
    server
}

/// The Path that an article is served with.
fn path_of(reader: &mut NewsClient, id: &str) -> String {
    let said = reader.ask(&format!("HEAD {id}"));
    assert!(said.starts_with("221"), "{said}");
    let head = reader.block();
    let path = head.iter().find(|line| line.starts_with("Path: "));
    path.unwrap().clone()
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..300 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("waited in vain: {what}");
}

#[test]
fn what_comes_goes_on_and_waits_for_who_is_away() {
    let address = free();
    let left = site("left.example", "127.0.0.1:0", "right.example", address);
    let left_server = serve(&left);
    // Nobody is there yet: what comes waits.
    let id = |n: u32| format!("<{n}@t.example>");
    let mut feeder = NewsClient::connect(left_server.address);
    for n in 1..=20 {
        assert!(feeder.takethis(&id(n), "misc.test").starts_with("239"));
    }
    let listed = || left.json(&["peer", "list"])["feeds"][0].clone();
    until("the first attempt", || {
        listed()["connections"][0]
            .as_str()
            .unwrap()
            .contains("tries again")
    });
    assert_eq!(listed()["waiting"], 20);
    left_server.stop();
    let said = left.text(&["peer", "explain", &id(7)]);
    let words = "goes out; was not settled when the server stopped; it is sent, or sent again, when one runs";
    assert!(said.contains(words), "{said}");
    assert_eq!(left.text(&["peer", "explain", "misc.test:7"]), said);
    let left_server = left.serve();
    assert_eq!(listed()["waiting"], 20, "the place outlives a stop");
    let listens = address.to_string();
    let right = site(
        "right.example",
        &listens,
        "left.example",
        left_server.address,
    );
    let right_server = serve(&right);
    left.text(&["peer", "flush", "right.example"]);
    let mut reader = NewsClient::connect(right_server.address);
    until("all articles", || listed()["accepted"] == 20);
    assert!(reader.ask("GROUP misc.test").starts_with("211 20 "));
    // They came from there, so nothing goes back.
    let said = right.text(&["peer", "explain", &id(7)]);
    assert!(
        said.contains("does not go out: its Path has left.example already"),
        "{said}"
    );
    let back = &right.json(&["peer", "list"])["feeds"][0];
    assert_eq!(
        (&back["accepted"], &back["refused"]),
        (&0.into(), &0.into())
    );
    let shown = left.text(&["peer", "show", "right.example/all"]);
    assert!(shown.contains("sending by CHECK and TAKETHIS"), "{shown}");
    left.text(&["peer", "pause", "right.example"]);
    let mut feeder = NewsClient::connect(left_server.address);
    assert!(feeder.takethis(&id(21), "misc.test").starts_with("239"));
    until("a backlog", || listed()["behind"] == 1);
    let explained = |n: u32| left.text(&["peer", "explain", &id(n)]);
    let said = explained(21);
    let words = "goes out; waits in the log; the feed is paused";
    assert!(said.contains(words), "{said}");
    assert!(explained(7).contains("  accepted "), "{}", explained(7));
    let by_number = left.text(&["peer", "explain", "misc.test:7"]);
    assert_eq!(by_number, explained(7));
    let none = left.error(&["peer", "explain", "misc.test:99"]);
    assert!(none.contains("misc.test:99"), "{none}");
    let behind = listed()["behind"].clone();
    let dry = left.json(&["peer", "drop-backlog", "right.example", "--dry-run"]);
    assert_eq!((&dry["behind"], &dry["dry_run"]), (&behind, &true.into()));
    assert_eq!(listed()["behind"], behind, "nothing was given up");
    let dropped = left.text(&["peer", "drop-backlog", "right.example"]);
    assert!(dropped.starts_with("given up: "), "{dropped}");
    left.text(&["peer", "resume", "right.example"]);
    assert!(feeder.takethis(&id(22), "misc.test").starts_with("239"));
    until("the next one", || listed()["accepted"] == 21);
    assert!(reader.ask("STAT <22@t.example>").starts_with("223"));
    assert!(reader.ask("STAT <21@t.example>").starts_with("430"));
    let none = left.error(&["peer", "pause", "nobody.example"]);
    assert!(none.contains("there are right.example"), "{none}");
    right_server.stop();
    left_server.stop();
}

/// A peer that wants TLS and a login, over a compressed connection; what is wrong with a file is said, and cured without a reload.
#[test]
fn a_peer_is_reached_over_tls_with_a_login_and_compressed() {
    let address = free();
    let right = Spool::with(&format!(
        "{}\n[tls]\ncertificate = 'cert.pem'\nkey = 'key.pem'\n[login]\nclear_text = 'nowhere'\n\
         [[peer]]\nname = 'left.example'\nfeed = []\nfrom_users = ['left']\nfrom_tls = true\n\
         [[access]]\nname = 'all'\nread = '*'\n",
        Spool::changed(&[(
            "[listen]",
            &format!("[listen]\ntls_addresses = ['{address}']")
        )])
    ));
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let put = |spool: &Spool, name: &str, text: &str| {
        replace_file(&RealDisk, &spool.folder().join(name), text.as_bytes()).unwrap();
    };
    put(&right, "cert.pem", &made.cert.pem());
    put(&right, "key.pem", &made.signing_key.serialize_pem());
    let right_server = serve(&right);
    right
        .piped(&["user", "add", "left"], "correct-horse\n")
        .unwrap();

    let left = site("left.example", "127.0.0.1:0", "right.example", address);
    let config = read_whole(&RealDisk, &left.config(), 1 << 20).unwrap();
    left.configure(&format!(
        "{}tls = 'implicit'\nauthority = 'right.pem'\nuser = 'left'\npassword_file = 'word'\ncompress = true\n",
        String::from_utf8(config).unwrap()
    ));
    put(&left, "word", "correct-horse\n");
    let left_server = serve(&left);
    let mut feeder = NewsClient::connect(left_server.address);
    for n in 1..=20 {
        let id = format!("<{n}@t.example>");
        assert!(feeder.takethis(&id, "misc.test").starts_with("239"));
    }
    let listed = || left.json(&["peer", "list"])["feeds"][0].clone();
    let connection = || listed()["connections"][0].as_str().unwrap().to_owned();
    until("a missing file", || connection().contains("right.pem"));
    put(&left, "right.pem", &made.cert.pem());
    left.text(&["peer", "flush", "right.example"]);
    until("all articles", || listed()["accepted"] == 20);
    let mut reader = NewsClient::connect(right_server.address);
    assert!(reader.ask("GROUP misc.test").starts_with("211 20 "));
    assert!(path_of(&mut reader, "<7@t.example>").contains("!!left.example!.SEEN."));
    let from = &right.json(&["peer", "show", "left.example"])["received"][0];
    assert_eq!(from["accepted"], 20, "{from}");
    let replies = &right.json(&["status"])["server"]["sessions"]["replies"];
    assert_eq!(replies["206"], 1, "{replies}");
    left_server.stop();
    right_server.stop();
}

/// Mutual TLS, from the first octet on and begun by STARTTLS: the certificate that a peer shows is who it is, and another one is not.
#[test]
fn a_certificate_is_who_a_peer_is() {
    let authority = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::default();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let clients_pem = params.self_signed(&authority).unwrap().pem();
    let issuer = rcgen::Issuer::new(params, authority);
    let put = |spool: &Spool, name: &str, text: &str| {
        replace_file(&RealDisk, &spool.folder().join(name), text.as_bytes()).unwrap();
    };
    for (tls, shown, entry) in [
        ("implicit", "left.example", "!!left.example!"),
        ("starttls", "left.example", "!!left.example!"),
        (
            "starttls",
            "other.example",
            "!.SEEN.127.0.0.1!left.example!",
        ),
    ] {
        let (plain, secure) = (free(), free());
        let right = site("right.example", &plain.to_string(), "left.example", free());
        let config = read_whole(&RealDisk, &right.config(), 1 << 20).unwrap();
        let config = String::from_utf8(config).unwrap();
        let config = config.replace(
            "[listen]",
            &format!("[listen]\ntls_addresses = ['{secure}']"),
        );
        right.configure(&format!(
            "{config}from_certificates = ['left.example']\n\
             [tls]\ncertificate = 'cert.pem'\nkey = 'key.pem'\nclients = 'clients.pem'\n"
        ));
        right.certify("127.0.0.1");
        put(&right, "clients.pem", &clients_pem);
        let right_server = serve(&right);
        let address = if tls == "implicit" { secure } else { plain };

        let left = site("left.example", "127.0.0.1:0", "right.example", address);
        let config = read_whole(&RealDisk, &left.config(), 1 << 20).unwrap();
        left.configure(&format!(
            "{}tls = '{tls}'\nauthority = 'right.pem'\ncertificate = 'own.pem'\nkey = 'own-key.pem'\n",
            String::from_utf8(config).unwrap()
        ));
        let own = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new([shown.to_owned()]).unwrap();
        put(
            &left,
            "own.pem",
            &params.signed_by(&own, &issuer).unwrap().pem(),
        );
        put(&left, "own-key.pem", &own.serialize_pem());
        let authority = read_whole(&RealDisk, &right.folder().join("cert.pem"), 1 << 20).unwrap();
        put(&left, "right.pem", &String::from_utf8(authority).unwrap());
        let left_server = serve(&left);
        let mut feeder = NewsClient::connect(left_server.address);
        assert!(
            feeder
                .takethis("<1@t.example>", "misc.test")
                .starts_with("239")
        );
        let listed = || left.json(&["peer", "list"])["feeds"][0].clone();
        until("the article", || listed()["accepted"] == 1);
        let mut reader = NewsClient::connect(right_server.address);
        let path = path_of(&mut reader, "<1@t.example>");
        assert!(
            path.starts_with(&format!("Path: right.example{entry}")),
            "{tls} {shown}: {path}"
        );
        left_server.stop();
        right_server.stop();
    }
}
