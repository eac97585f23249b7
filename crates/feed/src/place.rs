//! How far a feed has come: everything before a sequence was looked at, and of that a few articles are not settled.
//!
//! The file `feeds` in the spool keeps the places of all feeds; it is replaced whole.  A place that is lost costs offers of what the
//! peer has; one that is older than the truth as well.  It is never ahead of the truth: what a peer has not answered is in it.
//! `docs/formats/spool.md` has the layout.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;

use newsreel_host::sealed;
use newsreel_wire::Sequence;

use crate::noted::Kind;

/// A feed's place in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// Everything before this was looked at.
    pub(crate) next: Sequence,
    /// What of it goes out and is not settled.
    pub(crate) open: BTreeSet<Sequence>,
    /// Of that, by message-id, what may be in the log no longer.
    pub(crate) named: BTreeMap<Sequence, Box<str>>,
    /// What before `next` was passed over for now, from one sequence to before another, ascending: it is looked at later.
    pub(crate) behind: Vec<(Sequence, Sequence)>,
    pub(crate) missed: Missed,
}

/// What a feed missed since it began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Missed {
    pub(crate) many: u64,
    /// The newest, by message-id.
    pub(crate) ids: VecDeque<Box<str>>,
}

impl Missed {
    const NONE: Self = Self {
        many: 0,
        ids: VecDeque::new(),
    };
}

impl Place {
    /// Nothing before this goes out.
    pub(crate) const fn at(next: Sequence) -> Self {
        Self {
            next,
            open: BTreeSet::new(),
            named: BTreeMap::new(),
            behind: Vec::new(),
            missed: Missed::NONE,
        }
    }

    /// Nothing before this goes out any more, and what was missed stays.
    pub(crate) fn goes_on_at(&self, next: Sequence) -> Self {
        let missed = self.missed.clone();
        Self {
            missed,
            ..Self::at(next)
        }
    }

    /// What is open and cannot be found without the log, ascending.
    pub(crate) fn open_in_log(&self) -> impl Iterator<Item = Sequence> {
        let open = self.open.iter().copied();
        open.filter(|sequence| self.is_open_in_log(*sequence))
    }

    /// Whether an article is open and cannot be found without the log.
    pub(crate) fn is_open_in_log(&self, sequence: Sequence) -> bool {
        self.open.contains(&sequence) && !self.named.contains_key(&sequence)
    }

    /// From where on the log is needed.
    pub(crate) fn needs_from(&self) -> Sequence {
        let behind = self.behind.first().map(|(from, _)| *from);
        let first = self.open_in_log().next().into_iter().chain(behind);
        first.fold(self.next, Sequence::min)
    }

    /// Everything before this is settled.
    pub(crate) fn settled_before(&self) -> Sequence {
        let open = self.open.first().copied();
        open.map_or(self.needs_from(), |open| open.min(self.needs_from()))
    }

    /// Sequences before `next` that are still to be looked at.
    pub(crate) fn passed_over(&self) -> u64 {
        let stretches = self.behind.iter();
        stretches
            .map(|(from, to)| to.0.saturating_sub(from.0))
            .sum()
    }
}

/// What the file is.
pub(crate) const KIND: Kind = Kind {
    words: "newsreel feeds ",
    version: 2,
    says: "how far the feeds are",
    without: "a feed begins at the end of the log, and what waited for it is not sent",
    damaged: "all that is in the log is offered again",
};
/// How it begins.
const WORDS: &str = "newsreel feeds 2 ";
/// The same of those that know neither names nor what was missed.
const WORDS_1: &str = "newsreel feeds 1 ";
/// In front of how many were missed, and of each that is named.
const MISSED: &str = "missed=";

/// The places as the file has them.
pub(crate) fn print(places: &BTreeMap<String, Place>) -> String {
    print_with(places, true)
}

/// The same, without message-ids of what is open where it would have more octets with them: that is looked for in the log then.
pub(crate) fn print_within(places: &BTreeMap<String, Place>, octets_max: usize) -> String {
    let whole = print(places);
    match whole.len() <= octets_max {
        true => whole,
        false => print_with(places, false),
    }
}

fn print_with(places: &BTreeMap<String, Place>, names_open: bool) -> String {
    let mut lines = String::new();
    for (name, place) in places {
        let _ = write!(lines, "{name} {}", place.next.0);
        for sequence in &place.open {
            let named = place.named.get(sequence).filter(|_| names_open);
            let id = named.map_or("", |id| id);
            let _ = write!(lines, " {}{id}", sequence.0);
        }
        for (from, to) in &place.behind {
            let _ = write!(lines, " {}-{}", from.0, to.0);
        }
        if place.missed != Missed::NONE {
            let _ = write!(lines, " {MISSED}{}", place.missed.many);
        }
        for id in &place.missed.ids {
            let _ = write!(lines, " {MISSED}{id}");
        }
        lines.push('\n');
    }
    sealed::first_line(WORDS, lines.as_bytes()) + &lines
}

/// These lines behind a right checksum.
pub(crate) fn made(lines: &[u8]) -> Vec<u8> {
    sealed::seal(WORDS, lines)
}

/// Reads what [`print()`] made.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn parse(octets: &[u8]) -> Result<BTreeMap<String, Place>, String> {
    let (_, lines) = sealed::unseal(octets, &[WORDS, WORDS_1], "it is no file of feeds' places")?;
    let places = lines
        .lines()
        .map(|line| parse_line(line).ok_or_else(|| format!("{line:?} is no place of a feed")));
    places.collect()
}

fn parse_line(line: &str) -> Option<(String, Place)> {
    let mut words = line.split(' ');
    let name = words.next().filter(|name| !name.is_empty())?;
    let number = |word: &str| word.parse().ok().map(Sequence);
    let mut place = Place::at(number(words.next()?)?);
    for word in words {
        match word.strip_prefix(MISSED) {
            Some(id) if id.starts_with('<') => place.missed.ids.push_back(id.into()),
            Some(many) => place.missed.many = many.parse().ok()?,
            None => parse_word(word, &mut place)?,
        }
    }
    Some((name.to_owned(), place))
}

/// An article that is open, or a stretch.
fn parse_word(word: &str, place: &mut Place) -> Option<()> {
    let number = |word: &str| word.parse().ok().map(Sequence);
    let (numbers, id) = word.split_at(word.find('<').unwrap_or(word.len()));
    match numbers.split_once('-') {
        Some((from, to)) if id.is_empty() => place.behind.push((number(from)?, number(to)?)),
        Some(_) => return None,
        None => {
            let sequence = number(numbers)?;
            place.open.insert(sequence);
            if !id.is_empty() {
                place.named.insert(sequence, id.into());
            }
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_damaged_file_is_told() {
        let places = BTreeMap::from([("b.example/all".to_owned(), Place::at(Sequence(7)))]);
        let text = print(&places);
        assert_eq!(text, "newsreel feeds 2 16e33b01\nb.example/all 7\n");
        assert_eq!(parse(text.as_bytes()), Ok(places.clone()));
        let older = text.replace("feeds 2", "feeds 1");
        assert_eq!(parse(older.as_bytes()), Ok(places));
        let first = b"newsreel feeds 1 bd852104\nb.example/all 7 3 5-6\n";
        let first = parse(first).map(|it| it["b.example/all"].needs_from());
        assert_eq!(first, Ok(Sequence(3)));
        for (from, to) in [("7\n", "8\n"), ("feeds 2", "feeds 3"), ("all 7\n", "all")] {
            assert!(parse(text.replace(from, to).as_bytes()).is_err(), "{to:?}");
        }
    }

    /// A file that was larger than what is read at a start was taken for damaged.
    #[test]
    fn no_file_is_larger_than_what_is_read() {
        let mut place = Place::at(Sequence(7));
        place.open = [2, 3].map(Sequence).into();
        place.named = BTreeMap::from([(Sequence(3), "<3@x>".into())]);
        let mut places = BTreeMap::from([("b.example/all".to_owned(), place)]);
        let whole = print(&places);
        assert_eq!(print_within(&places, whole.len()), whole);
        let without = print_within(&places, whole.len() - 1);
        if let Some(place) = places.get_mut("b.example/all") {
            place.named.clear();
        }
        assert_eq!(parse(without.as_bytes()), Ok(places));
    }

    /// Next; open, and whether it is named; behind; missed, and of that named.
    type Numbers = (u64, BTreeMap<u64, bool>, Vec<(u64, u64)>, (u64, u8));

    proptest! {
        #[test]
        fn prop_places_round_trip(all: BTreeMap<u8, Numbers>) {
            let named = |(n, is_named): (&u64, &bool)| is_named.then(|| (Sequence(*n), format!("<{n}-x@y>").into()));
            let place = |(next, open, behind, (many, ids)): Numbers| Place {
                next: Sequence(next),
                named: open.iter().filter_map(named).collect(),
                open: open.into_keys().map(Sequence).collect(),
                behind: behind.into_iter().map(|(from, to)| (Sequence(from), Sequence(to))).collect(),
                missed: Missed { many, ids: (0..ids).map(|n| format!("<{n}-=x@y>").into()).collect() },
            };
            let places: BTreeMap<_, _> = all.into_iter().map(|(n, it)| (format!("p/{n}"), place(it))).collect();
            prop_assert_eq!(parse(print(&places).as_bytes()), Ok(places));
        }

        #[test]
        fn prop_no_file_is_a_defect(rest in "[a-z0-9 \n<>-]{0,60}", any: Vec<u8>) {
            let _ = parse(&any);
            let _ = parse(&made(rest.as_bytes()));
        }
    }
}
