//! What a storage method has of its own about a buffer: its files, and what it writes about itself beside the records.

use std::fmt::Debug;
use std::ops::{Deref, Range, RangeInclusive};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use newsreel_host::File;
use newsreel_wire::{Position, UnixTime};

use super::format::{Hints, Narrowing};
use super::geometry::Geometry;
use crate::error::{PlaceError, Result};
use crate::method::WrongBits;

/// The method, as its tokens and reports name it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    /// The first octet of its tokens.
    pub(crate) number: u8,
    /// Its name in the configuration.
    pub(crate) name: &'static str,
    /// The records are articles: who waits for one brings its neighbours along.
    pub(crate) is_of_articles: bool,
}

/// A file, borrowed or held.
#[derive(Debug)]
pub(crate) enum FileRef<'a> {
    /// It is there as long as the buffer.
    Lasting(&'a dyn File),
    /// It may be closed, or removed, while somebody reads it.
    Held(Arc<dyn File>),
}

impl<'a> Deref for FileRef<'a> {
    type Target = dyn File + 'a;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Lasting(file) => *file,
            Self::Held(file) => file.as_ref(),
        }
    }
}

/// Where a file can be copied from to which its path leads no more.
pub(crate) fn lies_at(file: &dyn File) -> String {
    match file.named_inode() {
        Ok(Some(inode)) => {
            format!("it has a name on its file system still (`find -inum {inode}` there)")
        }
        // Where nobody can tell it may be there all the same.
        _ => format!(
            "copied from `/proc/{}/fd`, marked as deleted",
            std::process::id()
        ),
    }
}

/// The directory with the files of a buffer is not there, or its one file.
#[derive(Debug)]
pub(crate) struct Away {
    /// How that shows.
    pub(crate) error: newsreel_host::Error,
    /// What it means, and what to do.
    pub(crate) why: String,
}

/// The files of a buffer.
pub(crate) trait Home: Send + Sync + Debug {
    /// Whose it is.
    fn kind(&self) -> Kind;

    /// The file that has the records of this cycle.
    fn file(&self, cycle: u32) -> newsreel_host::Result<FileRef<'_>>;

    /// The same file by an opening of its own, for who writes and syncs beside the batches: an error is told once to each opening, so
    /// that a batch is told what this one was told.
    fn beside(&self, cycle: u32) -> newsreel_host::Result<FileRef<'_>>;

    /// Where it lies, for people.
    fn path(&self) -> &Path;

    /// Looks whether the directory is still there in which they are, or the one file, where it could go beside the server.  The error says what to do.
    fn look(&self) -> std::result::Result<(), Away> {
        Ok(())
    }

    /// Why what was written in these cycles is lost though its directory is there: a file of theirs is open, and no path leads to it any
    /// more, or it was cut.
    fn unfit(&self, _cycles: RangeInclusive<u32>) -> Option<String> {
        None
    }

    /// Where the file of this cycle should lie, of one that is known and was not found; once for each, and never where somebody else may
    /// have removed it in due course.
    fn missing(&self, _cycle: u32) -> Option<PathBuf> {
        None
    }

    /// That directory is back after it was not: what was opened before may be of another file.
    fn came_back(&self) {}

    /// Octets of all its files.
    fn octets(&self) -> u64;

    /// The smaller size that it is on its way to, and since when.
    fn narrowing(&self) -> Option<Narrowing> {
        None
    }

    /// The largest article it takes where a cycle has so much room.
    fn article_octets_max(&self, capacity: u64) -> u64;

    /// Every cycle has a file of its own: nothing is overwritten, and nothing need be reserved.
    fn is_endless(&self) -> bool;

    /// The oldest cycle of which there is a file; 0 where one file has all.
    fn oldest_cycle(&self) -> u32;

    /// Makes sure that there is room to write this cycle, or the first behind it where nothing is in the way, which is returned; costs
    /// nothing when it was made sure before.  The newest article of the cycle before arrived at `arrival`.
    fn make(&self, cycle: u32, arrival: UnixTime) -> std::result::Result<u32, PlaceError>;

    /// How many of the files of these cycles are not there, and how many are shorter than they were made.
    fn lost(&self, _cycles: RangeInclusive<u32>) -> Result<(u64, u64)> {
        Ok((0, 0))
    }

    /// The file of a cycle that was written before is there, as long as it should be: one that was lost is made again, empty.
    fn remake(&self, _cycle: u32) -> newsreel_host::Result<()> {
        Ok(())
    }

    /// Makes durable what was written in these cycles.
    fn sync(&self, cycles: RangeInclusive<u32>) -> newsreel_host::Result<()>;

    /// Where it stood when it was opened, as its files say.
    fn opened(&self) -> Hints;

    /// The newest hints written to its files.
    fn written(&self) -> Hints;

    /// Its true end was found: so its files say from the next writing on.
    fn know(&self, hints: Hints);

    /// Writes hints beside a batch, synced with it: so they are never far behind, and a log that is too old is noticed.
    fn write_with_batch(&self, hints: Hints) -> newsreel_host::Result<()>;

    /// Records were placed; takes the list.
    fn placed(&self, starts: &mut Vec<Position>);

    /// After recovery it goes on here.
    fn go_on(&self, next: Position);

    /// The floor as its files have it now, for who looks beside a server.
    fn floor_by_now(&self) -> Position;

    /// What is wrong in its bitmap between two positions, given where articles begin there.
    fn wrong_bits(
        &self,
        _geometry: &Geometry,
        _stretch: Range<Position>,
        _starts: &[Position],
    ) -> newsreel_host::Result<WrongBits> {
        Ok(WrongBits::default())
    }

    /// Where its bitmap says that records begin between two positions of a cycle, as far as it is right; `None`: it is nowhere
    /// there.
    fn bits(
        &self,
        _geometry: &Geometry,
        _stretch: Range<Position>,
    ) -> newsreel_host::Result<Option<Vec<Position>>> {
        Ok(None)
    }

    /// Where what it says that was withdrawn of it is damaged, if it is a segment that is looked at alone.
    fn notes_damaged_at(&self) -> Option<u64> {
        None
    }

    /// Writes bits as they should be, of what is alive.
    fn mend_bits(
        &self,
        _geometry: &Geometry,
        _wrong: &WrongBits,
        _is_live: &dyn Fn(Position) -> bool,
    ) -> newsreel_host::Result<()> {
        Ok(())
    }

    /// Whether the file of a cycle goes early when nothing in it is left.
    fn drops_vacated(&self) -> bool {
        false
    }

    /// No article is left in cycles below this one.
    fn vacated(&self, _cycle: u32) {}

    /// Looks whether its header is as it was written, and writes it again where it is not, if it may; says what was wrong, and
    /// what was done.
    fn mend_header(&self, _may_write: bool) -> Result<Option<String>> {
        Ok(None)
    }
}
