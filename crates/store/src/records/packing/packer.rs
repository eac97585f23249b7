//! The sequencer's half of packing: articles are packed as they are placed, and some of them are kept to make the next
//! dictionary of.
//!
//! Making one takes a second, so it is done where checkpoints are written, in [`Training`]; until it is durable in the
//! file that is written now, articles are packed without.  Each file gets a new one, made of what came since the last.

use std::sync::Arc;

use parking_lot::Mutex;
use zstd::zstd_safe::{CCtx, CDict, compress_bound, train_from_buffer};

use super::dictionary::{self, Dictionary};
use crate::error::Result;
use crate::method::{BufferReader as _, CheckpointWrite, ScanRange, Scanned};
use crate::records::buffer::Buffer;

/// So many octets of articles a dictionary is made of, for each of its own.
const SAMPLES_TIMES: usize = 64;
/// ... and so many of each article at most: what articles share is mostly in their beginnings.
const SAMPLE_OCTETS_MAX: usize = 16 << 10;
/// So much it must save: a block, on which articles begin.
const PAYS_OCTETS: usize = 64;
/// Fewer articles tell too little of those to come.
const SAMPLES_MIN: usize = 64;

/// A dictionary that is durable in the file of a cycle.
type Trained = (u32, Arc<Dictionary>);

/// Packs the articles of one set.
pub(crate) struct Packer {
    level: i32,
    context: CCtx<'static>,
    /// The cycle of the file that is written, and its dictionary.
    current: Option<(u32, Option<CDict<'static>>)>,
    /// The article as it came, and packed.
    plain: Vec<u8>,
    packed: Vec<u8>,
    /// None where files have no room for a dictionary.
    samples: Option<Samples>,
    /// Put there by who made it.
    trained: Arc<Mutex<Option<Trained>>>,
    /// One is being made for this cycle, or was.
    asked_for: Option<u32>,
    /// The cycle of the file that was written first.
    first: Option<u32>,
}

impl std::fmt::Debug for Packer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Packer(level {})", self.level)
    }
}

/// Articles, one behind the other.
#[derive(Debug, Default, Clone)]
struct Samples {
    octets: Vec<u8>,
    lens: Vec<usize>,
    /// Of the dictionary.
    octets_max: usize,
}

impl Samples {
    const fn is_full(&self) -> bool {
        self.octets.len() >= self.octets_max * SAMPLES_TIMES && self.lens.len() >= SAMPLES_MIN
    }

    fn add(&mut self, article: &[u8]) {
        if !self.is_full() {
            let sample = article.get(..SAMPLE_OCTETS_MAX).unwrap_or(article);
            self.octets.extend_from_slice(sample);
            self.lens.push(sample.len());
        }
    }
}

impl Packer {
    pub(crate) fn new(buffer: &Buffer, level: i32) -> Self {
        let octets_max = dictionary::octets_max(&buffer.geometry());
        Self {
            level,
            context: CCtx::default(),
            current: None,
            plain: Vec::new(),
            packed: Vec::new(),
            samples: octets_max.map(|octets_max| Samples {
                octets_max,
                ..Samples::default()
            }),
            trained: Arc::default(),
            asked_for: None,
            first: None,
        }
    }

    /// Packs an article for this cycle's file, if that saves a block.
    /// Says how long it is then.
    pub(crate) fn pack(&mut self, buffer: &Buffer, cycle: u32, article: &[&[u8]]) -> Option<u32> {
        self.turn_to(buffer, cycle);
        self.plain.clear();
        for part in article {
            self.plain.extend_from_slice(part);
        }
        self.packed.clear();
        self.packed.reserve(compress_bound(self.plain.len()));
        let (out, plain) = (&mut self.packed, &self.plain);
        let packed = match &self.current {
            Some((_, Some(dictionary))) => {
                self.context.compress_using_cdict(out, plain, dictionary)
            }
            _ => self.context.compress(out, plain, self.level),
        };
        let packed = packed.ok().filter(|len| len + PAYS_OCTETS <= plain.len());
        u32::try_from(packed?).ok()
    }

    /// The last article that was to be packed: as it came, and packed.
    pub(crate) fn last(&self) -> (&[u8], &[u8]) {
        (&self.plain, &self.packed)
    }

    /// An article was placed: the last that was packed.
    pub(crate) fn was_placed(&mut self) {
        if let Some(samples) = &mut self.samples {
            samples.add(&self.plain);
        }
    }

    /// Makes sure that `current` is of this cycle, with the dictionary that its file has.
    fn turn_to(&mut self, buffer: &Buffer, cycle: u32) {
        let is_first = self.current.is_none();
        self.first = self.first.or(Some(cycle));
        if self.current.as_ref().is_none_or(|(of, _)| *of != cycle) {
            // Only a file that was there before us may have one that nobody has told us of.
            let found = match is_first {
                true => buffer.dictionary(cycle, true).ok(),
                false => None,
            };
            self.current = Some((cycle, found.and_then(|found| self.prepared(&found))));
        }
        let trained = self.trained.lock().take();
        if let Some((of, dictionary)) = trained
            && of == cycle
        {
            self.current = Some((cycle, self.prepared(&dictionary)));
        }
    }

    fn prepared(&self, dictionary: &Dictionary) -> Option<CDict<'static>> {
        CDict::try_create(dictionary.octets(), self.level)
    }

    /// What makes a dictionary for the file that is written now, when it has none and enough articles have come.
    pub(crate) fn training(&mut self, buffer: &Arc<Buffer>) -> Option<Training> {
        let (cycle, dictionary) = self.current.as_ref()?;
        let samples = self.samples.as_mut().filter(|samples| samples.is_full())?;
        if dictionary.is_some() || self.asked_for == Some(*cycle) {
            return None;
        }
        self.asked_for = Some(*cycle);
        let may_have_had_one = self.first == Some(*cycle);
        let next = Samples {
            octets_max: samples.octets_max,
            ..Samples::default()
        };
        Some(Training {
            buffer: Arc::clone(buffer),
            cycle: *cycle,
            may_have_had_one,
            samples: std::mem::replace(samples, next),
            done: Arc::clone(&self.trained),
        })
    }
}

/// A dictionary to be made for a file, and to be written there.
#[derive(Debug)]
pub(crate) struct Training {
    buffer: Arc<Buffer>,
    cycle: u32,
    /// The file was there before this server started.
    may_have_had_one: bool,
    samples: Samples,
    done: Arc<Mutex<Option<Trained>>>,
}

impl Training {
    /// None where the articles have nothing in common.
    fn train(&self) -> Option<Dictionary> {
        let mut octets = Vec::with_capacity(self.samples.octets_max);
        match train_from_buffer(&mut octets, &self.samples.octets, &self.samples.lens) {
            Ok(_) => Dictionary::of(octets),
            Err(code) => {
                let why = zstd::zstd_safe::get_error_name(code);
                tracing::info!(
                    set = self.buffer.name,
                    why,
                    "no dictionary can be made of what came"
                );
                None
            }
        }
    }

    /// Whether an article of the file cannot be unpacked: it may be one that needs a dictionary that was lost, and that somebody may
    /// put back.
    fn has_unsound(&self) -> bool {
        let start = self.buffer.geometry().start_of(self.cycle);
        let range = ScanRange::LiveFrom(start.unwrap_or_default());
        let mut scan = Arc::clone(&self.buffer).scan(range);
        loop {
            match scan.step() {
                Ok(Some(Scanned::Record { sound: true, .. } | Scanned::Passed)) => {}
                Ok(None) => return false,
                _ => return true,
            }
        }
    }

    /// Whether it was written: never in place of another, whatever is left of that.
    fn write_to_file(&self, dictionary: &Dictionary) -> newsreel_host::Result<bool> {
        let file = self.buffer.home.file(self.cycle)?;
        let is_free = dictionary::is_blank(&*file, &self.buffer.geometry())?
            && !(self.may_have_had_one && self.has_unsound());
        if is_free {
            dictionary::write(&*file, &self.buffer.geometry(), dictionary)?;
        }
        Ok(is_free)
    }
}

impl CheckpointWrite for Training {
    /// Nothing depends on it: what fails is told, and articles are packed without.
    fn write(&mut self) -> Result<()> {
        let Some(dictionary) = self.train() else {
            return Ok(());
        };
        let dictionary = Arc::new(dictionary);
        match self.write_to_file(&dictionary) {
            Ok(false) => {
                tracing::warn!(
                    set = self.buffer.name,
                    segment = self.cycle,
                    "what lies in the place of its dictionary stays"
                );
            }
            Ok(true) => {
                let (set, segment) = (&self.buffer.name, self.cycle);
                tracing::info!(set, segment, "articles are packed with a new dictionary");
                self.buffer.keep_dictionary(self.cycle, &dictionary);
                *self.done.lock() = Some((self.cycle, dictionary));
            }
            Err(error) => {
                tracing::warn!(%error, set = self.buffer.name, "the dictionary of a segment cannot be written");
            }
        }
        Ok(())
    }
}
