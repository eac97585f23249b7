//! What a replacement policy is, and what the policies share.
//!
//! A policy is pure: it is told what came, what was asked for and what went, and says what goes next.  It reads no clock and
//! draws no random numbers; each step costs O(log n) or less.  It does not know how much room there is: [`Room`] does.

pub(crate) mod by_article;
pub(crate) mod by_group;
pub(crate) mod lists;
#[cfg(test)]
pub(crate) mod model;
mod ranked;
mod room;

use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};

pub use room::Room;

/// An article as policies know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Article {
    /// Stands for its message-id.
    pub key: u64,
    /// Stands for the group that it was asked for in.
    pub group: u64,
    /// Its octets.
    pub octets: u64,
    /// When it was written: servers let the oldest go first.
    pub dated: u64,
    /// How often it was asked for, this time included; never 0.
    pub uses: u32,
}

/// What an article is worth to its policy: of two the one that is worth less would go first.
pub type Worth = (u64, u64);

/// Decides what goes.
pub trait Policy: fmt::Debug + Send {
    /// An article came because it was asked for.  It is not held yet.
    fn insert(&mut self, article: Article);

    /// An article was asked for again; false: it is not held.
    fn touch(&mut self, key: u64) -> bool;

    /// An article went for other reasons; false: it was not held.
    fn remove(&mut self, key: u64) -> bool;

    /// What goes next goes: an article, or all of a group.  Appends what went; nothing only where nothing is held.
    fn evict(&mut self, gone: &mut Vec<u64>);

    /// What an article is worth; none: it is not held.
    fn worth(&self, key: u64) -> Option<Worth>;

    /// Octets of the articles that are held.
    fn octets(&self) -> u64;

    /// How many articles are held.
    fn articles(&self) -> usize;
}

/// Spreads keys, which may be small numbers.
#[derive(Debug, Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, octets: &[u8]) {
        for octet in octets {
            self.write_u64(u64::from(*octet));
        }
    }

    fn write_u64(&mut self, key: u64) {
        let product = (self.0 ^ key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ (product >> 32);
    }
}

/// A map from keys.
type Keyed<T> = std::collections::HashMap<u64, T, BuildHasherDefault<Spread>>;
