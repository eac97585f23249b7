//! Octets that begin on a page boundary in memory, as reading and writing around the page cache want them.
//!
//! Grows like a vector and keeps its memory when cleared.  What was reserved and not filled is never shown.

use std::ops::{Deref, DerefMut};

/// What direct reads and writes are aligned to: offset, length and address.
pub const DIRECT_ALIGN_BYTES: usize = 4096;

/// A growable run of octets whose first one is page-aligned.
#[derive(Debug, Default)]
pub struct AlignedBuf {
    /// The octets are `memory[start..start + len]`; `start` makes them aligned.
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl AlignedBuf {
    /// An empty one without memory.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            memory: Vec::new(),
            start: 0,
            len: 0,
        }
    }

    /// An empty one with room for `octets`.
    #[must_use]
    pub fn with_capacity(octets: usize) -> Self {
        let mut buf = Self::new();
        buf.grow(octets);
        buf
    }

    /// Room without taking new memory.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.memory.len().saturating_sub(self.start)
    }

    /// Forgets the octets; the memory stays.
    pub const fn clear(&mut self) {
        self.len = 0;
    }

    /// Forgets what is behind `len`.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Appends.
    pub fn extend_from_slice(&mut self, octets: &[u8]) {
        self.append(octets.len()).copy_from_slice(octets);
    }

    /// Appends zeros up to the next multiple of `multiple`, which is not 0.
    pub fn pad_to_multiple(&mut self, multiple: usize) {
        let wanted = self.len.next_multiple_of(multiple);
        self.append(wanted - self.len).fill(0);
    }

    /// Appends `count` octets of unspecified content and gives them out to be filled.
    pub fn append(&mut self, count: usize) -> &mut [u8] {
        let from = self.start + self.len;
        if self.memory.len().saturating_sub(from) < count {
            self.grow(self.len + count);
        }
        let from = self.start + self.len;
        self.len += count;
        self.memory.get_mut(from..from + count).unwrap_or_default()
    }

    fn grow(&mut self, octets: usize) {
        let room = octets
            .max(self.capacity() * 2)
            .next_multiple_of(DIRECT_ALIGN_BYTES);
        let mut memory = vec![0; room + DIRECT_ALIGN_BYTES];
        let start = memory
            .as_ptr()
            .align_offset(DIRECT_ALIGN_BYTES)
            .min(DIRECT_ALIGN_BYTES);
        if let Some(target) = memory.get_mut(start..start + self.len) {
            target.copy_from_slice(self);
        }
        (self.memory, self.start) = (memory, start);
    }
}

impl Deref for AlignedBuf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.memory
            .get(self.start..self.start + self.len)
            .unwrap_or_default()
    }
}

impl DerefMut for AlignedBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.memory
            .get_mut(self.start..self.start + self.len)
            .unwrap_or_default()
    }
}

/// Whether a read or write of `buf` at `offset` can go around the page cache.
pub(super) fn is_aligned(buf: &[u8], offset: u64) -> bool {
    buf.as_ptr().align_offset(DIRECT_ALIGN_BYTES) == 0
        && buf.len().is_multiple_of(DIRECT_ALIGN_BYTES)
        && offset.is_multiple_of(DIRECT_ALIGN_BYTES as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stays_aligned_and_whole_while_it_grows() {
        let mut buf = AlignedBuf::with_capacity(10);
        let mut model = Vec::new();
        for n in 0..3000_u32 {
            let octets = n.to_le_bytes();
            let part = octets.get(..n as usize % 5).unwrap_or(&octets);
            buf.extend_from_slice(part);
            model.extend_from_slice(part);
            assert!(buf.as_ptr().align_offset(DIRECT_ALIGN_BYTES) == 0);
        }
        assert_eq!(&*buf, model);
        assert!(!is_aligned(&buf, 0));
        buf.pad_to_multiple(DIRECT_ALIGN_BYTES);
        assert!(is_aligned(&buf, 8192) && !is_aligned(&buf, 512));
        assert_eq!(&buf[..model.len()], model);
        assert!(buf[model.len()..].iter().all(|octet| *octet == 0));
        let room = buf.capacity();
        buf.truncate(3);
        assert_eq!(&*buf, &model[..3]);
        buf.clear();
        assert_eq!((buf.len(), buf.capacity()), (0, room));
        buf.pad_to_multiple(DIRECT_ALIGN_BYTES);
        assert!(buf.is_empty(), "nothing is padded to nothing");
        buf.append(2).copy_from_slice(b"ab");
        buf[0] = b'c';
        assert_eq!(&*buf, b"cb");
    }
}
