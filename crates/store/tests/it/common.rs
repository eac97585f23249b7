//! What several tests do with a rig.

use newsreel_store::conformance::Rig;
use newsreel_store::{ScanRange, Scanned};
use newsreel_wire::Token;

/// Octets of an article, about.
pub(crate) const ARTICLE: usize = 2500;

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
