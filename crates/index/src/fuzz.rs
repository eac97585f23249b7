//! Takes any octets for the parts of sealed files: the door for fuzzers.
//!
//! Files protect their parts by checksums, which a fuzzer does not get past; here each decoder gets the octets bare.
//! Must never panic, whatever comes.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use newsreel_host::{Disk, MemoryDisk, OpenMode};
use newsreel_wire::{GroupId, Sequence};

use crate::cursor::array_at;
use crate::error::Result;
use crate::groups::Group;
use crate::groups::seal::{GroupFile, GroupRun};
use crate::history::bucket::{Bucket, BucketFacts};
use crate::history::page::{PAGE_OCTETS, Page, key};
use crate::layers::Run as _;
use crate::overview::block::Columns;
use crate::overview::cache::BlockCache;
use crate::overview::pack::{Pack, decode_entries};
use crate::sealed::ends::{FOOTER_OCTETS, HEADER_OCTETS, HEADER_USED, SECTIONS_MAX};
use crate::sealed::filter::Filter;
use crate::sealed::frame::{self, FRAME_HEADER};
use crate::sealed::manifest::{COPY_ALIGN as MANIFEST_ALIGN, Manifest};
use crate::sealed::reader::{RunFile, Wait};
use crate::sealed::{RunKind, RunMeta, run_path};

/// Decodes `octets` as one of the parts that a file of the views can have, without its checksum; says whether it took
/// them.  The parts: 0 columns of a block, 1 filter, 2 list of blocks (behind the offset where they end, 8 octets),
/// 3 facts of a bucket, 4 rows of groups, 5 their marks, 6 withdrawals.
#[must_use]
pub fn decode_part(part: u8, octets: &[u8]) -> bool {
    match part {
        0 => columns(octets),
        1 => Filter::decode(octets).is_ok_and(|filter| {
            let _ = filter.may_contain(0) | filter.may_contain(u64::MAX);
            assert_eq!(filter.encode(), octets, "nothing is lost");
            true
        }),
        2 => octets
            .split_first_chunk()
            .is_some_and(|(end, list)| decode_entries(list, u64::from_le_bytes(*end)).is_ok()),
        3 => BucketFacts::decode(octets).is_ok_and(|facts| {
            assert_eq!(facts.encode(), octets, "nothing is lost");
            true
        }),
        4 => GroupRun::decode(octets, &[], &[]).is_ok_and(|run| {
            for row in &run.rows {
                assert_eq!(Group::new(&row.attributes()), *row, "nothing is lost");
            }
            true
        }),
        5 => GroupRun::decode(&[], octets, &[]).is_ok(),
        6 => GroupRun::decode(&[], &[], octets).is_ok(),
        _ => false,
    }
}

fn columns(octets: &[u8]) -> bool {
    let columns = Columns::decode(Bytes::copy_from_slice(octets));
    if let Ok(columns) = &columns {
        for row in 0..columns.len() {
            let whole = columns.row(row, octets);
            assert_eq!(columns.position(whole.number), row, "numbers rise");
        }
    }
    columns.is_ok()
}

/// Octets of a manifest before its runs, and of one of these.
const MANIFEST_HEAD: usize = 64;
const MANIFEST_RUN: usize = 48;
const MANIFEST_FLOOR: usize = 16;

/// Takes `octets` for a copy of the manifest without its checksum, of the spool that it names; how many runs it lists.
#[must_use]
pub fn decode_manifest(octets: &[u8]) -> Option<usize> {
    let runs = u32::from_le_bytes(array_at(octets, 12)) as usize;
    let mut end = runs.saturating_mul(MANIFEST_RUN);
    end = end.saturating_add(MANIFEST_HEAD);
    if octets.get(8) > Some(&1) {
        let floors = octets.get(end..)?.first_chunk::<8>()?;
        let floors = usize::try_from(u64::from_le_bytes(*floors)).ok()?;
        end = end.saturating_add(floors.saturating_mul(MANIFEST_FLOOR) + 8);
    }
    let copy = octets.get(..end)?;
    let half = (copy.len() + 4).next_multiple_of(MANIFEST_ALIGN);
    let mut file = vec![0; 2 * half];
    for place in file.chunks_exact_mut(half) {
        place[..copy.len()].copy_from_slice(copy);
        place[copy.len()..copy.len() + 4].copy_from_slice(&crc32c::crc32c(copy).to_le_bytes());
    }
    let spool = array_at(octets, 16);
    let (manifest, worn) = Manifest::decode(&file, &spool).ok()?;
    assert_eq!(worn, None, "its copies are equal");
    let again = Manifest::decode(&manifest.encode(&spool), &spool).map(|(again, _)| again);
    assert_eq!(again.as_ref(), Ok(&manifest), "nothing is lost");
    Some(manifest.runs.len())
}

/// Takes `octets` for the payload of a history page; how many entries it has, if it is one.
#[must_use]
pub fn decode_page(octets: &[u8]) -> Option<usize> {
    let mut page = [0; PAGE_OCTETS];
    let taken = octets.len().min(PAGE_OCTETS - FRAME_HEADER);
    page[FRAME_HEADER..FRAME_HEADER + taken].copy_from_slice(&octets[..taken]);
    let header = frame::header(0, 0, &[&page[FRAME_HEADER..]]);
    page[..FRAME_HEADER].copy_from_slice(&header);
    let number = u32::from_le_bytes(array_at(&page, FRAME_HEADER + 4));
    let page = Page::decode(&page, 0, 0, number).ok()?;
    let entries: Vec<_> = (0..page.len()).map(|at| page.get(at)).collect();
    let is_sorted = entries.is_sorted_by_key(|stored| key(&stored.hash));
    for stored in &entries {
        let found = page.find(&stored.hash);
        assert!(
            !is_sorted || found.is_some_and(|found| found.hash == stored.hash),
            "what is in a page is found"
        );
        let _ = stored.entry();
    }
    Some(entries.len())
}

/// Octets of a run's header and footer without their checksums: what [`open_run`] has in front of the blocks.
const HEADS: usize = HEADER_USED - 4 + FOOTER_OCTETS - 4;

/// Where in the footer the sections begin, and what one of them takes.
const SECTIONS_AT: usize = 56;
const SECTION_OCTETS: usize = 16;

/// Takes `octets` for a sealed run (its header and its footer without checksums, then what is between them), makes every
/// checksum right, and opens and reads it as its kind; how many blocks could be read.
///
/// # Errors
/// When it is no such run.
pub fn open_run(octets: &[u8]) -> Result<usize> {
    let mut heads = [0; HEADS];
    let given = octets.len().min(HEADS);
    heads[..given].copy_from_slice(&octets[..given]);
    let (header, footer) = heads.split_at(HEADER_USED - 4);
    let blocks = octets.get(HEADS..).unwrap_or_default();
    let id = u64::from_le_bytes(array_at(header, 32));
    let meta = RunMeta {
        kind: RunKind::from_code(header[10]).unwrap_or(RunKind::Groups),
        id,
        len: (HEADER_OCTETS + blocks.len() + FOOTER_OCTETS) as u64,
        first: Sequence(u64::from_le_bytes(array_at(header, 40))),
        last: Sequence(u64::from_le_bytes(array_at(header, 48))),
        rows: u64::from_le_bytes(array_at(footer, 40)),
    };
    let mut file = header.to_vec();
    file.extend_from_slice(&crc32c::crc32c(header).to_le_bytes());
    file.resize(HEADER_OCTETS, 0);
    file.extend_from_slice(blocks);
    let mut footer = footer.to_vec();
    footer[48..56].copy_from_slice(&meta.len.to_le_bytes());
    for nth in 0..SECTIONS_MAX {
        let at = SECTIONS_AT + nth * SECTION_OCTETS;
        let len = u32::from_le_bytes(array_at(&footer, at + 4));
        let offset = u64::from_le_bytes(array_at(&footer, at + 8));
        make_right(&mut file, id, offset, len);
    }
    let crc = crc32c::crc32c(&footer);
    file.extend_from_slice(&footer);
    file.extend_from_slice(&crc.to_le_bytes());
    read_run(file, header, &meta)
}

/// Puts the header in front of a frame's payload, if there is room for both.
fn make_right(file: &mut [u8], run: u64, offset: u64, len: u32) {
    let place = usize::try_from(offset).ok();
    let place = place.filter(|at| *at >= HEADER_OCTETS);
    let rest = place.and_then(|at| file.get_mut(at..));
    let Some((head, payload)) = rest.and_then(|rest| rest.split_at_mut_checked(FRAME_HEADER))
    else {
        return;
    };
    if let Some(payload) = payload.get(..len as usize) {
        head.copy_from_slice(&frame::header(run, offset, &[payload]));
    }
}

fn read_run(mut file: Vec<u8>, header: &[u8], meta: &RunMeta) -> Result<usize> {
    let dir = Path::new("/index");
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    disk.create_dir_all(dir)?;
    let stored = disk.open(&run_path(dir, meta.kind, meta.id), OpenMode::CreateNew)?;
    stored.write_at(&file, 0)?;
    let open = || RunFile::open(disk.as_ref(), dir, &array_at(header, 16), meta);
    match meta.kind {
        RunKind::History => Bucket::open(open()?).map(|_| 0),
        RunKind::Groups => GroupFile::open(open()?)?.read().map(|_| 0),
        RunKind::Overview => {
            let pack = Pack::open(open()?)?;
            let blocks: Vec<_> = (0..pack.blocks())
                .filter_map(|nth| pack.block(nth))
                .collect();
            for block in &blocks {
                make_right(&mut file, meta.id, block.offset, block.columns_len);
                make_right(&mut file, meta.id, block.text_offset(), block.text_len);
            }
            stored.write_at(&file, 0)?;
            let cache = BlockCache::new(1 << 20);
            let read = blocks.iter().filter(|block| {
                let _ = pack.buffers_of(block).count();
                let found = pack.find(GroupId(block.group), block.first, block.last);
                assert!(found.contains(&(block.nth as usize)), "a block is found");
                pack.whole(block, &cache, Wait::Yes).is_ok()
            });
            Ok(read.count())
        }
    }
}
