//! Octets as packets (RFC 9580 section 4), each with where it begins, and what the library says of one.
//!
//! Whoever reads on behind a packet that is not understood must know where it ends, so the packets are told apart here; what
//! is in them the library reads.

use pgp::packet::PacketHeader;
use pgp::types::PacketLength;

use crate::error::Error;

/// The next packet: its header and its body.
pub(crate) fn next<'a>(octets: &mut &'a [u8]) -> Result<(PacketHeader, &'a [u8]), Error> {
    let header = PacketHeader::try_from_reader(&mut *octets)
        .map_err(|_| Error::Malformed("no packet of OpenPGP begins so"))?;
    let length = match header.packet_length() {
        PacketLength::Fixed(length) => length as usize,
        PacketLength::Indeterminate => octets.len(),
        PacketLength::Partial(_) => {
            return Err(Error::Malformed(
                "a packet in pieces is neither key nor signature",
            ));
        }
    };
    let (body, rest) = octets
        .split_at_checked(length)
        .ok_or(Error::Malformed("it ends too early"))?;
    *octets = rest;
    Ok((header, body))
}

/// Why the library does not take a packet.
pub(crate) fn said(error: pgp::errors::Error) -> Error {
    match error {
        pgp::errors::Error::Unsupported { .. } => {
            Error::Unsupported("it is of a kind that is not known here")
        }
        _ => Error::Malformed("its parts are not what they should be"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_of_both_forms() {
        let packet = |octets: &[u8]| {
            let mut rest = octets;
            let (header, body) = next(&mut rest)?;
            Ok::<_, Error>((u8::from(header.tag()), body.len(), rest.len()))
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
    }
}
