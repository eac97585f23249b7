//! The file of networks where somebody has logged in; see `docs/formats/logins.md`.

use std::fmt::Write as _;

use newsreel_host::sealed::{first_line, seal, unseal};

use super::known::KNOWN_MAX;

/// What the file begins with, version included: the second has how slow a program was.
const MAGIC: &str = "newsreel logins 1 ";
const MAGIC_SLOWEST: &str = "newsreel logins 2 ";

/// In front of the key, in the second line.
const SECRET: &str = "secret\t";

/// In front of the print of a program and its milliseconds, in the third line of version 2.
const SLOWEST: &str = "slowest\t";

/// Digits of a print, and of a line of two.
const DIGITS: usize = 16;
const ROW_OCTETS: usize = 2 * DIGITS + 2;

/// The file is no larger, octets.
pub(crate) const FILE_OCTETS_MAX: usize = 256 + KNOWN_MAX * ROW_OCTETS;

/// A user has logged in from a network: prints of both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Row {
    pub(crate) user: u64,
    pub(crate) network: u64,
}

/// How slow a program was lately: a print of it, and milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slowest {
    pub(crate) program: u64,
    pub(crate) ms: u64,
}

/// What a file has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Contents {
    /// The key of the prints.
    pub(crate) secret: [u8; 32],
    pub(crate) slowest: Option<Slowest>,
    /// In the order of their last logins.
    pub(crate) rows: Vec<Row>,
}

/// The text of a file.
pub(crate) fn encode(contents: &Contents) -> String {
    let mut rows = SECRET.to_owned();
    for octet in contents.secret {
        let _ = write!(rows, "{octet:02x}");
    }
    rows.push('\n');
    if let Some(Slowest { program, ms }) = contents.slowest {
        let _ = writeln!(rows, "{SLOWEST}{program:016x}\t{ms:016x}");
    }
    for Row { user, network } in &contents.rows {
        let _ = writeln!(rows, "{user:016x}\t{network:016x}");
    }
    let magic = match contents.slowest {
        None => MAGIC,
        Some(_) => MAGIC_SLOWEST,
    };
    format!("{}{rows}", first_line(magic, rows.as_bytes()))
}

/// Octets behind the first line that belongs to them, in either version.
pub(crate) fn sealed(rows: &[u8]) -> [Vec<u8>; 2] {
    [MAGIC, MAGIC_SLOWEST].map(|magic| seal(magic, rows))
}

/// Reads the text of a file.
///
/// # Errors
/// The line, counted from 1, and what is wrong there.
pub(crate) fn decode(octets: &[u8]) -> Result<Contents, (usize, &'static str)> {
    let other = "it is no file of logins of version 1 or 2";
    let magics = [MAGIC, MAGIC_SLOWEST];
    let (version, rows) = unseal(octets, &magics, other).map_err(|why| (1, why))?;
    let mut rows = (2..).zip(rows.split_terminator('\n'));
    let key = rows.next().and_then(|(_, line)| line.strip_prefix(SECRET));
    let secret = key.and_then(key_of).ok_or((2, "the secret is malformed"))?;
    let slowest = match version {
        0 => None,
        _ => {
            let line = rows.next().and_then(|(_, line)| line.strip_prefix(SLOWEST));
            let slowest = line.and_then(row_of).map(|row| Slowest {
                program: row.user,
                ms: row.network,
            });
            Some(slowest.ok_or((3, "the slowest answer is malformed"))?)
        }
    };
    let row = |(line, row): (usize, &str)| row_of(row).ok_or((line, "it is not two prints"));
    let rows = rows.map(row).collect::<Result<_, _>>()?;
    Ok(Contents {
        secret,
        slowest,
        rows,
    })
}

const fn is_digit(octet: u8) -> bool {
    octet.is_ascii_digit() || matches!(octet, b'a'..=b'f')
}

fn number(digits: &str) -> Option<u64> {
    let is_number = digits.len() == DIGITS && digits.bytes().all(is_digit);
    is_number.then(|| u64::from_str_radix(digits, 16).ok())?
}

fn row_of(row: &str) -> Option<Row> {
    let (user, network) = row.split_once('\t')?;
    Some(Row {
        user: number(user)?,
        network: number(network)?,
    })
}

fn key_of(digits: &str) -> Option<[u8; 32]> {
    let mut key = [0; 32];
    if digits.len() != 2 * key.len() || !digits.bytes().all(is_digit) {
        return None;
    }
    for (at, octet) in key.iter_mut().enumerate() {
        let pair = digits.get(2 * at..2 * at + 2)?;
        *octet = u8::from_str_radix(pair, 16).ok()?;
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Contents {
        let row = |user, network| Row { user, network };
        Contents {
            secret: std::array::from_fn(|at| at as u8),
            slowest: None,
            rows: vec![row(0x1f, u64::MAX), row(7, 0)],
        }
    }

    #[test]
    fn the_file_is_as_its_page_says() {
        let text = encode(&some());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[1..],
            [
                "secret\t000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
                "000000000000001f\tffffffffffffffff",
                "0000000000000007\t0000000000000000",
            ]
        );
        assert_eq!(lines[0].len(), MAGIC.len() + 8);
        assert_eq!(decode(text.as_bytes()), Ok(some()));
        assert!(text.len() <= FILE_OCTETS_MAX);
        let slow = Contents {
            slowest: Some(Slowest {
                program: 9,
                ms: 1_500,
            }),
            ..some()
        };
        let text = encode(&slow);
        assert!(text.starts_with("newsreel logins 2 "));
        let third = text.lines().nth(2).unwrap();
        assert_eq!(third, "slowest\t0000000000000009\t00000000000005dc");
        assert_eq!(decode(text.as_bytes()), Ok(slow));
    }

    #[test]
    fn damage_is_told_with_its_line() {
        let text = encode(&some());
        let damaged = |octets: &[u8]| decode(octets).unwrap_err();
        assert_eq!(damaged(b""), (1, "it has no first line"));
        assert_eq!(damaged(b"\xff\n"), (1, "it is not UTF-8"));
        let flipped = text.replace("secret", "secreu");
        assert_eq!(damaged(flipped.as_bytes()), (1, "the checksum is wrong"));
        let later = text.replace("logins 1", "logins 2");
        assert_eq!(
            damaged(later.as_bytes()),
            (3, "the slowest answer is malformed")
        );
        let later = text.replace("logins 1", "logins 3");
        assert_eq!(
            damaged(later.as_bytes()),
            (1, "it is no file of logins of version 1 or 2")
        );
        let (_, rows) = text.split_once('\n').unwrap();
        for (rows, why) in [
            (rows.trim_end().to_owned(), (1, "the last line has no end")),
            (rows.replace("0001", "+001"), (2, "the secret is malformed")),
            (rows.replace("1e1f", "1e"), (2, "the secret is malformed")),
            (rows.replace("ffff", "FFFF"), (3, "it is not two prints")),
            (rows.replace("07\t", "07 "), (4, "it is not two prints")),
        ] {
            let [first, _] = sealed(rows.as_bytes());
            assert_eq!(damaged(&first), why, "{rows}");
        }
    }
}
