//! Looks at every segment file and says what it is: in use, spare, or another's.
//!
//! Where a segment's first page is damaged its frames still tell which it is.  The newest segments are read from the
//! medium, not from memory: after a failed sync the page cache may show what the medium does not have.

use std::path::Path;
use std::sync::Arc;

use newsreel_host::{Disk, ErrorKind, File, OpenMode};
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

/// All files of a log.
#[derive(Debug, Default)]
pub(crate) struct Files {
    /// In use, by id.
    pub(crate) used: Vec<Used>,
    /// Prepared, or left over from a preparation.
    pub(crate) spare: Vec<Segment>,
    /// The largest id there is.
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
            .filter(|entry| !entry.is_dir)
            .filter_map(|entry| Some((id_of(&entry.name)?, entry.len)))
            .collect();
        ids.sort_unstable();
        let mut files = Self {
            id_max: ids.last().map_or(0, |(id, _)| *id),
            ..Self::default()
        };
        let trusted = ids.len().saturating_sub(DISTRUSTED);
        for (at, (id, octets)) in ids.into_iter().enumerate() {
            let path = path_of(dir, id);
            let file = if at < trusted {
                disk.open(&path, OpenMode::Read)?
            } else {
                open_distrusted(disk, &path, writable)?
            };
            files.sort_in(file, id, octets, spool)?;
        }
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
        let found = read_header(&*file, spool)?;
        let mut source = FrameSource::new(file, id, seed(spool), octets);
        let header = found.filter(|header| header.segment == id);
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
            None => self.spare.push(segment),
        }
        Ok(())
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

fn read_header(file: &dyn File, spool: SpoolId) -> Result<Option<SegmentHeader>> {
    let mut page = vec![0; PAGE_OCTETS as usize];
    let got = match file.read_at(&mut page, 0) {
        Err(e) if e.is_medium() => 0,
        other => other?,
    };
    let path = || file.path().to_path_buf();
    match SegmentHeader::decode(page.get(..got).unwrap_or_default()) {
        Found::Nothing => Ok(None),
        Found::Version(found) => Err(Error::Version {
            path: path(),
            found,
            known: VERSION,
        }),
        Found::Header(header) if header.spool != spool => Err(Error::ForeignSpool {
            path: path(),
            wanted: spool,
            found: header.spool,
        }),
        Found::Header(header) => Ok(Some(header)),
    }
}
