//! Armor: octets as lines of base64 (RFC 9580 section 6).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::error::Error;

/// A file of keys is no larger, octets.
pub const BLOCK_OCTETS_MAX: usize = 4 << 20;

const BEGIN: &str = "-----BEGIN PGP PUBLIC KEY BLOCK-----";
const END: &str = "-----END PGP PUBLIC KEY BLOCK-----";

/// The octets of lines of base64 without their frame, with or without the checksum behind them.
///
/// # Errors
/// When they are no base64.
pub fn signature_block(text: &[u8]) -> Result<Vec<u8>, Error> {
    let mut plain: Vec<u8> = text.to_vec();
    plain.retain(|octet| !octet.is_ascii_whitespace());
    // The checksum guards against nothing that a signature does not.
    if let Some((before, [b'=', sum @ ..])) = plain.split_last_chunk::<5>()
        && !sum.contains(&b'=')
    {
        plain.truncate(before.len());
    }
    STANDARD
        .decode(&plain)
        .map_err(|_| Error::Malformed("it is not base64"))
}

/// The octets of all public keys in a file: armored, one block or many with any text between them, or as they are.
pub(crate) fn key_blocks(octets: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
    if octets.len() > BLOCK_OCTETS_MAX {
        return Err(Error::Unsupported("it is too large for a file of keys"));
    }
    if octets.first().is_some_and(|first| first & 0x80 != 0) {
        return Ok(vec![octets.to_vec()]);
    }
    let text = String::from_utf8_lossy(octets);
    let mut blocks = Vec::new();
    let mut lines = text.lines().map(str::trim);
    while lines.any(|line| line == BEGIN) {
        let mut inside = Vec::new();
        let mut has_end = false;
        for line in lines.by_ref() {
            has_end = line == END;
            if has_end {
                break;
            }
            inside.push(line);
        }
        if !has_end {
            return Err(Error::Malformed("a block of keys has no end"));
        }
        // Fields and an empty line come first; old programs left the empty line out where there was no field.
        let head = inside.iter().position(|line| line.is_empty());
        let body = inside
            .get(head.map_or(0, |at| at + 1)..)
            .unwrap_or_default();
        blocks.push(signature_block(body.concat().as_bytes())?);
    }
    match blocks.is_empty() {
        true => Err(Error::Malformed("there is no block of public keys in it")),
        false => Ok(blocks),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_found_among_text() {
        let block = |head: &str| format!("{BEGIN}\n{head}AQID\n=abcd\n{END}\n");
        let text = format!("hello\n{}and\r\n{}", block("Version: x\n\n"), block("\n"));
        assert_eq!(
            key_blocks(text.as_bytes()),
            Ok(vec![vec![1, 2, 3], vec![1, 2, 3]])
        );
        assert_eq!(key_blocks(block("").as_bytes()), Ok(vec![vec![1, 2, 3]]));
        assert_eq!(key_blocks(&[0x99, 1]), Ok(vec![vec![0x99, 1]]));
        for bad in [&b""[..], b"hello", BEGIN.as_bytes()] {
            assert!(key_blocks(bad).is_err(), "{bad:?}");
        }
        assert!(key_blocks(&vec![b' '; BLOCK_OCTETS_MAX + 1]).is_err());
    }

    #[test]
    fn a_checksum_is_told_from_what_it_is_of() {
        for (text, octets) in [
            ("AQID =abcd", Ok(vec![1, 2, 3])),
            ("AQ\n ID", Ok(vec![1, 2, 3])),
            ("AQI= =abcd", Ok(vec![1, 2])),
            ("AQ==\t=abcd", Ok(vec![1])),
            ("AQ==", Ok(vec![1])),
            ("AQI=", Ok(vec![1, 2])),
            ("A*ID", Err(Error::Malformed("it is not base64"))),
        ] {
            assert_eq!(signature_block(text.as_bytes()), octets, "{text}");
        }
    }
}
