//! Verification of a managed directory: what its view does not find, what its buckets are like, what is left over.
//!
//! Without repair nothing is changed, and the directory may be in use: what comes and goes meanwhile is no finding.
//! A repair holds the directory's lock.  It moves and never replaces; the only names it removes are those of files that
//! are where they belong too, and empty directories.

use std::fmt;
use std::path::{Path, PathBuf};

use newsreel_host::folder::{Entry, Facts, Kind};
use newsreel_host::{ErrorKind, Folder};

use crate::algorithm::{Algorithm, Bucket};
use crate::carry::carry;
use crate::convert::STAGING;
use crate::error::{Error, Result};
use crate::lost::{self, Lost};
use crate::managed::{adopt, bucket_mode, open_if_there};
use crate::mark::{Layout, Mark, UnderWay, write_flat, write_managed};
use crate::name::Name;
use crate::walk::{Lot, walk};

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Where, seen from the directory.
    pub path: PathBuf,
    /// What.
    pub what: What,
    /// Whether it is as it should be now.
    pub repaired: bool,
}

/// What is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum What {
    /// A conversion has begun and not ended: convert it to the end.
    UnderWay(UnderWay),
    /// The attribute is there, but not the set-uid bit.
    WithoutBit,
    /// There is the bit and no attribute, which would be `yyy`; most lies as this algorithm has it.
    WithoutAttribute(Algorithm),
    /// There is the bit and no attribute, and all of so many things in it lie flat: a copy that was made through a mount, which brought the bit along.
    CopiedFlat(u64),
    /// It lies where the view does not find it; it belongs there.
    Misplaced(PathBuf),
    /// The same, and the same file is where it belongs.
    Twice(PathBuf),
    /// The same, and something else is where it belongs.
    Clash(PathBuf),
    /// The same, and its bucket cannot be made: what is in its way has to be looked at by a human, too.
    Blocked(PathBuf),
    /// A bucket with another owner, group or mode than the directory.
    BucketFacts,
    /// A directory that a repair left behind, empty.
    LeftOver,
    /// A link whose target is relative: it leads elsewhere when it is followed natively.  It is right in the view, and so is no more than a note.
    RelativeLink,
}

impl What {
    /// Whether this is as it may be, and said to whoever looks natively.
    #[must_use]
    pub const fn is_note(&self) -> bool {
        matches!(self, Self::RelativeLink)
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnderWay(UnderWay { from, to, .. }) => {
                write!(
                    f,
                    "a conversion from {from} to {to} is under way; run it to its end"
                )
            }
            Self::WithoutBit => f.write_str("is marked as managed, but its set-uid bit is off"),
            Self::WithoutAttribute(algorithm) => write!(
                f,
                "has lost its attribute, without which it is taken for yyy, and lies as {algorithm} has it; `verify --repair` writes the attribute again"
            ),
            Self::CopiedFlat(count) => write!(
                f,
                "has the set-uid bit and no mark, and all of it ({count}) lies flat, so that its view is empty: most likely it was copied from a mount, and \
                 the bit with it; `chmod u-s` (not through a mount) makes it an ordinary directory again, `verify --repair` one that is managed by yyy"
            ),
            Self::Misplaced(place) => write!(f, "belongs to {}", place.display()),
            Self::Twice(place) => write!(f, "is also where it belongs, {}", place.display()),
            Self::Clash(place) => {
                write!(f, "belongs to {}, where something else is", place.display())
            }
            Self::Blocked(place) => write!(
                f,
                "belongs to {}, and something that is no directory is in the way",
                place.display()
            ),
            Self::BucketFacts => f.write_str("has not the owner, group and mode of the directory"),
            Self::LeftOver => f.write_str("is left over, and empty"),
            Self::RelativeLink => f.write_str("is a relative link; natively it leads elsewhere"),
        }
    }
}

/// What a verification saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Summary {
    /// Entries of the view.
    pub entries: u64,
    /// Of them, names of digits.
    pub articles: u64,
    /// Buckets.
    pub buckets: u64,
    /// Of them, such as are removed when they become empty, and are empty all the same: they mean nothing, and a repair removes them.
    pub empty_buckets: u64,
    /// Findings.
    pub findings: u64,
    /// Of them, what is as it should be now.
    pub repaired: u64,
    /// What is as it may be, and was told.
    pub notes: u64,
}

/// Is told of every finding.
pub type OnFinding<'a> = dyn FnMut(&Finding) + 'a;

/// Verifies a directory, and repairs it when asked to; of one without a mark there is nothing to say.
pub fn verify(folder: &Folder, repair: bool, on_finding: &mut OnFinding<'_>) -> Result<Summary> {
    let _lock = if repair { Some(folder.lock()?) } else { None };
    let mut check = Check {
        folder,
        like: folder.facts()?,
        repair,
        on_finding,
        summary: Summary::default(),
        set_aside: false,
        is_quiet: false,
    };
    match Mark::read(folder)? {
        Mark::None => {}
        Mark::Managed(algorithm) => match lost::algorithm(folder)? {
            Lost::No => check.managed(algorithm)?,
            Lost::By(lost) => check.without_attribute(lost)?,
            Lost::Flat(count) => check.copied_flat(count, algorithm)?,
        },
        Mark::WithoutBit(algorithm) => check.without_bit(algorithm)?,
        Mark::UnderWay(under_way) => check.found(PathBuf::new(), What::UnderWay(under_way), false),
    }
    Ok(check.summary)
}

/// A verification in progress.
struct Check<'a, 'b> {
    folder: &'a Folder,
    like: Facts,
    repair: bool,
    on_finding: &'a mut OnFinding<'b>,
    summary: Summary,
    /// Whether something waits in the staging directory to be brought where it belongs.
    set_aside: bool,
    /// What is met is one finding, which is told by who has it looked for.
    is_quiet: bool,
}

impl Check<'_, '_> {
    fn found(&mut self, path: PathBuf, what: What, repaired: bool) {
        if what.is_note() {
            self.summary.notes += 1;
        } else {
            self.summary.findings += 1;
            self.summary.repaired += u64::from(repaired);
            if self.is_quiet {
                return;
            }
        }
        (self.on_finding)(&Finding {
            path,
            what,
            repaired,
        });
    }

    /// The bit was lost (a bare `chmod`), or never set (a crash while marking an empty directory).
    fn without_bit(&mut self, algorithm: Algorithm) -> Result<()> {
        let mut looks_flat = false;
        let mut is_empty = true;
        for entry in self.folder.entries()? {
            let entry = entry?;
            is_empty = false;
            looks_flat |= entry.kind != Kind::Folder || algorithm.node(None, &entry.name).is_none();
        }
        // Directories that are called like buckets are none while most of what is in them does not belong there.
        let is_repairable = is_empty || !looks_flat && lost::lies_by(self.folder, algorithm)?;
        let repaired = self.repair && is_repairable;
        if repaired && is_empty {
            write_flat(self.folder)?;
        } else if repaired {
            write_managed(self.folder, algorithm)?;
        }
        self.found(PathBuf::new(), What::WithoutBit, repaired);
        if repaired && !is_empty {
            self.managed(algorithm)?;
        }
        Ok(())
    }

    /// The attribute was lost to a program that copies none: the rest is looked at as if it were there.
    fn without_attribute(&mut self, algorithm: Algorithm) -> Result<()> {
        if self.repair {
            write_managed(self.folder, algorithm)?;
        }
        self.found(
            PathBuf::new(),
            What::WithoutAttribute(algorithm),
            self.repair,
        );
        self.managed(algorithm)
    }

    /// The set-uid bit was copied with the directory, and nothing else of what made it managed: one finding, whatever is in it.
    fn copied_flat(&mut self, count: u64, algorithm: Algorithm) -> Result<()> {
        let before = self.summary;
        self.is_quiet = true;
        // What is called like a bucket is a directory of the view here, and would be emptied.
        let may_be = self.repair
            && self
                .folder
                .entries()?
                .all(|entry| is_no_node(entry, algorithm));
        if may_be {
            self.managed(algorithm)?;
        }
        self.is_quiet = false;
        let found = self.summary.findings - before.findings;
        let repaired = self.summary.repaired - before.repaired;
        (self.summary.findings, self.summary.repaired) = (before.findings, before.repaired);
        self.found(
            PathBuf::new(),
            What::CopiedFlat(count),
            may_be && found == repaired,
        );
        Ok(())
    }

    fn managed(&mut self, algorithm: Algorithm) -> Result<()> {
        let folder = self.folder;
        if self.repair {
            self.clear_staging(algorithm)?;
        }
        walk(folder, algorithm, &mut |lot| {
            if lot.path != Path::new("") {
                self.bucket(lot, algorithm)?;
            }
            // What a repair that was killed has set aside is looked at before this one sets anything aside.
            let (staging, entries): (Vec<_>, Vec<_>) =
                lot.entries.iter().partition(|entry| is_staging(lot, entry));
            if !staging.is_empty() {
                self.staging(algorithm)?;
            }
            for entry in entries {
                if lot.is_in_view(algorithm, entry) {
                    self.in_view(lot, entry)?;
                } else {
                    self.misplaced(lot.folder, lot.path, entry, algorithm)?;
                }
            }
            self.tidy(lot, algorithm)
        })?;
        self.bring_back(algorithm)
    }

    fn in_view(&mut self, lot: &Lot<'_>, entry: &Entry) -> Result<()> {
        self.summary.entries += 1;
        let digits = Name::parse(&entry.name).is_ok_and(|name| name.digits().is_some());
        self.summary.articles += u64::from(digits);
        if entry.kind == Kind::Link {
            let target = match lot.folder.read_link(entry.path()) {
                Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
                target => target?,
            };
            if !target.starts_with(b"/") {
                self.found(lot.path.join(entry.path()), What::RelativeLink, false);
            }
        }
        Ok(())
    }

    fn bucket(&mut self, lot: &Lot<'_>, algorithm: Algorithm) -> Result<()> {
        self.summary.buckets += u64::from(lot.bucket.is_some());
        // A server that was killed between a removal and that of the bucket leaves one.
        if is_droppable(lot, algorithm) && lot.entries.is_empty() {
            self.summary.empty_buckets += 1;
            if self.repair {
                self.folder.remove_folder(lot.path)?;
            }
            return Ok(());
        }
        if !self.is_like(lot.folder)? {
            if self.repair {
                adopt(lot.folder, &self.like)?;
            }
            let repaired = self.repair && self.is_like(lot.folder)?;
            self.found(lot.path.to_path_buf(), What::BucketFacts, repaired);
        }
        Ok(())
    }

    /// A bucket may hold nothing any more after a repair.
    fn tidy(&self, lot: &Lot<'_>, algorithm: Algorithm) -> Result<()> {
        if self.repair && is_droppable(lot, algorithm) && !lot.entries.is_empty() {
            self.folder.remove_folder(lot.path)?;
        }
        Ok(())
    }

    fn is_like(&self, bucket: &Folder) -> Result<bool> {
        let (is, like) = (bucket.facts()?, &self.like);
        Ok((is.uid, is.gid, is.mode) == (like.uid, like.gid, bucket_mode(like)))
    }

    /// What has the name of the staging directory and is none goes first: nothing can be set aside before.
    fn clear_staging(&mut self, algorithm: Algorithm) -> Result<()> {
        let path = Path::new(STAGING);
        let is = match self.folder.facts_of(path) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
            is => is?,
        };
        let Ok(name) = Name::parse(path.as_os_str()) else {
            return Ok(());
        };
        let place = algorithm.place(name);
        let is_free = || Ok::<_, Error>(!self.is_blocked(&place, algorithm)?);
        if is.kind == Kind::Folder || self.folder.facts_of(&place).is_ok() || !is_free()? {
            return Ok(());
        }
        let entry = Entry {
            name: STAGING.into(),
            kind: is.kind,
            inode: is.inode,
        };
        let layout = Layout::Managed(algorithm);
        carry(self.folder, &entry, self.folder, layout, &self.like)?;
        self.found(path.to_path_buf(), What::Misplaced(place), true);
        Ok(())
    }

    /// The staging directory, which only a repair that was killed leaves behind here.
    fn staging(&mut self, algorithm: Algorithm) -> Result<()> {
        let path = Path::new(STAGING);
        let Some(staging) = open_if_there(self.folder, path)? else {
            return Ok(());
        };
        let entries = staging
            .entries()?
            .collect::<newsreel_host::Result<Vec<_>>>()?;
        for entry in &entries {
            self.misplaced(&staging, path, entry, algorithm)?;
        }
        if entries.is_empty() {
            let repaired = self.repair && self.folder.remove_folder(path)?;
            self.found(path.to_path_buf(), What::LeftOver, repaired);
        }
        Ok(())
    }

    /// What the view does not find is first set aside, because it may be in the way of the bucket it belongs to.
    fn misplaced(
        &mut self,
        folder: &Folder,
        path: &Path,
        entry: &Entry,
        algorithm: Algorithm,
    ) -> Result<()> {
        let Ok(name) = Name::parse(&entry.name) else {
            return Ok(());
        };
        let place = algorithm.place(name);
        let at = path.join(entry.path());
        let is = match folder.facts_of(entry.path()) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
            is => is?,
        };
        let Ok(there) = self.folder.facts_of(&place) else {
            if self.is_blocked(&place, algorithm)? {
                self.found(at, What::Blocked(place), false);
                return Ok(());
            }
            let repaired = self.repair && self.set_aside(folder, path, entry)?;
            self.found(at, What::Misplaced(place), repaired);
            return Ok(());
        };
        if is.is_same_as(&there) {
            if self.repair {
                folder.remove(entry.path())?;
            }
            self.found(at, What::Twice(place), self.repair);
        } else {
            self.found(at, What::Clash(place), false);
        }
        Ok(())
    }

    /// Whether something that is no directory, a link for one, is where the bucket of a place is to be, and stays there
    /// because something else is where that one belongs.
    fn is_blocked(&self, place: &Path, algorithm: Algorithm) -> Result<bool> {
        let mut way = PathBuf::new();
        for part in place.parent().into_iter().flatten() {
            way.push(part);
            let is = match self.folder.facts_of(&way) {
                Err(e) if e.kind() == ErrorKind::NotFound => return Ok(false),
                is => is?,
            };
            if is.kind != Kind::Folder {
                let Ok(name) = Name::parse(part) else {
                    return Ok(false);
                };
                let there = self.folder.facts_of(&algorithm.place(name));
                return Ok(there.is_ok_and(|there| !there.is_same_as(&is)));
            }
        }
        Ok(false)
    }

    /// Says whether it could be: nothing of that name was before, and there is a directory for it.
    fn set_aside(&mut self, folder: &Folder, path: &Path, entry: &Entry) -> Result<bool> {
        if path == Path::new(STAGING) {
            self.set_aside = true;
            return Ok(true);
        }
        let at = Path::new(STAGING);
        match self.folder.make_folder(at, bucket_mode(&self.like)) {
            Err(e) if e.kind() == ErrorKind::Exists => {}
            other => other?,
        }
        // Something else may have that name.
        let Ok(staging) = self.folder.open_folder(at) else {
            return Ok(false);
        };
        self.set_aside = true;
        match folder.rename_new(entry.path(), &staging, entry.path()) {
            Err(e) if e.kind() == ErrorKind::Exists => Ok(false),
            other => Ok(other.map(|()| true)?),
        }
    }

    /// Brings what was set aside where it belongs.
    fn bring_back(&self, algorithm: Algorithm) -> Result<()> {
        if !self.set_aside {
            return Ok(());
        }
        let staging = self.folder.open_folder(Path::new(STAGING))?;
        let entries = staging
            .entries()?
            .collect::<newsreel_host::Result<Vec<_>>>()?;
        for entry in &entries {
            let place = Name::parse(&entry.name).map(|name| algorithm.place(name));
            // What clashes or is blocked was told already, and stays.
            let Ok(place) = place else {
                continue;
            };
            if self.folder.facts_of(&place).is_err() && !self.is_blocked(&place, algorithm)? {
                let layout = Layout::Managed(algorithm);
                carry(&staging, entry, self.folder, layout, &self.like)?;
            }
        }
        self.folder.remove_folder(Path::new(STAGING))?;
        Ok(self.folder.sync_file_system()?)
    }
}

/// Whether an entry is the staging directory.
fn is_staging(lot: &Lot<'_>, entry: &Entry) -> bool {
    lot.path == Path::new("") && entry.name == STAGING && entry.kind == Kind::Folder
}

/// Whether an entry is no directory that is called like a bucket, or like one of buckets.
fn is_no_node(entry: newsreel_host::Result<Entry>, algorithm: Algorithm) -> bool {
    entry.is_ok_and(|it| it.kind != Kind::Folder || algorithm.node(None, &it.name).is_none())
}

/// Whether a bucket is removed when it is empty.
fn is_droppable(lot: &Lot<'_>, algorithm: Algorithm) -> bool {
    algorithm.drops_empty_buckets() && lot.bucket.is_some_and(|bucket| bucket != Bucket::OTHERS)
}
