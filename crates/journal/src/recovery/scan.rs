//! Looks at every segment file and says what it is: in use, spare, or another's.
//!
//! Where a segment's first page is damaged its frames still tell which it is.  The newest segments are read from the
//! medium, not from memory: after a failed sync the page cache may show what the medium does not have.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use newsreel_host::{Disk, Error as DiskError, ErrorKind, File, OpenMode};
use newsreel_wire::Sequence;

use crate::SpoolId;
use crate::error::{Error, Result};
use crate::format::{Found, FrameHeader, PAGE_OCTETS, SegmentHeader, VERSION, seed};
use crate::source::FrameSource;
use crate::table::{Segment, id_of, path_of};

/// So many of the newest segments are read from the medium.
const DISTRUSTED: usize = 3;

/// A segment in use.
#[derive(Debug)]
pub(crate) struct Used {
    pub(crate) segment: Segment,
    /// Whether its first page is whole, so that it may be written on.
    pub(crate) header_is_whole: bool,
}

/// Something with a segment's name in which nothing of this spool is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Strange {
    /// Whose place it takes.
    pub id: u64,
    /// Where it is.
    pub path: PathBuf,
    /// What it is, as it goes on behind its path.
    pub what: String,
}

/// What a segment's first page says.
enum FirstPage {
    Own(SegmentHeader),
    /// Another spool's.
    Foreign(SpoolId),
    Unreadable,
}

/// All files of a log.
#[derive(Debug, Default)]
pub(crate) struct Files {
    /// In use, by id.
    pub(crate) used: Vec<Used>,
    /// Prepared, or left over from a preparation.
    pub(crate) spare: Vec<Segment>,
    /// Those of them that are ready to be begun, by id.
    prepared: Vec<u64>,
    /// What has a segment's name and is none of this spool's, by id.
    pub(crate) strange: Vec<Strange>,
    /// The largest id that a segment has, or had.
    pub(crate) id_max: u64,
}

/// What the end of the log says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tail {
    /// Everything before is durable, says a frame.
    pub(crate) vouched_before: Sequence,
    pub(crate) epoch: u64,
}

/// Opens a segment; what a dead process left dirty is made durable first, then memory forgets what it may have wrong.
pub(crate) fn open_distrusted(
    disk: &dyn Disk,
    path: &Path,
    writable: bool,
) -> Result<Arc<dyn File>> {
    let mode = if writable {
        OpenMode::ReadWrite
    } else {
        OpenMode::Read
    };
    let file = disk.open(path, mode)?;
    if writable {
        file.sync_data()?;
        file.drop_cache(0, file.len()?)?;
    }
    Ok(file)
}

impl Files {
    /// Looks at the files in `dir`.
    pub(crate) fn scan(
        disk: &dyn Disk,
        dir: &Path,
        spool: SpoolId,
        writable: bool,
    ) -> Result<Self> {
        let entries = match disk.list(dir) {
            Err(e) if e.kind() == ErrorKind::NotFound && !writable => Vec::new(),
            other => other?,
        };
        let mut ids: Vec<(u64, u64)> = entries
            .iter()
            .filter_map(|entry| Some((id_of(&entry.name)?, entry.len)))
            .collect();
        ids.sort_unstable();
        let mut files = Self::default();
        let trusted = ids.len().saturating_sub(DISTRUSTED);
        for (at, (id, octets)) in ids.iter().copied().enumerate() {
            let path = path_of(dir, id);
            let opened = if at < trusted {
                disk.open(&path, OpenMode::Read).map_err(Error::from)
            } else {
                open_distrusted(disk, &path, writable)
            };
            match opened {
                Ok(file) => files.sort_in(file, id, octets, spool)?,
                Err(Error::Disk(DiskError::NotAFile { what, .. })) => {
                    let what = format!("is {what}");
                    files.strange.push(Strange { id, path, what });
                }
                Err(error) => return Err(error),
            }
        }
        let strange = files.strange.iter();
        let is_strange = |id: u64| strange.clone().any(|strange| strange.id == id);
        let own = ids.iter().filter(|(id, _)| !is_strange(*id));
        files.id_max = own.map(|(id, _)| *id).max().unwrap_or(0);
        files.set_limits();
        Ok(files)
    }

    fn sort_in(&mut self, file: Arc<dyn File>, id: u64, octets: u64, spool: SpoolId) -> Result<()> {
        let mut segment = Segment {
            id,
            path: file.path().to_path_buf(),
            first: Sequence::ZERO,
            follows: Sequence::ZERO,
            epoch: 0,
            end: octets,
            octets,
            limit: Sequence(u64::MAX),
            index: Vec::new(),
        };
        let first_page = read_header(&*file, spool)?;
        let mut source = FrameSource::new(file, id, seed(spool), octets);
        let header = match first_page {
            FirstPage::Own(header) if header.segment == id => Some(header),
            _ => None,
        };
        let begun = header.filter(|header| !header.is_prepared());
        if let Some(header) = begun {
            segment.first = header.first;
            segment.follows = header.follows;
            segment.epoch = header.epoch;
            self.used.push(Used {
                segment,
                header_is_whole: true,
            });
            return Ok(());
        }
        let frame = match header {
            // Begun at most by a write that was torn: then its first frame may be there.
            Some(_) => source.header_at(PAGE_OCTETS).unwrap_or(None),
            None => source
                .find(PAGE_OCTETS, |_| true)?
                .map(|(_, header)| header),
        };
        match frame {
            Some(frame) => {
                segment.first = frame.follows;
                segment.follows = frame.follows;
                self.used.push(Used {
                    segment,
                    header_is_whole: false,
                });
            }
            None => match (first_page, header) {
                (FirstPage::Foreign(of), _) => self.strange.push(Strange {
                    id,
                    path: segment.path,
                    what: format!("belongs to spool {of}"),
                }),
                (_, Some(_)) => {
                    self.prepared.push(id);
                    self.spare.push(segment);
                }
                _ => self.spare.push(segment),
            },
        }
        Ok(())
    }

    /// What may stand in the place of a segment that was written to behind all that are there.  The next segment is
    /// prepared before it is needed, so where that is unused none behind it was begun.
    pub(super) fn in_the_way_of_the_end(&self) -> Option<&Strange> {
        let last = self.used.last().map_or(0, |used| used.segment.id);
        let unused = self.prepared.iter().find(|id| **id > last);
        let mut strange = self.strange.iter();
        strange
            .find(|strange| strange.id > last && unused.is_none_or(|unused| strange.id < *unused))
    }

    /// What may stand in the place of a segment that is missing in front of one of these.
    pub(super) fn in_the_way_before(&self, at: usize) -> Option<&Strange> {
        let id = |at: usize| self.used.get(at).map(|used| used.segment.id);
        let before = at.checked_sub(1).and_then(id).unwrap_or(0);
        let between = before..id(at).unwrap_or(u64::MAX);
        self.strange
            .iter()
            .find(|strange| between.contains(&strange.id))
    }

    /// A later segment says from where on earlier frames were given up.
    pub(super) fn set_limits(&mut self) {
        let mut limit = Sequence(u64::MAX);
        for used in self.used.iter_mut().rev() {
            used.segment.limit = limit;
            limit = limit.min(used.segment.follows);
        }
    }

    /// Reads the end of the log for what it vouches for.
    pub(crate) fn tail(&self, disk: &dyn Disk, seed: u32) -> Result<Tail> {
        let headers = self.used.iter().map(|used| used.segment.epoch).max();
        let mut tail = Tail {
            vouched_before: Sequence::ZERO,
            epoch: headers.unwrap_or(0),
        };
        for Used { segment, .. } in self.used.iter().rev() {
            let file = disk.open(&segment.path, OpenMode::Read)?;
            let mut source = FrameSource::new(file, segment.id, seed, segment.end);
            let mut any = false;
            each_header(&mut source, PAGE_OCTETS, |_, header| {
                any |= header.first < segment.limit;
                tail.vouched_before = tail.vouched_before.max(header.vouched_before);
                tail.epoch = tail.epoch.max(header.epoch);
            })?;
            if any {
                break;
            }
        }
        Ok(tail)
    }
}

/// Calls `see` for every frame header from `from` on, whole frames apart.
pub(crate) fn each_header(
    source: &mut FrameSource,
    from: u64,
    mut see: impl FnMut(u64, &FrameHeader),
) -> Result<()> {
    let mut offset = from;
    while let Some((at, header)) = source.find(offset, |_| true)? {
        see(at, &header);
        offset = at + header.disk_octets();
    }
    Ok(())
}

fn read_header(file: &dyn File, spool: SpoolId) -> Result<FirstPage> {
    let mut page = vec![0; PAGE_OCTETS as usize];
    let got = match file.read_at(&mut page, 0) {
        Err(e) if e.is_medium() => 0,
        other => other?,
    };
    let path = || file.path().to_path_buf();
    match SegmentHeader::decode(page.get(..got).unwrap_or_default()) {
        Found::Nothing => Ok(FirstPage::Unreadable),
        Found::Version(found) => Err(Error::Version {
            path: path(),
            found,
            known: VERSION,
        }),
        Found::Header(header) if header.spool != spool => Ok(FirstPage::Foreign(header.spool)),
        Found::Header(header) => Ok(FirstPage::Own(header)),
    }
}
