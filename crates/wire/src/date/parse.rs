//! Reading article dates.
//!
//! `parse_rfc5322` keeps RFC 5322 section 3.3 with the obsolete forms of section 4.3: two- and three-digit years, named zones,
//! comments and folds between any two parts.  `parse_relaxed` also takes what news programs have sent since 1984 and
//! relaying agents have always let pass: a missing zone, seconds or comma, `asctime` order, `1-Aug-84`, odd zones.
//! Neither asks whether the day of the week is the right one, which [`has_right_weekday`] does.  Both read each octet once.

use super::civil::{CivilTime, unix};
use crate::error::DateError;
use crate::ids::UnixTime;

/// Reads a date as RFC 5322 defines it, obsolete forms included.
///
/// # Errors
/// At the first part that does not fit.
pub fn parse_rfc5322(text: &[u8]) -> Result<UnixTime, DateError> {
    date_time(text, false)
}

/// Reads a date as relaying agents must: RFC 5322 or one of the forms real articles have.  A missing time is
/// midnight, a missing zone or one of an unknown name is UTC.
///
/// # Errors
/// When no day, month, year can be made out, or a zone in digits cannot.
pub fn parse_relaxed(text: &[u8]) -> Result<UnixTime, DateError> {
    date_time(text, true)
}

/// Whether a date as RFC 5322 defines it names the day of the week on which it is, or none: section 3.3 does not let it name another.
#[must_use]
pub fn has_right_weekday(text: &[u8]) -> bool {
    let read = || {
        let mut scan = Scan {
            rest: text,
            relaxed: false,
        };
        scan.skip().ok()?;
        let said = scan.rest;
        scan.weekday().ok()?;
        Some((said, scan.date().ok()?))
    };
    let Some((said, civil)) = read() else {
        return true;
    };
    let names_one = said.first().is_some_and(u8::is_ascii_alphabetic);
    let right = WEEKDAYS.get(usize::from(civil.weekday()));
    !names_one || right.is_some_and(|name| key(name.as_bytes()) == key(said))
}

/// Whether a date as RFC 5322 defines it has no obsolete year or zone, which none may be made with any more (RFC 5536 section
/// 3.1.1): four digits, and an offset in digits, or `GMT`, `UT` or `UTC`, which are as common as they are clear.
#[must_use]
pub fn is_in_new_form(text: &[u8]) -> bool {
    let mut scan = Scan {
        rest: text,
        relaxed: false,
    };
    let mut read = || {
        scan.skip()?;
        scan.weekday()?;
        scan.day_and_month()?;
        let before = scan.rest.len();
        let mut civil = CivilTime::of(UnixTime(0));
        civil.year = scan.year()?;
        let digits = before - scan.rest.len();
        scan.time(&mut civil)?;
        scan.skip()?;
        let is_offset = matches!(scan.rest, [b'+' | b'-', ..]);
        let zone = scan.take(u8::is_ascii_alphabetic);
        let is_named = |name: &&[u8]| name.eq_ignore_ascii_case(zone);
        let is_known = is_offset || [&b"GMT"[..], b"UT", b"UTC"].iter().any(is_named);
        Ok::<_, DateError>(digits >= 4 && is_known)
    };
    read().unwrap_or(true)
}

fn date_time(text: &[u8], relaxed: bool) -> Result<UnixTime, DateError> {
    let mut scan = Scan {
        rest: text,
        relaxed,
    };
    scan.skip()?;
    if scan.rest.is_empty() {
        return Err(DateError::Empty);
    }
    scan.weekday()?;
    let (mut civil, zone);
    if relaxed && scan.rest.first().is_some_and(u8::is_ascii_alphabetic) {
        (civil, zone) = scan.asctime()?;
    } else {
        civil = scan.date()?;
        scan.time(&mut civil)?;
        zone = scan.zone()?;
    }
    if !relaxed {
        scan.skip()?;
        if !scan.rest.is_empty() {
            return Err(DateError::Trailing);
        }
    }
    if !civil.is_valid() {
        return Err(DateError::Range);
    }
    Ok(unix(civil.to_seconds() - i64::from(zone)))
}

struct Scan<'t> {
    rest: &'t [u8],
    relaxed: bool,
}

impl<'t> Scan<'t> {
    /// Skips blanks, folds and comments: RFC 5322's CFWS.  Relaxed, an open comment is the end of the text.
    fn skip(&mut self) -> Result<(), DateError> {
        let mut depth = 0usize;
        while let [first, rest @ ..] = self.rest {
            match first {
                b' ' | b'\t' | b'\r' | b'\n' => {}
                b'(' => depth += 1,
                b')' if depth > 0 => depth -= 1,
                b'\\' if depth > 0 => {
                    self.rest = rest.get(1..).unwrap_or_default();
                    continue;
                }
                _ if depth > 0 => {}
                _ => return Ok(()),
            }
            self.rest = rest;
        }
        if depth > 0 && !self.relaxed {
            Err(DateError::Comment)
        } else {
            Ok(())
        }
    }

    fn eat(&mut self, wanted: u8) -> bool {
        match self.rest {
            [first, rest @ ..] if *first == wanted => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    fn take(&mut self, class: fn(&u8) -> bool) -> &'t [u8] {
        let len = self.rest.iter().take_while(|octet| class(octet)).count();
        let (word, rest) = self.rest.split_at_checked(len).unwrap_or_default();
        self.rest = rest;
        word
    }

    /// A number of at least `min` and at most `max` digits.
    fn number(&mut self, min: usize, max: usize) -> Option<u16> {
        let digits = self.take(u8::is_ascii_digit);
        if digits.len() < min || digits.len() > max {
            return None;
        }
        Some(
            digits
                .iter()
                .fold(0, |value, digit| value * 10 + u16::from(digit - b'0')),
        )
    }

    /// `Fri,` if there is one.
    fn weekday(&mut self) -> Result<(), DateError> {
        let before = self.rest;
        let word = self.take(u8::is_ascii_alphabetic);
        if word.is_empty() {
            return Ok(());
        }
        if !is_name_of(&WEEKDAYS, word, self.relaxed) {
            self.rest = before;
            return if self.relaxed {
                Ok(())
            } else {
                Err(DateError::Weekday)
            };
        }
        self.skip()?;
        if !self.eat(b',') && !self.relaxed {
            return Err(DateError::Weekday);
        }
        self.skip()
    }

    /// `21 Nov 1997`.
    fn date(&mut self) -> Result<CivilTime, DateError> {
        let (day, month) = self.day_and_month()?;
        let year = self.year()?;
        Ok(CivilTime {
            year,
            month,
            day,
            hour: 0,
            minute: 0,
            second: 0,
        })
    }

    /// `21 Nov`, and what stands before the year.
    fn day_and_month(&mut self) -> Result<(u8, u8), DateError> {
        let day = self.number(1, 2).ok_or(DateError::Day)? as u8;
        self.separator()?;
        let month = self.month()?;
        self.separator()?;
        Ok((day, month))
    }

    /// Between the parts of a date: CFWS, and in old articles a dash.
    fn separator(&mut self) -> Result<(), DateError> {
        self.skip()?;
        if self.relaxed && self.eat(b'-') {
            self.skip()?;
        }
        Ok(())
    }

    fn month(&mut self) -> Result<u8, DateError> {
        let word = self.take(u8::is_ascii_alphabetic);
        let found = MONTHS
            .iter()
            .position(|name| is_name(name, word, self.relaxed));
        found.map(|at| at as u8 + 1).ok_or(DateError::Month)
    }

    /// RFC 5322 section 4.3: two digits are 1950 to 2049, three digits count from 1900.
    fn year(&mut self) -> Result<u16, DateError> {
        let digits = self
            .rest
            .iter()
            .take_while(|octet| octet.is_ascii_digit())
            .count();
        let number = self.number(2, 4).ok_or(DateError::Year)?;
        match (digits, number) {
            (2, 0..=49) => Ok(2000 + number),
            (2 | 3, _) => Ok(1900 + number),
            (_, 1900..) => Ok(number),
            _ => Err(DateError::Year),
        }
    }

    /// `09:55:06` or `09:55`; relaxed, single digits or nothing at all.
    fn time(&mut self, civil: &mut CivilTime) -> Result<(), DateError> {
        self.skip()?;
        if self.relaxed && !self.rest.first().is_some_and(u8::is_ascii_digit) {
            return Ok(());
        }
        let digits_min = if self.relaxed { 1 } else { 2 };
        let part = |scan: &mut Self| {
            scan.number(digits_min, 2)
                .map(|part| part as u8)
                .ok_or(DateError::Time)
        };
        civil.hour = part(self)?;
        self.skip()?;
        if !self.eat(b':') {
            return Err(DateError::Time);
        }
        self.skip()?;
        civil.minute = part(self)?;
        self.skip()?;
        if self.eat(b':') {
            self.skip()?;
            civil.second = part(self)?;
        }
        Ok(())
    }

    /// Seconds east of UTC.
    fn zone(&mut self) -> Result<i32, DateError> {
        self.skip()?;
        if let Some(offset) = self.numeric_zone()? {
            return Ok(offset);
        }
        let word = self.take(u8::is_ascii_alphabetic);
        if word.is_empty() {
            return if self.relaxed {
                Ok(0)
            } else {
                Err(DateError::Zone)
            };
        }
        let named = named_zone(word);
        // `GMT+12` and the like.
        if self.relaxed && named == 0 {
            return Ok(self.numeric_zone()?.unwrap_or(0));
        }
        Ok(named)
    }

    /// `+hhmm`; relaxed, also `+hh` and `+hh:mm`.
    fn numeric_zone(&mut self) -> Result<Option<i32>, DateError> {
        let sign = match self.rest.first() {
            Some(b'+') => 1,
            Some(b'-') => -1,
            _ => return Ok(None),
        };
        self.rest = self.rest.get(1..).unwrap_or_default();
        let digits = self.take(u8::is_ascii_digit);
        let value = digits
            .iter()
            .take(4)
            .fold(0, |value, digit| value * 10 + i32::from(digit - b'0'));
        let (hours, minutes) = match digits.len() {
            4 => (value / 100, value % 100),
            1 | 2 if self.relaxed => {
                let minutes = if self.eat(b':') {
                    self.number(2, 2).unwrap_or(0)
                } else {
                    0
                };
                (value, i32::from(minutes))
            }
            _ => return Err(DateError::Zone),
        };
        if minutes > 59 && !self.relaxed {
            return Err(DateError::Zone);
        }
        Ok(Some(sign * (hours * 3600 + minutes * 60)))
    }

    /// `Nov 21 09:55:06 [zone] 1997`, the order of `asctime` and `date`.
    fn asctime(&mut self) -> Result<(CivilTime, i32), DateError> {
        let month = self.month()?;
        self.skip()?;
        let day = self.number(1, 2).ok_or(DateError::Day)? as u8;
        let mut civil = CivilTime {
            year: 0,
            month,
            day,
            hour: 0,
            minute: 0,
            second: 0,
        };
        self.time(&mut civil)?;
        let zone = self.zone()?;
        self.skip()?;
        civil.year = self.year()?;
        Ok((civil, zone))
    }
}

const WEEKDAYS: [&str; 7] = [
    "sunday",
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
];
const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
/// The part of a name RFC 5322 uses.
const SHORT_NAME: usize = 3;

/// Whether `word` is the first three letters of `name`, or relaxed any longer part of it, in any case.
fn is_name(name: &str, word: &[u8], relaxed: bool) -> bool {
    let name = name.as_bytes();
    let fits = word.len() == SHORT_NAME || (relaxed && word.len() > SHORT_NAME);
    fits && key(name) == key(word)
        && name
            .get(..word.len())
            .is_some_and(|part| part.eq_ignore_ascii_case(word))
}

/// The first three letters in lower case, as a number: most names differ there.
#[inline]
fn key(word: &[u8]) -> u32 {
    match word {
        [a, b, c, ..] => u32::from_le_bytes([*a, *b, *c, 0]) | 0x0020_2020,
        _ => 0,
    }
}

fn is_name_of(names: &[&str], word: &[u8], relaxed: bool) -> bool {
    names.iter().any(|name| is_name(name, word, relaxed))
}

/// Zones that had one meaning wherever they were used: RFC 5322 section 4.3 and those of Usenet's bigger countries, in
/// minutes east of UTC.  All others, the military letters too, are UTC as the RFC says.
const ZONES: [(&str, i32); 27] = [
    ("EST", -300),
    ("EDT", -240),
    ("CST", -360),
    ("CDT", -300),
    ("MST", -420),
    ("MDT", -360),
    ("PST", -480),
    ("PDT", -420),
    ("AKST", -540),
    ("AKDT", -480),
    ("HST", -600),
    ("AST", -240),
    ("ADT", -180),
    ("BST", 60),
    ("WEST", 60),
    ("MET", 60),
    ("CET", 60),
    ("MEZ", 60),
    ("MEST", 120),
    ("MESZ", 120),
    ("CEST", 120),
    ("EET", 120),
    ("EEST", 180),
    ("MSK", 180),
    ("JST", 540),
    ("NZST", 720),
    ("NZDT", 780),
];

fn named_zone(word: &[u8]) -> i32 {
    if word == b"GMT" {
        return 0;
    }
    let same = |name: &str| {
        key(name.as_bytes()) == key(word) && name.as_bytes().eq_ignore_ascii_case(word)
    };
    ZONES
        .iter()
        .find(|(name, _)| same(name))
        .map_or(0, |(_, minutes)| minutes * 60)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::print_rfc5322;
    use super::*;

    fn show(result: Result<UnixTime, DateError>) -> String {
        let Ok(time) = result else {
            return format!("{:?}", result.unwrap_err());
        };
        let mut out = Vec::new();
        print_rfc5322(time, &mut out);
        String::from_utf8(out).unwrap()
    }

    /// Both readers agree.
    #[track_caller]
    fn both(text: &str, expected: &str) {
        assert_eq!(show(parse_rfc5322(text.as_bytes())), expected, "{text}");
        assert_eq!(show(parse_relaxed(text.as_bytes())), expected, "{text}");
    }

    /// Only the relaxed reader takes it; the other one gives `reason`.
    #[track_caller]
    fn relaxed(text: &str, expected: &str, reason: DateError) {
        assert_eq!(parse_rfc5322(text.as_bytes()), Err(reason), "{text}");
        assert_eq!(show(parse_relaxed(text.as_bytes())), expected, "{text}");
    }

    #[test]
    fn rfc_5322_and_its_obsolete_forms() {
        let expected = "Fri, 21 Nov 1997 15:55:06 +0000";
        for text in [
            "Fri, 21 Nov 1997 09:55:06 -0600",
            "21 Nov 1997 09:55:06 -0600",
            "  fri,\r\n 21 nov 1997 09:55:06\t-0600  ",
            "Fri, 21 Nov 97 09:55:06 CST",
            "Fri, 21 Nov 097 09:55:06 CST",
            "Fri (day), 21 Nov(\\(a(nested)) 1997 09 : 55(x) : 06 -0600 (here)",
            "21 Nov 97 15:55:06 GMT",
            "21 Nov 97 15:55:06 ut",
            "21 Nov 97 15:55:06 Z",
            "21 Nov 97 15:55:06 XYZZY",
        ] {
            both(text, expected);
        }
        both("1 Jan 2000 00:00 +0000", "Sat, 01 Jan 2000 00:00:00 +0000");
        both("1 Jan 49 00:00 -0000", "Fri, 01 Jan 2049 00:00:00 +0000");
        both(
            "31 Dec 1998 23:59:60 +0000",
            "Fri, 01 Jan 1999 00:00:00 +0000",
        );
        both(
            "19 Apr 93 16:15:19 +3000",
            "Sun, 18 Apr 1993 10:15:19 +0000",
        );
        both(
            "1 Jan 1960 00:00:00 +0000",
            "Thu, 01 Jan 1970 00:00:00 +0000",
        );
    }

    #[test]
    fn days_of_the_week() {
        for right in [
            "Fri, 21 Nov 1997 09:55:06 -0600",
            "21 Nov 1997 09:55:06 -0600",
            " (x) fri (day),\r\n 21 nov 1997 23:55:06\t-0600  ",
            "Sun, 1 Mar 20 00:00 +1400",
            "yesterday",
            "",
        ] {
            assert!(has_right_weekday(right.as_bytes()), "{right}");
        }
        // The day is that of the place where it was written.
        for wrong in [
            "Sat, 21 Nov 1997 23:55:06 -0600",
            "Mon, 21 Nov 1997 09:55:06 -0600",
            "thu, 29 Feb 2020 00:00 GMT",
        ] {
            assert!(!has_right_weekday(wrong.as_bytes()), "{wrong}");
        }
    }

    #[test]
    fn obsolete_years_and_zones() {
        for new in [
            "Fri, 21 Nov 1997 09:55:06 -0600",
            "21 Nov 1997 09:55 +0000 (EST)",
            " (x) fri (day),\r\n 21 nov 1997 23 : 55:06\tgmt",
            "21 Nov 1997 09:55:06 UT (x)",
            "21 Nov 1997 09:55:06 UTC",
            "yesterday",
            "",
        ] {
            assert!(is_in_new_form(new.as_bytes()), "{new}");
        }
        for old in [
            "21 Nov 97 09:55:06 -0600",
            "Fri, 21 Nov 097 09:55:06 GMT",
            "21 Nov 1997 09:55:06 EST",
            "21 Nov 1997 09:55:06 Z",
        ] {
            assert!(!is_in_new_form(old.as_bytes()), "{old}");
        }
    }

    #[test]
    fn what_old_programs_sent() {
        relaxed(
            "Wed, 1-Aug-84 10:24:32 EDT",
            "Wed, 01 Aug 1984 14:24:32 +0000",
            DateError::Month,
        );
        relaxed(
            "Wednesday, 1 August 1984 10:24 EDT",
            "Wed, 01 Aug 1984 14:24:00 +0000",
            DateError::Weekday,
        );
        relaxed(
            "Wed Aug  1 10:24:32 1984",
            "Wed, 01 Aug 1984 10:24:32 +0000",
            DateError::Weekday,
        );
        relaxed(
            "Wed Aug 1 10:24:32 EDT 1984",
            "Wed, 01 Aug 1984 14:24:32 +0000",
            DateError::Weekday,
        );
        relaxed(
            "12 Apr 93 15:43:10",
            "Mon, 12 Apr 1993 15:43:10 +0000",
            DateError::Zone,
        );
        relaxed(
            "26 Apr 1993 7:42:36 -0600 (CST)",
            "Mon, 26 Apr 1993 13:42:36 +0000",
            DateError::Time,
        );
        relaxed(
            "Tue, 20 Apr 1993 16:06:45 +02",
            "Tue, 20 Apr 1993 14:06:45 +0000",
            DateError::Zone,
        );
        relaxed(
            "25 Apr 93 00:02:34 GMT+12",
            "Sat, 24 Apr 1993 12:02:34 +0000",
            DateError::Trailing,
        );
        relaxed(
            "6 May 1993",
            "Thu, 06 May 1993 00:00:00 +0000",
            DateError::Time,
        );
        relaxed(
            "6 May 93 10:00 EST junk (",
            "Thu, 06 May 1993 15:00:00 +0000",
            DateError::Trailing,
        );
        relaxed(
            "6 May 93 10:00 +05:30",
            "Thu, 06 May 1993 04:30:00 +0000",
            DateError::Zone,
        );
        both(
            "Sun, 18 Apr 93 13:35:23 EDT(-0400)",
            "Sun, 18 Apr 1993 17:35:23 +0000",
        );
    }

    #[test]
    fn refuses_by_reason() {
        for (text, reason) in [
            ("", DateError::Empty),
            (" \r\n (only a comment) ", DateError::Empty),
            ("21 Now 1997 09:55:06 -0600", DateError::Month),
            ("21 Nov 7 09:55:06 -0600", DateError::Year),
            ("21 Nov 1899 09:55:06 -0600", DateError::Year),
            ("21 Nov 19971 09:55:06 -0600", DateError::Year),
            ("211 Nov 1997 09:55:06 -0600", DateError::Day),
            ("31 Nov 1997 09:55:06 -0600", DateError::Range),
            ("21 Nov 1997 24:00:00 -0600", DateError::Range),
            ("21 Nov 1997 09:60:00 -0600", DateError::Range),
            ("21 Nov 1997 09", DateError::Time),
            ("21 Nov 1997 09:123 GMT", DateError::Time),
        ] {
            assert_eq!(parse_rfc5322(text.as_bytes()), Err(reason), "{text}");
            assert_eq!(parse_relaxed(text.as_bytes()), Err(reason), "{text}");
        }
        assert_eq!(
            parse_rfc5322(b"21 Nov 1997 09:55:06 -0660"),
            Err(DateError::Zone)
        );
        assert_eq!(
            parse_rfc5322(b"21 Nov 1997 09:55:06 -0600 (open"),
            Err(DateError::Comment)
        );
        assert_eq!(parse_relaxed(b"never"), Err(DateError::Month));
        for zone in ["+99999999", "+01000", "-800", "+", "GMT+12345"] {
            let text = format!("21 Nov 1997 09:55:06 {zone}");
            let relaxed = parse_relaxed(text.as_bytes());
            assert_eq!(relaxed, Err(DateError::Zone), "{text}");
        }
    }

    proptest! {
        #[test]
        fn prop_printed_dates_are_read_back(seconds in 0u64..253_402_300_799) {
            let mut out = Vec::new();
            print_rfc5322(UnixTime(seconds), &mut out);
            prop_assert_eq!(parse_rfc5322(&out), Ok(UnixTime(seconds)));
        }

        #[test]
        fn prop_relaxed_takes_all_that_is_strict(text in "((Mon|tue),? )?[0-9]{1,2}[ -](Jan|feb|Marc)[ -][0-9]{1,5} [0-9]{1,2}:[0-9]{2}(:[0-9]{2})?( ?[+-][0-9]{1,4}| [A-Z]{1,4})?( \\(.{0,3}\\)?)?") {
            if let Ok(time) = parse_rfc5322(text.as_bytes()) {
                prop_assert_eq!(parse_relaxed(text.as_bytes()), Ok(time));
            }
        }

        #[test]
        fn prop_any_octets_are_read_without_panic(text in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = parse_rfc5322(&text);
            let _ = parse_relaxed(&text);
        }
    }
}
