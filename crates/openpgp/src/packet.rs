//! Octets taken apart: numbers, numbers of any length, packets (RFC 9580 sections 3 and 4).

use crate::error::Error;

const SHORT: Error = Error::Malformed("it ends too early");

/// Octets that are read from the front.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn take(&mut self, octets: usize) -> Result<&'a [u8], Error> {
        let (taken, rest) = self.0.split_at_checked(octets).ok_or(SHORT)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    /// A number of so many octets, the highest first; at most four.
    pub(crate) fn number(&mut self, octets: usize) -> Result<u32, Error> {
        Ok(number(self.take(octets)?))
    }

    pub(crate) fn octet(&mut self) -> Result<u8, Error> {
        match self.take(1)? {
            [octet] => Ok(*octet),
            _ => Err(SHORT),
        }
    }

    /// A number of any length, its octets (section 3.2).
    pub(crate) fn mpi(&mut self) -> Result<&'a [u8], Error> {
        let bits = self.number(2)? as usize;
        self.take(bits.div_ceil(8))
    }

    /// The next packet: its tag and its body.
    pub(crate) fn packet(&mut self) -> Result<(u8, &'a [u8]), Error> {
        let first = self.octet()?;
        if first & 0x80 == 0 {
            return Err(Error::Malformed("no packet of OpenPGP begins so"));
        }
        if first & 0x40 != 0 {
            let octets = match self.octet()? {
                short @ 0..=191 => usize::from(short),
                first @ 192..=223 => {
                    ((usize::from(first) - 192) << 8) + usize::from(self.octet()?) + 192
                }
                255 => self.number(4)? as usize,
                _ => {
                    return Err(Error::Malformed(
                        "a packet in pieces is neither key nor signature",
                    ));
                }
            };
            return Ok((first & 0x3f, self.take(octets)?));
        }
        let body = match first & 3 {
            3 => self.rest(),
            kind => {
                let octets = self.number(1 << kind)? as usize;
                self.take(octets)?
            }
        };
        Ok((first >> 2 & 0xf, body))
    }
}

/// A number from its octets, the highest first.
pub(crate) fn number(octets: &[u8]) -> u32 {
    octets
        .iter()
        .fold(0, |number, octet| number << 8 | u32::from(*octet))
}

/// The octets of a number, the highest first.
pub(crate) const fn octets_of(number: u32) -> [u8; 4] {
    [
        (number >> 24) as u8,
        (number >> 16 & 0xff) as u8,
        (number >> 8 & 0xff) as u8,
        (number & 0xff) as u8,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_of_both_forms() {
        let packet = |octets: &[u8]| {
            let mut reader = Reader(octets);
            let (tag, body) = reader.packet()?;
            Ok::<_, Error>((tag, body.len(), reader.0.len()))
        };
        let long = |head: &[u8], octets: usize| [head, &vec![7; octets]].concat();
        for (octets, found) in [
            (long(&[0x88, 3], 5), (2, 3, 2)),
            (long(&[0x99, 1, 0], 257), (6, 256, 1)),
            (long(&[0x9a, 0, 0, 1, 0], 256), (6, 256, 0)),
            (long(&[0x8b], 9), (2, 9, 0)),
            (long(&[0xc2, 191], 191), (2, 191, 0)),
            (long(&[0xc6, 192, 0], 193), (6, 192, 1)),
            (long(&[0xcd, 255, 0, 0, 2, 0], 512), (13, 512, 0)),
        ] {
            assert_eq!(packet(&octets), Ok(found));
        }
        for bad in [&[][..], &[0x88], &[0x88, 3, 1], &[0x40, 1], &[0xc2, 224, 1]] {
            assert!(packet(bad).is_err(), "{bad:?}");
        }
        assert_eq!(Reader(&[0, 9, 1, 2, 3]).mpi(), Ok(&[1, 2][..]));
        assert!(Reader(&[0, 17, 1, 2]).mpi().is_err());
        assert_eq!(number(&octets_of(0x0102_03fe)), 0x0102_03fe);
    }
}
