//! The directory of a set: writing, finding, reading and removing the files of articles.
//!
//! A file has the form in which any old tool reads it, lines that end with LF and no stuffed dots, unless that would not
//! give the same octets back, or the set or a rule wants it otherwise: then it has the wire form.  Which of the two follows from its
//! length.  What has the name of an article that comes gets a `+`: mostly it is left by a kill, and nobody's.  Whose file it is,
//! the checksums of the card say.

mod absence;
mod later;
mod turned;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use newsreel_host::{Disk, Error as HostError, ErrorKind, File, OpenMode};
use newsreel_wire::UnixTime;
use newsreel_wire::nntp::framing::{lf_to_wire, wire_to_lf};
use parking_lot::Mutex;

use super::card::Card;
use super::lent::Lender;
use super::roots::Roots;
use crate::config::FileFormat;
use crate::method::{Blocking, Want};

/// So many files may want the same name before that is looked for where nobody has it.
const COLLISIONS_MAX: usize = 8;

/// So many may have it and those that come behind it: where so many kills came that more left a file there, none is in the way.
pub const LATER_MAX: usize = 64;

/// So many seconds after its arrival an article's file is written at the latest, when disks are slow.
const WRITTEN_WITHIN_S: u64 = 60;

/// Why the text of a card was not read.
#[derive(Debug)]
pub(crate) enum TextError {
    /// There is no such file.
    Missing,
    /// It would have to wait.
    WouldBlock,
    /// There is one, but not with this text.
    Damaged(&'static str),
    /// The disk failed.
    Host(HostError),
}

impl From<HostError> for TextError {
    fn from(error: HostError) -> Self {
        match error.kind() {
            ErrorKind::NotFound => Self::Missing,
            // Somebody's file stands in the place of its directory.
            _ if error.is_below_a_file() => Self::Missing,
            _ => Self::Host(error),
        }
    }
}

/// The name of the file that came so many later than the one that has this name.
fn later(path: &Path, collisions: usize) -> PathBuf {
    let mut later = path.as_os_str().to_owned();
    for _ in 0..collisions {
        later.push("+");
    }
    later.into()
}

/// Whether a file that was written at this time may be of an article that arrived then.
fn is_then(modified: u64, arrival: UnixTime) -> bool {
    // File systems ask a clock that is some milliseconds late.
    let late = modified.saturating_add(1).checked_sub(arrival.0);
    late.is_some_and(|late| late <= WRITTEN_WITHIN_S)
}

/// The directory of a set.
#[derive(Debug)]
pub(crate) struct Folder {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) dir: PathBuf,
    /// The form that new files get, where a rule does not say another.
    pub(crate) format: FileFormat,
    /// Other file systems may be mounted below.
    pub(crate) has_hierarchies: bool,
    /// Where they are.
    pub(crate) roots: Roots,
    /// Who has the texts, where no files are made here.
    pub(crate) lender: Option<Arc<Lender>>,
    /// Which of its directories were told of that somebody turned over.
    pub(crate) told: Mutex<BTreeSet<PathBuf>>,
}

impl Folder {
    /// The path of a file, of those that want the name the one that came so many later.
    fn path(&self, name: &str, collisions: usize) -> PathBuf {
        later(&self.dir.join(name), collisions)
    }

    fn create(&self, path: &Path) -> newsreel_host::Result<Arc<dyn File>> {
        self.with_directory(path, || self.disk.open(path, OpenMode::CreateForAll))
    }

    /// Makes something of this path, and its directory where it is missing.
    fn with_directory<T>(
        &self,
        path: &Path,
        make: impl Fn() -> newsreel_host::Result<T>,
    ) -> newsreel_host::Result<T> {
        let made = make();
        let dir = path.parent().unwrap_or(&self.dir);
        match made.as_ref().err().map(HostError::kind) {
            Some(ErrorKind::NotFound) => {
                let made = self.disk.make_dirs(dir);
                if made.is_err() && self.clear_the_way(dir)? {
                    self.disk.make_dirs(dir)?;
                } else {
                    made?;
                }
            }
            // What a file in a directory's place is called is no kind of its own.
            Some(ErrorKind::Io) if self.clear_the_way(dir)? => self.disk.make_dirs(dir)?,
            _ => return made,
        }
        make()
    }

    /// Gives a file a later name that stands where a directory should be: it is somebody's, who must not keep a whole set from
    /// taking articles, or an article from before its group had such directories, which is found under that name, too.
    /// Whether there was one.
    fn clear_the_way(&self, dir: &Path) -> newsreel_host::Result<bool> {
        let mut above: Vec<&Path> = dir.ancestors().take_while(|at| *at != self.dir).collect();
        above.reverse();
        for at in above {
            let is_file = self.disk.open(at, OpenMode::Read).is_ok();
            // A pipe, a socket.
            let is_other = || {
                self.disk
                    .has_entries(at)
                    .is_err_and(|error| error.is_below_a_file())
            };
            if !is_file && !is_other() {
                continue;
            }
            for collisions in 1..LATER_MAX {
                let later = later(at, collisions);
                if !self.disk.exists(&later)? {
                    self.disk.rename(at, &later)?;
                    tracing::warn!(path = %later.display(), "a file stood in the place of a directory of articles");
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Octets that are free where files are made.
    pub(crate) fn free_octets(&self) -> newsreel_host::Result<u64> {
        self.disk.free_bytes(&self.dir)
    }

    /// Makes durable what was written or removed at these paths; a directory may lie on a file system of its own, mounted
    /// there or behind a link, and where hierarchies may that is noted.
    pub(crate) fn sync<'p>(
        &self,
        paths: impl Iterator<Item = &'p Path>,
    ) -> newsreel_host::Result<()> {
        if self.lender.is_some() {
            return Ok(());
        }
        let dirs: BTreeSet<&Path> = paths.filter_map(Path::parent).collect();
        let mut synced = BTreeSet::new();
        let own = self.disk.file_system(&self.dir)?;
        for dir in std::iter::once(self.dir.as_path()).chain(dirs) {
            let file_system = match self.disk.file_system(dir) {
                // Somebody removed it, and what was in it.
                Err(error) if error.kind() == ErrorKind::NotFound && dir != self.dir => continue,
                file_system => file_system?,
            };
            if synced.insert(file_system) {
                let made_durable = self.disk.sync_file_system(dir);
                made_durable.inspect_err(|error| self.roots.failed(dir, error))?;
            }
            if self.has_hierarchies && own != file_system {
                self.roots.note(dir, file_system, true)?;
            }
        }
        Ok(())
    }

    /// Reads what a card tells of; it passed its checksums.  Where it does not, what may be left of it is in `text` all the
    /// same.
    pub(crate) fn read(
        &self,
        card: &Card,
        want: Want,
        blocking: Blocking,
        text: &mut Vec<u8>,
    ) -> Result<(), TextError> {
        if let Some(lender) = &self.lender {
            return lender.read(card, (want, blocking), text);
        }
        let mut why = TextError::Missing;
        for name in card.names() {
            match self.read_named(name, card, (want, blocking), text) {
                Ok(path) if self.has_hierarchies && !self.roots.saw(&path, blocking) => {
                    return Err(TextError::WouldBlock);
                }
                Ok(_) => return Ok(()),
                Err(TextError::Missing) => {}
                Err(TextError::Damaged(what)) => why = TextError::Damaged(what),
                Err(error) => return Err(error),
            }
        }
        match why {
            TextError::Missing => self.read_turned_over(card, (want, blocking), text),
            why => Err(why),
        }
    }

    /// Under each of the names of a card the file that is its; what they have is in `text`.
    pub(crate) fn own(&self, card: &Card, text: &mut Vec<u8>) -> Vec<PathBuf> {
        let wanted = (Want::Whole, Blocking::Yes);
        let (mut own, mut read) = (Vec::new(), Vec::new());
        for name in card.names() {
            let path = match self.read_named(name, card, wanted, &mut read) {
                Err(TextError::Missing) => self.read_elsewhere(name, card, Want::Whole, &mut read),
                path => path.ok(),
            };
            if let Some(path) = path {
                own.push(path);
                std::mem::swap(text, &mut read);
            }
        }
        own
    }

    /// Whether a path leads to one of the files of a card, or that cannot be told: what is mounted or linked may have several paths.
    pub(crate) fn may_own(&self, card: &Card, path: &Path) -> bool {
        let own = self.own(card, &mut Vec::new());
        let is_same = |own: &PathBuf| match (self.disk.facts(own), self.disk.facts(path)) {
            // On another file system another file may have the number: then that cannot be told.
            (Ok(Some(own)), Ok(Some(there))) => own.inode == there.inode,
            (Ok(None), Ok(None)) => own == path,
            _ => true,
        };
        own.is_empty() || own.iter().any(is_same)
    }

    /// Whether a file has one of the names of a card, or one that it might get where that is taken.
    pub(crate) fn is_named(&self, card: &Card, path: &Path) -> bool {
        let mut names = card.names();
        names.any(|name| (0..LATER_MAX).any(|collisions| self.path(name, collisions) == path))
    }

    /// Which file is a card's, whose article arrived then, of those that one of its names may have.
    ///
    /// Where its length and the time at which it was written tell, its octets are not read: they may lie anywhere on a disk.
    pub(crate) fn find(
        &self,
        name: &str,
        card: &Card,
        arrival: UnixTime,
    ) -> Result<PathBuf, TextError> {
        let path = self.path(name, 0);
        if self.is_as_written(&path, card, arrival).unwrap_or(false) {
            return Ok(path);
        }
        self.read_named(name, card, (Want::Head, Blocking::Yes), &mut Vec::new())
    }

    /// The symbolic link of this name that leads to the file of a card, where somebody removed that: to nothing.
    pub(crate) fn link_without_file(&self, name: &str, card: &Card) -> Option<PathBuf> {
        let is_own = |target: &Path| (0..LATER_MAX).any(|n| self.path(&card.name, n) == target);
        let mut links = (0..LATER_MAX).map(|collisions| self.path(name, collisions));
        links.find(|path| {
            let target = self.disk.link_target(path).ok().flatten();
            target.is_some_and(|target| is_own(&target) && !self.disk.exists(path).unwrap_or(true))
        })
    }

    /// Whether the file system, on which this file of an article that arrived then was just written, asks so different a clock that
    /// [`Folder::find`] would read every file of it.
    pub(crate) fn has_other_clock(&self, path: &Path, arrival: UnixTime) -> bool {
        let facts = self.disk.facts(path).ok().flatten();
        facts.is_some_and(|facts| !is_then(facts.modified, arrival))
    }

    /// Whether a file is as long as the card says, and was written when its article arrived: another's of the same name, left by
    /// a crash or of a group that was made again, would have to be both.
    fn is_as_written(
        &self,
        path: &Path,
        card: &Card,
        arrival: UnixTime,
    ) -> newsreel_host::Result<bool> {
        let Some(facts) = self.disk.facts(path)? else {
            return Ok(false);
        };
        let is_as_long = Some(facts.len) == card.file_len.map(u64::from);
        Ok(is_as_long && is_then(facts.modified, arrival))
    }

    fn read_named(
        &self,
        name: &str,
        card: &Card,
        (want, blocking): (Want, Blocking),
        text: &mut Vec<u8>,
    ) -> Result<PathBuf, TextError> {
        let (mut why, mut is_any, mut is_first_free) = (TextError::Missing, false, false);
        for collisions in 0..LATER_MAX {
            // Where nobody has the first ones, nobody has those behind them.
            if collisions >= COLLISIONS_MAX && !is_any {
                break;
            }
            let path = self.path(name, collisions);
            match self.read_file(&path, card, want, blocking, text) {
                Ok(()) => return Ok(path),
                Err(TextError::Missing) if collisions == 0 => {
                    is_first_free = true;
                    continue;
                }
                Err(TextError::Missing) => continue,
                // A directory may have the name, and another article's file.
                Err(TextError::Host(error)) if error.kind() == ErrorKind::NotAFile => {}
                Err(TextError::Damaged(what)) => why = TextError::Damaged(what),
                Err(error) => return Err(error),
            }
            is_any = true;
        }
        // A scrub may have given it back to a file that had a later one when it was looked for.
        let path = self.path(name, 0);
        match is_first_free && self.read_file(&path, card, want, blocking, text).is_ok() {
            true => Ok(path),
            false => Err(why),
        }
    }

    fn read_file(
        &self,
        path: &Path,
        card: &Card,
        want: Want,
        blocking: Blocking,
        text: &mut Vec<u8>,
    ) -> Result<(), TextError> {
        let file = match blocking {
            Blocking::Yes => self.disk.open(path, OpenMode::Read)?,
            Blocking::No => match self.disk.open_cached(path)? {
                Some(file) => file,
                None => return Err(TextError::WouldBlock),
            },
        };
        let file_len = file.len()?;
        let is_wire = file_len == u64::from(card.article_len);
        if file_len > u64::from(card.article_len) {
            return Err(TextError::Damaged("the file is longer than its article"));
        }
        let wanted = match want {
            Want::Whole => file_len,
            // In whichever form it is, the header block is no longer than this.
            Want::Head => file_len.min(u64::from(card.head_len)),
        };
        let mut stored = vec![0; usize::try_from(wanted).unwrap_or_default()];
        let got = match blocking {
            Blocking::Yes => file.read_at(&mut stored, 0)?,
            Blocking::No => match file.read_cached_at(&mut stored, 0)? {
                Some(got) if got == stored.len() => got,
                _ => return Err(TextError::WouldBlock),
            },
        };
        stored.truncate(got);
        if is_wire {
            *text = stored;
        } else {
            text.clear();
            lf_to_wire(&stored, text);
        }
        check(card, want, text)
    }
}

/// Whether this is what a card tells of; cuts it to what was wanted.
pub(super) fn check(card: &Card, want: Want, text: &mut Vec<u8>) -> Result<(), TextError> {
    let head_len = card.head_len as usize;
    if want == Want::Head {
        text.truncate(head_len);
    }
    let Some((head, body)) = text.split_at_checked(head_len) else {
        return Err(TextError::Damaged("the file ends in the header block"));
    };
    if crc32c::crc32c(head) != card.crc_head {
        return Err(TextError::Damaged("checksum of the header block"));
    }
    let is_body = text.len() == card.article_len as usize && crc32c::crc32c(body) == card.crc_body;
    if want == Want::Whole && !is_body {
        return Err(TextError::Damaged("checksum of the body"));
    }
    Ok(())
}

/// Memory in which articles get the form of their files.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    native: Vec<u8>,
    again: Vec<u8>,
}

impl Scratch {
    /// An article as its file has it, where that is not its wire form.
    pub(crate) fn native(&mut self, format: FileFormat, text: &[u8]) -> Option<&[u8]> {
        if format == FileFormat::Wire {
            return None;
        }
        self.native.clear();
        self.again.clear();
        wire_to_lf(text, &mut self.native);
        lf_to_wire(&self.native, &mut self.again);
        // The length tells the forms apart.
        (self.again == text && self.native.len() < text.len()).then_some(&self.native)
    }
}

#[cfg(test)]
mod tests {
    use newsreel_host::{FaultyDisk, MemoryDisk, Op, RealDisk};

    use super::*;
    use crate::files::CATALOGUE;

    pub(super) fn folder() -> Folder {
        let dir = PathBuf::from("/articles");
        let disk = MemoryDisk::new();
        disk.make_dirs(&dir).unwrap();
        let disk: Arc<dyn Disk> = Arc::new(disk);
        Folder {
            roots: roots(&disk, &dir),
            disk,
            dir,
            format: FileFormat::Native,
            has_hierarchies: true,
            lender: None,
            told: Mutex::default(),
        }
    }

    pub(super) fn roots(disk: &Arc<dyn Disk>, dir: &Path) -> Roots {
        Roots::open(disk, dir, &dir.join(CATALOGUE), true).unwrap()
    }

    /// No file is from then.
    pub(super) const NEVER: UnixTime = UnixTime(u64::MAX);

    pub(super) fn card(text: &[u8], head_len: u32, name: &str) -> Card {
        Card::of(text, head_len, vec![name.to_owned()], b"").unwrap()
    }

    pub(super) fn read(folder: &Folder, card: &Card, want: Want) -> Result<Vec<u8>, TextError> {
        let mut text = vec![b'x'; 7];
        folder.read(card, want, Blocking::Yes, &mut text)?;
        Ok(text)
    }

    /// As a set does.
    fn write(folder: &Folder, name: &str, text: &[u8]) -> PathBuf {
        let mut scratch = Scratch::default();
        let octets = scratch.native(folder.format, text).unwrap_or(text);
        folder.write(name, octets).unwrap()
    }

    fn stored(folder: &Folder, path: &Path) -> Vec<u8> {
        newsreel_host::read_whole(folder.disk.as_ref(), path, 1 << 20).unwrap()
    }

    #[test]
    fn what_is_written_is_read_back_whatever_its_form() {
        let mut folder = folder();
        let head = "Subject: x\r\nXref: us a:1\r\n";
        for (at, (body, native)) in [
            (
                "\r\ntext\r\n..dot\r\n.\r\n",
                Some("Subject: x\nXref: us a:1\n\ntext\n.dot\n"),
            ),
            ("\r\n.\r\n", Some("Subject: x\nXref: us a:1\n\n")),
            (
                "\r\n...\r\n..\r\n.\r\n",
                Some("Subject: x\nXref: us a:1\n\n..\n.\n"),
            ),
            (
                "\r\na\rb\r\r\n.\r\n",
                Some("Subject: x\nXref: us a:1\n\na\rb\r\n"),
            ),
            // LF alone, and a dot that nobody stuffed: these octets would not come back.
            ("\r\na\nb\r\n.\r\n", None),
            ("\r\n.a\r\n.\r\n", None),
            ("\r\nno terminator\r\n", None),
        ]
        .into_iter()
        .enumerate()
        {
            let text = format!("{head}{body}").into_bytes();
            let card = card(&text, head.len() as u32, &format!("d/{at}"));
            let path = write(&folder, &card.name, &text);
            let expected = native.map_or(text.clone(), |native| native.as_bytes().to_vec());
            if native.is_some() {
                folder.format = FileFormat::Wire;
                let other = write(&folder, "w", &text);
                assert_eq!(stored(&folder, &other), text, "{body:?}");
                folder.format = FileFormat::Native;
            }
            assert_eq!(stored(&folder, &path), expected, "{body:?}");
            assert_eq!(read(&folder, &card, Want::Whole).unwrap(), text);
            assert_eq!(
                read(&folder, &card, Want::Head).unwrap(),
                head.as_bytes(),
                "{body:?}"
            );
        }
    }

    #[test]
    fn files_that_want_one_name_are_told_apart() {
        let folder = folder();
        let mut cards = Vec::new();
        for n in 0..LATER_MAX {
            let text = format!("Subject: {n:2}\r\n\r\nx\r\n.\r\n").into_bytes();
            let card = card(&text, 13, "d/name");
            let path = folder.write(&card.name, &text).unwrap();
            assert_eq!(path, folder.path("d/name", 0));
            // The next one has it then.
            cards.push((card, text, folder.path("d/name", n + 1)));
        }
        cards[LATER_MAX - 1].2 = folder.path("d/name", 0);
        let full = folder.write("d/name", b"\r\n.\r\n");
        assert_eq!(full.unwrap_err().kind(), ErrorKind::Exists);
        for gone in 0..cards.len() {
            for (at, (card, text, path)) in cards.iter().enumerate() {
                let read = read(&folder, card, Want::Whole);
                let found = folder.find("d/name", card, NEVER);
                if at < gone {
                    assert!(read.is_err() && found.is_err());
                } else {
                    assert_eq!((&read.unwrap(), &found.unwrap()), (text, path));
                }
            }
            folder.disk.remove(&cards[gone].2).unwrap();
        }
        let missing = read(&folder, &cards[0].0, Want::Head);
        assert!(matches!(missing, Err(TextError::Missing)));
    }

    #[test]
    fn length_and_time_tell_whose_file_it_is() {
        let temporary = tempfile::tempdir().unwrap();
        let disk = FaultyDisk::new(Arc::new(RealDisk));
        let folder = Folder {
            roots: roots(&(Arc::new(disk.clone()) as Arc<dyn Disk>), temporary.path()),
            disk: Arc::new(disk.clone()),
            dir: temporary.path().to_path_buf(),
            ..folder()
        };
        let text = b"Subject: x\r\n\r\nbody\r\n.\r\n";
        let path = write(&folder, "d/1", text);
        let file = folder.disk.open(&path, OpenMode::ReadWrite).unwrap();
        let now = disk.facts(&path).unwrap().unwrap().modified;
        let mut card = card(text, 12, "d/1");
        card.file_len = Some(file.len().unwrap() as u32);
        let older = Card {
            file_len: None,
            ..card.clone()
        };
        // Whose head is another's: only who reads it knows.
        file.write_at(b"s", 0).unwrap();
        for (card, arrival, is_found) in [
            (&card, now, true),
            (&card, now + 1, true),
            (&card, now - WRITTEN_WITHIN_S + 1, true),
            (&card, now + 2 + WRITTEN_WITHIN_S, false),
            (&card, now - WRITTEN_WITHIN_S - 2, false),
            (&older, now, false),
        ] {
            let reads = disk.counts().of(Op::Read);
            let found = folder.find("d/1", card, UnixTime(arrival));
            assert_eq!(found.is_ok(), is_found, "{} {now}", arrival);
            assert_eq!(disk.counts().of(Op::Read) - reads, u64::from(!is_found));
        }
        file.set_len(9).unwrap();
        assert!(folder.find("d/1", &card, UnixTime(now)).is_err());
    }

    #[test]
    fn a_directory_in_the_way_is_stepped_over() {
        let temporary = tempfile::tempdir().unwrap();
        let disk: Arc<dyn Disk> = Arc::new(RealDisk);
        let folder = Folder {
            roots: roots(&disk, temporary.path()),
            disk,
            dir: temporary.path().to_path_buf(),
            format: FileFormat::Native,
            has_hierarchies: true,
            lender: None,
            told: Mutex::default(),
        };
        folder.disk.make_dirs(&folder.path("d/1", 0)).unwrap();
        let text = b"Subject: x\r\n\r\n.\r\n";
        let card = card(text, 12, "d/1");
        let path = folder.write(&card.name, text);
        let path = path.unwrap();
        assert_eq!(path, folder.path("d/1", 1));
        assert_eq!(read(&folder, &card, Want::Whole).unwrap(), text);
        folder.disk.make_dirs(&folder.path("d/2", 0)).unwrap();
        let link = folder.link(&path, "d/2").unwrap();
        assert_eq!(link, folder.path("d/2", 1));
        assert_eq!(stored(&folder, &link), stored(&folder, &path));
    }

    #[test]
    fn a_file_in_the_place_of_a_directory_gets_a_later_name() {
        let temporary = tempfile::tempdir().unwrap();
        let real = Folder {
            roots: roots(&(Arc::new(RealDisk) as Arc<dyn Disk>), temporary.path()),
            disk: Arc::new(RealDisk),
            dir: temporary.path().to_path_buf(),
            ..folder()
        };
        let text = b"Subject: x\r\n\r\n.\r\n";
        for folder in [real, folder()] {
            // An article of a group that has buckets by now, or somebody's file.
            let old = b"Subject: y\r\n\r\n.\r\n";
            for (there, name) in [
                ("a/123", "a/123/41239"),
                ("b", "b/c/d/1"),
                ("c/d", "c/d/e/1"),
            ] {
                let old_card = card(old, 12, there);
                let card = card(text, 12, name);
                folder.write(there, old).unwrap();
                folder.write(name, text).unwrap();
                assert_eq!(read(&folder, &card, Want::Whole).unwrap(), text);
                assert_eq!(read(&folder, &old_card, Want::Whole).unwrap(), old);
                let found = folder.find(there, &old_card, NEVER).unwrap();
                assert_eq!(found, folder.path(there, 1));
            }
        }
    }

    /// Where two file systems are to be had, as memory and a disk mostly are.
    #[test]
    fn every_file_system_that_was_touched_is_synced() {
        let here = tempfile::tempdir().unwrap();
        let Ok(there) = tempfile::tempdir_in("/dev/shm") else {
            return println!("skipped: there is no /dev/shm");
        };
        let disk = FaultyDisk::new(Arc::new(RealDisk));
        let system = |dir: &Path| disk.file_system(dir).unwrap();
        if system(here.path()) == system(there.path()) {
            return println!("skipped: /dev/shm is on the same file system");
        }
        let hierarchy = here.path().join("alt");
        // A symbolic link: no file system links directories.
        disk.link(there.path(), &hierarchy).unwrap();
        let folder = Folder {
            roots: roots(&(Arc::new(disk.clone()) as Arc<dyn Disk>), here.path()),
            disk: Arc::new(disk.clone()),
            dir: here.path().to_path_buf(),
            ..folder()
        };
        let text = b"Subject: x\r\n\r\n.\r\n";
        let card = Card::of(
            text,
            12,
            ["misc/1", "alt/a/1"].map(str::to_owned).to_vec(),
            b"",
        );
        let card = card.unwrap();
        let first = folder.write("misc/1", text).unwrap();
        let link = folder.link(&first, "alt/a/1").unwrap();
        assert_eq!(read(&folder, &card, Want::Whole).unwrap(), text);
        let (one, both) = (&[&first][..], &[&first, &link][..]);
        // Where a root is met for the first time the list of them is written: a file and its directory.
        for (paths, syncs) in [(one, 1), (both, 4), (both, 2), (&[], 1)] {
            let before = disk.counts().syncs();
            folder
                .sync(paths.iter().map(|path| path.as_path()))
                .unwrap();
            assert_eq!(disk.counts().syncs() - before, syncs, "{paths:?}");
        }
        // The article is lost with the disk of its first name: the link leads there.
        folder.disk.remove(&first).unwrap();
        assert!(folder.find("alt/a/1", &card, NEVER).is_err());
        // A disk that is not there is told from a file that was removed.
        assert!(folder.is_there(&card));
        let away = there.path().with_extension("away");
        folder.disk.rename(there.path(), &away).unwrap();
        assert!(!folder.is_there(&card));
        folder.disk.rename(&away, there.path()).unwrap();
    }

    #[test]
    fn what_was_changed_in_a_file_is_noticed() {
        let folder = folder();
        let text = b"Subject: x\r\n\r\nbody\r\n.\r\n";
        let card = card(text, 12, "d/1");
        let path = write(&folder, &card.name, text);
        let good = stored(&folder, &path);
        let file = folder.disk.open(&path, OpenMode::ReadWrite).unwrap();
        for at in 0..good.len() {
            file.write_at(&[good[at] ^ 1], at as u64).unwrap();
            let whole = read(&folder, &card, Want::Whole);
            assert!(matches!(whole, Err(TextError::Damaged(_))), "octet {at}");
            assert_eq!(read(&folder, &card, Want::Head).is_ok(), at > 10);
            file.write_at(&good[at..=at], at as u64).unwrap();
        }
        for len in [0, 5, good.len() as u64 - 1, 100] {
            file.set_len(len).unwrap();
            let whole = read(&folder, &card, Want::Whole);
            assert!(matches!(whole, Err(TextError::Damaged(_))), "cut at {len}");
        }
    }
}
