//! Takes any octets for a buffer: the door for fuzzers and for mutation tests.
//!
//! Everything a damaged or hostile buffer file can reach is run: headers, records, bitmap, both scans, reads by every
//! token found, the search for its true end, a header made again.  Must never panic, whatever comes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use newsreel_host::{Disk, MemoryDisk, OpenMode};
use newsreel_wire::Sequence;

use crate::config::StoreConfig;
use crate::error::Result;
use crate::files::card::Card;
use crate::files::roots;
use crate::method::{Blocking, ScanRange, Scanned, Want};
use crate::methods::cnfs::{FileHeader, FileKey, RECORD_HEADER, RecordHeader};
use crate::records::packing;
use crate::store::{Access, Store};

/// What was found in a buffer, by up to six scans of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BufferDigest {
    /// Records whose article is sound.
    pub sound: u64,
    /// Records whose header is sound only.
    pub unsound: u64,
    /// Stretches where nothing could be read.
    pub damaged: u64,
    /// Heads and articles that could be read by token.
    pub read: u64,
    /// Records that are sound under a header that was made again.
    pub rescued: u64,
}

impl BufferDigest {
    fn add(&mut self, other: Self) {
        self.sound += other.sound;
        self.unsound += other.unsound;
        self.damaged += other.damaged;
        self.read += other.read;
    }
}

/// Decodes `octets` as the file of one buffer, with the spool, name and sizes that its header names.
///
/// # Errors
/// When it is no buffer.
pub fn decode_buffer(octets: &[u8]) -> Result<BufferDigest> {
    decode_record(octets);
    let second = octets.get(4096..).unwrap_or_default();
    let header = FileHeader::decode(octets).or_else(|_| FileHeader::decode(second));
    let (name, path) = ("F0", PathBuf::from("/fuzz/F0"));
    let mut config = StoreConfig::two_buffers(1 << 20);
    config.buffers.truncate(1);
    for buffer in &mut config.buffers {
        name.clone_into(&mut buffer.name);
        buffer.path = Some(path.clone());
        if let Ok(header) = &header {
            (buffer.octets, buffer.block_octets) = (header.octets, Some(header.block));
            buffer.name.clone_from(&header.name);
        }
        config.sets[0].buffers = vec![buffer.name.clone()];
    }
    let spool = header.map_or([0; 16], |header| header.spool);
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    disk.create_dir_all(Path::new("/fuzz/buffers"))?;
    disk.open(&path, OpenMode::CreateNew)?.write_at(octets, 0)?;
    let open = |access| {
        Store::open(
            &disk,
            Path::new("/fuzz"),
            spool,
            &config,
            &[],
            access,
            &mut |_, _, _| {},
        )
    };
    let mut store = open(Access::ReadOnly)?;
    let mut digest = walk(&store)?;
    // The same with what a log would say that knows nothing, to who only looks and to who goes on.
    if store.resume(&[], Sequence(u64::MAX)).is_ok() {
        digest.add(walk(&store)?);
    }
    store = open(Access::Write)?;
    store.distrust();
    if store.resume(&[], Sequence::ZERO).is_ok() {
        digest.add(walk(&store)?);
    }
    drop(store);
    // And without its header.
    let file = disk.open(&path, OpenMode::ReadWrite)?;
    file.write_at(&[b'?'; 2 * PAGE], 0)?;
    if let Ok(store) = open(Access::ReadOnly) {
        digest.rescued = walk(&store)?.sound;
    }
    Ok(digest)
}

/// Octets of a file header that hold something, and of the page it fills.
const HEADER: usize = 128;
const PAGE: usize = 4096;
/// A fuzzer is slow with larger files.
const OCTETS_MAX: usize = 2 << 20;
/// Where the checksums of a record lie: of its head and its body, and of its header.
const PARTS_CRCS: usize = 12;
const RECORD_CRC: usize = RECORD_HEADER - 4;

/// Takes `octets` for a buffer without what is only zeros and checksums (its header, the octets of the bitmap as two
/// octets, so much of the bitmap, then the articles), makes every checksum right, and decodes that.
///
/// # Errors
/// When it is no buffer.
pub fn decode_made_buffer(octets: &[u8]) -> Result<BufferDigest> {
    let (header, rest) = octets.split_at(octets.len().min(HEADER));
    let mut page = header.to_vec();
    page.resize(PAGE - 4, 0);
    let crc = crc32c::crc32c(&page);
    page.extend_from_slice(&crc.to_le_bytes());
    let header = FileHeader::decode(&page).ok();
    let sizes = header.and_then(|header| {
        let octets = usize::try_from(header.octets).ok()?;
        let geometry = header.geometry().filter(|_| octets <= OCTETS_MAX)?;
        Some((octets, geometry, FileKey::of(&header.uuid)))
    });
    let Some((octets, geometry, key)) = sizes else {
        return decode_buffer(&page);
    };
    let (bitmap, articles) = match rest.split_first_chunk() {
        Some((len, rest)) => rest.split_at(rest.len().min(u16::from_le_bytes(*len).into())),
        None => Default::default(),
    };
    let Ok(data_start) = usize::try_from(geometry.data_start) else {
        return decode_buffer(&page);
    };
    let mut file = [page.as_slice(), page.as_slice(), bitmap].concat();
    file.resize(data_start, 0);
    file.extend_from_slice(articles);
    file.resize(octets, 0);
    let mut rest = file.get_mut(data_start..);
    while let Some(record) = rest {
        let len = make_right(record, key).unwrap_or_default();
        let record_octets = match len {
            0 => geometry.block,
            len => geometry.record_octets(len.into()),
        };
        let next = usize::try_from(record_octets).ok();
        rest = next.and_then(|next| record.get_mut(next..));
    }
    decode_buffer(&file)
}

/// Puts the checksums into the record that `octets` may begin with; octets of its article, if it is there.
fn make_right(octets: &mut [u8], key: FileKey) -> Option<u32> {
    let (header, article) = octets.split_first_chunk_mut::<RECORD_HEADER>()?;
    if !RecordHeader::may_begin(header) {
        return None;
    }
    let [_, _, _, _, a0, a1, a2, a3, h0, h1, h2, h3, ..] = *header;
    let len = u32::from_le_bytes([a0, a1, a2, a3]);
    let article = article.get(..len as usize)?;
    let unpacked = packing::unpack_alone(article);
    let plain = unpacked.as_deref().unwrap_or(article);
    let (head, body) = plain.split_at_checked(u32::from_le_bytes([h0, h1, h2, h3]) as usize)?;
    let crcs = [crc32c::crc32c(head), crc32c::crc32c(body)];
    for (place, crc) in header[PARTS_CRCS..].chunks_exact_mut(4).zip(crcs) {
        place.copy_from_slice(&crc.to_le_bytes());
    }
    let crc = key.crc(&header[..RECORD_CRC]);
    header[RECORD_CRC..].copy_from_slice(&crc.to_le_bytes());
    Some(len)
}

fn walk(store: &Store) -> Result<BufferDigest> {
    let reader = store.reader();
    let mut digest = BufferDigest::default();
    let mut memory = Vec::new();
    for buffer in reader.buffers() {
        let _ = buffer.facts();
        for range in [ScanRange::All, ScanRange::Live] {
            let mut scan = Arc::clone(buffer).scan(range);
            while let Some(scanned) = scan.step()? {
                let Scanned::Record {
                    token,
                    sequence,
                    id_hash,
                    sound,
                    ..
                } = scanned
                else {
                    digest.damaged += u64::from(scanned != Scanned::Passed);
                    continue;
                };
                digest.sound += u64::from(sound);
                digest.unsound += u64::from(!sound);
                let _ = reader.token_at(&newsreel_wire::TokenText {
                    name: buffer.name(),
                    position: token.position(),
                });
                let _ = buffer.verify(&token, sequence, &id_hash, &mut memory);
                for want in [Want::Head, Want::Whole] {
                    let read = buffer.read(&token, want, Blocking::Yes, &mut memory);
                    digest.read += u64::from(read.is_ok());
                }
            }
        }
    }
    Ok(digest)
}

/// Decodes `octets` as a record header, a file header, a dictionary and a card, under a key that the octets themselves choose.
pub fn decode_record(octets: &[u8]) {
    let key = FileKey::of(octets.first_chunk::<16>().unwrap_or(&[0; 16]));
    for from in [0, 16] {
        let octets = octets.get(from..).unwrap_or_default();
        let _ = RecordHeader::decode(octets, key).map(|header| header.encode(key));
        let _ = FileHeader::decode(octets).map(|header| header.encode());
        let _ = packing::decode_any(octets);
        let _ = roots::Listed::decode(octets).map(|listed| listed.encode());
        let _ = Card::decode(octets).map(|card| card.encode(&mut Vec::new()));
    }
}

/// Takes `octets` for the register of buffers; how many it names, if it is one.
#[must_use]
pub fn decode_register(octets: &[u8]) -> Option<usize> {
    crate::register::again(octets)
}
