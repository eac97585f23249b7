//! TLS from the first octet on: articles and logins over it, certificates that change, and what is no TLS.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use newsreel_host::{Clock as _, RealClock, RealDisk, replace_file};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::client::{NewsClient, article};
use crate::real_clients::{Screen, output_of, program};
use crate::spool::{Server, Spool};

const NAME: &str = "news.test.example";

const CONFIG: &str = r#"
[tls]
certificate = "cert.pem"
key = "key.pem"
handshake_s = 1

[login]
clear_text = "nowhere"

[[access]]
name = "staff"
users = ["*"]
read = "*"

[[access]]
name = "safe"
tls = true
read = "misc.*"

[[access]]
name = "plain"
feed = true
"#;

/// Puts a certificate of its own issue into a spool's folder.
fn certify(spool: &Spool) -> CertificateDer<'static> {
    let made = rcgen::generate_simple_self_signed([NAME.to_owned()]).unwrap();
    for (name, text) in [
        ("cert.pem", made.cert.pem()),
        ("key.pem", made.signing_key.serialize_pem()),
    ] {
        replace_file(&RealDisk, &spool.folder().join(name), text.as_bytes()).unwrap();
    }
    made.cert.der().clone()
}

fn start() -> (Spool, Server, SocketAddr, CertificateDer<'static>) {
    let listen = ("[listen]", "[listen]\ntls_addresses = [\"127.0.0.1:0\"]");
    let spool = Spool::with(&(Spool::changed(&[listen]) + CONFIG));
    let certificate = certify(&spool);
    let server = spool.serve();
    let status = spool.json(&["status"]);
    let listening = status["server"]["listening"].as_array().unwrap();
    let address = listening[1].as_str().unwrap().parse().unwrap();
    (spool, server, address, certificate)
}

/// A certificate of a client, and its key.
type Identity = (CertificateDer<'static>, PrivateKeyDer<'static>);

/// Somebody who issues certificates to clients.
struct Authority(Issuer<'static, KeyPair>);

impl Authority {
    /// A new one, and its certificate in PEM.
    fn new() -> (Self, String) {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        (Self(Issuer::new(params, key)), pem)
    }

    /// Issues one for a host, and for somebody of this name.
    fn issue(&self, host: &str, name: &str) -> Option<Identity> {
        let mut params = CertificateParams::new([host.to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let made = params.signed_by(&key, &self.0).unwrap();
        Some((made.der().clone(), key.into()))
    }
}

struct Secure(BufReader<StreamOwned<ClientConnection, TcpStream>>);

impl Secure {
    /// Connects, believing one certificate only, and takes the greeting.
    fn connect(address: SocketAddr, believed: &CertificateDer<'static>) -> std::io::Result<Self> {
        Self::connect_to(address, believed, NAME)
    }

    /// The same, to a server of this name.
    fn connect_to(
        address: SocketAddr,
        believed: &CertificateDer<'static>,
        name: &'static str,
    ) -> std::io::Result<Self> {
        let (client, greeting) = Self::open(address, believed, name, None)?;
        assert!(greeting.starts_with("201 "), "{greeting}");
        Ok(client)
    }

    /// The same, showing a certificate or none; with the first line that comes.
    fn open(
        address: SocketAddr,
        believed: &CertificateDer<'static>,
        name: &'static str,
        shown: Option<Identity>,
    ) -> std::io::Result<(Self, String)> {
        let mut roots = RootCertStore::empty();
        roots.add(believed.clone()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let config = match shown {
            None => config.with_no_client_auth(),
            Some((own, key)) => config.with_client_auth_cert(vec![own], key).unwrap(),
        };
        let name = name.try_into().unwrap();
        let connection = ClientConnection::new(Arc::new(config), name).unwrap();
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        let mut client = Self(BufReader::new(StreamOwned::new(connection, stream)));
        let mut greeting = String::new();
        client.0.read_line(&mut greeting)?;
        Ok((client, greeting))
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn ask(&mut self, command: &str) -> String {
        write!(self.0.get_mut(), "{command}\r\n").unwrap();
        self.line()
    }
}

#[test]
fn articles_are_read_and_users_log_in_over_tls() {
    let (spool, server, address, certificate) = start();
    spool.text(&["group", "add", "misc.test", "staff.test"]);
    let mut feeder = NewsClient::connect(server.address);
    let large = article("<large@tls.example>", "misc.test").replace(
        "\r\n\r\n",
        &format!("\r\n\r\n{}", "a long line of the body\r\n".repeat(20_000)),
    );
    feeder.send(format!("TAKETHIS <large@tls.example>\r\n{large}").as_bytes());
    assert_eq!(feeder.line(), "239 <large@tls.example>");
    assert_eq!(feeder.ask("GROUP misc.test"), "480 Log in first");
    assert_eq!(&feeder.ask("AUTHINFO USER ada")[..3], "483");
    spool
        .piped(&["user", "add", "ada"], "correct-horse\n")
        .unwrap();

    let mut reader = Secure::connect(address, &certificate).unwrap();
    assert!(reader.ask("GROUP misc.test").starts_with("211 1 1 1 "));
    assert!(reader.ask("ARTICLE 1").starts_with("220 1 "));
    let mut body = 0;
    loop {
        let line = reader.line();
        if line == "." {
            break;
        }
        body += usize::from(line == "a long line of the body");
    }
    assert_eq!(body, 20_000);
    // No login lets feed.
    assert_eq!(reader.ask("CHECK <a@tls.example>"), "502 Not permitted");
    assert_eq!(&reader.ask("GROUP staff.test")[..3], "480");
    assert_eq!(&reader.ask("AUTHINFO USER ada")[..3], "381");
    assert_eq!(&reader.ask("AUTHINFO PASS correct-horse")[..3], "281");
    assert_eq!(&reader.ask("GROUP staff.test")[..3], "211");
    assert_eq!(&reader.ask("QUIT")[..3], "205");
    // The end is said, not cut: without close_notify this would be an error.
    assert_eq!(reader.0.read(&mut [0]).unwrap(), 0);
    server.stop();
}

#[test]
fn a_certificate_is_changed_without_a_restart() {
    let (spool, server, address, first) = start();
    let mut old = Secure::connect(address, &first).unwrap();
    let reload = |said: &str| {
        let before = spool.log().matches(said).count();
        server.signal("HUP");
        for _ in 0..1500 {
            if spool.log().matches(said).count() > before {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("the log never said {said}: {}", spool.log());
    };
    let second = certify(&spool);
    reload("configuration read again");
    assert!(Secure::connect(address, &first).is_err());
    let mut new = Secure::connect(address, &second).unwrap();
    assert_eq!(&old.ask("DATE")[..3], "111");
    assert_eq!(&new.ask("DATE")[..3], "111");
    // What cannot be used changes nothing.
    replace_file(&RealDisk, &spool.folder().join("key.pem"), b"no key").unwrap();
    reload("TLS cannot be spoken with");
    assert!(Secure::connect(address, &second).is_ok());
    server.stop();
}

#[test]
fn what_is_no_tls_ends_and_hurts_nobody() {
    let (spool, server, address, certificate) = start();
    let connect = || {
        let stream = TcpStream::connect(address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        stream
    };
    // Who says nothing is cut when the time of a handshake is over, not before.
    let (begun, mut silent) = (RealClock::new(), connect());
    let mut plain = connect();
    plain.write_all(b"MODE READER\r\n").unwrap();
    let mut said = Vec::new();
    let _ = plain.read_to_end(&mut said);
    assert!(
        !said.windows(3).any(|code| code == b"200" || code == b"201"),
        "{said:?}"
    );
    let mut reader = Secure::connect(address, &certificate).unwrap();
    assert_eq!(&reader.ask("DATE")[..3], "111");
    assert_eq!(silent.read(&mut [0; 8]).unwrap_or(0), 0);
    let passed = begun.monotonic();
    assert!((900..5000).contains(&passed.as_millis()), "{passed:?}");
    server.stop();
    // Whoever looked for why a client could not connect found nothing.
    let log = spool.log();
    let told = log.lines().find(|line| line.contains("no TLS: "));
    assert!(told.is_some_and(|line| line.contains("127.0.0.1")), "{log}");
}

/// Once the refusal waited for the next words of the server, so whoever had asked for a new handshake waited, too.
#[test]
fn nothing_is_negotiated_anew() {
    let Some(mut openssl) = program("/usr/bin/openssl", "openssl") else {
        return;
    };
    let (_spool, server, address, certificate) = start();
    let mut child = openssl
        .args(["s_client", "-tls1_2", "-crlf", "-brief", "-connect"])
        .arg(address.to_string())
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut screen = Screen::watch(child.stdout.take().unwrap());
    // An R on a line of its own has it ask for a new handshake.
    for (seen, line) in [("201 ", "DATE\n"), ("111 ", "R\n")] {
        assert!(screen.shows(seen), "no {seen}after {:?}", screen.shown);
        input.write_all(line.as_bytes()).unwrap();
    }
    let ended = output_of(child);
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(said.contains("no renegotiation"), "{said}");
    let mut other = Secure::connect(address, &certificate).unwrap();
    assert!(other.ask("DATE").starts_with("111 "));
    server.stop();
}

#[test]
fn without_a_certificate_nothing_is_started() {
    let listen = ("[listen]", "[listen]\ntls_addresses = [\"127.0.0.1:0\"]");
    let spool = Spool::with(&Spool::changed(&[listen]));
    let why = spool.error(&["serve"]);
    assert!(
        why.contains("listen.tls_addresses is of no use without tls.certificate"),
        "{why}"
    );
    spool.configure(&(Spool::changed(&[listen]) + CONFIG));
    let why = spool.error(&["serve"]);
    assert!(why.contains("cert.pem"), "{why}");
}

/// A server of several names shows each its certificate; SIGHUP reads them again.
#[test]
fn a_server_of_several_names_has_a_certificate_for_each() {
    const OTHER: &str = "other.example";
    let listen = ("[listen]", "[listen]\ntls_addresses = [\"127.0.0.1:0\"]");
    let text = Spool::changed(&[listen]) + &CONFIG.replace("[tls]", "[tls]\nmore = [\"both.pem\"]");
    let spool = Spool::with(&text);
    let first = certify(&spool);
    let write_other = || {
        let made = rcgen::generate_simple_self_signed([OTHER.to_owned()]).unwrap();
        let both = made.cert.pem() + &made.signing_key.serialize_pem();
        replace_file(&RealDisk, &spool.folder().join("both.pem"), both.as_bytes()).unwrap();
        made.cert.der().clone()
    };
    let other = write_other();
    let server = spool.serve();
    let status = spool.json(&["status"]);
    let address = status["server"]["listening"][1].as_str().unwrap();
    let address = address.parse().unwrap();
    assert!(Secure::connect(address, &first).is_ok());
    assert!(Secure::connect_to(address, &other, OTHER).is_ok());
    assert!(Secure::connect_to(address, &first, OTHER).is_err());
    let newer = write_other();
    server.signal("HUP");
    let is_shown = |_| {
        std::thread::sleep(Duration::from_millis(20));
        Secure::connect_to(address, &newer, OTHER).is_ok()
    };
    assert!((0..1500).any(is_shown), "{}", spool.log());
    assert!(Secure::connect(address, &first).is_ok());
    server.stop();
    replace_file(&RealDisk, &spool.folder().join("both.pem"), b"none").unwrap();
    let why = spool.error(&["serve"]);
    assert!(
        why.contains("both.pem: there is no certificate in PEM"),
        "{why}"
    );
}

/// What a certificate of a client opens where TLS is spoken from the first octet on; one of another authority opens nothing.
#[test]
fn certificates_of_clients_are_who_they_are() {
    const ENTRIES: &str = r#"
[tls]
certificate = "cert.pem"
key = "key.pem"
clients = "clients.pem"

[[access]]
name = "peer"
certificates = ["news.peer.example"]
feed = true

[[access]]
name = "users"
users = ["*"]
certificates = ["*"]
read = "*"
"#;
    let listen = ("[listen]", "[listen]\ntls_addresses = [\"127.0.0.1:0\"]");
    let spool = Spool::with(&(Spool::changed(&[listen]) + ENTRIES));
    let certificate = certify(&spool);
    let write = |text: &str| {
        replace_file(
            &RealDisk,
            &spool.folder().join("clients.pem"),
            text.as_bytes(),
        )
        .unwrap();
    };
    write("none");
    let why = spool.error(&["serve"]);
    assert!(
        why.contains("clients.pem: there is no certificate"),
        "{why}"
    );
    let ((authority, pem), (other, other_pem)) = (Authority::new(), Authority::new());
    write(&pem);
    let server = spool.serve();
    let status = spool.json(&["status"]);
    let address = status["server"]["listening"][1].as_str().unwrap();
    let address: SocketAddr = address.parse().unwrap();
    let open = |shown| Secure::open(address, &certificate, NAME, shown);

    let (mut peer, greeting) = open(authority.issue("news.peer.example", "x")).unwrap();
    assert_eq!(&greeting[..3], "201");
    assert_eq!(&peer.ask("CHECK <a@tls.example>")[..3], "238");
    assert_eq!(&peer.ask("AUTHINFO SASL EXTERNAL =")[..3], "281");
    // Whom nothing is for is told so; a certificate that nobody here vouches for ends the handshake.
    let (mut none, greeting) = open(None).unwrap();
    assert_eq!((&greeting[..3], none.0.read(&mut [0]).unwrap()), ("502", 0));
    assert!(open(other.issue("news.peer.example", "x")).is_err());
    // A user of the spool that is locked is locked.
    for words in [&["user", "add", "eve"][..], &["user", "lock", "eve"]] {
        spool.piped(words, "correct-horse\n").unwrap();
    }
    let (mut eve, _) = open(authority.issue("a.example", "eve")).unwrap();
    assert_eq!(&eve.ask("AUTHINFO SASL EXTERNAL =")[..3], "481");
    let (mut ada, _) = open(authority.issue("a.example", "ada")).unwrap();
    assert_eq!(&ada.ask("LIST ACTIVE")[..3], "480");
    assert_eq!(&ada.ask("AUTHINFO SASL EXTERNAL =")[..3], "281");
    assert_eq!(&ada.ask("LIST ACTIVE")[..3], "215");
    // Another authority from a SIGHUP on.
    write(&other_pem);
    server.signal("HUP");
    let is_known = |_| {
        std::thread::sleep(Duration::from_millis(20));
        open(other.issue("news.peer.example", "x")).is_ok()
    };
    assert!((0..1500).any(is_known), "{}", spool.log());
    assert!(open(authority.issue("news.peer.example", "x")).is_err());
    let explain = |more: &[&str]| {
        let words = [&["access", "explain", "192.0.2.1"][..], more].concat();
        spool.json(&words)["rule"].clone()
    };
    assert_eq!(explain(&["--certificate", "News.Peer.example"]), "peer");
    server.stop();
}
