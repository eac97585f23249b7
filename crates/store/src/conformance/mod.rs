//! What every storage method promises, as a suite that each of them passes.
//!
//! [`run`] takes the name of a method and runs every case on disks in memory, whole ones and failing ones.  A case
//! knows nothing of files and formats: it drives [`Store`](crate::Store) the way the engine does, with [`Rig`] in the
//! place of sequencer, commit thread and log.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a suite for tests: what does not hold fails the test"
)]

mod cases;
mod rig;

pub use cases::{CASES, Case};
pub use rig::{Log, Logged, Rig, Tally, WORDS_FROM, article, id, id_hash, xref};

use crate::config::{FileFormat, StoreConfig};
use crate::methods::{self, segment, tradspool};

/// In place of a method: segments whose articles are packed.
pub const PACKED: &str = "segment, packed";

/// In place of a method: articles that are files in the form that they have on the wire.
pub const WIRE: &str = "tradspool, wire";

/// Every method, in each form that its records or files may have.
pub fn variants() -> impl Iterator<Item = &'static str> {
    let methods = methods::METHODS.iter().map(|method| method.name);
    methods.chain([PACKED, WIRE])
}

/// A store of this method, two buffers or endless segments of so many octets, made quickly.
///
/// # Panics
/// When there is no such method.
#[must_use]
pub fn config_of(method: &str, octets: u64) -> StoreConfig {
    let (is_packed, is_wire) = (method == PACKED, method == WIRE);
    let method = match method {
        PACKED => segment::NAME,
        WIRE => tradspool::NAME,
        name => name,
    };
    assert!(methods::find(method).is_some(), "no method {method:?}");
    let mut config = StoreConfig::two_buffers(octets);
    for buffer in &mut config.buffers {
        buffer.sparse = true;
    }
    for set in &mut config.sets {
        method.clone_into(&mut set.method);
        set.segment_octets = octets;
        set.compression_level = is_packed.then_some(1);
        set.format = is_wire.then_some(FileFormat::Wire);
        // What is read comes from the disk, so that it is the disk that is tried.
        set.recent_octets = Some(0);
        if !set.has_buffers() {
            set.buffers.clear();
        }
    }
    if config.sets.iter().all(|set| !set.has_buffers()) {
        config.buffers.clear();
    }
    config
}

/// Runs every case for a method.
///
/// # Panics
/// When one does not hold; the message says which.
pub fn run(method: &str) {
    for case in CASES {
        (case.run)(method);
    }
}
