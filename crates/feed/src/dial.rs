//! Connections to peers: over the network, as the configuration says how they are secured and as whom we log in.
//!
//! Files of certificates and passwords are read for each connection, so that renewed ones need no reload; one that cannot be
//! used is said where the peer's connections are, and the peer's articles wait.  What is sent then is the link's matter.

use std::fmt::{self, Debug};
use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use newsreel_host::{Disk, read_whole};
use newsreel_net::client::{Client, Login, Remote, Security, Trust};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::config::{PeerConfig, PeerTls};

/// A file of certificates, a key or a password is not larger.
pub const SECRET_OCTETS_MAX: usize = 1 << 20;

/// What a connection is made of.
pub trait Io: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Io for T {}

/// A connection that was made.
pub struct Dialled {
    /// The connection.
    pub io: Box<dyn Io>,
    /// How long the peer's system took to answer, however busy the peer is.
    pub reached_in: Duration,
}

impl Debug for Dialled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dialled")
            .field("reached_in", &self.reached_in)
            .finish_non_exhaustive()
    }
}

/// A connection that is being made.
pub(crate) type Dialling<'d> = Pin<Box<dyn Future<Output = io::Result<Dialled>> + Send + 'd>>;

/// Makes connections, as far as a peer that waits for commands.
pub trait Dial: Send + Sync + Debug {
    /// Connects to a peer.
    fn dial<'d>(&'d self, peer: &'d PeerConfig) -> Dialling<'d>;
}

/// Connects over the network.
#[derive(Debug, Clone)]
pub struct NetDial {
    disk: Arc<dyn Disk>,
}

impl NetDial {
    /// Certificates and passwords are files of this disk.
    #[must_use]
    pub fn new(disk: Arc<dyn Disk>) -> Self {
        Self { disk }
    }
}

impl Dial for NetDial {
    fn dial<'d>(&'d self, peer: &'d PeerConfig) -> Dialling<'d> {
        Box::pin(async {
            let (disk, of) = (Arc::clone(&self.disk), peer.clone());
            let remote = tokio::task::spawn_blocking(move || remote(disk.as_ref(), &of)).await;
            let remote = remote.map_err(io::Error::other)?;
            let remote = remote.map_err(io::Error::other)?;
            let client = Client::connect(&remote).await.map_err(io::Error::other)?;
            let reached_in = client.reached_in();
            let io = client.into_io();
            let io = io.ok_or_else(|| io::Error::other("the peer says more than it was asked"))?;
            let io = Box::new(io);
            Ok(Dialled { io, reached_in })
        })
    }
}

/// The server to connect to.
pub(crate) fn remote(disk: &dyn Disk, peer: &PeerConfig) -> Result<Remote, String> {
    let (host, port) = peer.place().unwrap_or_default();
    Ok(Remote {
        port,
        security: security(disk, peer, host)?,
        bind: peer.bind()?,
        login: login(disk, peer)?,
        reads: false,
        compress: peer.compress,
        ..Remote::reader(host)
    })
}

fn security(disk: &dyn Disk, peer: &PeerConfig, host: &str) -> Result<Security, String> {
    if peer.tls == PeerTls::None {
        return Ok(Security::None);
    }
    let authority = read(disk, &peer.authority)?;
    let identity = match (read(disk, &peer.certificate)?, read(disk, &peer.key)?) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        _ => None,
    };
    let identity = identity.as_ref();
    let identity = identity.map(|(certificate, key)| (certificate.as_slice(), key.as_slice()));
    let trust = Trust::new(host, authority.as_deref(), identity);
    let trust = trust.map_err(|why| format!("TLS cannot be spoken with {host}: {why}"))?;
    Ok(match peer.tls {
        PeerTls::Starttls => Security::Starttls(trust),
        PeerTls::Implicit | PeerTls::None => Security::Implicit(trust),
    })
}

fn login(disk: &dyn Disk, peer: &PeerConfig) -> Result<Option<Login>, String> {
    if peer.user.is_empty() {
        return Ok(None);
    }
    let file = peer.password_file.display();
    let octets = read(disk, &peer.password_file)?.unwrap_or_default();
    let text = String::from_utf8(octets);
    let text = text.map_err(|_| format!("the password in {file} is not UTF-8"))?;
    let password = text.lines().next().unwrap_or_default().to_owned();
    if password.is_empty() {
        return Err(format!("there is no password in the first line of {file}"));
    }
    Ok(Some(Login {
        user: peer.user.clone(),
        password,
        in_clear: peer.clear_text,
    }))
}

fn read(disk: &dyn Disk, path: &Path) -> Result<Option<Vec<u8>>, String> {
    if path.as_os_str().is_empty() {
        return Ok(None);
    }
    let octets = read_whole(disk, path, SECRET_OCTETS_MAX);
    octets.map(Some).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use newsreel_host::{MemoryDisk, replace_file};

    use super::*;

    /// What is wrong with files is said with their names, and no password is shown.
    #[test]
    fn files_that_cannot_be_used_are_named() {
        let disk = MemoryDisk::new();
        let put = |name: &str, text: &str| {
            replace_file(&disk, Path::new(name), text.as_bytes()).unwrap();
        };
        put("/word", "secret\r\nmore\n");
        put("/empty", "\n");
        let why = |change: &dyn Fn(&mut PeerConfig)| {
            let mut peer = PeerConfig {
                name: "b.example".to_owned(),
                address: "b.example:119".to_owned(),
                user: "us".to_owned(),
                password_file: "/word".into(),
                ..PeerConfig::default()
            };
            change(&mut peer);
            remote(&disk, &peer).map(|it| (it.login.map(|it| it.password), it.bind))
        };
        let local = "192.0.2.1".parse().unwrap();
        let good = why(&|peer| peer.bind = "192.0.2.1".to_owned()).unwrap();
        assert_eq!(good, (Some("secret".to_owned()), Some(local)));
        let no_word = why(&|peer| peer.password_file = "/empty".into()).unwrap_err();
        assert_eq!(no_word, "there is no password in the first line of /empty");
        let missing = why(&|peer| peer.password_file = "/none".into()).unwrap_err();
        assert!(missing.contains("/none"), "{missing}");
        let no_authority = why(&|peer| {
            (peer.tls, peer.authority) = (PeerTls::Implicit, "/word".into());
        });
        let no_authority = no_authority.unwrap_err();
        assert!(
            no_authority.contains("b.example: the authority: "),
            "{no_authority}"
        );
    }
}
