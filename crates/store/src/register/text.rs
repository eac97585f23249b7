//! The text that a register is written as: a line that says its version and checksum, then one for each buffer.

use std::fmt::Write as _;
use std::path::PathBuf;

use newsreel_wire::BufferId;

use super::{Entry, Standing};

/// The first line of version 1, which had no checksum.
const FIRST_LINE_1: &str = "newsreel buffers 1";
/// The first line of every later one: these words, the version, and the crc32c of all lines behind it, hexadecimal.
pub(super) const WORDS: &str = "newsreel buffers ";
const VERSION: u32 = 5;
/// As long as no set has a mark in its directory.
const VERSION_OF_UUIDS: u32 = 4;
/// As long as no line has a UUID, either.
const VERSION_OF_WORDS: u32 = 3;
/// As long as no buffer has one of the words that version 3 brought.
const VERSION_PLAIN: u32 = 2;
/// In front of the UUID of a buffer's files.
const UUID: &str = "uuid=";
/// Behind it, where the directory of a set has a mark.
const MARKED: &str = "marked";

impl Standing {
    /// Behind the name.
    const WORDS: [(Self, &str); 3] = [
        (Self::Retired, " retired"),
        (Self::Drained, " drained"),
        (Self::Dropped, " dropped"),
    ];

    /// Version 3 brought it.
    const fn is_late(self) -> bool {
        matches!(self, Self::Retired | Self::Drained)
    }
}

pub(super) fn print(entries: &[Entry]) -> String {
    let mut out = String::new();
    for entry in entries {
        let mut words = Standing::WORDS.iter();
        let word = words.find(|(standing, _)| *standing == entry.standing);
        let word = word.map_or("", |(_, word)| word);
        let digits = |uuid: &[u8; 16]| uuid.iter().map(|octet| format!("{octet:02x}")).collect();
        let uuid: Option<String> = entry.uuid.as_ref().map(digits);
        let uuid = uuid.map_or_else(String::new, |digits| format!(" {UUID}{digits}"));
        let (id, method, name) = (entry.id, &entry.method, &entry.name);
        let marked = match entry.is_marked {
            true => format!(" {MARKED}"),
            false => String::new(),
        };
        let _ = writeln!(out, "{id} {method} {name}{uuid}{marked}{word}");
    }
    let crc = crc32c::crc32c(out.as_bytes());
    let has_uuid = entries.iter().any(|entry| entry.uuid.is_some());
    let version = match entries.iter().any(|entry| entry.standing.is_late()) {
        _ if entries.iter().any(|entry| entry.is_marked) => VERSION,
        _ if has_uuid => VERSION_OF_UUIDS,
        true => VERSION_OF_WORDS,
        false => VERSION_PLAIN,
    };
    format!("{WORDS}{version} {crc:08x}\n{out}")
}

/// The version of a sound text, and the lines behind the first.
fn opened(text: &[u8]) -> Option<(u32, &str)> {
    let (first, rest) = std::str::from_utf8(text).ok()?.split_once('\n')?;
    if first == FIRST_LINE_1 {
        return Some((1, rest));
    }
    let (version, crc) = first.strip_prefix(WORDS)?.split_once(' ')?;
    let crc = u32::from_str_radix(crc, 16).ok()?;
    (crc == crc32c::crc32c(rest.as_bytes())).then_some((version.parse().ok()?, rest))
}

/// Whether it is of the version that had neither checksum nor copy.
pub(super) fn is_first_version(text: &[u8]) -> bool {
    opened(text).is_some_and(|(version, _)| version == 1) && parse(text).is_some()
}

/// Whether it is of a later version, and not merely damaged.
pub(super) fn is_newer(text: &[u8]) -> bool {
    opened(text).is_some_and(|(version, _)| version > VERSION)
}

pub(super) fn parse(text: &[u8]) -> Option<Vec<Entry>> {
    let (version, rest) = opened(text).filter(|(version, _)| (1..=VERSION).contains(version))?;
    if !rest.is_empty() && !rest.ends_with('\n') {
        return None;
    }
    let lines = rest.split_terminator('\n');
    lines.map(|line| entry(line, version)).collect()
}

/// The buffer of which a line tells.
fn entry(line: &str, version: u32) -> Option<Entry> {
    let mut words = Standing::WORDS.iter();
    let word = words.find_map(|(standing, word)| Some((line.strip_suffix(word)?, *standing)));
    let (line, standing) = word.unwrap_or((line, Standing::InUse));
    if standing.is_late() && version < VERSION_OF_WORDS {
        return None;
    }
    let mut words = line.split(' ');
    let mut entry = Entry {
        id: BufferId(words.next()?.parse().ok()?),
        method: words.next()?.to_owned(),
        name: words.next()?.to_owned(),
        uuid: None,
        is_marked: false,
        standing,
    };
    let mut word = words.next();
    if let Some(digits) = word.and_then(|word| word.strip_prefix(UUID)) {
        entry.uuid = Some(octets_of(digits).filter(|_| version >= VERSION_OF_UUIDS)?);
        word = words.next();
    }
    if let Some(marked) = word {
        entry.is_marked = marked == MARKED && version >= VERSION;
        if !entry.is_marked {
            return None;
        }
    }
    words.next().is_none().then_some(entry)
}

/// The buffers of which two damaged registers have the same line: that was written so.
pub(super) fn said_alike(damaged: &[(PathBuf, Vec<u8>)]) -> Vec<Entry> {
    let [(_, first), (_, second)] = damaged else {
        return Vec::new();
    };
    let lines = |text: &'_ [u8]| -> Vec<Vec<u8>> {
        let whole = text.split_inclusive(|octet| *octet == b'\n');
        whole.map(<[u8]>::to_vec).collect()
    };
    let (first, second) = (lines(first), lines(second));
    let mut alike: Vec<Entry> = Vec::new();
    for line in first.iter().filter(|line| second.contains(line)) {
        let text = line.strip_suffix(b"\n");
        let text = text.and_then(|line| std::str::from_utf8(line).ok());
        let Some(entry) = text.and_then(|line| entry(line, VERSION)) else {
            continue;
        };
        if alike
            .iter()
            .all(|one| one.id != entry.id && one.name != entry.name)
        {
            alike.push(entry);
        }
    }
    alike
}

/// The octets that these 32 digits say.
fn octets_of(digits: &str) -> Option<[u8; 16]> {
    let mut octets = [0; 16];
    let is_hex = digits.len() == 32 && digits.bytes().all(|octet| octet.is_ascii_hexdigit());
    for (octet, at) in octets.iter_mut().zip((0..).step_by(2)) {
        let two = digits.get(at..at + 2).filter(|_| is_hex)?;
        *octet = u8::from_str_radix(two, 16).ok()?;
    }
    Some(octets)
}

/// Reads a register and what it is written as; how many buffers it has.
pub(crate) fn again(text: &[u8]) -> Option<usize> {
    let entries = parse(text)?;
    let written = parse(print(&entries).as_bytes());
    assert_eq!(
        written.as_ref(),
        Some(&entries),
        "a register is read as it was written"
    );
    Some(entries.len())
}
