//! TLS: a certificate made ready, and the handshake of a connection that came (RFC 8143: versions 1.2 and 1.3).
//!
//! A handshake that takes too long ends; what comes before it is over reaches no session.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustls::client::verify_server_name;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{RootCertStore, ServerConfig};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// `[tls]`: what connections to `listen.tls_addresses`, and those that begin TLS by STARTTLS, are secured with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TlsConfig {
    /// The file of the server's certificate and of those between it and its authority, in PEM; a relative path counts from
    /// the configuration file's directory. SIGHUP reads it and the key again, for new connections.
    pub certificate: PathBuf,
    /// The file of its key, in PEM.
    pub key: PathBuf,
    /// Files of more certificates, each with its key in the same file, in PEM: where a server has several names, the client
    /// says which it means (SNI), and the first certificate that is for that name is shown; else the one above.
    pub more: Vec<PathBuf>,
    /// The file of the authorities whose word on clients counts, in PEM: clients are asked for a certificate, and one that
    /// these did not issue ends the handshake. Who shows none goes on without. What is in a certificate decides by
    /// `access.certificates` and AUTHINFO SASL EXTERNAL. Empty: nobody is asked.
    pub clients: PathBuf,
    /// How long a handshake may take, seconds.
    pub handshake_s: u64,
}

impl Default for TlsConfig {
    fn default() -> Self {
        Self {
            certificate: PathBuf::new(),
            key: PathBuf::new(),
            more: Vec::new(),
            clients: PathBuf::new(),
            handshake_s: 20,
        }
    }
}

/// A certificate with its key, ready to serve.
#[derive(Clone)]
pub struct Tls {
    acceptor: TlsAcceptor,
    handshake: Duration,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

/// The texts of the files that TLS is spoken with.
#[derive(Debug, Clone, Copy)]
pub struct TlsFiles<'t> {
    /// The server's certificate.
    pub certificate: &'t [u8],
    /// Its key.
    pub key: &'t [u8],
    /// More certificates, each with its key.
    pub more: &'t [Vec<u8>],
    /// The authorities of clients' certificates; none: clients are not asked for one.
    pub clients: Option<&'t [u8]>,
}

/// Which of the texts is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsFile {
    /// The server's certificate or its key.
    Own,
    /// One of those with more certificates, counted from 0.
    More(usize),
    /// The authorities of clients' certificates.
    Clients,
}

/// The certificates of a text in PEM, which has some.
fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let certificates = certificates.map_err(|why| format!("the certificate: {why}"))?;
    match certificates.is_empty() {
        true => Err("there is no certificate in PEM in the file".to_owned()),
        false => Ok(certificates),
    }
}

/// A certificate with those behind it, and its key.
fn certified(certificate: &[u8], key: &[u8]) -> Result<Arc<CertifiedKey>, String> {
    let certificates = certificates(certificate)?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|why| format!("the key: {why}"))?;
    let certified = CertifiedKey::from_der(certificates, key, &ring::default_provider());
    let certified = certified.map_err(|why| format!("certificate and key: {why}"))?;
    Ok(Arc::new(certified))
}

/// The certificates of a server.
#[derive(Debug)]
struct Shown {
    first: Arc<CertifiedKey>,
    more: Vec<Arc<CertifiedKey>>,
}

impl Shown {
    /// The one for a name.
    fn of(&self, name: &str) -> Option<&Arc<CertifiedKey>> {
        let name = ServerName::try_from(name).ok()?;
        let is_for = |it: &&Arc<CertifiedKey>| {
            let own = it.end_entity_cert().and_then(ParsedCertificate::try_from);
            own.is_ok_and(|own| verify_server_name(&own, &name).is_ok())
        };
        std::iter::once(&self.first).chain(&self.more).find(is_for)
    }
}

impl ResolvesServerCert for Shown {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let named = hello.server_name().and_then(|name| self.of(name));
        Some(Arc::clone(named.unwrap_or(&self.first)))
    }
}

/// Whose word on clients counts.
fn authorities(pem: &[u8]) -> Result<Arc<RootCertStore>, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem)? {
        let added = roots.add(certificate);
        added.map_err(|why| format!("the certificate of an authority: {why}"))?;
    }
    Ok(Arc::new(roots))
}

impl Tls {
    /// From the texts of the two files.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn from_pem(certificate: &[u8], key: &[u8], handshake_s: u64) -> Result<Self, String> {
        let files = TlsFiles {
            certificate,
            key,
            more: &[],
            clients: None,
        };
        Self::from_files(&files, handshake_s).map_err(|(_, why)| why)
    }

    /// The same, from all that there can be.
    ///
    /// # Errors
    /// Which of them is wrong, and how.
    pub fn from_files(files: &TlsFiles<'_>, handshake_s: u64) -> Result<Self, (TlsFile, String)> {
        let own = |why| (TlsFile::Own, why);
        let first = certified(files.certificate, files.key).map_err(own)?;
        let more = files.more.iter().enumerate();
        let more =
            more.map(|(at, both)| certified(both, both).map_err(|why| (TlsFile::More(at), why)));
        let more = more.collect::<Result<_, _>>()?;
        let provider = Arc::new(ring::default_provider());
        let verifier = match files.clients {
            None => WebPkiClientVerifier::no_client_auth(),
            Some(pem) => {
                let asked = authorities(pem).and_then(|roots| {
                    let built =
                        WebPkiClientVerifier::builder_with_provider(roots, provider.clone());
                    let built = built.allow_unauthenticated().build();
                    built.map_err(|why| why.to_string())
                });
                asked.map_err(|why| (TlsFile::Clients, why))?
            }
        };
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|why| own(why.to_string()))?
            .with_client_cert_verifier(verifier)
            .with_cert_resolver(Arc::new(Shown { first, more }));
        Ok(Self {
            acceptor: TlsAcceptor::from(Arc::new(config)),
            handshake: Duration::from_secs(handshake_s),
        })
    }

    /// The handshake of a connection that came.
    ///
    /// # Errors
    /// When the other side speaks no TLS that we do, or takes too long.
    pub(crate) async fn accept<Io>(&self, stream: Io) -> io::Result<TlsStream<Io>>
    where
        Io: AsyncRead + AsyncWrite + Unpin,
    {
        let handshake = tokio::time::timeout(self.handshake, self.acceptor.accept(stream));
        handshake
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_certificate_is_told() {
        let made = |name: &str| {
            let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
            (made.cert.pem(), made.signing_key.serialize_pem())
        };
        let ((certificate, key), (_, other)) = (made("a.example"), made("b.example"));
        let check = |certificate: &str, key: &str| {
            Tls::from_pem(certificate.as_bytes(), key.as_bytes(), 1).map(|_| ())
        };
        assert_eq!(check(&certificate, &key), Ok(()));
        let none = check("", &key).unwrap_err();
        assert_eq!(none, "there is no certificate in PEM in the file");
        let no_key = check(&certificate, &certificate).unwrap_err();
        assert!(no_key.starts_with("the key: "), "{no_key}");
        let mismatch = check(&certificate, &other).unwrap_err();
        assert!(mismatch.starts_with("certificate and key: "), "{mismatch}");
        let torn = check(&certificate.replace("END", "XXX"), &key);
        assert!(torn.is_err(), "{torn:?}");
    }

    #[test]
    fn the_certificate_of_the_name_that_is_meant_is_shown() {
        let made = |name: &str| {
            let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
            (made.cert.pem(), made.signing_key.serialize_pem())
        };
        let (first, other) = (made("a.example"), made("*.b.example"));
        let one = |(certificate, key): &(String, String)| {
            certified(certificate.as_bytes(), key.as_bytes()).unwrap()
        };
        let shown = Shown {
            first: one(&first),
            more: vec![one(&other)],
        };
        let of = |name: &str| shown.of(name).map(|it| it.cert[0] == shown.first.cert[0]);
        assert_eq!(of("a.example"), Some(true));
        assert_eq!(of("news.b.example"), Some(false));
        assert_eq!(of("b.example"), None);
        assert_eq!(of("..."), None);
        let both = (other.0 + &other.1).into_bytes();
        let several = |more: &[Vec<u8>]| {
            let files = TlsFiles {
                certificate: first.0.as_bytes(),
                key: first.1.as_bytes(),
                more,
                clients: None,
            };
            let tls = Tls::from_files(&files, 1);
            tls.map(|_| ()).map_err(|(file, _)| file)
        };
        assert_eq!(several(std::slice::from_ref(&both)), Ok(()));
        let bad = several(&[both, b"nothing".to_vec()]);
        assert_eq!(bad, Err(TlsFile::More(1)));
    }

    #[test]
    fn what_is_wrong_with_authorities_is_told() {
        let made = rcgen::generate_simple_self_signed(["a.example".to_owned()]).unwrap();
        let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let check = |clients: &str| {
            let files = TlsFiles {
                certificate: certificate.as_bytes(),
                key: key.as_bytes(),
                more: &[],
                clients: Some(clients.as_bytes()),
            };
            Tls::from_files(&files, 1).map(|_| ())
        };
        assert_eq!(check(&certificate), Ok(()));
        let none = "there is no certificate in PEM in the file".to_owned();
        assert_eq!(check(&key), Err((TlsFile::Clients, none)));
        let torn = certificate.replace("MII", "MIJ");
        let (file, why) = check(&torn).unwrap_err();
        assert_eq!(file, TlsFile::Clients);
        assert!(
            why.starts_with("the certificate of an authority: "),
            "{why}"
        );
    }
}
