//! Articles as files to which no cards lead: a directory from elsewhere, or of a set whose catalogue is lost.
//!
//! Whatever made it, a file has one article, in native or wire form, which is told apart for each, and a name as a method gives it. Where
//! an article was filed its Xref says; where it has none, the path of a file `group/sub/group/NUMBER` does if it agrees with Newsgroups, and
//! that is put in.  Articles come
//! by the times of their files, and of those that lie together in that order none comes before one of a lower number in any of its groups: so
//! that who files them anew can keep the numbers.  It is only read.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use newsreel_host::{Disk, ErrorKind, read_whole};
use newsreel_wire::article::{Headers, Known};
use newsreel_wire::{
    BufferId, GroupName, IdHash, Position, Sequence, SetId, Token, TokenParts, UnixTime,
    newsgroups, xref,
};
use parking_lot::Mutex;

use super::CATALOGUE;
use super::lying::{is_like_an_article, read_front, to_wire};
use crate::error::{Error, ReadError, Result};
use crate::facts::BufferFacts;
use crate::mark::is_of_mark;
use crate::method::{Blocking, BufferReader, RecordScan, ScanRange, Scanned, Stored, Want};
use crate::records::geometry::in_memory;
use crate::records::placing::ARTICLE_OCTETS_MAX;

/// So many files are brought into the order of their numbers at once.
pub const ORDERED_AT_ONCE: usize = 1 << 16;

/// So many files are kept in mind, with their times: where a directory has more, it is looked through once for each so many.
pub const SORTED_AT_ONCE: usize = 1 << 19;

/// So many symbolic links to directories are followed.
pub const LINKS_MAX: usize = 1 << 12;

/// When a file was written, the number in its name, and where it lies.
type Timed = (u64, u64, PathBuf);

/// A directory of such files.
#[derive(Debug)]
pub(crate) struct Loose {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    name: String,
    /// The file to which a walk came last, and its place there.
    last: Mutex<(Position, PathBuf)>,
    /// What the last walk through all of it passed over.
    passed: Mutex<Option<PassedOver>>,
}

/// Files that have no names of articles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassedOver {
    /// How many.
    pub files: u64,
    /// The first; where some are of INN's timecaf, of those.
    pub first: PathBuf,
    /// How many are of INN's timecaf, each with many articles.
    pub timecaf: u64,
}

impl PassedOver {
    /// Counts one more.
    fn note(seen: &mut Option<Self>, path: &Path) {
        let is_timecaf = path.extension().is_some_and(|end| end == "CF");
        let all = seen.get_or_insert_with(|| Self {
            files: 0,
            first: path.to_path_buf(),
            timecaf: 0,
        });
        if is_timecaf && all.timecaf == 0 {
            path.clone_into(&mut all.first);
        }
        all.files += 1;
        all.timecaf += u64::from(is_timecaf);
    }
}

/// Directories that are still to be looked into.
struct Dirs {
    waiting: Vec<PathBuf>,
    passed: Option<PassedOver>,
    /// Where links led that were followed, and where the walk began: links may lead in a circle.
    followed: Vec<PathBuf>,
}

impl Dirs {
    fn new(disk: &dyn Disk, dir: &Path) -> Self {
        Self {
            waiting: vec![dir.to_path_buf()],
            passed: None,
            followed: disk.canonical(dir).into_iter().collect(),
        }
    }

    /// What has no name of an article: a link to a directory is followed, all else but what a set of ours has there is passed over.
    fn pass(&mut self, disk: &dyn Disk, name: &str, path: PathBuf) {
        if disk.list(&path).is_ok() {
            self.follow(disk, path);
        } else if !is_of_mark(name) {
            PassedOver::note(&mut self.passed, &path);
        }
    }

    /// A hierarchy behind a symbolic link to a directory, unless what it leads to is looked into anyway.
    fn follow(&mut self, disk: &dyn Disk, path: PathBuf) {
        let Ok(target) = disk.canonical(&path) else {
            return;
        };
        let mut followed = self.followed.iter();
        let is_known =
            followed.any(|known| target.starts_with(known) || known.starts_with(&target));
        if !is_known && self.followed.len() < LINKS_MAX {
            self.followed.push(target);
            self.waiting.push(path);
        }
    }
}

impl Loose {
    /// None where no file in it has a name that an article's may have.
    pub(crate) fn open(disk: &Arc<dyn Disk>, dir: &Path) -> Result<Option<Self>> {
        let name = dir.file_name().unwrap_or_default();
        let loose = Self {
            disk: Arc::clone(disk),
            dir: dir.to_path_buf(),
            name: name.to_string_lossy().into_owned(),
            last: Mutex::default(),
            passed: Mutex::default(),
        };
        let mut walk = Dirs::new(disk.as_ref(), dir);
        while let Some(dir) = walk.waiting.pop() {
            if !loose.files_in(&dir, &mut walk)?.is_empty() {
                return Ok(Some(loose));
            }
        }
        match walk.passed.filter(|passed| passed.timecaf > 0) {
            Some(passed) => Err(of_timecaf(dir, &passed)),
            None => Ok(None),
        }
    }

    /// The files in a directory that may have articles; those below it are added to what is still to be looked into.
    fn files_in(&self, dir: &Path, walk: &mut Dirs) -> Result<Vec<PathBuf>> {
        let entries = match self.disk.list(dir) {
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            entries => entries?,
        };
        let mut files = Vec::new();
        for entry in entries {
            let path = dir.join(&entry.name);
            if entry.is_dir {
                walk.waiting
                    .extend((entry.name != CATALOGUE).then_some(path));
            } else if is_like_an_article(&entry.name) {
                files.push(path);
            } else {
                walk.pass(self.disk.as_ref(), &entry.name, path);
            }
        }
        Ok(files)
    }

    /// The oldest files behind one, at most so many, by the times at which they were written; and whether there are more.
    fn by_time(&self, behind: Option<&Timed>, most: usize) -> Result<(Vec<Timed>, bool)> {
        let mut walk = Dirs::new(self.disk.as_ref(), &self.dir);
        let (mut oldest, mut has_more) = (BinaryHeap::new(), false);
        while let Some(dir) = walk.waiting.pop() {
            for path in self.files_in(&dir, &mut walk)? {
                let number = number_of(&path).unwrap_or_default();
                let facts = self.disk.facts(&path).ok().flatten();
                if facts.is_none() && self.disk.list(&path).is_ok() {
                    // A link to a directory that has a name as files have.
                    walk.follow(self.disk.as_ref(), path);
                    continue;
                }
                // What cannot be read is told when its turn comes.
                let file = (facts.map_or(0, |facts| facts.modified), number, path);
                if behind.is_none_or(|behind| *behind < file) {
                    oldest.push(file);
                }
                if oldest.len() > most {
                    oldest.pop();
                    has_more = true;
                }
            }
        }
        *self.passed.lock() = walk.passed;
        Ok((oldest.into_sorted_vec(), has_more))
    }

    /// The article in a file in wire form, with an Xref where its path tells what that would say.
    fn read(&self, path: &Path, text: &mut Vec<u8>) -> newsreel_host::Result<()> {
        let limit = in_memory(ARTICLE_OCTETS_MAX);
        let octets = read_whole(self.disk.as_ref(), path, limit)?;
        to_wire(&octets, text);
        let headers = Headers::scan_stored(text).ok();
        let without = headers.filter(|it| it.get(Known::Xref).is_none());
        if let Some((group, number)) = without.and_then(|it| self.place_of(path, &it)) {
            let field = format!("Xref: {} {group}:{number}\r\n", self.name).into_bytes();
            text.splice(0..0, field);
        }
        Ok(())
    }

    /// Group and number by the path of a file, as far as its Newsgroups names that group, or it is one of those in which servers file by
    /// themselves.  Directories by number, which some layouts have below a group's, are no part of its name.
    fn place_of(&self, path: &Path, headers: &Headers<'_>) -> Option<(String, u64)> {
        let below = path.strip_prefix(&self.dir).ok()?.parent()?;
        let mut parts: Vec<&str> = below
            .iter()
            .map(|part| part.to_str().map(|part| part.trim_end_matches(',')))
            .collect::<Option<_>>()?;
        let number = number_of(path)?;
        let newsgroups = headers.content(Known::Newsgroups).unwrap_or_default();
        loop {
            let group = parts.join(".");
            let name = GroupName::parse(group.as_bytes()).ok()?;
            let mut named = newsgroups::split(newsgroups).flatten();
            if name.is_of_servers() || named.any(|it| it.as_str() == group) {
                return Some((group, number));
            }
            parts.pop().filter(|part| is_bucket(part))?;
        }
    }

    /// Where the article of a file was filed.
    fn places(&self, path: &Path, text: &mut Vec<u8>) -> Vec<(String, u64)> {
        let read = read_front(self.disk.as_ref(), path, text);
        let headers = read.ok().and_then(|_| Headers::scan_stored(text).ok());
        let xref = headers.as_ref().and_then(|it| it.content(Known::Xref));
        match xref {
            Some(content) => xref::places(content)
                .map(|(group, number)| (group.to_owned(), number.0))
                .collect(),
            None => {
                let place = headers.and_then(|headers| self.place_of(path, &headers));
                place.into_iter().collect()
            }
        }
    }

    /// The same files so that none comes before one with a lower number in one of its groups, as far as that can be.
    fn in_order(&self, files: &[Timed]) -> Vec<usize> {
        let mut text = Vec::new();
        let places: Vec<Vec<(String, u64)>> = files
            .iter()
            .map(|(.., path)| self.places(path, &mut text))
            .collect();
        // Under several names an article has the same place several times.
        let mut groups: BTreeMap<&str, VecDeque<(u64, usize)>> = BTreeMap::new();
        for (at, (group, number)) in places
            .iter()
            .enumerate()
            .flat_map(|(at, places)| places.iter().map(move |place| (at, place)))
        {
            groups.entry(group).or_default().push_back((*number, at));
        }
        let mut waits: Vec<usize> = vec![0; files.len()];
        let mut behind: Vec<Vec<usize>> = vec![Vec::new(); files.len()];
        for queue in groups.values_mut() {
            let queue = queue.make_contiguous();
            queue.sort_unstable();
            for pair in queue.windows(2) {
                let [(_, first), (_, second)] = pair else {
                    continue;
                };
                behind[*first].push(*second);
                waits[*second] += 1;
            }
        }
        let ready = (0..files.len()).filter(|at| waits[*at] == 0).map(Reverse);
        let mut ready: BinaryHeap<Reverse<usize>> = ready.collect();
        let mut order = Vec::with_capacity(files.len());
        while let Some(Reverse(at)) = ready.pop() {
            order.push(at);
            for next in &behind[at] {
                waits[*next] -= 1;
                if waits[*next] == 0 {
                    ready.push(Reverse(*next));
                }
            }
        }
        // Numbers that contradict each other: they come by time.
        order.extend((0..files.len()).filter(|at| waits[*at] > 0));
        order
    }
}

/// Why a directory cannot be read that has nothing but files of INN's timecaf.
fn of_timecaf(dir: &Path, passed: &PassedOver) -> Error {
    Error::Buffer {
        name: dir.file_name().unwrap_or_default().display().to_string(),
        path: dir.to_path_buf(),
        why: format!(
            "its articles are in files of INN's timecaf, as {}; {TIMECAF_HELPS}",
            passed.first.display()
        ),
    }
}

/// What to do about articles that only INN can read.
pub const TIMECAF_HELPS: &str = "have INN's own `archive` write them as files, one an article, and attach those (docs/from-inn.md)";

/// Whether a directory may be one of articles by their numbers.
fn is_bucket(name: &str) -> bool {
    let digits = name.strip_prefix('r').unwrap_or(name);
    !digits.is_empty() && digits.bytes().all(|octet| octet.is_ascii_digit())
}

/// The number that a file has for a name.
fn number_of(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?.trim_end_matches('+');
    name.parse().ok()
}

impl BufferReader for Loose {
    fn id(&self) -> BufferId {
        BufferId(0)
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn set(&self) -> SetId {
        SetId(0)
    }

    fn floor(&self) -> Position {
        Position::ZERO
    }

    fn cycle_octets(&self) -> u64 {
        0
    }

    fn passed_over(&self) -> Option<PassedOver> {
        self.passed.lock().clone()
    }

    fn octets_for(&self, article_len: u64) -> u64 {
        article_len
    }

    fn read(
        &self,
        token: &Token,
        _: Want,
        _: Blocking,
        _: &mut Vec<u8>,
    ) -> std::result::Result<Stored, ReadError> {
        Err(ReadError::Corrupt {
            buffer: BufferId(0),
            offset: token.position().offset(),
            what: "it has no header block of an article",
        })
    }

    fn file_of(&self, token: &Token) -> Option<PathBuf> {
        let last = self.last.lock();
        (last.0 == token.position()).then(|| last.1.clone())
    }

    fn verify(
        &self,
        _: &Token,
        _: Sequence,
        _: &IdHash,
        _: &mut Vec<u8>,
    ) -> std::result::Result<(), ReadError> {
        Err(ReadError::Gone)
    }

    fn token_at(&self, _: Position) -> std::result::Result<Token, ReadError> {
        Err(ReadError::Gone)
    }

    fn scan(self: Arc<Self>, _: ScanRange) -> Box<dyn RecordScan> {
        Box::new(LooseScan {
            loose: self,
            files: Vec::new().into_iter(),
            last: None,
            has_more: true,
            here: VecDeque::new(),
            text: Vec::new(),
            count: 0,
            octets_read: 0,
        })
    }

    fn facts(&self) -> BufferFacts {
        BufferFacts {
            name: self.name.clone(),
            method: "files",
            path: self.dir.display().to_string(),
            article_octets_max: ARTICLE_OCTETS_MAX,
            is_read_only: true,
            ..BufferFacts::default()
        }
    }
}

/// A walk over such files.
#[derive(Debug)]
struct LooseScan {
    loose: Arc<Loose>,
    /// What is to be brought into order.
    files: std::vec::IntoIter<Timed>,
    /// The last of it.
    last: Option<Timed>,
    /// Others come behind it.
    has_more: bool,
    /// What was.
    here: VecDeque<(u64, PathBuf)>,
    text: Vec<u8>,
    count: u64,
    octets_read: u64,
}

impl LooseScan {
    fn next(&mut self) -> Result<Option<(u64, PathBuf)>> {
        if self.here.is_empty() {
            if self.files.as_slice().is_empty() && self.has_more {
                let (files, has_more) = self.loose.by_time(self.last.as_ref(), SORTED_AT_ONCE)?;
                (self.last, self.has_more) = (files.last().cloned(), has_more);
                self.files = files.into_iter();
            }
            let some: Vec<Timed> = self.files.by_ref().take(ORDERED_AT_ONCE).collect();
            let order = self.loose.in_order(&some);
            let named = |at: usize| some.get(at).map(|(time, _, path)| (*time, path.clone()));
            self.here.extend(order.into_iter().filter_map(named));
        }
        Ok(self.here.pop_front())
    }
}

impl RecordScan for LooseScan {
    fn step(&mut self) -> Result<Option<Scanned>> {
        let Some((time, path)) = self.next()? else {
            return Ok(None);
        };
        match self.loose.read(&path, &mut self.text) {
            // It went, or is what no article is.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotAFile) => {
                return Ok(Some(Scanned::Passed));
            }
            // It is told with its path, and those behind it come.
            Err(_) => self.text.clear(),
            Ok(()) => {}
        }
        self.octets_read += self.text.len() as u64;
        self.count += 1;
        *self.loose.last.lock() = (self.at(), path);
        let head = Headers::scan_stored(&self.text).ok();
        let head_len = head
            .as_ref()
            .map_or(0, |headers| headers.body_start().saturating_sub(2));
        let parts = TokenParts {
            method: 0,
            set: SetId(0),
            buffer: BufferId(0),
            len: u32::try_from(self.text.len()).unwrap_or(u32::MAX),
            position: self.at(),
            tail: [0; 8],
        };
        Ok(Some(Scanned::Record {
            token: Token::new(parts),
            head_len: u32::try_from(head_len).unwrap_or(u32::MAX),
            sequence: Sequence::ZERO,
            arrival: UnixTime(time),
            id_hash: IdHash::default(),
            sound: head.is_some(),
            live: true,
        }))
    }

    fn article(&self) -> &[u8] {
        &self.text
    }

    fn at(&self) -> Position {
        let at = self.count.saturating_mul(newsreel_wire::POSITION_UNIT);
        Position::checked(1, at).unwrap_or_default()
    }

    fn octets_read(&self) -> u64 {
        self.octets_read
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use newsreel_host::RealDisk;

    use super::*;

    /// Two links to the directory itself were followed for ever, a dangling one ended all, and one with a name as files have was
    /// passed over.
    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "a disk of ours makes no symbolic links that lead nowhere"
    )]
    fn links_are_followed_once_wherever_they_lead() {
        let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let disk: Arc<dyn Disk> = Arc::new(RealDisk);
        let write = |path: PathBuf| {
            disk.create_dir_all(path.parent().unwrap()).unwrap();
            let file = disk.open(&path, newsreel_host::OpenMode::CreateNew);
            file.unwrap().write_at(b"Subject: x\n\nx\n", 0).unwrap();
        };
        write(dir.path().join("misc/test/1"));
        write(elsewhere.path().join("1"));
        for (target, link) in [
            (Path::new("nowhere"), "misc/test/2"),
            (Path::new("."), "yy"),
            (Path::new(".."), "misc/zz"),
            (elsewhere.path(), "de"),
            (elsewhere.path(), "misc/again"),
        ] {
            symlink(target, dir.path().join(link)).unwrap();
        }
        let loose = Loose::open(&disk, dir.path()).unwrap().unwrap();
        let (files, has_more) = loose.by_time(None, 2).unwrap();
        assert!(has_more && files.len() == 2);
        let (files, has_more) = loose.by_time(None, 3).unwrap();
        assert!(!has_more);
        let below = |(.., path): &Timed| {
            let path = path.strip_prefix(dir.path()).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let mut names: Vec<String> = files.iter().map(below).collect();
        names.sort();
        let again = names.remove(0);
        assert!(
            ["de/1", "misc/again/1"].contains(&again.as_str()),
            "{again}"
        );
        assert_eq!(names, ["misc/test/1", "misc/test/2"]);
    }

    /// INN's timecaf lay beside files of articles and was passed over without a word.
    #[test]
    fn what_has_no_name_of_an_article_is_counted() {
        let memory: Arc<dyn Disk> = Arc::new(newsreel_host::MemoryDisk::new());
        let dir = Path::new("/articles");
        let write = |name: &str| {
            let path = dir.join(name);
            memory.create_dir_all(path.parent().unwrap()).unwrap();
            memory
                .open(&path, newsreel_host::OpenMode::CreateNew)
                .unwrap();
        };
        write("timecaf-00/5a/12.CF");
        let alone = Loose::open(&memory, dir)
            .map(|_| ())
            .unwrap_err()
            .to_string();
        assert!(
            alone.contains("12.CF") && alone.contains("`archive`"),
            "{alone}"
        );
        for name in ["misc/test/1", "misc/test/READ.ME", "timecaf-00/5a/13.CF"] {
            write(name);
        }
        let loose = Loose::open(&memory, dir).unwrap().unwrap();
        loose.by_time(None, 10).unwrap();
        let passed = loose.passed_over().unwrap();
        assert_eq!((passed.files, passed.timecaf), (3, 2), "{passed:?}");
        assert!(passed.first.ends_with("12.CF") || passed.first.ends_with("13.CF"));
    }

    /// What a set keeps beside its articles was counted with what is no article.
    #[test]
    fn what_a_set_of_ours_has_beside_its_articles_is_not_counted() {
        let disk: Arc<dyn Disk> = Arc::new(newsreel_host::MemoryDisk::new());
        let dir = Path::new("/articles");
        for name in [
            "misc/test/1",
            ".newsreel-set",
            ".newsreel-set.new",
            ".catalogue/roots",
            ".catalogue/0000000001.seg",
        ] {
            let path = dir.join(name);
            disk.create_dir_all(path.parent().unwrap()).unwrap();
            disk.open(&path, newsreel_host::OpenMode::CreateNew)
                .unwrap();
        }
        let loose = Loose::open(&disk, dir).unwrap().unwrap();
        assert_eq!(loose.by_time(None, 10).unwrap().0.len(), 1);
        assert_eq!(loose.passed_over(), None);
    }

    /// The paths of all files were kept in mind at once, however many there were.
    #[test]
    fn files_are_taken_in_pieces_and_in_the_same_order() {
        let disk: Arc<dyn Disk> = Arc::new(newsreel_host::MemoryDisk::new());
        let dir = Path::new("/articles");
        for n in 0..100_u64 {
            let path = dir.join(format!("misc/test{}/{n}", n * 7 % 5));
            disk.create_dir_all(path.parent().unwrap()).unwrap();
            disk.open(&path, newsreel_host::OpenMode::CreateNew)
                .unwrap();
        }
        let loose = Loose::open(&disk, dir).unwrap().unwrap();
        let (all, has_more) = loose.by_time(None, 100).unwrap();
        assert!(all.is_sorted() && all.len() == 100 && !has_more);
        for most in [1, 7, 33, 99] {
            let (mut taken, mut has_more) = (Vec::<Timed>::new(), true);
            while has_more {
                let (files, more) = loose.by_time(taken.last(), most).unwrap();
                assert_eq!(files.len(), most.min(100 - taken.len()), "{most}");
                taken.extend(files);
                has_more = more;
            }
            assert_eq!(taken, all, "{most}");
        }
    }

    /// Files of md5spool whose names have digits only were filed in groups such as `09.1d`, and those of a layout in `misc.test.r12288`.
    #[test]
    fn a_path_says_where_an_article_was_filed_if_its_newsgroups_does() {
        let disk: Arc<dyn Disk> = Arc::new(newsreel_host::MemoryDisk::new());
        let dir = Path::new("/articles");
        let write = |name: &str, newsgroups: &str| {
            let path = dir.join(name);
            disk.create_dir_all(path.parent().unwrap()).unwrap();
            let file = disk.open(&path, newsreel_host::OpenMode::CreateNew);
            let text = format!("{newsgroups}Subject: x\n\nx\n");
            file.unwrap().write_at(text.as_bytes(), 0).unwrap();
        };
        write("misc/test/1", "Newsgroups: misc.test\n");
        let loose = Loose::open(&disk, dir).unwrap().unwrap();
        for (name, newsgroups, expected) in [
            (
                "misc/test/12",
                "misc.test,misc.other",
                Some(("misc.test", 12)),
            ),
            ("misc/test/13", "misc.other", None),
            (
                "misc/test/r12288/12345",
                "misc.test",
                Some(("misc.test", 12345)),
            ),
            (
                "misc/test/3/4/12346",
                "misc.test",
                Some(("misc.test", 12346)),
            ),
            ("alt/2600/7", "alt.2600", Some(("alt.2600", 7))),
            ("alt/2600,/8", "alt.2600", Some(("alt.2600", 8))),
            ("09/1d/74512631", "misc.test", None),
            ("control/cancel/9", "misc.test", Some(("control.cancel", 9))),
            ("fe/11/77777777", "", None),
        ] {
            let field = format!("Newsgroups: {newsgroups}\n");
            write(name, if newsgroups.is_empty() { "" } else { &field });
            let (path, mut text) = (dir.join(name), Vec::new());
            let expected: Vec<(String, u64)> = expected
                .map(|(group, number)| (group.to_owned(), number))
                .into_iter()
                .collect();
            assert_eq!(loose.places(&path, &mut text), expected, "{name}");
            loose.read(&path, &mut text).unwrap();
            let text = String::from_utf8(text).unwrap();
            let xref = expected
                .iter()
                .map(|(group, number)| format!("Xref: articles {group}:{number}\r\n"));
            let xref = xref.collect::<String>();
            assert!(
                text.starts_with(&format!(
                    "{xref}{}",
                    if newsgroups.is_empty() {
                        "Subject"
                    } else {
                        "Newsgroups"
                    }
                )),
                "{text}"
            );
        }
    }
}
