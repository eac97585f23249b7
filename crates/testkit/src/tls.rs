//! TLS on both sides of a play: a certificate of this process's own, a client that believes it and no other, and an
//! authority that issues certificates to clients.

use std::io;
use std::sync::{Arc, LazyLock};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

/// Whom the certificate is for.
const NAME: &str = "news.test.example";

/// A certificate of its own issue, and an authority for clients.
#[derive(Debug)]
pub struct Certificate {
    certificate: String,
    key: String,
    der: CertificateDer<'static>,
    authority: Issuer<'static, KeyPair>,
    authority_pem: String,
}

static OWN: LazyLock<Result<Certificate, String>> = LazyLock::new(|| {
    let made = rcgen::generate_simple_self_signed([NAME.to_owned()]);
    let made = made.map_err(|error| error.to_string())?;
    let (authority, authority_pem) = authority().map_err(|error| error.to_string())?;
    Ok(Certificate {
        authority,
        authority_pem,
        certificate: made.cert.pem(),
        key: made.signing_key.serialize_pem(),
        der: made.cert.der().clone(),
    })
});

fn authority() -> Result<(Issuer<'static, KeyPair>, String), rcgen::Error> {
    let mut params = named("authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate()?;
    let pem = params.self_signed(&key)?.pem();
    Ok((Issuer::new(params, key), pem))
}

/// What is to be certified of somebody: a common name, and nothing else.
fn named(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

/// What a driver gives its server where a transcript configures a certificate.
///
/// # Errors
/// When none can be made.
pub fn certificate() -> anyhow::Result<&'static Certificate> {
    OWN.as_ref().map_err(|why| anyhow::anyhow!("{why}"))
}

impl Certificate {
    /// The names that transcripts call the files by, with their texts: the certificate, its key, and the authority of clients.
    #[must_use]
    pub fn files(&self) -> [(&'static str, &str); 3] {
        [
            ("cert.pem", &self.certificate),
            ("key.pem", &self.key),
            ("clients.pem", &self.authority_pem),
        ]
    }

    /// A certificate for a client of this name, and its key.
    fn issue(
        &self,
        name: &str,
    ) -> Result<(CertificateDer<'static>, PrivateKeyDer<'static>), rcgen::Error> {
        let key = KeyPair::generate()?;
        let made = named(name).signed_by(&key, &self.authority)?;
        Ok((made.der().clone(), key.into()))
    }
}

/// The handshake of a client; with a name it shows a certificate for that.
pub(crate) async fn secure<Io>(io: Io, shown: Option<&str>) -> io::Result<TlsStream<Io>>
where
    Io: AsyncRead + AsyncWrite + Unpin,
{
    let own = certificate().map_err(io::Error::other)?;
    let mut roots = RootCertStore::empty();
    roots.add(own.der.clone()).map_err(io::Error::other)?;
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots);
    let config = match shown.map(|name| own.issue(name)).transpose() {
        Ok(None) => config.with_no_client_auth(),
        Ok(Some((certificate, key))) => config
            .with_client_auth_cert(vec![certificate], key)
            .map_err(io::Error::other)?,
        Err(error) => return Err(io::Error::other(error)),
    };
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
