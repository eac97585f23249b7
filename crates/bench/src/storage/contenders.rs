//! Who is measured: this program with each storage method, INN with those that it has too, and the bare calls of those of files.
//!
//! To add one: a row. Invariant: buffers of all contenders are as large together, and written out in full before the feed.

use std::path::Path;

use super::bare::Bare;
use super::figures::StorageArgs;
use crate::error::Error;
use crate::rivals::{CommandRival, Rival, ScriptRival};

/// A storage method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Method {
    /// Its name in tables and for choosing it.
    pub name: &'static str,
    /// The tables of its set; none for cyclic buffers.
    set: Option<&'static str>,
    /// What INN calls it, where INN has it.
    inn: Option<&'static str>,
    /// Held against bare calls, too; whether the names are those of groups.
    bare: Option<bool>,
}

/// All of them; the one that figures are relative to comes first, as the paper's standard INN does.
pub const METHODS: [Method; 6] = [
    Method {
        name: REFERENCE,
        set: Some("method = \"tradspool\"\nlayouts = [\"* flat\"]\n"),
        inn: Some("tradspool"),
        bare: Some(true),
    },
    Method {
        name: "tradspool-range1024",
        set: Some("method = \"tradspool\"\nlayouts = [\"* range1024\"]\n"),
        inn: None,
        bare: None,
    },
    Method {
        name: "timehash",
        set: Some("method = \"timehash\"\n"),
        inn: Some("timehash"),
        bare: Some(false),
    },
    Method {
        name: "md5spool",
        set: Some("method = \"md5spool\"\n"),
        inn: None,
        bare: None,
    },
    Method {
        name: "segment",
        set: Some("method = \"segment\"\n"),
        inn: None,
        bare: None,
    },
    Method {
        name: "cnfs",
        set: None,
        inn: Some("cnfs"),
        bare: None,
    },
];

/// What others are held against.
pub(super) const REFERENCE: &str = "tradspool-flat";

/// The calls that a spool of files cannot do without, made durable as often as a server would.
pub(super) const BARE: &str = "bare";
/// ... and never.
pub(super) const BARE_UNSYNCED: &str = "unsynced";

/// Entries that INN's history is made for.
const INN_HISTORY: u64 = 1_000_000;
const MIB: u64 = 1 << 20;

impl Method {
    /// The one of that name.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn named(name: &str) -> Result<Self, Error> {
        let found = METHODS.into_iter().find(|method| method.name == name);
        found.ok_or_else(|| Error::Argument {
            name: "methods",
            value: name.to_owned(),
            why: "there is no such storage method".to_owned(),
        })
    }

    /// However much it is fed, it takes no more room.
    pub(crate) const fn is_cyclic(&self) -> bool {
        self.set.is_none()
    }

    /// The configuration of a server that stores everything so, in its spool or in a directory elsewhere.
    pub(crate) fn config(&self, buffers_octets: u64, elsewhere: Option<&Path>) -> String {
        if let Some(set) = self.set {
            let at = elsewhere.map_or_else(String::new, |at| format!("directory = {at:?}\n"));
            return format!("[[set]]\nname = \"all\"\n{set}{at}\n[[rule]]\nset = \"all\"\n");
        }
        let buffer = |name| {
            let at = elsewhere.map(|at| at.join(name));
            let at = at.map_or_else(String::new, |at| format!("path = {at:?}\n"));
            format!(
                "[[buffer]]\nname = \"{name}\"\noctets = {}\n{at}",
                buffers_octets / 2
            )
        };
        format!("{}\n{}", buffer("A"), buffer("B"))
    }
}

/// One server with one method.
#[derive(Debug)]
pub(super) struct Contender {
    pub(super) server: &'static str,
    pub(super) method: Method,
}

impl Contender {
    /// Those that were asked for, the reference of each server first.
    pub(super) fn all(args: &StorageArgs) -> Vec<Self> {
        let chosen = METHODS.into_iter().filter(|method| {
            args.methods.is_empty() || args.methods.iter().any(|name| name == method.name)
        });
        let inn = chosen
            .clone()
            .filter(|m| args.inn.is_some() && m.inn.is_some());
        let bare = chosen.clone().filter(|method| method.bare.is_some());
        let of = |server| move |method| Self { server, method };
        chosen
            .map(of("newsreel"))
            .chain(inn.map(of("inn")))
            .chain(bare.clone().map(of(BARE)))
            .chain(bare.map(of(BARE_UNSYNCED)))
            .collect()
    }

    /// The bare calls, below a directory, if it is they.
    pub(super) fn bare(&self, args: &StorageArgs, at: &Path) -> Option<Bare> {
        let durable = match self.server {
            BARE => Some(args.window),
            BARE_UNSYNCED => None,
            _ => return None,
        };
        Some(Bare::new(at.to_path_buf(), self.method.bare?, durable))
    }

    /// What starts it; `config` is where this program's configuration lies.
    pub(super) fn rival(&self, args: &StorageArgs, config: &Path) -> Box<dyn Rival> {
        let inn = args.inn.as_ref().zip(self.method.inn);
        if let (Some((script, method)), "inn") = (inn, self.server) {
            let size = args.buffers_octets / MIB;
            let script = ScriptRival::inn(script.clone(), INN_HISTORY, size);
            return Box::new(script.with_method(method));
        }
        let (program, config) = (args.program.display(), config.display());
        let own = CommandRival::newsreel(&program.to_string());
        Box::new(own.with_words(&["--config", &config.to_string()]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_chosen() {
        let args = |methods: &[&str], inn| StorageArgs {
            methods: methods.iter().map(|&name| name.to_owned()).collect(),
            inn,
            ..StorageArgs::new("/d".into(), "/p".into())
        };
        let names = |args: &StorageArgs| -> Vec<String> {
            let all = Contender::all(args).into_iter();
            all.map(|one| format!("{} {}", one.server, one.method.name))
                .collect()
        };
        let bare = METHODS
            .iter()
            .filter(|method| method.bare.is_some())
            .count();
        assert_eq!(names(&args(&[], None)).len(), METHODS.len() + 2 * bare);
        assert_eq!(
            names(&args(&["timehash"], None)),
            ["newsreel timehash", "bare timehash", "unsynced timehash"]
        );
        assert_eq!(
            names(&args(&["cnfs", "segment"], Some("/inn".into()))),
            ["newsreel segment", "newsreel cnfs", "inn cnfs"]
        );
        assert!(METHODS.first().is_some_and(|first| first.name == REFERENCE));
    }

    #[test]
    fn buffers_share_what_was_asked_for() {
        let cnfs = METHODS.iter().find(|method| method.name == "cnfs").unwrap();
        let config = cnfs.config(64 << 20, None);
        assert_eq!(config.matches("octets = 33554432").count(), 2, "{config}");
        let config = cnfs.config(64 << 20, Some(Path::new("/disk")));
        assert!(config.contains("path = \"/disk/B\""), "{config}");
    }
}
