//! Articles that are stored smaller than they are: zstd, with a dictionary that was made of articles of the same set.
//!
//! What a reader gets is what was stored: the checksums of a record are of the article as it is served.  A file of records has
//! all that its articles need: at most one dictionary, two copies of it in the room where a cyclic buffer has its bitmap
//! and a segment nothing, durable before the first article that needs it.  Drawn in `docs/formats/segment.md`.

mod dictionary;
mod packer;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use newsreel_host::{ErrorKind, File};
use newsreel_wire::Position;
use parking_lot::Mutex;
use zstd::zstd_safe::{DCtx, get_dict_id_from_frame, get_frame_content_size};

use self::dictionary::{Copies, Dictionary};
use super::buffer::Buffer;
use super::geometry::{Geometry, in_memory};
use super::placing::ARTICLE_OCTETS_MAX;
pub(crate) use dictionary::decode_any;
pub(crate) use packer::{Packer, Training};

/// Octets with which every packed article begins; no article in wire form does.
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// A block of zstd has so many octets at most (RFC 8878 section 3.1.1.2.4), and takes so many at least.
const BLOCK_OCTETS_MAX: u64 = 128 << 10;
const BLOCK_STORED_MIN: usize = 4;
/// Dictionaries in memory for one set: those of the files that were read last.
const DICTIONARIES_MAX: usize = 16;
/// Contexts kept for the next reader.
const CONTEXTS_MAX: usize = 8;

/// Why a packed article cannot be told: it is damaged, or its file could not be read.
#[derive(Debug)]
pub(crate) enum Unpacking {
    /// What does not agree.
    Wrong(&'static str),
    /// The dictionary is not in memory, and nobody may wait.
    WouldBlock,
    /// The file with the dictionary.
    Host(newsreel_host::Error),
}

/// What readers of a buffer need for packed articles.
#[derive(Default)]
pub(crate) struct Unpacker {
    /// By cycle, the one used last at the end.
    dictionaries: Mutex<VecDeque<(u32, Arc<Dictionary>)>>,
    contexts: Mutex<Vec<DCtx<'static>>>,
}

impl std::fmt::Debug for Unpacker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Unpacker({} dictionaries)",
            self.dictionaries.lock().len()
        )
    }
}

impl Unpacker {
    /// The dictionary of a cycle's file, if it is in memory.
    fn known(&self, cycle: u32) -> Option<Arc<Dictionary>> {
        let known = self.dictionaries.lock();
        let found = known.iter().find(|(of, _)| *of == cycle);
        found.map(|(_, dictionary)| Arc::clone(dictionary))
    }
}

/// Whether this is a packed article, at a glance.
pub(crate) fn is_packed(stored: &[u8]) -> bool {
    stored.starts_with(&MAGIC)
}

/// Octets of the article, as what is stored says.
fn plain_len(stored: &[u8]) -> Result<usize, Unpacking> {
    let len = get_frame_content_size(stored).ok().flatten();
    // What claims more than its blocks can hold is damaged, and gets no memory.
    let most = (stored.len() / BLOCK_STORED_MIN + 1) as u64 * BLOCK_OCTETS_MAX;
    let len = len.filter(|len| is_packed(stored) && *len <= ARTICLE_OCTETS_MAX.min(most));
    len.map(in_memory).ok_or(Unpacking::Wrong(
        "what is packed does not say how long it is",
    ))
}

/// For fuzzing: what is packed here without a dictionary, if that is little.
pub(crate) fn unpack_alone(stored: &[u8]) -> Option<Vec<u8>> {
    const LITTLE: usize = 1 << 20;
    let len = plain_len(stored).ok().filter(|len| *len <= LITTLE)?;
    let mut plain = Vec::with_capacity(len);
    DCtx::default().decompress(&mut plain, stored).ok()?;
    Some(plain)
}

/// Whether a dictionary lies in a file where a cyclic buffer has its bitmap.
pub(crate) fn has_dictionary(file: &dyn File, geometry: &Geometry) -> bool {
    dictionary::is_there(file, geometry)
}

/// What is wrong with the copies of the dictionary of a file that is opened alone, if it has one.
pub(crate) fn dictionary_complaint(
    file: &dyn File,
    geometry: &Geometry,
) -> newsreel_host::Result<Option<&'static str>> {
    if !has_dictionary(file, geometry) {
        return Ok(None);
    }
    Ok(match dictionary::mend(file, geometry, None, false)? {
        Copies::Sound => None,
        Copies::Mended(_) => Some("one of the two copies of its dictionary is damaged"),
        Copies::Lost => {
            Some("both copies of its dictionary are damaged: articles that need it cannot be read")
        }
    })
}

/// What is wrong with every article that was packed with a dictionary of which no copy is left.
pub const DICTIONARY_LOST: &str = "the dictionary of its file is damaged or lost";

impl Buffer {
    /// Appends the article that was packed into what is stored, of this cycle.
    pub(crate) fn unpack(
        &self,
        position: Position,
        stored: &[u8],
        may_wait: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Unpacking> {
        let len = plain_len(stored)?;
        let from = out.len();
        out.resize(from + len, 0);
        let room = out.get_mut(from..).unwrap_or_default();
        self.unpack_into(position, stored, may_wait, room)
    }

    /// As [`unpack`](Self::unpack) in one piece of memory: the article goes behind `stored`, and may have others behind it.
    /// Says how long it is.
    pub(crate) fn unpack_behind(
        &self,
        position: Position,
        stored: std::ops::Range<usize>,
        may_wait: bool,
        memory: &mut Vec<u8>,
    ) -> Result<usize, Unpacking> {
        let len = plain_len(memory.get(stored.clone()).unwrap_or_default())?;
        let needed = stored.end + len;
        if memory.len() < needed {
            memory.resize(needed, 0);
        }
        let (front, room) = memory.split_at_mut(stored.end);
        let (stored, room) = (front.get(stored.start..), room.get_mut(..len));
        let (stored, room) = (stored.unwrap_or_default(), room.unwrap_or_default());
        self.unpack_into(position, stored, may_wait, room)?;
        Ok(len)
    }

    fn unpack_into(
        &self,
        position: Position,
        stored: &[u8],
        may_wait: bool,
        room: &mut [u8],
    ) -> Result<(), Unpacking> {
        let dictionary = match get_dict_id_from_frame(stored) {
            Some(_) => Some(self.dictionary(position.cycle(), may_wait)?),
            None => None,
        };
        let contexts = &self.unpacker.contexts;
        let mut context = contexts.lock().pop().unwrap_or_default();
        let len = room.len();
        let unpacked = match &dictionary {
            Some(dictionary) => context.decompress_using_ddict(room, stored, dictionary.decoder()),
            None => context.decompress(room, stored),
        };
        let mut kept = contexts.lock();
        if kept.len() < CONTEXTS_MAX {
            kept.push(context);
        }
        match unpacked {
            Ok(got) if got == len => Ok(()),
            _ => Err(Unpacking::Wrong("what is packed cannot be unpacked")),
        }
    }

    /// The dictionary of a cycle's file.
    fn dictionary(&self, cycle: u32, may_wait: bool) -> Result<Arc<Dictionary>, Unpacking> {
        let mut known = self.unpacker.dictionaries.lock();
        if let Some(at) = known.iter().position(|(of, _)| *of == cycle)
            && let Some(found) = known.remove(at)
        {
            let dictionary = Arc::clone(&found.1);
            known.push_back(found);
            return Ok(dictionary);
        }
        drop(known);
        if !may_wait {
            return Err(Unpacking::WouldBlock);
        }
        let file = self.home.file(cycle).map_err(Unpacking::Host)?;
        let read = dictionary::read(&*file, &self.geometry()).map_err(Unpacking::Host)?;
        let read = read.ok_or(Unpacking::Wrong(DICTIONARY_LOST))?;
        let read = Arc::new(read);
        self.keep_dictionary(cycle, &read);
        Ok(read)
    }

    /// Looks whether both copies of each file's dictionary are there, and writes again what is not, if it may; says what
    /// was wrong.
    pub(crate) fn mend_dictionaries(&self) -> newsreel_host::Result<Option<String>> {
        if !self.home.is_endless() {
            return Ok(None);
        }
        let end = Position(self.end.load(Ordering::Relaxed));
        let mut found = None;
        for cycle in self.home.oldest_cycle().max(1)..=end.cycle() {
            let may_write = self.is_usable();
            let file = match may_write {
                true => self.home.beside(cycle),
                false => self.home.file(cycle),
            };
            let file = match file {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                file => file?,
            };
            let known = self.unpacker.known(cycle);
            let copies = dictionary::mend(&*file, &self.geometry(), known.as_deref(), may_write)?;
            let done = match may_write {
                true => "written again",
                false => "left as it is, as nothing may be written there",
            };
            let told = match copies {
                Copies::Sound => continue,
                Copies::Mended(1) => format!("one copy was damaged, and is {done}"),
                Copies::Mended(_) => {
                    format!("both copies were damaged, and what was in memory is {done}")
                }
                Copies::Lost => {
                    "both copies are damaged: articles that need it cannot be read".to_owned()
                }
            };
            found = Some(format!("the dictionary of segment {cycle}: {told}"));
        }
        Ok(found)
    }

    fn keep_dictionary(&self, cycle: u32, dictionary: &Arc<Dictionary>) {
        let mut known = self.unpacker.dictionaries.lock();
        if known.len() >= DICTIONARIES_MAX {
            known.pop_front();
        }
        known.push_back((cycle, Arc::clone(dictionary)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_claims_more_than_it_can_hold_gets_no_memory() {
        let len = 100_000;
        let packed = zstd::bulk::compress(&vec![b'x'; len], 3).unwrap();
        assert!(packed.len() < 64);
        assert!(matches!(plain_len(&packed), Ok(found) if found == len));
        // Magic, one segment with eight octets of length, the length.
        let mut claim = MAGIC.to_vec();
        claim.push(0b1110_0000);
        claim.extend_from_slice(&(200_u64 << 20).to_le_bytes());
        claim.resize(128, 0);
        assert!(matches!(plain_len(&claim), Err(Unpacking::Wrong(_))));
        claim.resize(10_000, 0);
        assert!(plain_len(&claim).is_ok());
    }
}
