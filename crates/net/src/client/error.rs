//! What can go wrong with a server elsewhere: with which, at what, why, and what to do.
//!
//! What the server said is shown shortened and without control characters; what we sent is not shown.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// Octets of what a server said that an error shows.
const SHOWN_OCTETS_MAX: usize = 120;

/// An error of a connection to a server elsewhere.  After it the connection is of no use.
#[derive(Debug, thiserror::Error)]
#[error("{server}: {doing}: {fault}")]
pub struct ClientError {
    /// The server.
    pub server: Arc<str>,
    /// What was being done.
    pub doing: &'static str,
    /// What went wrong.
    pub fault: Fault,
}

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The name leads nowhere.
    #[error("the name has no address: {0}; is it spelled right, and does the name server answer?")]
    Name(io::Error),
    /// Nobody there takes connections.
    #[error("cannot connect: {source}{}", hint(source, *bind))]
    Connect {
        /// What the system said about the last address tried.
        source: io::Error,
        /// The address that was to be connected from.
        bind: Option<IpAddr>,
    },
    /// The handshake failed.
    #[error("TLS: {source}{}", tls_hint(source))]
    Tls {
        /// What went wrong.
        source: io::Error,
    },
    /// Nothing for too long.
    #[error("nothing came for {} s", .0.as_secs())]
    Silent(Duration),
    /// It takes too long in all.
    #[error("not done after {} s", .0.as_secs())]
    Slow(Duration),
    /// The other side has closed the connection.
    #[error("the server closed the connection")]
    Closed,
    /// The connection broke.
    #[error(transparent)]
    Io(io::Error),
    /// The server says no.
    #[error("the server says {code} {said}{}", advice(*code))]
    Refused {
        /// Its code.
        code: u16,
        /// Its words.
        said: Said,
    },
    /// That is no NNTP.
    #[error("that is not what a news server says: {0:?}")]
    Nonsense(Said),
    /// An answer is larger than anything we take.
    #[error("the answer is longer than {0} octets")]
    TooLarge(usize),
    /// The server cannot do what the configuration demands.
    #[error("the server does not offer {0}")]
    Missing(&'static str),
    /// A password would be readable on the way.
    #[error("the password would go in clear: use TLS, or permit that")]
    InClear,
    /// No connection came free.
    #[error("all are in use, and none came back for {} s", .0.as_secs())]
    Busy(Duration),
    /// The server is left alone after a failure.
    #[error("it is left alone for a while: {0}")]
    Resting(Arc<str>),
    /// We are stopping.
    #[error("this server is stopping")]
    Stopped,
    /// What the configuration says cannot be used, such as a file.
    #[error("{0}")]
    Unusable(String),
    /// What was to be said cannot be: an error of ours.
    #[error("cannot be said: {0}")]
    Unsayable(&'static str),
}

impl Fault {
    /// Whether the server turned us away: trying again soon helps nobody.
    #[must_use]
    pub const fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::Refused { .. } | Self::Missing(_) | Self::InClear | Self::Unusable(_)
        )
    }
}

/// Words of a server, made fit to be shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Said(Box<str>);

impl Said {
    pub(crate) fn new(octets: &[u8]) -> Self {
        let is_cut = octets.len() > SHOWN_OCTETS_MAX;
        let text = String::from_utf8_lossy(octets.get(..SHOWN_OCTETS_MAX).unwrap_or(octets));
        let visible = |shown: char| if shown.is_control() { '?' } else { shown };
        let mut text: String = text.chars().map(visible).collect();
        if is_cut {
            text.push_str("...");
        }
        Self(text.into())
    }
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// What may be done about a server that cannot be reached.
fn hint(source: &io::Error, bind: Option<IpAddr>) -> String {
    match (source.kind(), bind) {
        (io::ErrorKind::ConnectionRefused, _) => "; is it the right port?".to_owned(),
        (io::ErrorKind::AddrNotAvailable, Some(bind)) => {
            format!("; does this machine have the address {bind}?")
        }
        _ => String::new(),
    }
}

/// What may be done about a handshake that failed.
fn tls_hint(error: &io::Error) -> &'static str {
    match crate::certificate::advice(error) {
        "" => "; is it the right port, and its certificate one that is believed here?",
        advice => advice,
    }
}

/// What may be done about a refusal.
const fn advice(code: u16) -> &'static str {
    match code {
        480 => "; it wants a login: give a user and a password",
        481 | 482 => "; are user and password right?",
        483 => "; it wants TLS",
        502 => "; may this machine use that server?",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_with_whom_at_what_and_what_to_do() {
        let error = |doing, fault| {
            let server = Arc::from("news.example:119");
            let error = ClientError {
                server,
                doing,
                fault,
            };
            error.to_string()
        };
        let said = Said::new(b"no\x1b[31m such user");
        assert_eq!(
            error("AUTHINFO PASS", Fault::Refused { code: 481, said }),
            "news.example:119: AUTHINFO PASS: the server says 481 no?[31m such user; are user and password right?"
        );
        let long = error("GROUP", Fault::Nonsense(Said::new(&[b'x'; 5000])));
        assert!(long.ends_with("xxx...\"") && long.len() < 220, "{long}");
        let bind = Some(IpAddr::from([192, 0, 2, 1]));
        let source = io::ErrorKind::AddrNotAvailable.into();
        let unreachable = error("connecting", Fault::Connect { source, bind });
        let end = "; does this machine have the address 192.0.2.1?";
        assert!(unreachable.ends_with(end), "{unreachable}");
    }
}
