//! The two copies of the header at the front of a file of records: reading the newer sound one, writing the older one.
//!
//! Whatever is wrong with one copy, also that its medium cannot be read, the other is tried.

use newsreel_host::File;

use super::format::{FileHeader, Hints, SECOND_HEADER};
use super::geometry::PAGE_LEN;
use crate::error::Result;

/// What was found in place of a buffer's headers.
#[derive(Debug)]
pub(crate) enum Headers {
    /// The newer sound header, where it lies, and what is wrong with the other copy.
    Sound(Box<FileHeader>, u64, Option<String>),
    /// Zeros: nobody has used this file.
    Blank,
    /// Something that is no buffer, or no longer, or of a later version.
    Damaged(String),
    /// Neither copy is as it was written.
    Lost(String),
}

/// The octets of both copies; `None`: the medium of one cannot be read.
fn read_copies(file: &dyn File) -> newsreel_host::Result<[Option<Vec<u8>>; 2]> {
    let mut pages = vec![0; 2 * PAGE_LEN];
    match file.read_at(&mut pages, 0) {
        Err(error) if error.is_medium() => {}
        got => {
            pages.truncate(got?);
            let second = pages.split_off(pages.len().min(PAGE_LEN));
            return Ok([Some(pages), Some(second)]);
        }
    }
    let read = |at: u64| {
        let mut page = vec![0; PAGE_LEN];
        match file.read_at(&mut page, at) {
            Err(error) if error.is_medium() => Ok((None, Some(error))),
            got => {
                page.truncate(got?);
                Ok((Some(page), None))
            }
        }
    };
    match (read(0)?, read(SECOND_HEADER)?) {
        // Its medium is not there at all, perhaps: nothing follows for what lies behind.
        ((None, Some(error)), (None, _)) => Err(error),
        ((first, _), (second, _)) => Ok([first, second]),
    }
}

/// One copy of the header.
fn decode(page: Option<&Vec<u8>>) -> std::result::Result<FileHeader, &'static str> {
    page.map_or(Err("its medium cannot be read"), |page| {
        FileHeader::decode(page)
    })
}

/// Reads both copies of the header and takes the newer sound one.
pub(crate) fn read_headers(file: &dyn File) -> Result<Headers> {
    let [first, second] = read_copies(file)?;
    let is_blank = |page: &Option<Vec<u8>>| {
        let page = page.as_ref();
        page.is_some_and(|page| page.iter().all(|octet| *octet == 0))
    };
    if is_blank(&first) && is_blank(&second) {
        return Ok(Headers::Blank);
    }
    Ok(match (decode(first.as_ref()), decode(second.as_ref())) {
        (Ok(first), Ok(second)) => {
            if (first.uuid, first.spool) != (second.uuid, second.spool) {
                let why = "its two headers belong to different buffers; put the right file there";
                return Ok(Headers::Damaged(why.to_owned()));
            }
            if second.generation > first.generation {
                Headers::Sound(Box::new(second), SECOND_HEADER, None)
            } else {
                Headers::Sound(Box::new(first), 0, None)
            }
        }
        (Ok(header), Err(why)) => Headers::Sound(Box::new(header), 0, Some(one_damaged(why))),
        (Err(why), Ok(header)) => {
            Headers::Sound(Box::new(header), SECOND_HEADER, Some(one_damaged(why)))
        }
        (Err(why), Err(other)) => {
            let mut pages = [first, second].into_iter().flatten();
            let is_whole = pages.any(|page| FileHeader::is_whole(&page));
            let why = format!("neither copy of its header can be used ({why}; {other})");
            if is_whole {
                Headers::Damaged(left_as_it_is(&why))
            } else {
                Headers::Lost(why)
            }
        }
    })
}

/// Where a file system has its mark, and how that looks; the types that are called by it.
const FILE_SYSTEMS: [(u64, &[u8], &str); 3] = [
    (0, b"XFSB", "xfs"),
    (1080, &[0x53, 0xef], "ext2, ext3 or ext4"),
    (65_600, b"_BHRfS_M", "btrfs"),
];

/// The file system that seems to be in a file that has no header of ours, by its mark.
pub(crate) fn file_system(file: &dyn File) -> Option<&'static str> {
    let has = |(at, mark): (u64, &[u8])| {
        let mut octets = vec![0; mark.len()];
        file.read_exact_at(&mut octets, at).is_ok() && octets == mark
    };
    let mut known = FILE_SYSTEMS.iter();
    let found = known.find(|(at, mark, _)| has((*at, *mark)));
    found.map(|(_, _, name)| *name)
}

/// What to do about a file whose headers cannot be used.
pub(crate) fn left_as_it_is(why: &str) -> String {
    format!(
        "{why}; it is left as it is: if it was a buffer, take it out of the configuration or restore its first 8192 octets \
         from a copy"
    )
}

/// What is told of a header of which one copy is damaged begins with this.
pub(crate) const ONE_DAMAGED: &str = "one copy of its header is damaged";

fn one_damaged(why: &str) -> String {
    format!("{ONE_DAMAGED} ({why}); the other is used, and a server writes it again")
}

/// The header as it was written last.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) header: FileHeader,
    /// Which copy has it; the other one is written next.
    pub(crate) newest_at: u64,
}

impl Written {
    /// Writes the older copy with later hints.
    pub(crate) fn write(&mut self, file: &dyn File, hints: Hints) -> newsreel_host::Result<()> {
        let merged = self.header.hints.merge(hints);
        let next = FileHeader {
            generation: self.header.generation + 1,
            hints: self
                .header
                .geometry()
                .map_or(merged, |geometry| merged.normal(&geometry)),
            ..self.header.clone()
        };
        let at = SECOND_HEADER - self.newest_at;
        file.write_at(&next.encode(), at)?;
        (self.header, self.newest_at) = (next, at);
        Ok(())
    }

    /// Writes both copies with later hints.
    pub(crate) fn write_both(
        &mut self,
        file: &dyn File,
        hints: Hints,
    ) -> newsreel_host::Result<()> {
        write_twice(file, || self.write(file, hints))
    }
}

/// Has both copies written one after the other, so that one is sound at any moment.
pub(crate) fn write_twice(
    file: &dyn File,
    mut write: impl FnMut() -> newsreel_host::Result<()>,
) -> newsreel_host::Result<()> {
    // What a batch wrote last must be safe before the other copy is touched.
    file.sync_data()?;
    for _ in 0..2 {
        write()?;
        file.sync_data()?;
    }
    Ok(())
}
