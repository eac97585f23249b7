//! TLS: a certificate made ready, and the handshake of a connection that came (RFC 8143: versions 1.2 and 1.3).
//!
//! A handshake that takes too long ends; what comes before it is over reaches no session.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use rustls::client::verify_server_name;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert};
use rustls::sign::CertifiedKey;
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
    /// How long a handshake may take, seconds.
    pub handshake_s: u64,
}

impl Default for TlsConfig {
    fn default() -> Self {
        Self {
            certificate: PathBuf::new(),
            key: PathBuf::new(),
            more: Vec::new(),
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

/// A certificate with those behind it, and its key.
fn certified(certificate: &[u8], key: &[u8]) -> Result<Arc<CertifiedKey>, String> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate).collect();
    let certificates = certificates.map_err(|why| format!("the certificate: {why}"))?;
    if certificates.is_empty() {
        return Err("there is no certificate in PEM in the file".to_owned());
    }
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

impl Tls {
    /// From the texts of the two files.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn from_pem(certificate: &[u8], key: &[u8], handshake_s: u64) -> Result<Self, String> {
        Self::from_several(certificate, key, &[], handshake_s).map_err(|(_, why)| why)
    }

    /// The same, with more certificates, each with its key in one text.
    ///
    /// # Errors
    /// Which of them is wrong, counted from 0, and how; none: the first.
    pub fn from_several(
        certificate: &[u8],
        key: &[u8],
        more: &[Vec<u8>],
        handshake_s: u64,
    ) -> Result<Self, (Option<usize>, String)> {
        let first = certified(certificate, key).map_err(|why| (None, why))?;
        let more = more.iter().enumerate();
        let more = more.map(|(at, both)| certified(both, both).map_err(|why| (Some(at), why)));
        let more = more.collect::<Result<_, _>>()?;
        Self::showing(Arc::new(Shown { first, more }), handshake_s).map_err(|why| (None, why))
    }

    fn showing(shown: Arc<Shown>, handshake_s: u64) -> Result<Self, String> {
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|why| why.to_string())?
            .with_no_client_auth()
            .with_cert_resolver(shown);
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
            let tls = Tls::from_several(first.0.as_bytes(), first.1.as_bytes(), more, 1);
            tls.map(|_| ()).map_err(|(at, _)| at)
        };
        assert_eq!(several(std::slice::from_ref(&both)), Ok(()));
        assert_eq!(several(&[both, b"nothing".to_vec()]), Err(Some(1)));
    }
}
