//! TLS: a certificate made ready, and the handshake of a connection that came (RFC 8143: versions 1.2 and 1.3).
//!
//! A handshake that takes too long ends; what comes before it is over reaches no session.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
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
    /// How long a handshake may take, seconds.
    pub handshake_s: u64,
}

impl Default for TlsConfig {
    fn default() -> Self {
        Self {
            certificate: PathBuf::new(),
            key: PathBuf::new(),
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

impl Tls {
    /// From the texts of the two files.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn from_pem(certificate: &[u8], key: &[u8], handshake_s: u64) -> Result<Self, String> {
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate).collect();
        let certificates = certificates.map_err(|why| format!("the certificate: {why}"))?;
        if certificates.is_empty() {
            return Err("there is no certificate in PEM in the file".to_owned());
        }
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|why| format!("the key: {why}"))?;
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|why| why.to_string())?
            .with_no_client_auth()
            .with_single_cert(certificates, key)
            .map_err(|why| format!("certificate and key: {why}"))?;
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
}
