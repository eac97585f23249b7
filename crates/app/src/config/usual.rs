//! Which configuration file is meant where none is given: the one that the environment names, or the usual one if it is there.
//!
//! The usual one is the machine's server, so a command that says another spool never reads it: its buffers belong to that server.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use newsreel_host::{Disk as _, RealDisk};

/// Names the file for every command that takes `--config`; empty: there is none, not the usual one either.
const VARIABLE: &str = "NEWSREEL_CONFIG";

/// The usual file of a server, as the unit in `contrib/systemd` has it.
pub(super) const OF_SERVERS: &str = "/etc/newsreel.toml";

/// That of a caching server.
pub(super) const OF_CACHES: &str = "/etc/newsreel-cache.toml";

/// What `--config` is.
pub(crate) const HELP: &str =
    "The configuration file [default: $NEWSREEL_CONFIG, else /etc/newsreel.toml if it is there]";

/// The same beside `--spool`.
pub(crate) const HELP_WITH_SPOOL: &str = "The configuration file [default: $NEWSREEL_CONFIG; without --spool /etc/newsreel.toml, if it is there]";

/// The same where a spool is used without its server.
pub(crate) const HELP_OFFLINE: &str = "The configuration file [default: $NEWSREEL_CONFIG; without --spool /etc/newsreel.toml, if it is there; \
     else, offline, what the server last ran with]";

/// The same of caches.
pub(crate) const HELP_WITH_DIRECTORY: &str = "The configuration file [default: $NEWSREEL_CONFIG; without --directory /etc/newsreel-cache.toml, if it is there]";

/// The file that is meant; `elsewhere`: another spool or cache than the usual one was said.
pub(super) fn meant(given: Option<&Path>, usual: &str, elsewhere: bool) -> Option<PathBuf> {
    let is_there = |path: &Path| RealDisk.exists(path).unwrap_or(true);
    let usual = Some(Path::new(usual)).filter(|_| !elsewhere);
    chosen(given, std::env::var_os(VARIABLE), usual, is_there)
}

fn chosen(
    given: Option<&Path>,
    variable: Option<OsString>,
    usual: Option<&Path>,
    is_there: impl Fn(&Path) -> bool,
) -> Option<PathBuf> {
    match (given, variable) {
        (Some(given), _) => Some(given.to_owned()),
        (None, Some(named)) => (!named.is_empty()).then(|| named.into()),
        (None, None) => usual.filter(|path| is_there(path)).map(Path::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_goes_before_the_environment_and_that_before_the_usual() {
        let usual = Some(Path::new("/etc/newsreel.toml"));
        for (given, variable, usual, is_there, meant) in [
            (Some("a"), Some("b"), usual, true, Some("a")),
            (None, Some("b"), usual, true, Some("b")),
            (None, Some(""), usual, true, None),
            (None, None, usual, true, Some("/etc/newsreel.toml")),
            (None, None, usual, false, None),
            (None, None, None, true, None),
            // One that is named and not there is an error, and no reason to take another.
            (None, Some("b"), usual, false, Some("b")),
        ] {
            let given = given.map(Path::new);
            let found = chosen(given, variable.map(OsString::from), usual, |_| is_there);
            assert_eq!(found.as_deref(), meant.map(Path::new));
        }
    }

    #[test]
    fn help_names_what_is_looked_for() {
        for help in [HELP, HELP_WITH_SPOOL, HELP_OFFLINE] {
            assert!(
                help.contains(VARIABLE) && help.contains(OF_SERVERS),
                "{help}"
            );
        }
        assert!(HELP_WITH_DIRECTORY.contains(VARIABLE) && HELP_WITH_DIRECTORY.contains(OF_CACHES));
    }
}
