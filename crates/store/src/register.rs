//! The register of buffers: every one this spool ever had, so that an id is never given twice and a buffer whose disk
//! is not mounted, or that a configuration forgot, is missed, not made again.
//!
//! A line of text each: id, method, name, the UUID of its files, which can all be away or have lost their headers, `marked` where the directory of a set has its
//! [mark](crate::mark), and a word for one that takes nothing new
//! (`retired`), of which nothing is left (`drained`), or that was let go (`dropped`); the first line has a checksum of the others.  It is written after the buffer
//! was made, twice; one of the two is enough.  A buffer that is not in it yet is taken in when it is opened.  Where both are damaged it is
//! made again of what they say alike and of the buffers that are there, and none that is missing is taken for a new one.

mod text;

use std::path::{Path, PathBuf};

use newsreel_host::{Disk, ErrorKind, read_what_is_left, replace_file};
use newsreel_wire::BufferId;

pub(crate) use self::text::again;
use self::text::{is_first_version, is_newer, parse, print, said_alike};
use crate::error::{Error, Result};

/// 65536 buffers of at most 120 octets a line.
pub const OCTETS_MAX: usize = 8 << 20;
/// Behind the names of what was damaged.
const ASIDE: &str = ".damaged";

/// Why there is no making a buffer again under the name of one that was let go.
pub(crate) const WAS_DROPPED: &str = "a buffer of this name was let go (drained and taken out, or dropped): tokens of its articles \
                               may still name it, so give the new one another name";

/// The register of a spool's buffers.
#[derive(Debug, Clone)]
pub(crate) struct Register {
    path: PathBuf,
    entries: Vec<Entry>,
    is_changed: bool,
    /// Its files, where none is sound.
    damaged: Vec<(PathBuf, Vec<u8>)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    id: BufferId,
    method: String,
    name: String,
    /// What ties its files together, where each may be away while others are made, and its records to them.
    uuid: Option<[u8; 16]>,
    /// The directory of its set has a mark.
    is_marked: bool,
    standing: Standing,
}

/// How a buffer stands in its spool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It takes articles.
    InUse,
    /// It takes none, and what it has goes as the rest of its set is overwritten.
    Retired,
    /// Nothing is left in it: the configuration may forget it.
    Drained,
    /// It was let go: its articles are gone, and neither its id nor its name is given again.
    Dropped,
}

impl Register {
    /// Reads the register in this directory; none there is an empty one.
    pub(crate) fn open(disk: &dyn Disk, dir: &Path) -> Result<Self> {
        let path = dir.join("register");
        let (mut found, mut damaged) = (Vec::new(), Vec::new());
        for path in [path.clone(), copy_of(&path)] {
            match read_what_is_left(disk, &path, OCTETS_MAX) {
                Ok(text) if is_newer(&text) => {
                    return Err(Error::Config(format!(
                        "{} was written by a later newsreel; run that one",
                        path.display()
                    )));
                }
                Ok(text) => match parse(&text) {
                    Some(entries) => found.push((entries, text)),
                    None => {
                        tracing::error!(path = %path.display(), "the register of buffers is damaged");
                        damaged.push((path, text));
                    }
                },
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error.into()),
            }
        }
        // Both are the same, but for a crash between them: then the first is the newer.
        let is_whole = matches!(&found[..], [(_, first), (_, second)] if first == second);
        let entries = match found.into_iter().next() {
            Some((entries, _)) => {
                damaged.clear();
                entries
            }
            None => said_alike(&damaged),
        };
        if !damaged.is_empty() {
            tracing::error!(
                known = entries.len(),
                "nothing of the register of buffers is sound: it is made again of what both of its files say alike and of the buffers that \
                 are there; which others were retired or let go is forgotten"
            );
        }
        Ok(Self {
            path,
            is_changed: !is_whole && !entries.is_empty(),
            entries,
            damaged,
        })
    }

    /// Whether there may have been buffers that it does not know any more.
    pub(crate) const fn is_in_doubt(&self) -> bool {
        !self.damaged.is_empty()
    }

    /// All buffers are open, so it has them: what was damaged is kept under other names.
    pub(crate) fn settle(&mut self, disk: &dyn Disk) -> Result<()> {
        for (path, text) in self.damaged.drain(..) {
            let mut aside = path.into_os_string();
            aside.push(ASIDE);
            replace_file(disk, Path::new(&aside), &text)?;
            self.is_changed = true;
        }
        self.save(disk)
    }

    /// Whether no buffer was ever made, as far as it tells.
    pub(crate) const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether a buffer of this name was ever made.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.entries.iter().any(|entry| entry.name == name)
    }

    /// The id of the buffer of this name, if it is still in use.
    pub(crate) fn id_of(&self, name: &str) -> Option<BufferId> {
        let mut entries = self.entries.iter();
        let entry = entries.find(|entry| entry.name == name && entry.standing != Standing::Dropped);
        entry.map(|entry| entry.id)
    }

    /// The UUID that its files have, whether any of them is there or not.
    pub(crate) fn uuid_of(&self, name: &str) -> Option<[u8; 16]> {
        let entry = self.entries.iter().find(|entry| entry.name == name)?;
        entry.uuid
    }

    /// Its files have this UUID.
    pub(crate) fn set_uuid(&mut self, name: &str, uuid: [u8; 16]) {
        let entry = self.entries.iter_mut().find(|entry| entry.name == name);
        if let Some(entry) = entry {
            self.is_changed |= entry.uuid != Some(uuid);
            entry.uuid = Some(uuid);
        }
    }

    /// Whether the directory of this set was given a mark.
    pub(crate) fn is_marked(&self, name: &str) -> bool {
        let entry = self.entries.iter().find(|entry| entry.name == name);
        entry.is_some_and(|entry| entry.is_marked)
    }

    /// The directory of this set has a mark.
    pub(crate) fn set_marked(&mut self, name: &str) {
        let entry = self.entries.iter_mut().find(|entry| entry.name == name);
        if let Some(entry) = entry {
            self.is_changed |= !entry.is_marked;
            entry.is_marked = true;
        }
    }

    /// How the buffer of this name stands, if there ever was one.
    pub(crate) fn standing(&self, name: &str) -> Option<Standing> {
        let entry = self.entries.iter().find(|entry| entry.name == name);
        entry.map(|entry| entry.standing)
    }

    /// Says how the buffer of this name stands.
    pub(crate) fn set_standing(&mut self, name: &str, standing: Standing) {
        let entry = self.entries.iter_mut().find(|entry| entry.name == name);
        if let Some(entry) = entry {
            self.is_changed |= entry.standing != standing;
            entry.standing = standing;
        }
    }

    /// Lets these buffers go, and refuses to do without any other that is not `named`: the articles in it would be gone.
    pub(crate) fn reconcile(
        &mut self,
        named: &dyn Fn(&str) -> bool,
        dropped: &[String],
    ) -> Result<()> {
        for name in dropped {
            let entry = self.entries.iter_mut().find(|entry| entry.name == *name);
            let Some(entry) = entry else {
                return Err(Error::Config(format!(
                    "buffer {name:?} is to be dropped, but this spool never had it"
                )));
            };
            if named(name) {
                return Err(Error::Config(format!(
                    "buffer {name:?} is to be dropped, but the configuration still has it; take it out there"
                )));
            }
            self.is_changed |= entry.standing != Standing::Dropped;
            entry.standing = Standing::Dropped;
        }
        for entry in &mut self.entries {
            // Nothing is left in it that could be missed.
            if entry.standing == Standing::Drained && !named(&entry.name) {
                tracing::warn!(
                    buffer = entry.name,
                    "a buffer that was drained is let go; its file may be removed"
                );
                (entry.standing, self.is_changed) = (Standing::Dropped, true);
            }
        }
        let missed = self.unnamed(named);
        let Some(first) = missed.first() else {
            return Ok(());
        };
        Err(Error::Config(format!(
            "this spool has buffers that the configuration does not name: {}; give the configuration that does (--config): a \
             server that ran here has left its own in `last-config.toml` in the spool. If what is in them may go for \
             good, `newsreel serve --drop-buffer {first}` lets one go",
            missed.join(", ")
        )))
    }

    /// Those that are not `named`, and may have articles.
    pub(crate) fn unnamed(&self, named: &dyn Fn(&str) -> bool) -> Vec<&str> {
        let is_over = |standing| matches!(standing, Standing::Dropped | Standing::Drained);
        let entries = self.entries.iter().filter(|it| !is_over(it.standing));
        let names = entries.map(|entry| entry.name.as_str());
        names.filter(|name| !named(name)).collect()
    }

    /// An id that no buffer ever had.
    pub(crate) fn next_id(&self, known: &[BufferId]) -> Result<BufferId> {
        let ids = self.entries.iter().map(|entry| entry.id);
        let highest = ids.chain(known.iter().copied()).max();
        let next = highest.map_or(Some(1), |id| id.0.checked_add(1));
        next.map(BufferId)
            .ok_or_else(|| Error::Config("all 65535 buffer ids were given".to_owned()))
    }

    /// Enters a buffer that is there; one whose id or name another one has is an error.
    pub(crate) fn enter(&mut self, id: BufferId, method: &str, name: &str) -> Result<()> {
        let same = |entry: &&Entry| entry.id == id || entry.name == name;
        match self.entries.iter().find(same) {
            Some(entry)
                if entry.id == id && entry.name == name && entry.standing == Standing::Dropped =>
            {
                Err(Error::Config(format!(
                    "buffer {name:?} was dropped, and its articles with it; remove its file, and give a new buffer \
                     another name"
                )))
            }
            Some(entry) if entry.id == id && entry.name == name => Ok(()),
            Some(entry) => Err(Error::Config(format!(
                "buffer {name:?} has the id {id}, but {} was given to buffer {:?}: one of the files is a copy or \
                 comes from elsewhere; take it out",
                entry.id, entry.name
            ))),
            None => {
                self.entries.push(Entry {
                    id,
                    method: method.to_owned(),
                    name: name.to_owned(),
                    uuid: None,
                    is_marked: false,
                    standing: Standing::InUse,
                });
                self.is_changed = true;
                Ok(())
            }
        }
    }

    /// Writes what was entered, durably; where it was damaged not before it [has all](Self::settle).
    pub(crate) fn save(&mut self, disk: &dyn Disk) -> Result<()> {
        if self.is_changed && !self.is_in_doubt() {
            if let Some(dir) = self.path.parent() {
                disk.create_dir_all(dir)?;
            }
            let text = print(&self.entries);
            replace_file(disk, &self.path, text.as_bytes())?;
            replace_file(disk, &copy_of(&self.path), text.as_bytes())?;
            self.is_changed = false;
        }
        Ok(())
    }
}

/// What is wrong with the two files of the register in this directory: they are as they were written, or not there.
///
/// # Errors
/// When they cannot be read for another reason than damage.
pub fn register_damage(disk: &dyn Disk, dir: &Path) -> Result<Vec<String>> {
    let path = dir.join("register");
    let mut damage = Vec::new();
    let mut missing = Vec::new();
    for path in [path.clone(), copy_of(&path)] {
        let why = match read_what_is_left(disk, &path, OCTETS_MAX) {
            // It had no copy, and gets one at the next start.
            Ok(text) if is_first_version(&text) => return Ok(damage),
            Ok(text) if is_newer(&text) || parse(&text).is_some() => continue,
            Ok(_) => "it is damaged",
            Err(error) if error.kind() == ErrorKind::NotFound => {
                missing.push(path);
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        damage.push(format!("{}: {why}", path.display()));
    }
    // A new spool has neither.
    if let [missing] = &missing[..] {
        damage.push(format!("{}: it is not there", missing.display()));
    }
    Ok(damage)
}

/// The second of the two files; no buffer's name has a dot.
fn copy_of(path: &Path) -> PathBuf {
    path.with_extension("copy")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use newsreel_host::{Effect, Fault, FaultyDisk, MemoryDisk, Op, read_whole};

    use super::text::WORDS;
    use super::*;

    #[test]
    fn ids_are_never_given_twice() {
        let disk = MemoryDisk::new();
        let dir = Path::new("/spool/buffers");
        let mut register = Register::open(&disk, dir).unwrap();
        assert_eq!(register.next_id(&[]).unwrap(), BufferId(1));
        register.enter(BufferId(1), "cnfs", "C0").unwrap();
        register.enter(BufferId(4), "cnfs", "C1").unwrap();
        register.save(&disk).unwrap();
        let mut register = Register::open(&disk, dir).unwrap();
        assert!(register.has("C1") && !register.has("C2"));
        assert_eq!(register.next_id(&[BufferId(2)]).unwrap(), BufferId(5));
        assert_eq!(register.next_id(&[BufferId(9)]).unwrap(), BufferId(10));
        assert!(register.next_id(&[BufferId(u16::MAX)]).is_err());
        register.enter(BufferId(4), "cnfs", "C1").unwrap();
        let error = register.enter(BufferId(4), "cnfs", "C7").unwrap_err();
        assert!(error.to_string().contains("\"C1\""), "{error}");
    }

    #[test]
    fn what_the_configuration_forgot_is_missed_until_it_is_dropped() {
        let disk = MemoryDisk::new();
        let dir = Path::new("/spool/buffers");
        let mut register = Register::open(&disk, dir).unwrap();
        for (id, name) in [(1, "A"), (2, "B"), (3, "C")] {
            register.enter(BufferId(id), "cnfs", name).unwrap();
        }
        let only_c = |name: &str| name == "C";
        let error = register.reconcile(&only_c, &[]).unwrap_err().to_string();
        assert!(error.contains(": A, B;"), "{error}");
        assert!(register.reconcile(&only_c, &["A".to_owned()]).is_err());
        let both = ["A", "B"].map(str::to_owned);
        register.reconcile(&only_c, &both).unwrap();
        register.save(&disk).unwrap();
        let mut register = Register::open(&disk, dir).unwrap();
        register.reconcile(&only_c, &[]).unwrap();
        for named in ["C", "D"] {
            assert!(register.reconcile(&only_c, &[named.to_owned()]).is_err());
        }
        assert!(register.has("A"), "its name is not given again");
        let error = register.enter(BufferId(1), "cnfs", "A").unwrap_err();
        assert!(error.to_string().contains("was dropped"), "{error}");
        assert_eq!(register.next_id(&[]).unwrap(), BufferId(4));
    }

    #[test]
    fn a_drained_buffer_may_be_forgotten_and_a_retired_one_not() {
        let disk = MemoryDisk::new();
        let dir = Path::new("/spool/buffers");
        let mut register = Register::open(&disk, dir).unwrap();
        for (id, name) in [(1, "A"), (2, "B")] {
            register.enter(BufferId(id), "cnfs", name).unwrap();
        }
        let only_b = |name: &str| name == "B";
        let first_line = |disk: &MemoryDisk| {
            let text = read_whole(disk, &dir.join("register"), OCTETS_MAX).unwrap();
            text.get(..WORDS.len() + 1).map(<[u8]>::to_vec).unwrap()
        };
        for (standing, version) in [
            (Standing::InUse, b'2'),
            (Standing::Retired, b'3'),
            (Standing::Drained, b'3'),
        ] {
            register.set_standing("A", standing);
            register.save(&disk).unwrap();
            assert_eq!(first_line(&disk).last(), Some(&version), "{standing:?}");
            register = Register::open(&disk, dir).unwrap();
            assert_eq!(register.standing("A"), Some(standing));
            if standing != Standing::Drained {
                let error = register.reconcile(&only_b, &[]).unwrap_err();
                assert!(error.to_string().contains(": A;"), "{error}");
            }
        }
        register.reconcile(&only_b, &[]).unwrap();
        register.save(&disk).unwrap();
        assert_eq!(first_line(&disk).last(), Some(&b'2'));
        let register = Register::open(&disk, dir).unwrap();
        assert_eq!(register.standing("A"), Some(Standing::Dropped));
        assert_eq!(register.standing("B"), Some(Standing::InUse));
    }

    #[test]
    fn the_uuid_of_files_is_kept() {
        let disk = MemoryDisk::new();
        let dir = Path::new("/spool/buffers");
        let mut register = Register::open(&disk, dir).unwrap();
        register.enter(BufferId(1), "segment", "A").unwrap();
        register.enter(BufferId(2), "cnfs", "B").unwrap();
        register.set_uuid("A", [0; 16]);
        register.set_uuid("A", [9; 16]);
        register.set_standing("A", Standing::Retired);
        register.save(&disk).unwrap();
        let text = read_whole(&disk, &dir.join("register"), OCTETS_MAX).unwrap();
        let text = String::from_utf8(text).unwrap();
        let lines = format!("1 segment A uuid={} retired\n2 cnfs B\n", "09".repeat(16));
        assert!(
            text.starts_with("newsreel buffers 4 ") && text.ends_with(&lines),
            "{text}"
        );
        let register = Register::open(&disk, dir).unwrap();
        assert_eq!(register.standing("A"), Some(Standing::Retired));
        assert_eq!(
            ["A", "B"].map(|name| register.uuid_of(name)),
            [Some([9; 16]), None]
        );
        let mut register = register;
        register.set_marked("A");
        register.save(&disk).unwrap();
        let text = read_whole(&disk, &dir.join("register"), OCTETS_MAX).unwrap();
        let text = String::from_utf8(text).unwrap();
        let marked = lines.replace(" retired", " marked retired");
        assert!(
            text.starts_with("newsreel buffers 5 ") && text.ends_with(&marked),
            "{text}"
        );
        let register = Register::open(&disk, dir).unwrap();
        assert_eq!(
            ["A", "B"].map(|name| register.is_marked(name)),
            [true, false]
        );
        assert_eq!(register.standing("A"), Some(Standing::Retired));
        // An earlier version had none.
        let earlier = format!(
            "newsreel buffers 3 {:08x}\n{lines}",
            crc32c::crc32c(lines.as_bytes())
        );
        assert_eq!(parse(earlier.as_bytes()), None);
    }

    #[test]
    fn one_sound_register_of_two_is_enough() {
        let disk = MemoryDisk::new();
        let dir = Path::new("/spool/buffers");
        let mut register = Register::open(&disk, dir).unwrap();
        register.enter(BufferId(7), "cnfs", "A").unwrap();
        register.save(&disk).unwrap();
        let files = ["register", "register.copy"].map(|name| dir.join(name));
        for ruined in &files {
            // Another name with the same length: only the checksum tells.
            let whole = read_whole(&disk, ruined, OCTETS_MAX).unwrap();
            disk.corrupt(ruined, whole.len() as u64 - 2, b"B").unwrap();
            let mut register = Register::open(&disk, dir).unwrap();
            assert!(register.has("A") && !register.has("B"));
            register.save(&disk).unwrap();
            assert_eq!(read_whole(&disk, ruined, OCTETS_MAX).unwrap(), whole);
        }
        for ruined in &files {
            disk.corrupt(ruined, 0, b"x").unwrap();
        }
        let register = Register::open(&disk, dir).unwrap();
        assert!(register.is_in_doubt() && register.has("A"));
        // A later version is not passed over for an older copy, nor called damaged.
        let later = format!("newsreel buffers 6 {:08x}\n?\n", crc32c::crc32c(b"?\n"));
        replace_file(&disk, &files[0], later.as_bytes()).unwrap();
        let error = Register::open(&disk, dir).unwrap_err().to_string();
        assert!(error.contains("later newsreel"), "{error}");
    }

    /// Such a spool had not been opened before somebody removed both.
    #[test]
    fn what_two_damaged_registers_say_alike_is_kept() {
        let disk = MemoryDisk::new();
        let dir = Path::new("/spool/buffers");
        let mut register = Register::open(&disk, dir).unwrap();
        for (id, name) in [(1, "A"), (2, "B"), (3, "C"), (4, "D")] {
            register.enter(BufferId(id), "cnfs", name).unwrap();
        }
        register.set_standing("A", Standing::Dropped);
        register.set_standing("D", Standing::Retired);
        register.save(&disk).unwrap();
        let files = ["register", "register.copy"].map(|name| dir.join(name));
        let whole = read_whole(&disk, &files[0], OCTETS_MAX).unwrap();
        let at = |line: &str| {
            let mut places = whole.windows(line.len());
            places.position(|octets| octets == line.as_bytes()).unwrap() as u64
        };
        // Each of them in another place.
        disk.corrupt(&files[0], at("2 cnfs B"), b"7").unwrap();
        disk.corrupt(&files[1], at("3 cnfs C"), b"x").unwrap();
        let damaged = files
            .each_ref()
            .map(|path| read_whole(&disk, path, OCTETS_MAX).unwrap());
        let mut register = Register::open(&disk, dir).unwrap();
        let standing = ["A", "B", "C", "D"].map(|name| register.standing(name));
        let expected = [Some(Standing::Dropped), None, None, Some(Standing::Retired)];
        assert_eq!(standing, expected);
        // Nothing is written before all buffers are known.
        register.enter(BufferId(2), "cnfs", "B").unwrap();
        register.save(&disk).unwrap();
        assert!(Register::open(&disk, dir).unwrap().is_in_doubt());
        register.settle(&disk).unwrap();
        let register = Register::open(&disk, dir).unwrap();
        assert!(!register.is_in_doubt() && register.has("B") && !register.has("C"));
        let aside = ["register.damaged", "register.copy.damaged"].map(|name| dir.join(name));
        let aside = aside.map(|path| read_whole(&disk, &path, OCTETS_MAX).unwrap());
        assert_eq!(aside, damaged);
        assert!(register_damage(&disk, dir).unwrap().is_empty());
    }

    /// What the medium does not give is damage like any other.
    #[test]
    fn a_bad_sector_in_one_register_of_two_costs_nothing() {
        let disk = FaultyDisk::new(Arc::new(MemoryDisk::new()));
        let dir = Path::new("/spool/buffers");
        assert!(register_damage(&disk, dir).unwrap().is_empty());
        let mut register = Register::open(&disk, dir).unwrap();
        register.enter(BufferId(7), "cnfs", "A").unwrap();
        register.save(&disk).unwrap();
        for (nth, name) in [(1, "register"), (2, "register.copy")] {
            let fault = || Fault::new(Op::Read, "/register", Effect::Medium).nth(nth);
            disk.add(fault());
            let damage = register_damage(&disk, dir).unwrap();
            let expected = format!("{}: it is damaged", dir.join(name).display());
            assert_eq!(damage, [expected]);
            disk.clear();
            disk.add(fault());
            let mut register = Register::open(&disk, dir).unwrap();
            assert!(register.has("A") && register.is_changed, "{name}");
            register.save(&disk).unwrap();
            disk.clear();
            assert!(register_damage(&disk, dir).unwrap().is_empty());
        }
        disk.remove(&dir.join("register")).unwrap();
        let damage = register_damage(&disk, dir).unwrap();
        assert_eq!(damage, ["/spool/buffers/register: it is not there"]);
    }

    #[test]
    fn a_damaged_register_is_told_apart() {
        let old = "newsreel buffers 1\n1 cnfs C0\n2 cnfs C1 dropped\n";
        let lines = "1 cnfs C0\n2 cnfs C1 dropped\n";
        let good = format!(
            "newsreel buffers 2 {:08x}\n{lines}",
            crc32c::crc32c(lines.as_bytes())
        );
        for text in [old, &good] {
            let printed = parse(text.as_bytes()).map(|entries| print(&entries));
            assert_eq!(printed.as_ref(), Some(&good));
        }
        for bad in [
            "",
            "newsreel buffers 1",
            "x\n1 cnfs C0\n",
            "newsreel buffers 1\n1 cnfs\n",
            "newsreel buffers 1\n1 cnfs C0 gone\n",
            "newsreel buffers 1\n1 cnfs dropped\n",
            "newsreel buffers 1\n\n",
            "newsreel buffers 1\n1 cnfs C0",
            "newsreel buffers 2 00000000\n1 cnfs C0\n",
            "newsreel buffers 2\n1 cnfs C0\n",
            "newsreel buffers 1\n1 cnfs C0 retired\n",
        ] {
            assert_eq!(parse(bad.as_bytes()), None, "{bad:?}");
        }
    }
}
