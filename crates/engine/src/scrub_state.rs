//! What is known of scrubs: the pass under way, the last one, the damage that was told.
//!
//! It is kept in the spool's file `scrub`, so that a pass goes on where it was after a restart and no damage is told twice.
//! It is a hint: where it is lost or damaged, the next pass begins at the beginning.  `docs/formats/spool.md` has the layout.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::ops::Range;
use std::path::Path;

use newsreel_host::{Disk, ErrorKind, read_whole, replace_file};
use newsreel_wire::{BufferId, Position, TokenText, UnixTime};

/// The file's name in the spool.
const FILE: &str = "scrub";
/// The first line: these words, and the crc32c of all lines behind it, hexadecimal.
const WORDS: &str = "newsreel scrub 1 ";
/// So many damaged places are kept in mind, so that each is told once.
pub const KNOWN_MAX: usize = 1000;
/// A line for each of them, as many of what buffers lack, one for each of 65,535 buffers, and two more.
const OCTETS_MAX: usize = 2 * 128 * KNOWN_MAX + (4 << 20);

/// What a pass has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Tally {
    /// Articles that were compared.
    pub(crate) articles: u64,
    /// Octets that were read.
    pub(crate) octets: u64,
    /// Buffers that could not be read to their ends.
    pub(crate) unreadable: u64,
}

/// A pass under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UnderWay {
    pub(crate) began: UnixTime,
    /// How far it is; none at its beginning.
    pub(crate) at: Option<(BufferId, Position)>,
    pub(crate) tally: Tally,
}

/// A pass that came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) began: UnixTime,
    pub(crate) ended: UnixTime,
    pub(crate) tally: Tally,
}

/// What is known of scrubs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ScrubState {
    /// Counts the passes.
    pub(crate) pass: u64,
    pub(crate) under_way: Option<UnderWay>,
    pub(crate) last: Option<Done>,
    /// Damaged places, each with the pass that met it last.
    pub(crate) known: BTreeMap<(BufferId, Position), u64>,
    /// Where buffers went on behind a log that was too old: of what lies before only the bitmaps may know that it was withdrawn.
    pub(crate) distrusted: BTreeMap<BufferId, Position>,
    /// What buffers lack that were put back as they had been before: where each stretch begins, and where it ends.
    pub(crate) lacking: BTreeMap<(BufferId, Position), Position>,
}

impl ScrubState {
    /// Reads what was kept.
    pub(crate) fn load(disk: &dyn Disk, spool: &Path) -> Self {
        match read_whole(disk, &spool.join(FILE), OCTETS_MAX) {
            Ok(octets) => parse(&octets).unwrap_or_else(|| {
                tracing::warn!(
                    "what the last scrub noted is damaged; the next one begins at the beginning"
                );
                Self::default()
            }),
            Err(error) => {
                if error.kind() != ErrorKind::NotFound {
                    tracing::warn!(%error, "what the last scrub noted cannot be read");
                }
                Self::default()
            }
        }
    }

    /// Keeps it.
    pub(crate) fn save(&self, disk: &dyn Disk, spool: &Path) {
        if let Err(error) = replace_file(disk, &spool.join(FILE), print(self).as_bytes()) {
            tracing::warn!(%error, "how far the scrub is cannot be noted");
        }
    }

    /// A start found the log too old, and the buffer goes on here.
    pub(crate) fn distrust(&mut self, buffer: BufferId, before: Position) {
        let known = self.distrusted.entry(buffer).or_default();
        *known = before.max(*known);
    }

    /// A start found that the buffer lacks this; whether that is news.
    pub(crate) fn lacks(&mut self, buffer: BufferId, stretch: Range<Position>) -> bool {
        let is_full = self.lacking.len() >= KNOWN_MAX;
        let end = match self.lacking.entry((buffer, stretch.start)) {
            Entry::Vacant(_) if is_full => return false,
            entry => entry.or_default(),
        };
        let is_news = stretch.end > *end;
        *end = stretch.end.max(*end);
        is_news
    }

    /// Whether the bitmap of a buffer may know better than the history what was withdrawn there.
    pub(crate) fn is_distrusted(&self, buffer: BufferId, at: Position) -> bool {
        let before = self.distrusted.get(&buffer);
        before.is_some_and(|before| at < *before)
    }

    /// Whether a pass is to begin, or to go on.  A clock that went back knows nothing of the last one.
    pub(crate) fn is_due(&self, now: UnixTime, every_s: u64) -> bool {
        self.under_way.is_some()
            || self.last.is_none_or(|last| {
                let age_s = now.0.checked_sub(last.began.0);
                age_s.is_none_or(|age_s| age_s >= every_s)
            })
    }

    /// A pass begins, unless one is under way.
    pub(crate) fn begin(&mut self, now: UnixTime) -> UnderWay {
        let pass = &mut self.pass;
        *self.under_way.get_or_insert_with(|| {
            *pass += 1;
            UnderWay {
                began: now,
                at: None,
                tally: Tally::default(),
            }
        })
    }

    /// A pass begins, also where one is under way.
    pub(crate) fn begin_anew(&mut self, now: UnixTime) {
        self.under_way = None;
        self.begin(now);
    }

    /// The pass has seen everything: what it did not meet any more is gone.
    pub(crate) fn end(&mut self, now: UnixTime) {
        let pass = self.pass;
        self.known.retain(|_, met| *met == pass);
        self.last = self.under_way.take().map(|pass| Done {
            began: pass.began,
            ended: now,
            tally: pass.tally,
        });
    }

    /// Damage was met; whether it had not been before.
    pub(crate) fn found(&mut self, place: (BufferId, Position)) -> bool {
        if !self.known.contains_key(&place) && self.known.len() >= KNOWN_MAX {
            return false;
        }
        self.known.insert(place, self.pass).is_none()
    }

    /// A stretch of a buffer was looked at, and this is all the damage in it: what else was known there is no more.
    pub(crate) fn seen(
        &mut self,
        buffer: BufferId,
        stretch: Range<Position>,
        met: &BTreeSet<Position>,
    ) {
        self.known
            .retain(|(of, at), _| *of != buffer || !stretch.contains(at) || met.contains(at));
    }
}

fn print(state: &ScrubState) -> String {
    let mut out = format!("pass {}\n", state.pass);
    let tally = |tally: &Tally| {
        let Tally {
            articles,
            octets,
            unreadable,
        } = tally;
        format!("{articles} {octets} {unreadable}")
    };
    if let Some(pass) = &state.under_way {
        let at = pass.at.unwrap_or_default();
        let (began, tally) = (pass.began.0, tally(&pass.tally));
        let _ = writeln!(out, "under-way {began} {} {tally}", place(at));
    }
    if let Some(last) = &state.last {
        let (began, ended, tally) = (last.began.0, last.ended.0, tally(&last.tally));
        let _ = writeln!(out, "last {began} {ended} {tally}");
    }
    for (buffer, before) in &state.distrusted {
        let _ = writeln!(out, "distrusted {}", place((*buffer, *before)));
    }
    for (at, end) in &state.lacking {
        let _ = writeln!(out, "lacks {} {}", place(*at), place((at.0, *end)));
    }
    for (at, pass) in &state.known {
        let _ = writeln!(out, "damaged {} {pass}", place(*at));
    }
    let crc = crc32c::crc32c(out.as_bytes());
    format!("{WORDS}{crc:08x}\n{out}")
}

/// A place as it is written: a token with the buffer's id for its name.
fn place((buffer, position): (BufferId, Position)) -> String {
    let name = buffer.0.to_string();
    TokenText {
        name: &name,
        position,
    }
    .to_string()
}

fn parse_place(text: &str) -> Option<(BufferId, Position)> {
    let text = TokenText::parse(text).ok()?;
    Some((BufferId(text.name.parse().ok()?), text.position))
}

fn parse(octets: &[u8]) -> Option<ScrubState> {
    let text = std::str::from_utf8(octets).ok()?;
    let (crc, lines) = text.strip_prefix(WORDS)?.split_once('\n')?;
    if u32::from_str_radix(crc, 16).ok()? != crc32c::crc32c(lines.as_bytes()) {
        return None;
    }
    let mut state = ScrubState::default();
    for line in lines.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words.get(at)?.parse::<u64>().ok();
        let tally = || {
            Some(Tally {
                articles: number(3)?,
                octets: number(4)?,
                unreadable: number(5)?,
            })
        };
        match *words.first()? {
            "pass" => state.pass = number(1)?,
            "under-way" => {
                let at = parse_place(words.get(2)?)?;
                state.under_way = Some(UnderWay {
                    began: UnixTime(number(1)?),
                    at: Some(at).filter(|at| *at != <(BufferId, Position)>::default()),
                    tally: tally()?,
                });
            }
            "last" => {
                state.last = Some(Done {
                    began: UnixTime(number(1)?),
                    ended: UnixTime(number(2)?),
                    tally: tally()?,
                });
            }
            "distrusted" => {
                let (buffer, before) = parse_place(words.get(1)?)?;
                state.distrusted.insert(buffer, before);
            }
            "lacks" if state.lacking.len() < KNOWN_MAX => {
                let (at, (buffer, end)) =
                    (parse_place(words.get(1)?)?, parse_place(words.get(2)?)?);
                if buffer != at.0 {
                    return None;
                }
                state.lacking.insert(at, end);
            }
            "damaged" if state.known.len() < KNOWN_MAX => {
                state.known.insert(parse_place(words.get(1)?)?, number(2)?);
            }
            _ => return None,
        }
    }
    Some(state)
}

/// Reads octets as the file, behind a right checksum; whether they are one.
pub(crate) fn again(octets: &[u8]) -> bool {
    let _ = parse(octets);
    let lines = String::from_utf8_lossy(octets);
    let crc = crc32c::crc32c(lines.as_bytes());
    let Some(state) = parse(format!("{WORDS}{crc:08x}\n{lines}").as_bytes()) else {
        return false;
    };
    let written = parse(print(&state).as_bytes());
    assert_eq!(
        written.as_ref(),
        Some(&state),
        "it is read as it was written"
    );
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(buffer: u16, offset: u64, cycle: u32) -> (BufferId, Position) {
        (BufferId(buffer), Position::new(cycle, offset))
    }

    #[test]
    fn what_is_kept_is_read_again() {
        let mut state = ScrubState::default();
        assert_eq!(parse(print(&state).as_bytes()), Some(state.clone()));
        state.begin(UnixTime(5));
        assert_eq!(parse(print(&state).as_bytes()), Some(state.clone()));
        if let Some(pass) = &mut state.under_way {
            pass.at = Some(at(1, 8192, 3));
            pass.tally.articles = 7;
        }
        state.found(at(2, 64, 1));
        let (buffer, before) = at(3, 4096, 2);
        state.distrust(buffer, before);
        state.distrust(buffer, Position::ZERO);
        assert!(
            !state.is_distrusted(buffer, before) && state.is_distrusted(buffer, at(3, 64, 2).1)
        );
        let stretch = at(4, 64, 1).1..at(4, 128, 1).1;
        assert!(state.lacks(BufferId(4), stretch.clone()) && !state.lacks(BufferId(4), stretch));
        state.last = Some(Done {
            began: UnixTime(1),
            ended: UnixTime(2),
            tally: Tally {
                articles: 1,
                octets: 2,
                unreadable: 3,
            },
        });
        let text = print(&state);
        assert!(text.contains("\nunder-way 5 1:2000:3 7 0 0\n"), "{text}");
        assert!(
            text.contains(
                "\nlast 1 2 1 2 3\ndistrusted 3:1000:2\nlacks 4:40:1 4:80:1\ndamaged 2:40:1 1\n"
            ),
            "{text}"
        );
        assert_eq!(parse(text.as_bytes()), Some(state));
        let rotten = text.replace("2:40:1", "2:80:1");
        assert_eq!(parse(rotten.as_bytes()), None);
        for other in ["", "newsreel scrub 2 00000000\n", "pass 1\n"] {
            assert_eq!(parse(other.as_bytes()), None, "{other:?}");
        }
    }

    #[test]
    fn damage_is_new_once_and_forgotten_when_a_pass_does_not_meet_it() {
        let mut state = ScrubState::default();
        assert!(state.is_due(UnixTime(10), 100));
        state.begin(UnixTime(10));
        assert!(state.found(at(1, 64, 1)) && !state.found(at(1, 64, 1)));
        assert!(state.found(at(1, 128, 1)));
        state.end(UnixTime(20));
        assert!(!state.is_due(UnixTime(109), 100) && state.is_due(UnixTime(110), 100));
        assert!(state.is_due(UnixTime(9), 100), "the clock went back");
        state.begin(UnixTime(110));
        assert!(state.is_due(UnixTime(111), 100), "it goes on");
        assert!(!state.found(at(1, 64, 1)));
        state.end(UnixTime(120));
        assert!(state.found(at(1, 128, 1)));
        // Who looks in between and meets one of three has them forget what is in the stretch and was not met.
        assert!(state.found(at(1, 256, 1)) && state.found(at(2, 128, 1)));
        let stretch = Position::new(1, 64)..Position::new(1, 256);
        state.seen(
            BufferId(1),
            stretch,
            &BTreeSet::from([Position::new(1, 64)]),
        );
        let left: Vec<_> = state.known.keys().copied().collect();
        assert_eq!(left, [at(1, 64, 1), at(1, 256, 1), at(2, 128, 1)]);
        for n in 0..2 * KNOWN_MAX as u64 {
            state.found(at(3, 64 * n, 1));
            state.lacks(BufferId(3), at(3, 64 * n, 1).1..at(3, 64 * n, 2).1);
        }
        assert_eq!(
            (state.known.len(), state.lacking.len()),
            (KNOWN_MAX, KNOWN_MAX)
        );
        assert!(print(&state).len() < OCTETS_MAX);
    }
}
