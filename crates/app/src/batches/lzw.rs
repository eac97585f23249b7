//! What compress(1) made (`.Z`, in batches behind `#! cunbatch`): LZW with codes of 9 to 16 bits.
//!
//! The form has no checksum and no length: what was cut off is seen by whoever knows what it should be.  Memory is fixed, 200 KB,
//! whatever comes; output is made as it is read.  Codes come in groups of eight; where their width changes, the rest of a group is
//! filler.

use std::io::{self, Read};

/// What such a file begins with.
pub(crate) const MAGIC: &[u8] = b"\x1f\x9d";

const WIDTH_MIN: u32 = 9;
const WIDTH_MAX: u32 = 16;
const BLOCK_MODE: u8 = 0x80;
/// In block mode this code empties the table.
const CLEAR: usize = 256;

/// Unpacks while it is read.
#[derive(Debug)]
pub(crate) struct Lzw<R> {
    input: R,
    width_max: u32,
    is_block_mode: bool,
    width: u32,
    /// Eight codes, as far as they came; how many bits that is, and how many of them were taken.
    group: [u8; WIDTH_MAX as usize],
    group_bits: u32,
    taken_bits: u32,
    /// For each code: the code in front of its last octet, and that octet.
    prefix: Vec<u16>,
    suffix: Vec<u8>,
    free: usize,
    /// The code before, if there was one since the table was emptied, and the first octet it stood for.
    before: Option<usize>,
    first: u8,
    /// What the last code stood for, reversed.
    out: Vec<u8>,
    /// What is told when all before it was given out.
    failed: Option<io::Error>,
}

fn corrupt(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("compress: {what}"))
}

impl<R: Read> Lzw<R> {
    /// Reads the three octets in front.
    pub(crate) fn new(mut input: R) -> io::Result<Self> {
        let mut head = [0; 3];
        input.read_exact(&mut head)?;
        let width_max = u32::from(head[2] & 0x1f);
        if !head.starts_with(MAGIC) || !(WIDTH_MIN..=WIDTH_MAX).contains(&width_max) {
            return Err(corrupt(
                "no such file, or one with codes of a strange width",
            ));
        }
        let is_block_mode = head[2] & BLOCK_MODE != 0;
        Ok(Self {
            input,
            width_max,
            is_block_mode,
            width: WIDTH_MIN,
            group: [0; WIDTH_MAX as usize],
            group_bits: 0,
            taken_bits: 0,
            prefix: vec![0; 1 << width_max],
            suffix: (0..1u32 << width_max).map(|code| code as u8).collect(),
            free: Self::first_free(is_block_mode),
            before: None,
            first: 0,
            out: Vec::new(),
            failed: None,
        })
    }

    /// What it reads from.
    pub(crate) fn into_inner(self) -> R {
        self.input
    }

    const fn first_free(is_block_mode: bool) -> usize {
        if is_block_mode { CLEAR + 1 } else { CLEAR }
    }

    /// The next code; `None` at the end.
    fn code(&mut self) -> io::Result<Option<usize>> {
        if self.width < self.width_max && self.free > (1 << self.width) - 1 {
            self.width += 1;
            self.group_bits = 0;
            self.taken_bits = 0;
        }
        if self.taken_bits + self.width > self.group_bits {
            let mut filled = 0;
            let wanted = self.width as usize;
            while let Some(room) = self
                .group
                .get_mut(filled..wanted)
                .filter(|it| !it.is_empty())
            {
                match self.input.read(room) {
                    Ok(0) => break,
                    Ok(more) => filled += more,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            (self.group_bits, self.taken_bits) = (8 * filled as u32, 0);
            if self.group_bits < self.width {
                return Ok(None);
            }
        }
        let at = (self.taken_bits / 8) as usize;
        let octet = |nth: usize| u32::from(self.group.get(at + nth).copied().unwrap_or(0));
        let octets = octet(0) | octet(1) << 8 | octet(2) << 16;
        let code = octets >> (self.taken_bits % 8) & ((1 << self.width) - 1);
        self.taken_bits += self.width;
        Ok(Some(code as usize))
    }

    /// Puts what the next code stands for into `out`; `false` at the end.
    fn step(&mut self) -> io::Result<bool> {
        let Some(code) = self.code()? else {
            return Ok(false);
        };
        if code == CLEAR && self.is_block_mode {
            self.free = Self::first_free(true);
            self.width = WIDTH_MIN;
            (self.group_bits, self.taken_bits) = (0, 0);
            self.before = None;
            return Ok(true);
        }
        let Some(before) = self.before else {
            let Ok(octet) = u8::try_from(code) else {
                return Err(corrupt("a code that nothing made"));
            };
            (self.first, self.before) = (octet, Some(code));
            self.out.push(octet);
            return Ok(true);
        };
        let mut at = code;
        if code >= self.free {
            if code > self.free {
                return Err(corrupt("a code that nothing made"));
            }
            self.out.push(self.first);
            at = before;
        }
        while at >= CLEAR {
            // Each code's prefix is an older one, so this ends.
            self.out.push(self.suffix.get(at).copied().unwrap_or(0));
            at = self.prefix.get(at).copied().map_or(0, usize::from);
        }
        self.first = at as u8;
        self.out.push(self.first);
        if let (Some(prefix), Some(suffix)) = (
            self.prefix.get_mut(self.free),
            self.suffix.get_mut(self.free),
        ) {
            (*prefix, *suffix) = (before as u16, self.first);
            self.free += 1;
        }
        self.before = Some(code);
        Ok(true)
    }
}

impl<R: Read> Read for Lzw<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let mut filled = 0;
        while let Some(room) = buf.get_mut(filled..).filter(|room| !room.is_empty()) {
            if self.out.is_empty() {
                match self.step() {
                    Ok(true) => continue,
                    Ok(false) => break,
                    Err(error) if filled > 0 => {
                        self.failed = Some(error);
                        break;
                    }
                    Err(error) => return Err(error),
                }
            }
            let from = self.out.len().saturating_sub(room.len());
            for (to, octet) in room.iter_mut().zip(self.out.drain(from..).rev()) {
                *to = octet;
                filled += 1;
            }
        }
        Ok(filled)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    /// As compress(1) packs; with a clear code after every so many codes, if that is not 0.
    pub(crate) fn compress(octets: &[u8], width_max: u32, clear_after: usize) -> Vec<u8> {
        let mut out = vec![0x1f, 0x9d, width_max as u8 | BLOCK_MODE];
        let (mut width, mut free) = (WIDTH_MIN, CLEAR + 1);
        let (mut table, mut group) = (HashMap::new(), Vec::new());
        let mut end_group = |group: &mut Vec<usize>, width: u32| {
            let mut bits = 0u128;
            for (nth, code) in group.iter().enumerate() {
                bits |= (*code as u128) << (nth as u32 * width);
            }
            let len = match group.len() {
                8 => width as usize,
                len => (len * width as usize).div_ceil(8),
            };
            out.extend_from_slice(&bits.to_le_bytes()[..len]);
            group.clear();
        };
        let (mut codes, mut rest) = (0, octets);
        let mut decoder_free = CLEAR;
        while let Some((first, after)) = rest.split_first() {
            let (mut code, mut len) = (usize::from(*first), 1);
            for octet in after {
                let Some(longer) = table.get(&(code, *octet)) else {
                    if free < 1 << width_max {
                        table.insert((code, *octet), free);
                        free += 1;
                    }
                    break;
                };
                (code, len) = (*longer, len + 1);
            }
            rest = &rest[len..];
            group.push(code);
            codes += 1;
            // The reader knows one code less than we do.
            decoder_free = (decoder_free + 1).min(1 << width_max);
            if group.len() == 8 {
                end_group(&mut group, width);
            }
            if width < width_max && decoder_free > (1 << width) - 1 {
                if !group.is_empty() {
                    group.resize(8, 0);
                    end_group(&mut group, width);
                }
                width += 1;
            }
            if clear_after > 0 && codes % clear_after == 0 && !rest.is_empty() {
                group.push(CLEAR);
                group.resize(8, 0);
                end_group(&mut group, width);
                (width, free, decoder_free) = (WIDTH_MIN, CLEAR + 1, CLEAR);
                table.clear();
            }
        }
        end_group(&mut group, width);
        out
    }

    fn unpacked(packed: &[u8]) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        Lzw::new(packed)?.read_to_end(&mut out)?;
        Ok(out)
    }

    #[test]
    fn what_compress_made() {
        // `printf 'abababababab\n' | compress`, as ncompress writes it.
        let packed = b"\x1f\x9d\x90\x61\xc4\x04\x1c\x28\xb0\xa0\x02";
        let said = unpacked(packed).map(|text| String::from_utf8_lossy(&text).into_owned());
        assert_eq!(said.unwrap(), "abababababab\n");
    }

    #[test]
    fn damage_is_told() {
        for bad in [
            &b""[..],
            b"\x1f\x9d",
            b"\x1f\x9d\x88",
            b"\x1f\x9d\x91",
            b"\x1f\x8b\x90",
        ] {
            assert!(unpacked(bad).is_err(), "{bad:?}");
        }
        // The first code stands for nothing.
        assert!(unpacked(b"\x1f\x9d\x90\xff\xff\xff").is_err());
    }

    proptest! {
        #[test]
        fn prop_what_was_packed_is_unpacked(
            words in proptest::collection::vec("[a-c]{1,9}", 0..3000),
            width_max in WIDTH_MIN..=WIDTH_MAX,
            clear_after in prop_oneof![Just(0), 1usize..2000],
        ) {
            let octets = words.concat().into_bytes();
            let packed = compress(&octets, width_max, clear_after);
            prop_assert_eq!(unpacked(&packed).unwrap(), octets);
        }

        #[test]
        fn prop_no_octets_are_a_defect(octets: Vec<u8>) {
            let _ = unpacked(&[MAGIC, &[0x90], &octets].concat());
        }
    }
}
