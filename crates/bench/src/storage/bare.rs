//! The bare calls of a spool of files: create, write, link and close, with no server around them.
//!
//! Invariant: the same articles under the same kind of names as the method that they are held against, in the same order.  Texts
//! and names are made before the clock starts, directories when the first file needs them; where files are made durable, then as
//! many together as a session has under way.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};

use newsreel_host::{ErrorKind, File, OpenMode};
use newsreel_wire::nntp::framing::wire_to_lf;

use crate::corpus::Corpus;
use crate::error::Error;
use crate::load::Machine;

/// An article and the names that its file gets.
#[derive(Debug)]
struct Prepared {
    names: Vec<PathBuf>,
    text: Vec<u8>,
}

/// Somebody who makes files.
#[derive(Debug)]
pub(super) struct Bare {
    at: PathBuf,
    has_groups: bool,
    /// So many files are made durable together; none: they never are.
    durable: Option<usize>,
    numbers: BTreeMap<String, u64>,
    /// Articles that were prepared so far.
    prepared: u64,
    feeds: VecDeque<Vec<Prepared>>,
}

impl Bare {
    /// Below `at`: in the directories of their groups, or all in one, as those of some minutes are that are named by time.
    pub(super) const fn new(at: PathBuf, has_groups: bool, durable: Option<usize>) -> Self {
        Self {
            at,
            has_groups,
            durable,
            numbers: BTreeMap::new(),
            prepared: 0,
            feeds: VecDeque::new(),
        }
    }

    /// Prepares what is to be written next but for what was prepared before.
    pub(super) fn prepare(&mut self, corpus: &Corpus) {
        let mut scratch = Vec::new();
        let mut feed = Vec::new();
        for n in corpus.first()..corpus.end() {
            let (head, body) = corpus.parts(n, &mut scratch);
            let groups = groups_of(head);
            let mut text = Vec::new();
            wire_to_lf(&[head, body].concat(), &mut text);
            feed.push(Prepared {
                names: self.names(&groups),
                text,
            });
            self.prepared += 1;
        }
        self.feeds.push_back(feed);
    }

    fn names(&mut self, groups: &[String]) -> Vec<PathBuf> {
        if !self.has_groups {
            return vec![self.at.join(format!("5b/4c/{:04x}-6a3d", self.prepared))];
        }
        let in_group = |group: &String| {
            let number = self.numbers.entry(group.clone()).or_default();
            *number += 1;
            let dir = self.at.join(group.replace('.', "/"));
            dir.join(number.to_string())
        };
        groups.iter().map(in_group).collect()
    }

    /// Writes what was prepared; how many articles, and how long it took, seconds.
    pub(super) fn write(&mut self, machine: Machine<'_>) -> Result<(u64, f64), Error> {
        let feed = self.feeds.pop_front().unwrap_or_default();
        let begin = machine.clock.monotonic();
        for part in feed.chunks(self.durable.unwrap_or(usize::MAX)) {
            for article in part {
                write(machine, article)?;
            }
            if self.durable.is_some() {
                machine.disk.sync_file_system(&self.at)?;
            }
        }
        let took = machine.clock.monotonic().saturating_sub(begin);
        Ok((feed.len() as u64, took.as_secs_f64()))
    }
}

/// The groups of an article's header block.
pub(crate) fn groups_of(head: &[u8]) -> Vec<String> {
    let mut lines = head.split(|octet| *octet == b'\n');
    let named = lines.find_map(|line| line.strip_prefix(b"Newsgroups: "));
    let named = String::from_utf8_lossy(named.unwrap_or_default().trim_ascii());
    named.split(',').map(str::to_owned).collect()
}

fn write(machine: Machine<'_>, article: &Prepared) -> Result<(), Error> {
    let Some((first, links)) = article.names.split_first() else {
        return Ok(());
    };
    let file = with_directory(machine, first, || {
        machine.disk.open(first, OpenMode::CreateNew)
    })?;
    File::write_at(&*file, &article.text, 0)?;
    drop(file);
    for link in links {
        with_directory(machine, link, || machine.disk.link(first, link))?;
    }
    Ok(())
}

fn with_directory<T>(
    machine: Machine<'_>,
    path: &Path,
    make: impl Fn() -> newsreel_host::Result<T>,
) -> newsreel_host::Result<T> {
    match make() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            machine.disk.make_dirs(path.parent().unwrap_or(path))?;
            make()
        }
        made => made,
    }
}

#[cfg(test)]
mod tests {
    use newsreel_host::{Disk as _, FakeClock, MemoryDisk};

    use super::*;
    use crate::corpus::CorpusArgs;

    #[test]
    fn every_article_has_its_names() {
        let (disk, clock) = (MemoryDisk::new(), FakeClock::new(1_700_000_000));
        let machine = Machine {
            disk: &disk,
            clock: &clock,
        };
        let args = CorpusArgs {
            articles: Some(50),
            groups: 5,
            base_time_secs: Some(1_700_000_000),
            ..CorpusArgs::default()
        };
        let corpus = Corpus::new(&args, &disk, &clock).unwrap();
        for (has_groups, durable) in [(true, Some(20)), (false, None)] {
            let at = PathBuf::from(format!("/spool-{has_groups}"));
            disk.make_dirs(&at).unwrap();
            let mut bare = Bare::new(at, has_groups, durable);
            // The articles of a second feed are others, whatever their places in it.
            bare.prepare(&corpus);
            bare.prepare(&corpus);
            let expected: Vec<PathBuf> = bare
                .feeds
                .iter()
                .flatten()
                .flat_map(|article| article.names.clone())
                .collect();
            let is_more = expected.len() > 100;
            assert_eq!(is_more, has_groups, "{expected:?}");
            assert_eq!(bare.write(machine).unwrap().0, 50);
            assert_eq!(bare.write(machine).unwrap().0, 50);
            for name in expected {
                let file = disk.open(&name, OpenMode::Read).unwrap();
                assert!(file.len().unwrap() > 100, "{name:?}");
            }
        }
    }
}
