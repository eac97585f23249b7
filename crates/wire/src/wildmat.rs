//! Wildmats (RFC 3977 section 4): comma-separated patterns over group names, the last one that matches decides.
//!
//! `*` is any run of characters, `?` one character, `!` before a pattern excludes; beyond the RFC, `[a-z]`, `[^a-z]`, `\`
//! before a character, and in configs `@` before a pattern poisons: an article with one such group is refused whole.
//! A character is a UTF-8 code point.  Patterns are prepared once; matching never allocates and takes at most pattern
//! times text steps, whatever the pattern.

use std::sync::Arc;

use crate::error::WildmatError;

/// The most patterns one wildmat may have.
pub const WILDMAT_PATTERNS_MAX: usize = 1000;

/// What a wildmat says of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The last matching pattern is a plain one.
    Match,
    /// No pattern matches, or the last matching one has `!`.
    NoMatch,
    /// The last matching pattern has `@`.
    Poison,
}

/// A prepared wildmat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wildmat {
    /// Last pattern first: the first that matches decides.
    patterns: Vec<(Verdict, Pattern)>,
    text: String,
    /// What a text must match besides.
    within: Option<Arc<Self>>,
}

/// One pattern; the common shapes need no general matcher.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Pattern {
    Any,
    Exact(String),
    Prefix(String),
    General(Vec<Item>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Item {
    One(char),
    AnyOne,
    AnyRun,
    Class {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
}

impl Wildmat {
    /// Reads a wildmat as configs have it: with `!` and `@`.
    ///
    /// # Errors
    /// When it is empty, a pattern is empty, a class is not closed, a backslash is last, or there are too many.
    pub fn parse(text: &str) -> Result<Self, WildmatError> {
        Self::parse_with(text, true)
    }

    /// Reads a wildmat as commands have it: `@` is a character like any other.
    ///
    /// # Errors
    /// As [`Wildmat::parse`], and when the octets are not UTF-8.
    pub fn parse_argument(argument: &[u8]) -> Result<Self, WildmatError> {
        let text = std::str::from_utf8(argument).map_err(|_| WildmatError::NotUtf8)?;
        Self::parse_with(text, false)
    }

    /// Reads one pattern as XPAT has it, for any text: commas and `!` are characters like any other.
    ///
    /// # Errors
    /// When the octets are not UTF-8, it is empty, a class is not closed, or a backslash is last.
    pub fn parse_text_pattern(argument: &[u8]) -> Result<Self, WildmatError> {
        let text = std::str::from_utf8(argument).map_err(|_| WildmatError::NotUtf8)?;
        let (pattern, _) = Pattern::parse(text, None)?;
        Ok(Self {
            patterns: vec![(Verdict::Match, pattern)],
            text: text.to_owned(),
            within: None,
        })
    }

    fn parse_with(text: &str, poison: bool) -> Result<Self, WildmatError> {
        let mut patterns = Vec::new();
        let mut rest = text;
        loop {
            let (verdict, pattern) = if let Some(pattern) = rest.strip_prefix('!') {
                (Verdict::NoMatch, pattern)
            } else if let Some(pattern) = rest.strip_prefix('@').filter(|_| poison) {
                (Verdict::Poison, pattern)
            } else {
                (Verdict::Match, rest)
            };
            let (pattern, after) = Pattern::parse(pattern, Some(','))?;
            if patterns.len() == WILDMAT_PATTERNS_MAX {
                return Err(WildmatError::TooMany);
            }
            patterns.push((verdict, pattern));
            let Some(after) = after else { break };
            rest = after;
        }
        patterns.reverse();
        Ok(Self {
            patterns,
            text: text.to_owned(),
            within: None,
        })
    }

    /// The same wildmat for whom only texts are there that `outer` matches.
    #[must_use]
    pub fn within(mut self, outer: &Self) -> Self {
        let outer = match self.within.take() {
            Some(before) => outer.clone().within(&before),
            None => outer.clone(),
        };
        self.within = (!outer.matches_all()).then(|| Arc::new(outer));
        self
    }

    /// What the wildmat says of `text`.
    #[must_use]
    pub fn verdict(&self, text: &str) -> Verdict {
        let decides = self
            .patterns
            .iter()
            .find(|(_, pattern)| pattern.matches(text));
        let verdict = decides.map_or(Verdict::NoMatch, |&(verdict, _)| verdict);
        match &self.within {
            Some(outer) if verdict == Verdict::Match => outer.verdict(text),
            _ => verdict,
        }
    }

    /// Whether the verdict is [`Verdict::Match`].
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        self.verdict(text) == Verdict::Match
    }

    /// Whether every text matches.
    #[must_use]
    pub fn matches_all(&self) -> bool {
        self.within.is_none() && self.patterns.first() == Some(&(Verdict::Match, Pattern::Any))
    }

    /// Whether this surely matches all that `other` matches; `false` where the patterns alone do not tell.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        if self.matches_all() || self == other {
            return true;
        }
        let own = || self.patterns.iter();
        let takes_nothing_out =
            self.within.is_none() && own().all(|(verdict, _)| *verdict == Verdict::Match);
        let mut others = other.patterns.iter();
        others.all(|(verdict, pattern)| match pattern {
            _ if *verdict != Verdict::Match => true,
            Pattern::Exact(text) => self.matches(text),
            _ => takes_nothing_out && own().any(|(_, own)| own.covers(pattern)),
        })
    }

    /// Whether `others` together surely match all that this one matches; `false` where the patterns alone do not tell.
    #[must_use]
    pub fn is_covered(&self, others: &[&Self]) -> bool {
        if others.iter().any(|other| other.covers(self)) {
            return true;
        }
        let all = || std::iter::once(self).chain(others.iter().copied());
        let is_plain = |(_, pattern): &(Verdict, Pattern)| !matches!(pattern, Pattern::General(_));
        if !all().all(|one| one.within.is_none() && one.patterns.iter().all(is_plain)) {
            return false;
        }
        // Plain patterns tell a text by the longest of their own that it begins with, and by whether there is more of it.
        let own = || all().flat_map(|one| one.patterns.iter().map(|(_, own)| own.prefix()));
        let mut chars = ('!'..).filter(|char| !own().any(|text| text.contains(*char)));
        let more = chars.next().map_or_else(String::new, String::from);
        let mut texts = own().chain([""]);
        texts.all(|text| {
            let ends = ["", more.as_str()].map(|end| format!("{text}{end}"));
            ends.iter()
                .all(|text| !self.matches(text) || others.iter().any(|other| other.matches(text)))
        })
    }

    /// What every text that matches begins with; empty where nothing is known. In a list in order only these need be looked at.
    #[must_use]
    pub fn prefix(&self) -> &str {
        let matching = self
            .patterns
            .iter()
            .filter(|(verdict, _)| *verdict == Verdict::Match);
        let prefixes = matching.map(|(_, pattern)| pattern.prefix());
        let own = prefixes.reduce(common).unwrap_or_default();
        let outer = self.within.as_ref().map_or("", |outer| outer.prefix());
        if own.len() >= outer.len() { own } else { outer }
    }

    /// What is left of another wildmat's text without the patterns that surely match nothing that this one does; none: nothing that matches,
    /// or it is no wildmat.
    #[must_use]
    pub fn shows_of(&self, text: &str) -> Option<String> {
        let (mut left, mut matches) = (Vec::new(), false);
        let mut rest = Some(text);
        while let Some(from) = rest {
            let bare = from.strip_prefix(['!', '@']);
            let (pattern, after) = Pattern::parse(bare.unwrap_or(from), Some(',')).ok()?;
            if self.meets(&pattern) {
                matches |= bare.is_none();
                let end = after.map_or(from.len(), |after| from.len() - after.len() - 1);
                left.push(from.get(..end)?);
            }
            rest = after;
        }
        matches.then(|| left.join(","))
    }

    /// Whether there may be a text that both match.
    fn meets(&self, other: &Pattern) -> bool {
        let decides = self.patterns.iter().find_map(|(verdict, own)| {
            let is_match = *verdict == Verdict::Match;
            let decides = match is_match {
                true => own.meets(other),
                false => own.takes_all_of(other),
            };
            decides.then_some(is_match)
        });
        let outer = self.within.as_ref();
        decides == Some(true) && outer.is_none_or(|outer| outer.meets(other))
    }

    /// The text of a wildmat that matches the same; none: it is within another, and no one text says both.
    #[must_use]
    pub fn as_one(&self) -> Option<&str> {
        match &self.within {
            None => Some(&self.text),
            Some(outer) if self.patterns.first() == Some(&(Verdict::Match, Pattern::Any)) => {
                outer.as_one()
            }
            Some(_) => None,
        }
    }

    /// The wildmat as it was written, without those that it is within.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// What both begin with.
fn common<'t>(one: &'t str, other: &'t str) -> &'t str {
    let mut both = one.char_indices().zip(other.chars());
    let differs = both.find(|((_, left), right)| left != right);
    let end = differs.map_or(one.len().min(other.len()), |((at, _), _)| at);
    one.get(..end).unwrap_or_default()
}

impl Pattern {
    /// Whether it surely matches all that another one does.
    fn covers(&self, other: &Self) -> bool {
        match self {
            Self::Any => true,
            Self::Prefix(prefix) => other.prefix().starts_with(prefix.as_str()),
            Self::Exact(_) | Self::General(_) => self == other,
        }
    }

    /// Whether there may be a text that both match.
    fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Exact(text), it) | (it, Self::Exact(text)) => it.matches(text),
            _ => {
                let (own, its) = (self.front(), other.front());
                own.starts_with(&its) || its.starts_with(&own)
            }
        }
    }

    /// Whether it surely matches all that another one does.
    fn takes_all_of(&self, other: &Self) -> bool {
        match (self, other) {
            (_, Self::Exact(text)) => self.matches(text),
            (Self::Prefix(prefix), _) => other.front().starts_with(prefix.as_str()),
            _ => self.covers(other),
        }
    }

    /// The same as the prefix, also of what has more than a run behind it.
    fn front(&self) -> String {
        let Self::General(items) = self else {
            return self.prefix().to_owned();
        };
        let plain = items.iter().map_while(|item| match item {
            Item::One(char) => Some(*char),
            _ => None,
        });
        plain.collect()
    }

    /// What every text that it matches begins with.
    fn prefix(&self) -> &str {
        match self {
            Self::Exact(text) | Self::Prefix(text) => text,
            Self::Any | Self::General(_) => "",
        }
    }

    /// Reads up to what separates patterns; says what follows it.
    fn parse(text: &str, separator: Option<char>) -> Result<(Self, Option<&str>), WildmatError> {
        let mut items = Vec::new();
        let mut chars = text.chars();
        let mut after = None;
        while let Some(char) = chars.next() {
            match char {
                char if Some(char) == separator => {
                    after = Some(chars.as_str());
                    break;
                }
                '*' if items.last() == Some(&Item::AnyRun) => {}
                '*' => items.push(Item::AnyRun),
                '?' => items.push(Item::AnyOne),
                '\\' => items.push(Item::One(chars.next().ok_or(WildmatError::Backslash)?)),
                '[' => {
                    let (class, rest) = parse_class(chars.as_str())?;
                    items.push(class);
                    chars = rest.chars();
                }
                char => items.push(Item::One(char)),
            }
        }
        Ok((Self::of(items)?, after))
    }

    /// Chooses the cheapest shape.
    fn of(items: Vec<Item>) -> Result<Self, WildmatError> {
        let (last, front) = items.split_last().ok_or(WildmatError::Empty)?;
        let plain = |items: &[Item]| -> Option<String> {
            items
                .iter()
                .map(|item| {
                    if let Item::One(char) = item {
                        Some(*char)
                    } else {
                        None
                    }
                })
                .collect()
        };
        Ok(match (plain(front), last) {
            (Some(front), Item::AnyRun) if front.is_empty() => Self::Any,
            (Some(front), Item::AnyRun) => Self::Prefix(front),
            (Some(mut front), Item::One(char)) => {
                front.push(*char);
                Self::Exact(front)
            }
            _ => Self::General(items),
        })
    }

    fn matches(&self, text: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Exact(exact) => exact == text,
            Self::Prefix(prefix) => text.starts_with(prefix.as_str()),
            Self::General(items) => matches_items(items, text),
        }
    }
}

/// Reads a class after its `[`: `^` negates, `]` right after that is a member, `a-z` is a range.
fn parse_class(text: &str) -> Result<(Item, &str), WildmatError> {
    let (negated, body) = text
        .strip_prefix('^')
        .map_or((false, text), |body| (true, body));
    let mut ranges = Vec::new();
    let mut chars = body.chars();
    loop {
        let low = chars.next().ok_or(WildmatError::Class)?;
        if low == ']' && !ranges.is_empty() {
            return Ok((Item::Class { negated, ranges }, chars.as_str()));
        }
        let mut ahead = chars.clone();
        let high = match (ahead.next(), ahead.next()) {
            (Some('-'), Some(high)) if high != ']' => {
                chars = ahead;
                high
            }
            _ => low,
        };
        ranges.push((low, high));
    }
}

impl Item {
    fn matches(&self, char: char) -> bool {
        match self {
            Self::One(one) => *one == char,
            Self::AnyOne => true,
            Self::AnyRun => false,
            Self::Class { negated, ranges } => {
                ranges
                    .iter()
                    .any(|&(low, high)| (low..=high).contains(&char))
                    != *negated
            }
        }
    }
}

/// Greedy match that on failure goes back to the last `*` only: that is enough, because an earlier `*` could only
/// leave less text for it.
fn matches_items(items: &[Item], text: &str) -> bool {
    let mut items = items;
    let mut chars = text.chars();
    let mut retry: Option<(&[Item], std::str::Chars<'_>)> = None;
    loop {
        if let [Item::AnyRun, rest @ ..] = items {
            if rest.is_empty() {
                return true;
            }
            items = rest;
            retry = Some((rest, chars.clone()));
            continue;
        }
        match (items, chars.next()) {
            ([], None) => return true,
            ([item, rest @ ..], Some(char)) if item.matches(char) => {
                items = rest;
                continue;
            }
            _ => {}
        }
        let Some((after_star, from)) = &mut retry else {
            return false;
        };
        if from.next().is_none() {
            return false;
        }
        items = after_star;
        chars = from.clone();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(wildmat: &str, matching: &[&str], others: &[&str]) {
        let wildmat = Wildmat::parse_argument(wildmat.as_bytes()).unwrap();
        for text in matching {
            assert!(
                wildmat.matches(text),
                "{} should match {text}",
                wildmat.as_str()
            );
        }
        for text in others {
            assert!(
                !wildmat.matches(text),
                "{} should not match {text}",
                wildmat.as_str()
            );
        }
    }

    #[test]
    fn the_examples_of_rfc_3977() {
        check(
            "a*,!*b,*c*",
            &["aaa", "ccb", "abc"],
            &["abb", "dddb", "xxx"],
        );
        check("a*,c*,!*b", &["aaa", "abc"], &["abb", "ccb", "xxx"]);
    }

    #[test]
    fn within_another_both_must_match() {
        let wildmat = |text| Wildmat::parse(text).unwrap();
        let inner = wildmat("*,!b.*").within(&wildmat("a.*,b.*,!a.secret"));
        assert!(inner.matches("a.x") && !inner.matches("a.secret"));
        assert!(!inner.matches("b.x") && !inner.matches("c.x"));
        assert!(!inner.matches_all() && wildmat("*").within(&wildmat("*")).matches_all());
        assert_eq!(
            wildmat("a.*").within(&wildmat("a.b.*,a.bc")).prefix(),
            "a.b"
        );
        assert_eq!(wildmat("a.b.x").within(&wildmat("a.*")).prefix(), "a.b.x");
        let twice = wildmat("*").within(&wildmat("a.*")).within(&wildmat("*.x"));
        assert!(twice.matches("a.x") && !twice.matches("a.y") && !twice.matches("b.x"));
        // One text says it only where one of them says nothing.
        assert_eq!((inner.as_one(), twice.as_one()), (None, None));
        assert_eq!(wildmat("a.*").within(&wildmat("*")).as_one(), Some("a.*"));
        assert_eq!(
            wildmat("b,*").within(&wildmat("*,!a")).as_one(),
            Some("*,!a")
        );
    }

    #[test]
    fn a_text_pattern_is_one_whatever_is_in_it() {
        let matches = |pattern: &str, text| {
            let pattern = Wildmat::parse_text_pattern(pattern.as_bytes()).unwrap();
            pattern.matches(text)
        };
        assert!(matches("*well, [st]o*", "oh well, so what"));
        assert!(!matches("*well, [st]o*", "well"));
        assert!(matches("!*", "!a") && !matches("!*", "a"));
        assert!(matches("@a", "@a") && matches("a\\*b", "a*b"));
        for bad in [&b""[..], b"[a", b"a\\", b"\xff"] {
            assert!(Wildmat::parse_text_pattern(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn single_patterns() {
        check("*", &["", "a", "\u{1f600}"], &[]);
        check(
            "comp.lang.*",
            &["comp.lang.", "comp.lang.c"],
            &["comp.lang", "Comp.lang.c"],
        );
        check("a?c", &["abc", "a\u{e9}c"], &["ac", "abbc"]);
        check(
            "*.test",
            &["a.test", "a.b.test", ".test"],
            &["a.tests", "test"],
        );
        check("a*b*c", &["abc", "axbxc", "abcbc"], &["ab", "acb"]);
        check("*?*", &["a", "ab"], &[""]);
        check("a**b", &["ab", "axb"], &["a"]);
        check("[a-cx]1", &["a1", "c1", "x1"], &["d1", "1", "-1"]);
        check("[^a-c]", &["d", "\u{e9}"], &["b", ""]);
        check("[]a]", &["]", "a"], &["b"]);
        check("[a-]", &["a", "-"], &["b"]);
        check("[^]]x", &["ax"], &["]x"]);
        check("[*,?]", &["*", ",", "?"], &["a"]);
        check("\\*\\,b", &["*,b"], &["a,b"]);
        check("@a", &["@a"], &["a"]);
        check("a!b", &["a!b"], &[]);
        check("\u{43f}\u{440}*", &["\u{43f}\u{440}\u{438}"], &["\u{43f}"]);
    }

    #[test]
    fn poison() {
        let verdict = |text: &str| {
            Wildmat::parse("*,@alt.bin*,!alt.bin.ok,junk")
                .unwrap()
                .verdict(text)
        };
        assert_eq!(verdict("alt.binaries"), Verdict::Poison);
        assert_eq!(verdict("alt.bin.ok"), Verdict::NoMatch);
        assert_eq!(verdict("comp.x"), Verdict::Match);
        assert_eq!(Wildmat::parse("a").unwrap().verdict("b"), Verdict::NoMatch);
    }

    #[test]
    fn shortcuts() {
        let parse = |text: &str| Wildmat::parse(text).unwrap();
        assert!(
            parse("*").matches_all() && parse("!a,*").matches_all() && !parse("*,!a").matches_all()
        );
        for (text, prefix) in [
            ("a.b", "a.b"),
            ("a.*", "a."),
            ("a.*,!a.b", "a."),
            ("a.b\u{e4},a.b\u{f6},a.bc*", "a.b"),
            ("a.b,*", ""),
            ("a.[bc]", ""),
            ("!a.b", ""),
        ] {
            assert_eq!(parse(text).prefix(), prefix, "{text}");
        }
    }

    proptest! {
        #[test]
        fn prop_what_matches_begins_with_the_prefix(
            wildmat in "[!@]?[ab\u{e4}]{1,3}[*?]?(,[!@]?[ab\u{e4}]{1,3}[*?]?){0,3}",
            text in "[ab\u{e4}]{0,4}",
        ) {
            let wildmat = Wildmat::parse(&wildmat).unwrap();
            prop_assert!(!wildmat.matches(&text) || text.starts_with(wildmat.prefix()), "{wildmat:?} {text}");
        }

        #[test]
        fn prop_what_covers_another_matches_all_of_it(
            one in "[!@]?[ab]{0,2}[*?](,[!@]?[ab]{1,2}[*?]?){0,2}",
            other in "[!@]?[ab]{1,3}[*?]?(,[!@]?[ab]{1,3}[*?]?){0,2}",
            text in "[ab]{0,4}",
        ) {
            let (one, other) = (Wildmat::parse(&one).unwrap(), Wildmat::parse(&other).unwrap());
            prop_assert!(!one.covers(&other) || !other.matches(&text) || one.matches(&text), "{one:?} {other:?} {text}");
        }

        #[test]
        fn prop_what_others_cover_one_of_them_matches(
            one in "[ab]{0,2}[*?](,[!@]?[ab]{1,2}[*]?){0,2}",
            others in proptest::collection::vec("[!@]?[ab]{0,2}[*?](,[!@]?[ab]{1,2}[*]?){0,2}", 0..4),
            text in "[abc]{0,4}",
        ) {
            let parse = |text: &str| Wildmat::parse(text).unwrap();
            let (one, others): (_, Vec<Wildmat>) = (parse(&one), others.iter().map(|text| parse(text)).collect());
            let others: Vec<&Wildmat> = others.iter().collect();
            let is_there = others.iter().any(|other| other.matches(&text));
            prop_assert!(!one.is_covered(&others) || !one.matches(&text) || is_there, "{one:?} {others:?} {text}");
        }
    }

    #[test]
    fn what_others_together_surely_cover() {
        let covered = |one: &str, others: &[&str]| {
            let parse = |text: &&str| Wildmat::parse(text).unwrap();
            let others: Vec<Wildmat> = others.iter().map(parse).collect();
            parse(&one).is_covered(&others.iter().collect::<Vec<_>>())
        };
        for (one, others) in [
            ("*", &["*,!a.*", "a.*"][..]),
            ("*", &["*,!a.*", "a.*,!a.b.*", "a.b.*"]),
            ("a.*", &["a.*,!a.b", "a.b"]),
            ("a.b,!b", &["a.*"]),
            ("*,!a", &["*,!a"]),
            ("?", &["b", "*"]),
            ("?", &["?"]),
            ("!a", &[]),
        ] {
            assert!(covered(one, others), "{one} {others:?}");
        }
        for (one, others) in [
            ("*", &[][..]),
            ("*", &["*,!a.*", "a.*,!a.b.*"]),
            ("*", &["*,!a.*", "a.?*"]),
            ("a.*", &["a.b.*", "a.c"]),
            ("a!*", &["a!!*", "a!"]),
            ("a", &["b"]),
        ] {
            assert!(!covered(one, others), "{one} {others:?}");
        }
    }

    #[test]
    fn what_surely_covers_another() {
        let covers = |one: &str, other: &str| {
            let (one, other) = (Wildmat::parse(one), Wildmat::parse(other));
            one.unwrap().covers(&other.unwrap())
        };
        for (one, other) in [
            ("*", "a,b.*,!c,?"),
            ("a.*", "a.b.*"),
            ("a.*,b.*", "b.c,a.*,!a.d"),
            ("*,!a.*", "b.c"),
            ("*,!a.*", "*,!a.*"),
            ("a?", "a?"),
        ] {
            assert!(covers(one, other), "{one} {other}");
        }
        for (one, other) in [
            ("a.b.*", "a.*"),
            ("*,!a.*", "a.b"),
            ("*,!a.*", "b.*"),
            ("*,@a.*", "*"),
            ("a.*", "*"),
            ("a*", "?a"),
            ("a.*", "a.b,c"),
        ] {
            assert!(!covers(one, other), "{one} {other}");
        }
    }

    #[test]
    fn refuses_by_reason() {
        for (text, reason) in [
            ("", WildmatError::Empty),
            ("a,", WildmatError::Empty),
            (",a", WildmatError::Empty),
            ("!", WildmatError::Empty),
            ("a,,b", WildmatError::Empty),
            ("a\\", WildmatError::Backslash),
            ("[a", WildmatError::Class),
            ("[]", WildmatError::Class),
            ("[^]", WildmatError::Class),
        ] {
            assert_eq!(Wildmat::parse(text), Err(reason), "{text}");
        }
        assert_eq!(Wildmat::parse_argument(b"\xff"), Err(WildmatError::NotUtf8));
        assert_eq!(
            Wildmat::parse(&"a,".repeat(WILDMAT_PATTERNS_MAX + 1)),
            Err(WildmatError::TooMany)
        );
    }

    #[test]
    fn hostile_patterns_stay_cheap() {
        let wildmat = Wildmat::parse(&"*a".repeat(200)).unwrap();
        assert!(!wildmat.matches(&"a".repeat(199)));
        assert!(!wildmat.matches(&format!("{}b", "a".repeat(20_000))));
    }

    /// One pattern of `*`, `?` and characters, by plain recursion.
    fn model_one(pattern: &[char], text: &[char]) -> bool {
        match pattern {
            [] => text.is_empty(),
            ['*', rest @ ..] => (0..=text.len()).any(|from| model_one(rest, &text[from..])),
            ['?', rest @ ..] => !text.is_empty() && model_one(rest, &text[1..]),
            [char, rest @ ..] => text.first() == Some(char) && model_one(rest, &text[1..]),
        }
    }

    fn model(wildmat: &str, text: &str) -> bool {
        let text: Vec<char> = text.chars().collect();
        let mut answer = false;
        for pattern in wildmat.split(',') {
            let (positive, pattern) = pattern
                .strip_prefix('!')
                .map_or((true, pattern), |rest| (false, rest));
            if model_one(&pattern.chars().collect::<Vec<_>>(), &text) {
                answer = positive;
            }
        }
        answer
    }

    proptest! {
        #[test]
        fn prop_matches_as_the_model(wildmat in "!?[ab*?\u{e9}]{1,6}(,!?[ab*?.]{1,5}){0,3}", text in "[ab.\u{e9}]{0,8}") {
            prop_assert_eq!(Wildmat::parse_argument(wildmat.as_bytes()).unwrap().matches(&text), model(&wildmat, &text));
        }

        #[test]
        fn prop_any_text_is_read_without_panic(wildmat in "[\\[\\]^!@*?,\\\\a-]{0,20}|.{0,20}", text in ".{0,10}") {
            if let Ok(wildmat) = Wildmat::parse(&wildmat) {
                let _ = wildmat.verdict(&text);
            }
        }
    }

    #[test]
    fn what_is_shown_of_a_wildmat_names_nothing_that_is_hidden() {
        for (outer, text, left) in [
            ("*", "a.*,!a.b", Some("a.*,!a.b")),
            ("misc.*", "*", Some("*")),
            ("misc.*", "private.*", None),
            ("misc.*", "misc.test", Some("misc.test")),
            ("misc.*", "m*", Some("m*")),
            ("misc.*", "misc.a.*,private.b,!private.c", Some("misc.a.*")),
            ("misc.*", "*,!private.c,@misc.x", Some("*,@misc.x")),
            ("*,!private.*", "private.*", None),
            ("*,!private.*", "private.?*,x\\,y", Some("x\\,y")),
            ("*,!private.*", "private.test", None),
            ("*,!private.*,private.open", "private.*", Some("private.*")),
            ("misc.test", "misc.[a-z]*", Some("misc.[a-z]*")),
            ("misc.test", "misc.other", None),
            ("misc.*", "!misc.test", None),
            ("misc.*", "misc.[", None),
        ] {
            let outer = Wildmat::parse(outer).unwrap();
            let shown = outer.shows_of(text);
            assert_eq!(shown.as_deref(), left, "{} {text}", outer.as_str());
        }
        let inner = Wildmat::parse("*,!b.*").unwrap();
        let inner = inner.within(&Wildmat::parse("a.*,b.*").unwrap());
        assert_eq!(inner.shows_of("a.x,b.x,c.x").as_deref(), Some("a.x"));
    }
}
