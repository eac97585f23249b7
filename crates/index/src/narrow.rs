//! Numbers in fewer octets, as the formats have them.
//!
//! What is narrowed here is bounded far below by a format's own limits (pages, blocks, packs).  A number beyond them would
//! become the largest, which is no block's and no page's: it is found out when it is read, never taken for another.

/// In four octets.
pub(crate) fn u32_of(number: impl TryInto<u32>) -> u32 {
    number.try_into().unwrap_or(u32::MAX)
}

/// In two octets.
pub(crate) fn u16_of(number: impl TryInto<u16>) -> u16 {
    number.try_into().unwrap_or(u16::MAX)
}

/// The low and the high half.
pub(crate) const fn halves(number: u64) -> [u32; 2] {
    [(number & 0xffff_ffff) as u32, (number >> 32) as u32]
}
