//! TLS on both sides of a play: a certificate of this process's own, and a client that believes it and no other.

use std::io;
use std::sync::{Arc, LazyLock};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

/// Whom the certificate is for.
const NAME: &str = "news.test.example";

/// A certificate of its own issue.
#[derive(Debug)]
pub struct Certificate {
    certificate: String,
    key: String,
    der: CertificateDer<'static>,
}

static OWN: LazyLock<Result<Certificate, String>> = LazyLock::new(|| {
    let made = rcgen::generate_simple_self_signed([NAME.to_owned()]);
    let made = made.map_err(|error| error.to_string())?;
    Ok(Certificate {
        certificate: made.cert.pem(),
        key: made.signing_key.serialize_pem(),
        der: made.cert.der().clone(),
    })
});

/// What a driver gives its server where a transcript configures a certificate.
///
/// # Errors
/// When none can be made.
pub fn certificate() -> anyhow::Result<&'static Certificate> {
    OWN.as_ref().map_err(|why| anyhow::anyhow!("{why}"))
}

impl Certificate {
    /// The names that transcripts call the two files by, with their texts: the certificate, and its key.
    #[must_use]
    pub fn files(&self) -> [(&'static str, &str); 2] {
        [("cert.pem", &self.certificate), ("key.pem", &self.key)]
    }
}

/// The handshake of a client.
pub(crate) async fn secure<Io>(io: Io) -> io::Result<TlsStream<Io>>
where
    Io: AsyncRead + AsyncWrite + Unpin,
{
    let own = certificate().map_err(io::Error::other)?;
    let mut roots = RootCertStore::empty();
    roots.add(own.der.clone()).map_err(io::Error::other)?;
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(NAME).map_err(io::Error::other)?;
    let secured = TlsConnector::from(Arc::new(config)).connect(name, io);
    Ok(secured.await?.into())
}

/// The handshake of a server.
pub(crate) async fn accept<Io>(io: Io) -> io::Result<TlsStream<Io>>
where
    Io: AsyncRead + AsyncWrite + Unpin,
{
    let own = certificate().map_err(io::Error::other)?;
    let key = PrivateKeyDer::from_pem_slice(own.key.as_bytes()).map_err(io::Error::other)?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_single_cert(vec![own.der.clone()], key)
        .map_err(io::Error::other)?;
    Ok(TlsAcceptor::from(Arc::new(config)).accept(io).await?.into())
}
