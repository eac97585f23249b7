//! A news server elsewhere: where it is, and how we speak with it.
//!
//! All of it is settled before the first connection, so what can be wrong in a configuration is told at the start.  A
//! password is never printed.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use super::trust::Trust;

/// A server.
#[derive(Debug, Clone)]
pub struct Remote {
    /// Its name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Whether, and how, TLS is spoken.
    pub security: Security,
    /// The address of this machine that connections come from; none: what the system chooses.
    pub bind: Option<IpAddr>,
    /// As whom we log in.
    pub login: Option<Login>,
    /// Whether we come to read: MODE READER is sent where the server asks for it.
    pub reads: bool,
    /// Whether connections are compressed where the server can (RFC 8054).
    pub compress: bool,
    /// How long things may take.
    pub times: Times,
}

/// How a connection is secured.
#[derive(Debug, Clone)]
pub enum Security {
    /// Not at all.
    None,
    /// By STARTTLS, before anything else is said; a server that cannot is not spoken to.
    Starttls(Trust),
    /// TLS from the first octet on (port 563).
    Implicit(Trust),
}

/// A name and its password.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// The name.
    pub user: String,
    /// The password.
    pub password: String,
    /// Whether both may be sent where anybody on the way can read them.
    pub in_clear: bool,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login")
            .field("user", &self.user)
            .field("in_clear", &self.in_clear)
            .finish_non_exhaustive()
    }
}

/// How long things may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// From the name's look-up until the server is ready for commands.
    pub connect: Duration,
    /// The longest silence while something is awaited, or not taken.
    pub silence: Duration,
    /// One whole answer, however much it is.
    pub answer: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(30),
            silence: Duration::from_secs(60),
            answer: Duration::from_secs(30 * 60),
        }
    }
}

impl Remote {
    /// A server that is read from, in clear, at the usual port, with nothing else said.
    #[must_use]
    pub fn reader(host: &str) -> Self {
        Self {
            host: host.to_owned(),
            port: 119,
            security: Security::None,
            bind: None,
            login: None,
            reads: true,
            compress: false,
            times: Times::default(),
        }
    }

    /// What errors call it.
    #[must_use]
    pub fn name(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_printed() {
        let remote = Remote {
            host: "2001:db8::1".to_owned(),
            login: Some(Login {
                user: "reader".to_owned(),
                password: "secret".to_owned(),
                in_clear: false,
            }),
            ..Remote::reader("")
        };
        let printed = format!("{remote:?}");
        assert!(printed.contains("reader") && !printed.contains("secret"));
        assert_eq!(remote.name(), "[2001:db8::1]:119");
    }
}
