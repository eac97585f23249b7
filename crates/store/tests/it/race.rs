//! Readers of large articles against small buffers that wrap all the time: the right octets or none.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use newsreel_host::RealDisk;
use newsreel_store::conformance::{
    Log, PACKED, Rig, WORDS_FROM, article, config_of, id_hash, variants,
};
use newsreel_store::{Access, Blocking, ReadError, StoreConfig, StoreReader, Want};
use newsreel_wire::Token;

use crate::common::erase;

/// Different articles.
const TEXTS: u64 = 40;

/// 700 KB, some more, some less, so that fronts cut records anywhere.
fn len_of(number: u64) -> usize {
    690_000 + (number as usize % 1000 * 7919) % 20_000
}

/// A little more than the buffers hold.
const NEWEST_MAX: usize = 48;

/// How many the ring has when so many were placed.
fn newest_len(placed: u64) -> usize {
    (placed as usize).min(NEWEST_MAX)
}

/// A ring of the newest articles, from fresh to long gone.
type Newest = Mutex<Vec<(u64, Token)>>;

struct Reader {
    store: Arc<StoreReader>,
    newest: Arc<Newest>,
    done: Arc<AtomicBool>,
    texts: Arc<Vec<Vec<u8>>>,
    /// The number of the first text.
    first: u64,
}

impl Reader {
    /// Reads until told to stop; gives how many were read whole and how many were gone.
    fn run(self, seed: usize) -> (u64, u64) {
        let mut memory = Vec::new();
        let (mut good, mut gone, mut at) = (0, 0, seed);
        while !self.done.load(Ordering::Relaxed) {
            at = at.wrapping_mul(31).wrapping_add(17);
            let chosen = {
                let newest = self.newest.lock().unwrap();
                newest.get(at % newest.len().max(1)).copied()
            };
            let Some((number, token)) = chosen else {
                std::thread::yield_now();
                continue;
            };
            match self
                .store
                .read(&token, Want::Whole, Blocking::Yes, &mut memory)
            {
                Ok(stored) => {
                    let expected = &self.texts[(number - self.first) as usize];
                    assert!(
                        memory[stored.octets] == expected[..],
                        "wrong octets in {token:?}"
                    );
                    assert_eq!(stored.id_hash, id_hash(number));
                    good += 1;
                }
                Err(ReadError::Gone | ReadError::Removed) => gone += 1,
                Err(error) => panic!("{token:?}: {error}"),
            }
        }
        (good, gone)
    }
}

/// Races readers of a cyclic buffer against its writer.
fn race(change: impl FnOnce(&mut StoreConfig)) {
    let mut config = config_of("cnfs", 16 << 20);
    change(&mut config);
    race_in(&config, Duration::from_secs(5));
}

/// Races readers against a writer for so long.
#[expect(clippy::disallowed_methods, reason = "the test is bounded in time")]
fn race_in(config: &StoreConfig, at_least: Duration) {
    let dir = tempfile::tempdir().unwrap();
    let is_erased = config.sets[0].erase_withdrawn || config.sets[0].is_in_files();
    let disk = Arc::new(RealDisk);
    let rig = Rig::recover_in(dir.path(), disk, config, Log::default(), Access::Write);
    let mut rig = rig.unwrap();
    let newest: Arc<Newest> = Arc::default();
    let done = Arc::new(AtomicBool::new(false));
    // What is packed should not become much shorter by it, so that it fills files.
    let is_packed = config.sets[0].compression_level.is_some();
    let first = if is_packed { WORDS_FROM } else { 0 };
    let texts = (first..first + TEXTS).map(|n| article(n, len_of(n)).0);
    let texts: Arc<Vec<_>> = Arc::new(texts.collect());
    let readers: Vec<_> = (0..4)
        .map(|seed| {
            let reader = Reader {
                store: Arc::clone(&rig.reader),
                newest: Arc::clone(&newest),
                done: Arc::clone(&done),
                texts: Arc::clone(&texts),
                first,
            };
            std::thread::spawn(move || reader.run(seed))
        })
        .collect();
    let (start, mut placed) = (Instant::now(), 0);
    // A busy machine takes as long as it takes for the buffers to wrap.
    while (start.elapsed() < at_least || placed <= 60) && placed < 300 {
        let number = first + placed % TEXTS;
        let token = rig.place(number, len_of(number)).unwrap();
        rig.commit().unwrap();
        if is_erased && placed % 2 == 1 {
            let (_, token) = newest.lock().unwrap()[placed as usize * 7 % newest_len(placed)];
            erase(&mut rig, token);
        }
        let mut newest = newest.lock().unwrap();
        // A little more than the buffers hold, so that readers often ask for what is just dying.
        newest.push((number, token));
        if newest.len() > NEWEST_MAX {
            newest.remove(0);
        }
        placed += 1;
    }
    done.store(true, Ordering::Relaxed);
    let readers = readers.into_iter().map(|reader| reader.join().unwrap());
    let counts: Vec<(u64, u64)> = readers.collect();
    assert!(
        placed > 60,
        "only {placed} articles: the buffers did not wrap"
    );
    let good: u64 = counts.iter().map(|count| count.0).sum();
    let gone: u64 = counts.iter().map(|count| count.1).sum();
    assert!(
        good > 0 && gone > 0,
        "{good} were read, {gone} were overtaken"
    );
}

#[test]
fn overtaken_readers_never_get_mixed_octets() {
    race(|_| {});
}

#[test]
fn nor_through_the_page_cache() {
    race(|config| {
        for buffer in &mut config.buffers {
            buffer.cached = true;
        }
    });
}

#[test]
fn nor_from_the_newest_in_memory() {
    race(|config| config.sets[0].recent_octets = Some(6 << 20));
}

/// Nothing lies in memory, so that readers meet what is being erased on the disk.
#[test]
fn readers_of_what_is_erased_get_the_article_or_nothing() {
    race(|config| {
        config.sets[0].erase_withdrawn = true;
        config.sets[0].recent_octets = Some(0);
    });
}

/// Segments go as a whole, files one by one, in the middle of being read.
#[test]
fn readers_of_what_is_dropped_get_the_article_or_nothing() {
    for method in variants().filter(|method| *method != "cnfs") {
        // Packed, these articles are a fifth of their length.
        let octets = if method == PACKED { 1 << 20 } else { 4 << 20 };
        let mut config = config_of(method, octets);
        if !config.sets[0].is_in_files() {
            config.sets[0].keep_octets = Some(if method == PACKED { 3 } else { 6 } * octets);
        }
        race_in(&config, Duration::from_secs(1));
    }
}
