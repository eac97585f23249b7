//! One file of records by itself, a cyclic buffer or a segment, of whatever spool: read, and never written.
//!
//! What it says of itself in its header is only where to begin: its records tell where it ends.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use newsreel_host::{Disk, File, OpenMode};
use newsreel_wire::{BufferId, Position, SetId};

use super::create::new_header;
use super::file::{Cyclic, Owner};
use super::rescue;
use crate::config::BufferConfig;
use crate::error::{Error, Result};
use crate::method::BufferReader as _;
use crate::methods::segment;
use crate::records::buffer::Buffer;
use crate::records::format::{FileHeader, FileKey, RECORD_HEADER, RecordHeader};
use crate::records::geometry::{BLOCK_MIN, Geometry, PAGE, PAGE_LEN, in_memory};
use crate::records::gone::Gone;
use crate::records::headers::{Headers, read_headers};
use crate::records::memory::Pool;
use crate::records::packing::dictionary_complaint;
use crate::records::placing::{ARTICLE_OCTETS_MAX, true_end};
use crate::records::true_end::is_nothing;

/// What is wrong with a header of which nothing is left.
const BLANK: &str = "there are only zeros where its header should be";

/// What that means for a cyclic buffer: how far its bitmap was written, and the size of its blocks, stood in the header.
const ALL_SHOWN: &str = "it is read by its records, and which of them were withdrawn is not known: they are shown with the others";

/// Opens a file of records.  Everything in it that was not overwritten since can be read and walked.
pub(crate) fn open_file(disk: &dyn Disk, path: &Path) -> Result<Arc<Buffer>> {
    let file = disk.open(path, OpenMode::Read)?;
    let mut config = BufferConfig {
        name: String::new(),
        path: None,
        octets: file.len()?,
        block_octets: Some(BLOCK_MIN),
        cached: false,
        sparse: false,
        read_only: true,
    };
    let headers = read_headers(file.as_ref())?;
    if let Headers::Sound(header, ..) = &headers {
        (config.octets, config.block_octets) = (header.octets, Some(header.block));
        config.name.clone_from(&header.name);
    }
    let pool = Arc::new(Pool::default());
    let owner = Owner {
        config: &config,
        path,
        spool: [0; 16],
        set: SetId(0),
        recent_octets: 0,
        pool: &pool,
        may_be_cut: true,
    };
    let is_rescued = !matches!(headers, Headers::Sound(..));
    let (header, complaint) = header_of(headers, file.as_ref(), &owner)?;
    let config = BufferConfig {
        octets: header.octets,
        ..config.clone()
    };
    let owner = Owner {
        config: &config,
        spool: header.spool,
        ..owner
    };
    let len = file.len()?;
    let told = (told_of_cut(complaint, len, (&header, is_rescued)), false);
    let cyclic = Cyclic::open(disk, &owner, true, (header, 0), told)?;
    let is_segment = segment::is_name_of_one(path);
    let is_bitmap_lost = is_rescued || len < cyclic.buffer.geometry().data_start;
    cyclic.file.look_for_bitmap(is_segment, is_bitmap_lost);
    cyclic.buffer.has_fills.store(is_rescued, Ordering::Relaxed);
    look_for_gone(&cyclic)?;
    look_at_dictionary(&cyclic)?;
    find_end(&cyclic.buffer, is_segment)?;
    Ok(cyclic.buffer)
}

/// What the copies of its header say, or else its records, and what is to be said of that.
fn header_of(
    headers: Headers,
    file: &dyn File,
    owner: &Owner<'_>,
) -> Result<(FileHeader, Option<String>)> {
    let path = owner.path;
    let wrong = |why: String| Error::Buffer {
        name: path.file_name().unwrap_or_default().display().to_string(),
        path: path.to_path_buf(),
        why,
    };
    Ok(match headers {
        Headers::Sound(header, _, complaint) => (*header, complaint),
        Headers::Damaged(why) => return Err(wrong(why)),
        // Too small for one.
        Headers::Blank if new_header(owner, BufferId(0)).is_err() => {
            return Err(wrong("it is empty".to_owned()));
        }
        Headers::Blank => rescued(file, owner, BLANK)?.ok_or_else(|| {
            wrong(format!(
                "{BLANK}, and no records were found in it: nothing was ever written to it, or nothing is left of that"
            ))
        })?,
        // Too small for one: a text, mostly.
        Headers::Lost(_) if new_header(owner, BufferId(0)).is_err() => {
            return Err(wrong("this is no file of a buffer or segment".to_owned()));
        }
        Headers::Lost(why) => rescued(file, owner, &why)?.ok_or_else(|| {
            wrong(format!(
                "{why}, and no records in it tell how to read it: this is no file of a buffer or segment, or nothing is \
                 left of it"
            ))
        })?,
    })
}

/// A header made of its records, where those tell how to read it, and what is to be said of that.
fn rescued(
    file: &dyn File,
    owner: &Owner<'_>,
    why: &str,
) -> Result<Option<(FileHeader, Option<String>)>> {
    let Some(header) = rescue::header_alone(file, owner)? else {
        return Ok(None);
    };
    let told = match segment::is_name_of_one(owner.path) {
        true => why.to_owned(),
        false => format!("{why}: {ALL_SHOWN}"),
    };
    let header = without_lists(file, header)?;
    Ok(Some((as_long_as_it_was(file, header)?, Some(told))))
}

/// A file has whole pages of articles: where one ends in the midst of a page, it was cut, and was longer.
fn as_long_as_it_was(file: &dyn File, header: FileHeader) -> Result<FileHeader> {
    let len = file.len()?;
    let from = len - len % PAGE;
    let mut rest = vec![0; in_memory(len - from)];
    file.read_exact_at(&mut rest, from)?;
    if header.octets < len || rest.iter().all(|octet| *octet == 0) {
        return Ok(header);
    }
    Ok(FileHeader {
        octets: (len + ARTICLE_OCTETS_MAX).next_multiple_of(PAGE),
        ..header
    })
}

/// Looks for what a segment says that was withdrawn of it, and tells of what is damaged there.
fn look_for_gone(cyclic: &Cyclic) -> Result<()> {
    let Cyclic { buffer, file } = cyclic;
    file.look_for_gone()?;
    if let Some(at) = buffer.notes_damaged_at() {
        let what = "what is noted behind it of articles that were withdrawn is damaged";
        buffer.complain(format!("{what} at {at:#x}"));
    }
    Ok(())
}

/// Tells of copies of its dictionary that are damaged: its articles are whole as long as one is left.
fn look_at_dictionary(Cyclic { buffer, file }: &Cyclic) -> Result<()> {
    if let Some(why) = dictionary_complaint(file.side(), &buffer.geometry())? {
        buffer.complain(why.to_owned());
    }
    Ok(())
}

/// A header that was made again for all of a file: what lies behind the end of a segment is no part of it.
fn without_lists(file: &dyn File, header: FileHeader) -> Result<FileHeader> {
    let octets = Gone::begin(file, FileKey::of(&header.uuid))?;
    let geometry = octets.and_then(|octets| Geometry::of(octets, header.block));
    let start = geometry.as_ref().and_then(|geometry| geometry.start_of(1));
    let (Some(octets), Some(geometry), Some(start)) = (octets, geometry, start) else {
        return Ok(header);
    };
    Ok(FileHeader {
        octets,
        data_start: geometry.data_start,
        narrowing: None,
        hints: header.hints.at(start),
        ..header
    })
}

/// What is to be told of a file, and that it was cut, if it was.
fn told_of_cut(
    complaint: Option<String>,
    len: u64,
    (header, is_rescued): (&FileHeader, bool),
) -> Option<String> {
    let (octets, data_start) = (header.octets, header.data_start);
    if len >= octets {
        return complaint;
    }
    let of = match is_rescued {
        true => String::new(),
        false => format!("of {octets} octets "),
    };
    let left = match len <= data_start {
        true => format!(
            "articles began at {data_start}, so none is left: a copy of the whole file has them, if there is one"
        ),
        false => "what lay behind them is lost, and all in front of them is shown".to_owned(),
    };
    let cut = format!("it was cut: {of}{len} are there; {left}");
    Some(complaint.map_or(cut.clone(), |other| format!("{other}; {cut}")))
}

/// Finds the end of what was written, from the header or the first record on, whichever is later.  A segment is made of zeros: where no record
/// is in it and anything else lies where the first one should, all of it is damage.
fn find_end(buffer: &Buffer, is_segment: bool) -> Result<()> {
    let from = buffer.home.opened().end.max(first_cycle(buffer)?);
    let mut end = true_end(buffer, from)?.end;
    // There its header says that the bitmap ends, which it has none of: where its cycle begins.
    let start = buffer.home.opened().bitmap_end;
    if is_segment && start == end && !is_blank(buffer, end)? {
        end = buffer.geometry().start_of(end.cycle() + 1).unwrap_or(end);
    }
    // What is reserved and not yet overwritten is still there to be read; what an older header says is not.  The last batch
    // filled the page in which it ends.
    let page = buffer.geometry().page_up(end).unwrap_or(end);
    buffer.raise_floor(page.one_cycle_before());
    buffer.end.store(end.0, Ordering::Relaxed);
    buffer.written.store(end.0, Ordering::Release);
    Ok(())
}

/// Whether nothing was written to the page that begins here, as far as it can be read.
fn is_blank(buffer: &Buffer, at: Position) -> Result<bool> {
    let mut page = [0; PAGE_LEN];
    match buffer.home.file(1)?.read_exact_at(&mut page, at.offset()) {
        Err(error) if is_nothing(&error) => {}
        read => read?,
    }
    Ok(page.iter().all(|octet| *octet == 0))
}

/// The beginning of the cycle whose record lies first in the file.
fn first_cycle(buffer: &Buffer) -> Result<Position> {
    let geometry = buffer.geometry();
    let start = geometry.start_of(1).unwrap_or_default();
    let mut octets = [0; RECORD_HEADER];
    match buffer
        .home
        .file(1)?
        .read_exact_at(&mut octets, start.offset())
    {
        Err(error) if is_nothing(&error) => return Ok(start),
        read => read?,
    }
    let header = RecordHeader::decode(&octets, buffer.key).ok();
    let cycle = header
        .map(|header| header.position)
        .filter(|position| position.offset() == start.offset());
    let cycle = cycle.map_or(1, Position::cycle);
    Ok(geometry.start_of(cycle).unwrap_or(start))
}
