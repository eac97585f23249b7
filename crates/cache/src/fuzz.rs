//! Takes any octets for values of the cache's tables: the door for fuzzers.  Must never panic.

use crate::access_log::AccessLine;
use crate::keep::{Block, KeptGroup, Row, sealed};
use crate::queue::QueuedPost;

/// Takes `octets` for each kind of value, and for a sealed one; what is understood must be written the same way again.
#[must_use]
pub fn decode(octets: &[u8]) -> bool {
    let opened = sealed::open(b"key", octets).map(|value| sealed::seal(b"key", value));
    assert!(opened.is_none_or(|again| again == octets));
    let group = KeptGroup::decode(octets);
    if let Some(group) = &group {
        assert_eq!(group.encode().as_deref(), Some(octets));
    }
    if let Some(row) = Row::decode(octets) {
        assert!(row.encode().starts_with(octets));
    }
    let block = Block::decode(octets);
    if let Some(block) = &block {
        assert_eq!(block.encode(), octets);
        assert_eq!(block.lines().count(), block.there().count_ones() as usize);
    }
    let line = AccessLine::parse(octets);
    if let Some(line) = &line {
        let mut again = Vec::new();
        line.write(&mut again);
        assert_eq!(again.strip_suffix(b"\n"), Some(octets));
    }
    let post = QueuedPost::decode(octets);
    if let Some(post) = &post {
        assert_eq!(post.encode(), octets);
    }
    group.is_some() || block.is_some() || post.is_some() || line.is_some()
}
