//! Random operations on the core, without a mount, against a model that is flat and in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use newsreel_host::node::{Errno, Outcome, Renaming};
use newsreel_layout::Algorithm;
use newsreel_usenetfs::{Changes, ROOT, Settings, View};
use proptest::prelude::*;

use crate::world::{SELF, bare_view, by, findings, make_folder};

/// Directories in which things happen; one of them is flat.
const FOLDERS: usize = 3;

/// Names that share buckets and do not, look like buckets, and are not numbers.
const NAMES: [&str; 8] = ["1", "1023", "1024", "0123", "345", "aaa", "r0", "foo"];

const READ_WRITE: i32 = 2;
const EXCLUSIVE: i32 = 0o200;

#[derive(Debug, Clone)]
enum Step {
    Create(usize, usize, u8),
    Folder(usize, usize),
    Symlink(usize, usize),
    Link((usize, usize), (usize, usize)),
    Unlink(usize, usize),
    RemoveFolder(usize, usize),
    Rename((usize, usize), (usize, usize), Renaming),
    /// Turns the bit of a subdirectory on or off.
    Bit(usize, usize, bool),
    /// Makes something in a subdirectory.
    Below(usize, usize, usize),
    /// Removes something from a subdirectory.
    NotBelow(usize, usize, usize),
    /// The kernel forgets everything.
    Forget,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let at = || (0..FOLDERS, 0..NAMES.len());
    let how = prop_oneof![
        4 => Just(Renaming::default()),
        1 => Just(Renaming { no_replace: true, exchange: false }),
        1 => Just(Renaming { no_replace: false, exchange: true }),
    ];
    let step = prop_oneof![
        4 => (at(), any::<u8>()).prop_map(|((d, n), text)| Step::Create(d, n, text)),
        4 => at().prop_map(|(d, n)| Step::Folder(d, n)),
        1 => at().prop_map(|(d, n)| Step::Symlink(d, n)),
        2 => (at(), at()).prop_map(|(from, to)| Step::Link(from, to)),
        3 => at().prop_map(|(d, n)| Step::Unlink(d, n)),
        2 => at().prop_map(|(d, n)| Step::RemoveFolder(d, n)),
        4 => (at(), at(), how).prop_map(|(from, to, how)| Step::Rename(from, to, how)),
        4 => (at(), any::<bool>()).prop_map(|((d, n), on)| Step::Bit(d, n, on)),
        2 => (at(), 0..NAMES.len()).prop_map(|((d, n), below)| Step::Below(d, n, below)),
        2 => (at(), 0..NAMES.len()).prop_map(|((d, n), below)| Step::NotBelow(d, n, below)),
        1 => Just(Step::Forget),
    ];
    proptest::collection::vec(step, 1..100)
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Thing {
    File(u8),
    Link,
    Folder {
        is_managed: bool,
        names: BTreeSet<usize>,
    },
}

/// Names, and what they are names of.
#[derive(Debug, Default)]
struct Model {
    names: BTreeMap<(usize, usize), usize>,
    things: Vec<Thing>,
}

impl Model {
    fn thing(&mut self, at: (usize, usize)) -> Outcome<&mut Thing> {
        let number = self.names.get(&at).ok_or(Errno::NOENT)?;
        Ok(&mut self.things[*number])
    }

    fn make(&mut self, at: (usize, usize), thing: Thing) -> Outcome<()> {
        if self.names.contains_key(&at) {
            return Err(Errno::EXIST);
        }
        self.names.insert(at, self.things.len());
        self.things.push(thing);
        Ok(())
    }

    fn run(&mut self, step: &Step) -> Outcome<()> {
        match *step {
            Step::Create(d, n, text) => self.make((d, n), Thing::File(text)),
            Step::Symlink(d, n) => self.make((d, n), Thing::Link),
            Step::Folder(d, n) => self.make(
                (d, n),
                Thing::Folder {
                    is_managed: false,
                    names: BTreeSet::new(),
                },
            ),
            Step::Link(from, to) => {
                if matches!(self.thing(from)?, Thing::Folder { .. }) {
                    return Err(Errno::PERM);
                }
                if self.names.contains_key(&to) {
                    return Err(Errno::EXIST);
                }
                self.names.insert(to, self.names[&from]);
                Ok(())
            }
            Step::Unlink(d, n) => match self.thing((d, n))? {
                Thing::Folder { .. } => Err(Errno::ISDIR),
                _ => self.names.remove(&(d, n)).map(|_| ()).ok_or(Errno::NOENT),
            },
            Step::RemoveFolder(d, n) => match self.thing((d, n))? {
                Thing::Folder { names, .. } if names.is_empty() => {
                    self.names.remove(&(d, n));
                    Ok(())
                }
                Thing::Folder { .. } => Err(Errno::NOTEMPTY),
                _ => Err(Errno::NOTDIR),
            },
            Step::Rename(from, to, how) => self.rename(from, to, how),
            Step::Bit(d, n, on) => match self.thing((d, n))? {
                Thing::Folder { is_managed, names } => {
                    if names.is_empty() {
                        *is_managed = on;
                    }
                    Ok(())
                }
                _ => Err(Errno::NOTDIR),
            },
            Step::Below(d, n, below) => match self.thing((d, n))? {
                Thing::Folder { names, .. } => {
                    let is_new = names.insert(below);
                    is_new.then_some(()).ok_or(Errno::EXIST)
                }
                _ => Err(Errno::NOTDIR),
            },
            Step::NotBelow(d, n, below) => match self.thing((d, n))? {
                Thing::Folder { names, .. } => {
                    let was_there = names.remove(&below);
                    was_there.then_some(()).ok_or(Errno::NOENT)
                }
                _ => Err(Errno::NOTDIR),
            },
            Step::Forget => Ok(()),
        }
    }

    fn rename(&mut self, from: (usize, usize), to: (usize, usize), how: Renaming) -> Outcome<()> {
        let moved = *self.names.get(&from).ok_or(Errno::NOENT)?;
        let there = self.names.get(&to).copied();
        if how.exchange {
            let there = there.ok_or(Errno::NOENT)?;
            self.names.insert(to, moved);
            self.names.insert(from, there);
            return Ok(());
        }
        if let Some(there) = there {
            if how.no_replace {
                return Err(Errno::EXIST);
            }
            if there == moved {
                return Ok(());
            }
            match (&self.things[moved], &self.things[there]) {
                (Thing::Folder { .. }, Thing::Folder { names, .. }) if names.is_empty() => {}
                (Thing::Folder { .. }, Thing::Folder { .. }) => return Err(Errno::NOTEMPTY),
                (Thing::Folder { .. }, _) => return Err(Errno::NOTDIR),
                (_, Thing::Folder { .. }) => return Err(Errno::ISDIR),
                _ => {}
            }
        }
        self.names.remove(&from);
        self.names.insert(to, moved);
        Ok(())
    }

    /// A directory as text: names with what they are, how many names that has, and which of them share it.
    fn text(&self, folder: usize) -> Vec<String> {
        let mut lines = Vec::new();
        for ((_, name), thing) in self.names.iter().filter(|((d, _), _)| *d == folder) {
            let same: Vec<_> = self
                .names
                .iter()
                .filter(|(_, other)| *other == thing)
                .collect();
            lines.push(match &self.things[*thing] {
                Thing::File(text) => format!("{} file {text} x{}", NAMES[*name], same.len()),
                Thing::Link => format!("{} link x{}", NAMES[*name], same.len()),
                Thing::Folder { is_managed, names } => {
                    let below: Vec<_> = names.iter().map(|name| NAMES[*name]).collect();
                    let below: BTreeSet<_> = below.into_iter().collect();
                    format!("{} folder {is_managed} {below:?}", NAMES[*name])
                }
            });
        }
        lines.sort();
        lines
    }
}

/// The view, as the kernel would use it: nodes are looked up before they are used.
struct Driver {
    view: View,
    folders: [u64; FOLDERS],
    known: Vec<u64>,
}

impl Driver {
    fn node(&mut self, (folder, name): (usize, usize)) -> Outcome<u64> {
        let entry = self
            .view
            .lookup(self.folders[folder], OsStr::new(NAMES[name]))?;
        self.known.push(entry.node);
        Ok(entry.node)
    }

    fn run(&mut self, step: &Step) -> Outcome<()> {
        let at = |folder: usize, name: usize| (self.folders[folder], OsStr::new(NAMES[name]));
        let made = match *step {
            Step::Create(d, n, text) => {
                let (parent, name) = at(d, n);
                let flags = READ_WRITE | EXCLUSIVE;
                let (entry, file) = self.view.create(parent, name, 0o644, flags, SELF)?;
                self.view.write(file, &[text], 0, false)?;
                self.view.release(file);
                entry
            }
            Step::Folder(d, n) => {
                let (parent, name) = at(d, n);
                self.view.make_folder(parent, name, 0o755, SELF)?
            }
            Step::Symlink(d, n) => {
                let (parent, name) = at(d, n);
                self.view
                    .make_symlink(parent, name, OsStr::new("../x"), SELF)?
            }
            Step::Link(from, (d, n)) => {
                let (parent, name) = at(d, n);
                let node = self.node(from)?;
                self.view.link(node, parent, name)?
            }
            Step::Unlink(d, n) => {
                let (parent, name) = at(d, n);
                return self.view.unlink(parent, name);
            }
            Step::RemoveFolder(d, n) => {
                let (parent, name) = at(d, n);
                return self.view.remove_folder(parent, name);
            }
            Step::Rename((d, n), (e, m), how) => {
                let ((parent, name), (new_parent, new_name)) = (at(d, n), at(e, m));
                return self.view.rename(parent, name, new_parent, new_name, how);
            }
            Step::Bit(d, n, on) => {
                let node = self.node((d, n))?;
                if !self.view.attributes(node, None)?.is_folder() {
                    return Err(Errno::NOTDIR);
                }
                let changes = Changes {
                    mode: Some(if on { 0o4755 } else { 0o755 }),
                    ..Changes::default()
                };
                return self.view.change(node, &changes).map(|_| ());
            }
            Step::Below(d, n, below) => {
                let node = self.node((d, n))?;
                let name = OsStr::new(NAMES[below]);
                self.view.make_node(node, name, 0o100_644, (0, 0), SELF)?
            }
            Step::NotBelow(d, n, below) => {
                let node = self.node((d, n))?;
                return self.view.unlink(node, OsStr::new(NAMES[below]));
            }
            Step::Forget => {
                let known: Vec<_> = self.known.drain(..).collect();
                for node in known {
                    self.view.forget(node, 1);
                }
                return Ok(());
            }
        };
        self.known.push(made.node);
        Ok(())
    }

    fn names(&self, node: u64) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        let stream = self.view.open_folder(node).unwrap();
        let listed = self.view.list(stream, 0, |item| {
            if !item.is_dots() {
                let name = String::from_utf8(item.name.as_bytes().to_vec()).unwrap();
                assert!(names.insert(name), "twice: {item:?}");
            }
            Ok(true)
        });
        listed.unwrap();
        self.view.release_folder(stream);
        names
    }

    /// What [`Model::text`] says.
    fn text(&self, folder: usize) -> Vec<String> {
        let parent = self.folders[folder];
        let names = self.names(parent);
        let mut lines = Vec::new();
        for name in names {
            let entry = self.view.lookup(parent, OsStr::new(&name)).unwrap();
            let (stat, links) = (entry.stat, entry.stat.links);
            lines.push(match stat.kind_bits() {
                0o040_000 => {
                    let is_managed = stat.mode & 0o4000 != 0;
                    format!("{name} folder {is_managed} {:?}", self.names(entry.node))
                }
                0o120_000 => format!("{name} link x{links}"),
                _ => {
                    let file = self.view.open(entry.node, 0).unwrap();
                    let mut octet = [0];
                    self.view.read(file, &mut octet, 0).unwrap();
                    self.view.release(file);
                    format!("{name} file {} x{links}", octet[0])
                }
            });
            self.view.forget(entry.node, 1);
        }
        lines.sort();
        lines
    }
}

fn check(algorithm: Algorithm, is_by_name: bool, steps: &[Step]) {
    let settings = Settings {
        is_by_name,
        ..by(algorithm)
    };
    let Some((dir, view)) = bare_view(settings) else {
        return;
    };
    let folders = [
        make_folder(&view, "a", 0o4755),
        make_folder(&view, "b", 0o4755),
        make_folder(&view, "c", 0o755),
    ];
    let mut driver = Driver {
        view,
        folders,
        known: Vec::new(),
    };
    let mut model = Model::default();
    for step in steps {
        let (expected, got) = (model.run(step), driver.run(step));
        // Which of two reasons comes first is the kernel's business.
        assert_eq!(
            got.is_ok(),
            expected.is_ok(),
            "{step:?}: {got:?}, not {expected:?}"
        );
        if !matches!(step, Step::Rename(..) | Step::Link(..)) {
            assert_eq!(got, expected, "{step:?}");
        }
        for folder in 0..FOLDERS {
            assert_eq!(driver.text(folder), model.text(folder), "after {step:?}");
        }
    }
    assert_eq!(
        driver.view.lookup(ROOT, OsStr::new("a")).unwrap().node,
        folders[0]
    );
    for folder in ["a", "b", "c"] {
        let mut found = findings(&dir.path().join(folder));
        found.retain(|line| !line.contains("is a relative link"));
        assert!(found.is_empty(), "{found:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn prop_the_view_is_a_flat_directory(
        at in 0..Algorithm::ALL.len(),
        is_by_name in any::<bool>(),
        steps in steps(),
    ) {
        check(Algorithm::ALL[at], is_by_name, &steps);
    }
}
