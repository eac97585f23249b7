//! Whom we believe to be the server we mean to reach, and as whom we show ourselves (RFC 8143, RFC 5280).
//!
//! A certificate is always verified, by its name too; there is no way to leave that out.  Where an authority of one's own is
//! given, it is believed and no other.

use std::io;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// What a client needs for TLS with one server.
#[derive(Clone)]
pub struct Trust {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl std::fmt::Debug for Trust {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trust")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Certificates from a text in PEM; at least one.
fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let all = all.map_err(|why| why.to_string())?;
    if all.is_empty() {
        return Err("there is no certificate in PEM in it".to_owned());
    }
    Ok(all)
}

/// The authorities to believe.
fn roots(own: Option<&[u8]>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    if let Some(pem) = own {
        for certificate in certificates(pem).map_err(|why| format!("the authority: {why}"))? {
            let added = roots.add(certificate);
            added.map_err(|why| format!("the authority: {why}"))?;
        }
        return Ok(roots);
    }
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        return Err(
            "this machine has no certificates of authorities: install its ca-certificates, \
             or give the authority of the server"
                .to_owned(),
        );
    }
    Ok(roots)
}

impl Trust {
    /// For a server of this name or address.  `authority` is the text of a file of the authorities that are believed (none:
    /// those of the machine), `identity` those of our own certificate, with what is between it and its authority, and of its key.
    ///
    /// # Errors
    /// What is wrong with which of them.
    pub fn new(
        host: &str,
        authority: Option<&[u8]>,
        identity: Option<(&[u8], &[u8])>,
    ) -> Result<Self, String> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| format!("no certificate can be for the name {host:?}"))?;
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|why| why.to_string())?
            .with_root_certificates(roots(authority)?);
        let config = match identity {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let shown = certificates(certificate);
                let shown = shown.map_err(|why| format!("our certificate: {why}"))?;
                let key = PrivateKeyDer::from_pem_slice(key);
                let key = key.map_err(|why| format!("the key of our certificate: {why}"))?;
                let built = builder.with_client_auth_cert(shown, key);
                built.map_err(|why| format!("our certificate and its key: {why}"))?
            }
        };
        let connector = TlsConnector::from(Arc::new(config));
        Ok(Self { connector, name })
    }

    /// The handshake; how long it may take is the caller's matter.  Where it fails the connection is there still.
    pub(crate) async fn connect<Io>(&self, io: Io) -> Result<TlsStream<Io>, (io::Error, Io)>
    where
        Io: AsyncRead + AsyncWrite + Unpin,
    {
        let connecting = self.connector.connect(self.name.clone(), io);
        connecting.into_fallible().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_told() {
        let made = rcgen::generate_simple_self_signed(["a.example".to_owned()]).unwrap();
        let (own, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let (own, key) = (own.as_bytes(), key.as_bytes());
        let why = |host: &str, authority, identity| {
            Trust::new(host, authority, identity).map(|_| ()).err()
        };
        assert_eq!(why("a.example", Some(own), Some((own, key))), None);
        assert_eq!(why("192.0.2.1", Some(own), None), None);
        let bad = why("two words", Some(own), None).unwrap();
        assert_eq!(bad, "no certificate can be for the name \"two words\"");
        let bad = why("a.example", Some(b"nothing"), None).unwrap();
        assert_eq!(bad, "the authority: there is no certificate in PEM in it");
        let bad = why("a.example", Some(own), Some((b"", key))).unwrap();
        assert!(bad.starts_with("our certificate: there is no"), "{bad}");
        let bad = why("a.example", Some(own), Some((own, own))).unwrap();
        assert!(bad.starts_with("the key of our certificate: "), "{bad}");
        let other = rcgen::generate_simple_self_signed(["a.example".to_owned()]).unwrap();
        let other = other.signing_key.serialize_pem();
        let bad = why("a.example", Some(own), Some((own, other.as_bytes()))).unwrap();
        assert!(bad.starts_with("our certificate and its key: "), "{bad}");
    }
}
