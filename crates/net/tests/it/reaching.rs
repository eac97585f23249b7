//! The client over loopback: names, addresses to come from, and certificates on both sides.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use newsreel_net::client::{Client, Fault, Remote, Security, Trust};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// Somebody with a certificate of their own issue.
struct Party {
    certificate: rcgen::Certificate,
    key: Vec<u8>,
    key_pem: String,
}

fn party(name: &str) -> Party {
    party_as(name, rcgen::IsCa::NoCa)
}

fn party_as(name: &str, is_ca: rcgen::IsCa) -> Party {
    let mut params = rcgen::CertificateParams::new([name.to_owned()]).unwrap();
    params.is_ca = is_ca;
    let signing_key = rcgen::KeyPair::generate().unwrap();
    Party {
        certificate: params.self_signed(&signing_key).unwrap(),
        key: signing_key.serialize_der(),
        key_pem: signing_key.serialize_pem(),
    }
}

/// A server that lets in who shows the certificate of `client`.
fn acceptor(server: &Party, client: &Party) -> TlsAcceptor {
    let provider = Arc::new(ring::default_provider());
    let mut believed = rustls::RootCertStore::empty();
    believed.add(client.certificate.der().clone()).unwrap();
    let verifier = WebPkiClientVerifier::builder_with_provider(believed.into(), provider.clone());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier.build().unwrap())
        .with_single_cert(
            vec![server.certificate.der().clone()],
            PrivateKeyDer::try_from(server.key.clone()).unwrap(),
        );
    TlsAcceptor::from(Arc::new(config.unwrap()))
}

/// Greets, and answers CAPABILITIES until the other side leaves.
async fn serve(io: impl AsyncRead + AsyncWrite + Unpin) {
    let mut io = BufReader::new(io);
    let mut line = String::new();
    let _ = io.write_all(b"200 ready\r\n").await;
    while let Ok(1..) = io.read_line(&mut line).await {
        let answer = b"101 list\r\nREADER\r\n.\r\n";
        let _ = io.write_all(answer).await;
        let _ = io.flush().await;
    }
}

/// One connection: who came, and how it went.
async fn reach(remote: &Remote, to: &TcpListener, tls: &TlsAcceptor) -> (IpAddr, Option<Fault>) {
    let serving = async {
        let (stream, from) = to.accept().await.unwrap();
        match &remote.security {
            Security::None => serve(stream).await,
            _ => {
                if let Ok(secure) = tls.accept(stream).await {
                    serve(secure).await;
                }
            }
        }
        from.ip()
    };
    let reaching = async {
        let reached = Client::connect(remote).await;
        match reached {
            Ok(client) => {
                assert!(client.is_idle());
                client.quit().await;
                None
            }
            Err(error) => Some(error.fault),
        }
    };
    tokio::join!(serving, reaching)
}

#[tokio::test]
async fn a_server_is_reached_by_name_and_believed_by_its_certificate() {
    let (server, client, stranger) = (party("localhost"), party("we.example"), party("localhost"));
    let tls = acceptor(&server, &client);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut remote = Remote {
        port: listener.local_addr().unwrap().port(),
        bind: Some(IpAddr::from([127, 0, 0, 2])),
        ..Remote::reader("localhost")
    };
    let (from, fault) = reach(&remote, &listener, &tls).await;
    assert!(fault.is_none(), "{fault:?}");
    assert_eq!(from, IpAddr::from([127, 0, 0, 2]));

    let trust = |believed: &Party, shown: Option<&Party>| {
        let certificate = shown.map(|it| (it.certificate.pem(), &it.key_pem));
        let identity = certificate.as_ref();
        let identity = identity.map(|(pem, key)| (pem.as_bytes(), key.as_bytes()));
        let believed = believed.certificate.pem();
        let trust = Trust::new("localhost", Some(believed.as_bytes()), identity);
        Security::Implicit(trust.unwrap())
    };
    remote.security = trust(&server, Some(&client));
    let (_, fault) = reach(&remote, &listener, &tls).await;
    assert!(fault.is_none(), "{fault:?}");
    // Another with the same name is not believed, and who shows nothing is not let in.
    remote.security = trust(&stranger, Some(&client));
    let (_, fault) = reach(&remote, &listener, &tls).await;
    assert!(matches!(fault, Some(Fault::Tls { .. })), "{fault:?}");
    let told = fault.unwrap().to_string();
    assert!(told.contains("; the authority that issued it"), "{told}");
    remote.security = trust(&server, None);
    let (_, fault) = reach(&remote, &listener, &tls).await;
    assert!(fault.is_some());
    // One that `openssl req -x509` makes without more was told by the name of the library's error alone.
    let authority = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let server = party_as("localhost", authority);
    remote.security = trust(&server, Some(&client));
    let (_, fault) = reach(&remote, &listener, &acceptor(&server, &client)).await;
    let told = fault.unwrap().to_string();
    assert!(told.contains("CA:FALSE"), "{told}");
}

#[tokio::test]
async fn who_cannot_be_reached_is_told_with_what_to_do() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let SocketAddr::V4(address) = listener.local_addr().unwrap() else {
        panic!("asked for IPv4");
    };
    drop(listener);
    let mut remote = Remote {
        port: address.port(),
        ..Remote::reader("127.0.0.1")
    };
    let told = Client::connect(&remote).await.unwrap_err().to_string();
    assert!(told.starts_with(&format!("{address}: connecting: cannot connect: ")));
    assert!(told.ends_with("; is it the right port?"), "{told}");
    // Documentation addresses are nobody's.
    remote.bind = Some(IpAddr::from([192, 0, 2, 1]));
    let told = Client::connect(&remote).await.unwrap_err().to_string();
    assert!(told.ends_with("have the address 192.0.2.1?"), "{told}");
}

/// A server that sends an answer in two writes, and waits with the second until the first is acknowledged, as systems do by default: an
/// answer took the 40 ms that a kernel waits with an acknowledgement.
#[tokio::test]
async fn an_answer_in_two_writes_waits_for_no_acknowledgement() {
    const ASKED: usize = 50;
    let there = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let remote = Remote {
        port: there.local_addr().unwrap().port(),
        ..Remote::reader("127.0.0.1")
    };
    let serving = async {
        let (stream, _) = there.accept().await.unwrap();
        let mut io = BufReader::new(stream);
        let mut line = String::new();
        io.write_all(b"200 ready\r\n").await.unwrap();
        while let Ok(1..) = io.read_line(&mut line).await {
            let (first, second): (&[u8], &[u8]) = match line.trim_end() {
                "DATE" => (b"111 ", b"20260101000000\r\n"),
                _ => (b"101 list\r\n", b"READER\r\n.\r\n"),
            };
            io.write_all(first).await.unwrap();
            io.write_all(second).await.unwrap();
            line.clear();
        }
    };
    let asking = async {
        let mut client = Client::connect(&remote).await.unwrap();
        for _ in 0..ASKED {
            client.command(&[b"DATE"]).unwrap();
            assert_eq!(client.reply("DATE").await.unwrap(), 111);
        }
    };
    // It took two seconds.
    let asked = tokio::time::timeout(Duration::from_secs(1), async {
        tokio::select! {
            () = asking => {}
            () = serving => panic!("the client left"),
        }
    });
    asked.await.expect("answers waited");
}
