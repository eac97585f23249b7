//! How far each group of each server was fetched: everything before a number is settled, and which article the one before it was.
//!
//! The file `pulls` in the spool keeps it; it is replaced whole, after the articles are here on disk, once a second at most and when a run ends:
//! a run that is killed looks again at what came in the last second, and so does who lost the file.  The message-id tells a server that has given its numbers anew.  `docs/formats/spool.md` has the layout.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use newsreel_host::{Disk, sealed};
use parking_lot::Mutex;

use crate::noted::{self, Found, Kind};

/// A group's mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mark {
    /// The first number that is not settled.
    pub(crate) next: u64,
    /// The message-id of the one before it, if it was seen.
    pub(crate) last: Option<String>,
}

/// Server and group.
type Key = (String, String);

/// The marks of all servers.
#[derive(Debug)]
pub(crate) struct Marks {
    disk: Arc<dyn Disk>,
    file: PathBuf,
    all: Mutex<Noted>,
    /// Held while the file is written, so that who comes later writes what is newer.
    writing: tokio::sync::Mutex<()>,
}

/// The marks, and whether the file says something else.
#[derive(Debug)]
struct Noted {
    marks: BTreeMap<Key, Mark>,
    is_changed: bool,
    /// What was found in the file's place, until it is written.
    damaged: Option<Vec<u8>>,
}

/// The file in the spool; it has a line for each group.
const FILE: &str = "pulls";
const KIND: Kind = Kind {
    words: "newsreel pulls ",
    version: 1,
    says: "how far groups were fetched",
    without: "what their servers have is looked at again",
    damaged: "what their servers have is looked at again",
};
/// How it begins.
const WORDS: &str = "newsreel pulls 1 ";

impl Marks {
    /// As they were written last.
    ///
    /// # Errors
    /// When they cannot be read, or a later newsreel wrote them.
    pub(crate) fn load(disk: &Arc<dyn Disk>, spool: &Path) -> io::Result<Self> {
        let file = spool.join(FILE);
        let (marks, damaged) = match KIND.find(disk.as_ref(), &file, parse)? {
            Found::Noted(marks) => (marks, None),
            Found::Nothing => (BTreeMap::new(), None),
            Found::Damaged(octets) => (BTreeMap::new(), Some(octets)),
        };
        Ok(Self {
            disk: Arc::clone(disk),
            file,
            all: Mutex::new(Noted {
                marks,
                is_changed: false,
                damaged,
            }),
            writing: tokio::sync::Mutex::default(),
        })
    }

    pub(crate) fn of(&self, server: &str, group: &str) -> Option<Mark> {
        let key = (server.to_owned(), group.to_owned());
        self.all.lock().marks.get(&key).cloned()
    }

    /// Notes how far a group was fetched; on disk when it was saved.
    pub(crate) fn set(&self, server: &str, group: &str, mark: Mark) {
        let key = (server.to_owned(), group.to_owned());
        let mut all = self.all.lock();
        if all.marks.get(&key) != Some(&mark) {
            all.marks.insert(key, mark);
            all.is_changed = true;
        }
    }

    /// Nothing is noted of a group any more.
    pub(crate) fn forget(&self, server: &str, group: &str) {
        let key = (server.to_owned(), group.to_owned());
        let mut all = self.all.lock();
        let was_there = all.marks.remove(&key).is_some();
        all.is_changed |= was_there;
    }

    /// Writes the file if it says something else.
    pub(crate) async fn save(self: &Arc<Self>) -> Result<(), String> {
        let _alone = self.writing.lock().await;
        let this = Arc::clone(self);
        let writing = move || {
            let (text, mut damaged) = {
                let mut all = this.all.lock();
                if !std::mem::take(&mut all.is_changed) {
                    return Ok(());
                }
                (print(&all.marks), all.damaged.take())
            };
            let wrote = noted::write(this.disk.as_ref(), &this.file, &text, &mut damaged);
            let mut all = this.all.lock();
            all.damaged = damaged;
            all.is_changed |= wrote.is_err();
            wrote
        };
        let wrote = tokio::task::spawn_blocking(writing).await;
        let wrote = wrote.map_err(|error| error.to_string())?;
        wrote.map_err(|error| format!("how far it is cannot be noted: {error}"))
    }
}

fn print(all: &BTreeMap<Key, Mark>) -> String {
    let mut lines = String::new();
    for ((server, group), mark) in all {
        let last = mark.last.as_deref().unwrap_or("-");
        // One that cannot be read again would cost all others: what it is of is looked at again.
        if [server, group, last].into_iter().all(is_word) {
            let _ = writeln!(lines, "{server} {group} {} {last}", mark.next);
        }
    }
    sealed::first_line(WORDS, lines.as_bytes()) + &lines
}

/// Whether it is one word of a line, and the same when it is read.
fn is_word(text: &str) -> bool {
    !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || c.is_control())
}

fn parse(octets: &[u8]) -> Result<BTreeMap<Key, Mark>, String> {
    let (_, lines) = sealed::unseal(octets, &[WORDS], "it is no file of marks of pulls")?;
    let marks = lines
        .lines()
        .map(|line| parse_line(line).ok_or_else(|| format!("{line:?} is no mark of a group")));
    marks.collect()
}

fn parse_line(line: &str) -> Option<(Key, Mark)> {
    let mut words = line.split(' ');
    let mut word = || words.next().filter(|word| !word.is_empty());
    let key = (word()?.to_owned(), word()?.to_owned());
    let next = word()?.parse().ok()?;
    let last = word()?;
    let last = (last != "-").then(|| last.to_owned());
    words.next().is_none().then_some((key, Mark { next, last }))
}

/// Takes any octets for the file, as they are and behind a right checksum; says whether they are one, the same when written again.
pub(crate) fn is_file(octets: &[u8]) -> bool {
    let _ = parse(&sealed::seal(WORDS, octets));
    parse(octets).is_ok_and(|all| parse(print(&all).as_bytes()) == Ok(all))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_damaged_file_is_told() {
        let mark = |next, last: Option<&str>| Mark {
            next,
            last: last.map(str::to_owned),
        };
        let key = |group: &str| ("a.example".to_owned(), group.to_owned());
        let all = BTreeMap::from([
            (key("misc.test"), mark(7, Some("<6@x>"))),
            (key("alt.test"), mark(1, None)),
        ]);
        let text = print(&all);
        let lines = "a.example alt.test 1 -\na.example misc.test 7 <6@x>\n";
        assert!(text.ends_with(lines), "{text}");
        assert!(is_file(text.as_bytes()));
        assert_eq!(parse(text.as_bytes()), Ok(all));
        for (from, to) in [("7 <", "8 <"), ("pulls 1", "pulls 2"), (" -\n", "\n")] {
            assert!(parse(text.replace(from, to).as_bytes()).is_err(), "{to:?}");
        }
    }

    /// A blank in one of them made the file unreadable at the next start, for all servers.
    #[test]
    fn what_cannot_be_read_again_is_not_written() {
        let mark = |last: &str| Mark {
            next: 7,
            last: Some(last.to_owned()),
        };
        let key = |server: &str, group: &str| (server.to_owned(), group.to_owned());
        let sound = (key("a.example", "misc.test"), mark("<6@x>"));
        let mut all = BTreeMap::from([sound.clone()]);
        for (nth, wrong) in ["", "a b", "a\nb", "a\r", "\u{85}"].into_iter().enumerate() {
            let group = format!("alt.{nth}");
            all.insert(key("b.example", wrong), mark("<6@x>"));
            all.insert(key(wrong, &group), mark("<6@x>"));
            all.insert(key("b.example", &group), mark(wrong));
        }
        assert_eq!(parse(print(&all).as_bytes()), Ok(BTreeMap::from([sound])));
    }

    proptest! {
        #[test]
        fn prop_no_file_is_a_defect(rest in "[a-z0-9< >\n-]{0,60}", any: Vec<u8>) {
            let _ = is_file(&any);
            let _ = is_file(rest.as_bytes());
        }
    }
}
