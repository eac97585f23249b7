//! How a server elsewhere is reached, as a configuration says it: where, whether TLS is spoken, and as whom we log in.
//!
//! What can be wrong in it is told by its keys, and files that cannot be used by their names; a password is never shown.  Files
//! are read by who asks.

use std::net::IpAddr;
use std::path::Path;

use super::remote::{Login, Remote, Security};
use super::trust::Trust;

/// How connections are secured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Secured {
    /// Not at all.
    Not,
    /// By STARTTLS.
    Starttls,
    /// From the first octet on.
    Implicit,
}

impl Secured {
    /// The port where nobody says another.
    const fn usual_port(self) -> u16 {
        match self {
            Self::Not | Self::Starttls => 119,
            Self::Implicit => 563,
        }
    }
}

/// What a configuration says; its fields are called there as they are here.
#[derive(Debug, Clone, Copy)]
pub struct Reach<'c> {
    /// `host`, or `host:port`.
    pub address: &'c str,
    /// The address of this machine that connections come from; empty: what the system chooses.
    pub bind: &'c str,
    /// Whether TLS is spoken.
    pub tls: Secured,
    /// The authorities that are believed, in PEM; empty: this machine's.
    pub authority: &'c Path,
    /// The certificate that we show, in PEM; empty: none.
    pub certificate: &'c Path,
    /// Its key, in PEM.
    pub key: &'c Path,
    /// As whom we log in; empty: not at all.
    pub user: &'c str,
    /// The file whose first line is the password.
    pub password_file: &'c Path,
    /// Whether the password may go without TLS.
    pub clear_text: bool,
    /// Whether connections are compressed where the server can.
    pub compress: bool,
}

/// Host and port, if it says a host.
fn place(address: &str, usual_port: u16) -> Option<(&str, u16)> {
    let bare = |host: &'_ str| !host.is_empty() && !host.contains(['[', ']', ' ']);
    let (host, port) = match address.strip_prefix('[') {
        Some(rest) => {
            let (host, behind) = rest.split_once(']')?;
            (
                host,
                behind
                    .strip_prefix(':')
                    .or((behind.is_empty()).then_some(""))?,
            )
        }
        // More than one colon: an address without a port.
        None if address.matches(':').count() > 1 => (address, ""),
        None => address.split_once(':').unwrap_or((address, "")),
    };
    let is_silent = port.is_empty() && !address.ends_with(':') || address.ends_with("::");
    let port = match port {
        "" if is_silent => usual_port,
        port => port.parse().ok().filter(|port| *port > 0)?,
    };
    bare(host).then_some((host, port))
}

impl Reach<'_> {
    fn bind(&self) -> Result<Option<IpAddr>, String> {
        if self.bind.is_empty() {
            return Ok(None);
        }
        let parsed = self.bind.parse().map(Some);
        parsed.map_err(|_| format!("{:?} is no address: write one as in 192.0.2.7", self.bind))
    }

    /// What is wrong: the key, and what would be right.
    #[must_use]
    pub fn problems(&self) -> Vec<(&'static str, String)> {
        let mut problems = Vec::new();
        let mut tell = |key, right: &str| problems.push((key, right.to_owned()));
        if place(self.address, self.tls.usual_port()).is_none() {
            let right = "a host, or `host:port`, as in \"news.example.org:119\"";
            tell("address", right);
        }
        if let Err(why) = self.bind() {
            tell("bind", &why);
        }
        let is_given = |path: &Path| !path.as_os_str().is_empty();
        let files = [
            ("authority", self.authority),
            ("certificate", self.certificate),
            ("key", self.key),
        ];
        let of_no_use = files.iter().find(|(_, path)| is_given(path));
        if let Some((key, _)) = of_no_use.filter(|_| self.tls == Secured::Not) {
            tell(
                key,
                "it is of no use without `tls`, \"starttls\" or \"implicit\"",
            );
        } else if is_given(self.certificate) != is_given(self.key) {
            let right = "a certificate and its `key` go together: give both or none";
            tell("certificate", right);
        }
        if self.user.is_empty() == is_given(self.password_file) {
            let right = "a user and a `password_file` go together: give both or none";
            tell("user", right);
        }
        if self.user.contains(char::is_whitespace) {
            tell("user", "a name without spaces");
        }
        problems
    }

    /// The server, to be read from; `read` gives a file's octets.
    ///
    /// # Errors
    /// What is wrong with what it says, or with a file.
    pub fn remote(
        &self,
        read: &dyn Fn(&Path) -> Result<Vec<u8>, String>,
    ) -> Result<Remote, String> {
        if let Some((key, right)) = self.problems().into_iter().next() {
            return Err(format!("{key}: {right}"));
        }
        let (host, port) = place(self.address, self.tls.usual_port()).unwrap_or_default();
        Ok(Remote {
            port,
            security: self.security(host, read)?,
            bind: self.bind()?,
            login: self.login(read)?,
            compress: self.compress,
            ..Remote::reader(host)
        })
    }

    fn security(
        &self,
        host: &str,
        read: &dyn Fn(&Path) -> Result<Vec<u8>, String>,
    ) -> Result<Security, String> {
        let given = |path: &Path| match path.as_os_str().is_empty() {
            true => Ok(None),
            false => read(path).map(Some),
        };
        let trust = || {
            let authority = given(self.authority)?;
            let (certificate, key) = (given(self.certificate)?, given(self.key)?);
            let identity = certificate.as_deref().zip(key.as_deref());
            let trust = Trust::new(host, authority.as_deref(), identity);
            trust.map_err(|why| format!("TLS cannot be spoken with {host}: {why}"))
        };
        Ok(match self.tls {
            Secured::Not => Security::None,
            Secured::Starttls => Security::Starttls(trust()?),
            Secured::Implicit => Security::Implicit(trust()?),
        })
    }

    fn login(
        &self,
        read: &dyn Fn(&Path) -> Result<Vec<u8>, String>,
    ) -> Result<Option<Login>, String> {
        if self.user.is_empty() {
            return Ok(None);
        }
        let file = self.password_file.display();
        let text = String::from_utf8(read(self.password_file)?);
        let text = text.map_err(|_| format!("the password in {file} is not UTF-8"))?;
        let password = text.lines().next().unwrap_or_default().to_owned();
        if password.is_empty() {
            return Err(format!("there is no password in the first line of {file}"));
        }
        Ok(Some(Login {
            user: self.user.to_owned(),
            password,
            in_clear: self.clear_text,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reach(address: &str) -> Reach<'_> {
        let none = Path::new("");
        Reach {
            address,
            bind: "",
            tls: Secured::Not,
            authority: none,
            certificate: none,
            key: none,
            user: "",
            password_file: none,
            clear_text: false,
            compress: false,
        }
    }

    #[test]
    fn a_host_is_enough() {
        let of = |address| place(address, 119);
        assert_eq!(of("news.example.org"), Some(("news.example.org", 119)));
        assert_eq!(
            of("news.example.org:1119"),
            Some(("news.example.org", 1119))
        );
        assert_eq!(of("192.0.2.1:563"), Some(("192.0.2.1", 563)));
        assert_eq!(of("2001:db8::1"), Some(("2001:db8::1", 119)));
        assert_eq!(of("2001:db8::"), Some(("2001:db8::", 119)));
        assert_eq!(of("[2001:db8::1]"), Some(("2001:db8::1", 119)));
        assert_eq!(of("[2001:db8::1]:1119"), Some(("2001:db8::1", 1119)));
        for bad in [
            "",
            ":119",
            "host:",
            "host:x",
            "host:0",
            "host:70000",
            "[::1",
            "[::1]x",
            "a b",
        ] {
            assert_eq!(of(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_by_its_key() {
        let keys = |reach: Reach<'_>| {
            let problems = reach.problems().into_iter();
            problems.map(|(key, _)| key).collect::<Vec<_>>()
        };
        let good = reach("news.example.org");
        let some = Path::new("/file");
        assert_eq!(keys(good), [""; 0]);
        assert_eq!(
            keys(Reach {
                bind: "x",
                address: ":",
                ..good
            }),
            ["address", "bind"]
        );
        assert_eq!(
            keys(Reach {
                authority: some,
                ..good
            }),
            ["authority"]
        );
        let tls = Secured::Implicit;
        assert_eq!(
            keys(Reach {
                tls,
                key: some,
                ..good
            }),
            ["certificate"]
        );
        assert_eq!(keys(Reach { user: "me", ..good }), ["user"]);
        assert_eq!(
            keys(Reach {
                password_file: some,
                ..good
            }),
            ["user"]
        );
        assert_eq!(
            keys(Reach {
                user: "m e",
                password_file: some,
                ..good
            }),
            ["user"]
        );
    }

    #[test]
    fn a_password_is_the_first_line_of_its_file() {
        let good = Reach {
            user: "me",
            password_file: Path::new("/word"),
            bind: "192.0.2.1",
            ..reach("news.example.org")
        };
        let remote = |text: &'static str| good.remote(&|_| Ok(text.as_bytes().to_vec()));
        let found = remote("secret\r\nmore\n").unwrap();
        assert_eq!(found.login.unwrap().password, "secret");
        assert_eq!((found.port, found.bind), (119, "192.0.2.1".parse().ok()));
        assert!(found.reads);
        let told = remote("\n").unwrap_err();
        assert_eq!(told, "there is no password in the first line of /word");
        let told = good.remote(&|path| Err(format!("cannot read {}", path.display())));
        assert_eq!(told.unwrap_err(), "cannot read /word");
    }
}
