//! What several tests do with a rig.

use std::path::Path;
use std::sync::Arc;

use newsreel_store::conformance::{Rig, config_of};
use newsreel_store::{Access, Result, ScanRange, Scanned, StoreConfig};
use newsreel_wire::Token;

/// Octets of an article, about.
pub(crate) const ARTICLE: usize = 2500;
/// A rig's spool, and where it lies.
pub(crate) const SPOOL: (&str, [u8; 16]) = ("/spool", [9; 16]);
/// The buffer of [`sized`].
pub(crate) const FILE: &str = "/spool/buffers/C0";

/// One buffer of this size.
pub(crate) fn sized(octets: u64) -> StoreConfig {
    let mut config = config_of("cnfs", octets);
    config.buffers.truncate(1);
    config.sets[0].buffers.truncate(1);
    config
}

/// The place of a rig's spool, as the store takes it.
pub(crate) fn place() -> (&'static Path, [u8; 16]) {
    (Path::new(SPOOL.0), SPOOL.1)
}

/// Has the buffer get another size while it is in use.
pub(crate) fn resize(rig: &mut Rig, config: &StoreConfig) -> Result<()> {
    let addition = rig.store.addition();
    match addition.make_room(config, "C0", &mut |_, _, _| {})? {
        None => Ok(()),
        Some(resizing) => rig.store.resize_open(&resizing),
    }
}

/// The same spool, started once more.
pub(crate) fn recovered(rig: &Rig, config: &StoreConfig) -> Result<Rig> {
    let disk = Arc::clone(&rig.disk);
    Rig::recover(disk, config, rig.log.clone(), Access::Write)
}

/// What is alive of all that was committed.
pub(crate) fn alive(rig: &Rig) -> Vec<Token> {
    let tokens = rig.log.articles().map(|logged| logged.token);
    tokens.filter(|token| rig.reader.is_live(token)).collect()
}

/// Places and commits articles of so many octets together.
pub(crate) fn feed(rig: &mut Rig, octets: u64) {
    let first = rig.log.articles().count() as u64;
    for n in 0..octets / ARTICLE as u64 {
        rig.place(first + n, ARTICLE).unwrap();
        if n % 20 == 0 {
            rig.commit().unwrap();
        }
    }
    rig.commit().unwrap();
}

/// What a walk over everything alive meets, in the order of time; nothing is damaged.
pub(crate) fn walked(rig: &Rig) -> Vec<Token> {
    let buffer = rig.reader.buffers()[0].id();
    let mut scan = rig.reader.scan(buffer, ScanRange::Live).unwrap();
    let mut tokens = Vec::new();
    while let Some(scanned) = scan.step().unwrap() {
        match scanned {
            Scanned::Record { token, sound, .. } => {
                assert!(sound, "{token:?}");
                tokens.push(token);
            }
            Scanned::Damaged { .. } => panic!("{scanned:?}"),
            Scanned::Passed => {}
        }
    }
    tokens
}

/// Overwrites an article on the disk, if it is still there.
pub(crate) fn erase(rig: &mut Rig, token: Token) {
    let mut writes = Vec::new();
    rig.store.withdrawn(&[token], &mut writes);
    assert!(!writes.is_empty());
    for write in &mut writes {
        write.write().unwrap();
        write.sync().unwrap();
    }
}
