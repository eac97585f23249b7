//! The list `[[pull]]` of the configuration: servers that articles are fetched from, as a newsreader does.

use std::path::PathBuf;

use newsreel_wire::Wildmat;
use serde::{Deserialize, Serialize};

use crate::config::{PeerConfig, PeerTls, is_word};

/// All of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct PullsConfig {
    /// Servers that articles are fetched from.
    pub pull: Vec<PullConfig>,
}

/// How connections to it are secured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum PullTls {
    /// Not at all.
    #[default]
    None,
    /// By STARTTLS before anything else; a server that cannot is not read from.
    Starttls,
    /// From the first octet on, as on port 563.
    Implicit,
}

impl From<PullTls> for PeerTls {
    fn from(tls: PullTls) -> Self {
        match tls {
            PullTls::None => Self::None,
            PullTls::Starttls => Self::Starttls,
            PullTls::Implicit => Self::Implicit,
        }
    }
}

/// A server that articles are fetched from, for a site that nobody feeds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PullConfig {
    /// What commands and the log call it; how far each of its groups was fetched is kept under this name.
    pub name: String,
    /// Where it listens, `host:port`; the host is a name or an address.
    pub address: String,
    /// Groups that are fetched, a wildmat; of these, those that are here.
    pub groups: String,
    /// How long after a run the next one begins, seconds; 0: only when `newsreel pull` is called.
    pub interval_s: u64,
    /// Of a group that was never fetched, so many of the newest articles are; 0: all.
    pub first_articles_max: u64,
    /// Whether what is new is asked by NEWNEWS, one command for all groups, where the server offers it; the first time, and where it does
    /// not, group by group (GROUP and OVER).
    pub newnews: bool,
    /// How connections are secured. The server's certificate is always verified, for the host of `address`.
    pub tls: PullTls,
    /// A file of the authorities that are believed, in PEM; empty: those of this machine. A relative path counts from the
    /// configuration file's directory; this file and the next three are read for each run.
    pub authority: PathBuf,
    /// The file of the certificate that we show, and of those between it and its authority, in PEM; empty: none.
    pub certificate: PathBuf,
    /// The file of its key, in PEM.
    pub key: PathBuf,
    /// As whom we log in; empty: not at all.
    pub user: String,
    /// The file whose first line is the password.
    pub password_file: PathBuf,
    /// Whether the password may go where anybody on the way can read it: without TLS.
    pub clear_text: bool,
    /// Whether the connection is compressed, where the server can.
    pub compress: bool,
}

impl Default for PullConfig {
    fn default() -> Self {
        Self {
            name: String::new(),
            address: String::new(),
            groups: "*".to_owned(),
            interval_s: 900,
            first_articles_max: 1000,
            newnews: false,
            tls: PullTls::None,
            authority: PathBuf::new(),
            certificate: PathBuf::new(),
            key: PathBuf::new(),
            user: String::new(),
            password_file: PathBuf::new(),
            clear_text: false,
            compress: false,
        }
    }
}

impl PullConfig {
    /// The same server as one that is sent to: it is reached in the same way.
    pub(crate) fn as_peer(&self) -> PeerConfig {
        PeerConfig {
            name: self.name.clone(),
            address: self.address.clone(),
            tls: self.tls.into(),
            authority: self.authority.clone(),
            certificate: self.certificate.clone(),
            key: self.key.clone(),
            user: self.user.clone(),
            password_file: self.password_file.clone(),
            clear_text: self.clear_text,
            compress: self.compress,
            ..PeerConfig::default()
        }
    }

    /// Its files: relative ones count from the configuration's directory.
    pub fn paths_mut(&mut self) -> [&mut PathBuf; 4] {
        [
            &mut self.authority,
            &mut self.certificate,
            &mut self.key,
            &mut self.password_file,
        ]
    }
}

/// What is wrong with them: key and what would be right.
#[must_use]
pub fn pull_problems(pulls: &[PullConfig]) -> Vec<(String, String)> {
    let mut problems = Vec::new();
    for (at, pull) in pulls.iter().enumerate() {
        let mut tell = |key: &str, right: &str| {
            problems.push((format!("[{at}].{key}"), right.to_owned()));
        };
        let before = pulls.get(..at).unwrap_or_default();
        if !is_word(&pull.name) {
            tell(
                "name",
                "a name of letters, digits, dots and hyphens, at most 100",
            );
        } else if before.iter().any(|other| other.name == pull.name) {
            tell("name", "another pull has this name: give each its own");
        }
        if let Err(why) = Wildmat::parse(&pull.groups) {
            tell("groups", &why.to_string());
        }
        for (key, why) in pull.as_peer().reached_by() {
            tell(key, &why);
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_is_wrong_is_told() {
        let check = |text: &str| {
            let pulls: PullsConfig = toml::from_str(text).unwrap();
            let all = pull_problems(&pulls.pull);
            all.into_iter().map(|(key, _)| key).collect::<Vec<_>>()
        };
        assert_eq!(check("[[pull]]\nname = 'a'\naddress = 'h:119'"), [""; 0]);
        let text = "[[pull]]\nname = 'a'\naddress = 'h'\ngroups = ''\nkey = 'k'\n[[pull]]\nname = 'a'\naddress = 'h:1'\nuser = 'u'";
        assert_eq!(
            check(text),
            [
                "[0].groups",
                "[0].address",
                "[0].key",
                "[1].name",
                "[1].user"
            ]
        );
    }
}
