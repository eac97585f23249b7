//! The dates of NEWGROUPS and NEWNEWS: `[yy]yymmdd hhmmss [GMT]` (RFC 3977 section 7.3.2).
//!
//! Without `GMT` the RFC means the server's local time; ours is UTC, so both are the same here.

use super::civil::CivilTime;
use crate::error::DateError;
use crate::ids::UnixTime;

/// Reads the two arguments.  `now` decides the century of a two-digit year: this one if the year is not in the
/// future, else the one before.
///
/// # Errors
/// When either is not digits of the right number, or the calendar has no such moment.
pub fn parse_nntp(date: &[u8], time: &[u8], now: UnixTime) -> Result<UnixTime, DateError> {
    let (year, month_day) = match *date {
        [a, b, c, d, ref rest @ ..] if rest.len() == 4 => (two(a, b)? * 100 + two(c, d)?, rest),
        [a, b, ref rest @ ..] if rest.len() == 4 => (full_year(two(a, b)?, now), rest),
        _ => return Err(DateError::Day),
    };
    let &[m0, m1, d0, d1] = month_day else {
        return Err(DateError::Day);
    };
    let &[h0, h1, n0, n1, s0, s1] = time else {
        return Err(DateError::Time);
    };
    let civil = CivilTime {
        year,
        month: two(m0, m1)? as u8,
        day: two(d0, d1)? as u8,
        hour: two(h0, h1)? as u8,
        minute: two(n0, n1)? as u8,
        second: two(s0, s1)? as u8,
    };
    if civil.is_valid() {
        Ok(civil.to_unix())
    } else {
        Err(DateError::Range)
    }
}

/// Whether an argument is the word that may follow date and time; its case does not matter (RFC 3977 section 3.1).
#[must_use]
pub const fn is_gmt(argument: &[u8]) -> bool {
    argument.eq_ignore_ascii_case(b"GMT")
}

fn full_year(two_digits: u16, now: UnixTime) -> u16 {
    let this_year = CivilTime::of(now).year;
    let century = this_year - this_year % 100;
    if two_digits <= this_year % 100 {
        century + two_digits
    } else {
        (century + two_digits).saturating_sub(100)
    }
}

fn two(tens: u8, ones: u8) -> Result<u16, DateError> {
    if tens.is_ascii_digit() && ones.is_ascii_digit() {
        Ok(u16::from(tens - b'0') * 10 + u16::from(ones - b'0'))
    } else {
        Err(DateError::Day)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::print_nntp;
    use super::*;

    /// 2026-11-21 00:00:00.
    const NOW: UnixTime = UnixTime(1_795_219_200);

    #[track_caller]
    fn check(date: &str, time: &str, expected: Result<&str, DateError>) {
        let shown = parse_nntp(date.as_bytes(), time.as_bytes(), NOW).map(|time| {
            let mut out = Vec::new();
            print_nntp(time, &mut out);
            String::from_utf8(out).unwrap()
        });
        assert_eq!(
            shown.as_deref().map_err(|&error| error),
            expected,
            "{date} {time}"
        );
    }

    #[test]
    fn both_forms() {
        check("19990624", "000000", Ok("19990624000000"));
        check("990624", "000000", Ok("19990624000000"));
        check("260101", "235959", Ok("20260101235959"));
        check("270101", "000000", Ok("19700101000000"));
        check("20240229", "010203", Ok("20240229010203"));
    }

    #[test]
    fn refuses_by_reason() {
        for date in ["", "1999062", "9906244", "199906240", "9906a4", "+90624"] {
            check(date, "000000", Err(DateError::Day));
        }
        check("990624", "0000", Err(DateError::Time));
        check("990230", "000000", Err(DateError::Range));
        check("991301", "000000", Err(DateError::Range));
        check("990101", "240000", Err(DateError::Range));
    }

    #[test]
    fn gmt_in_any_case() {
        assert!(is_gmt(b"GMT") && is_gmt(b"gmt") && !is_gmt(b"UTC") && !is_gmt(b""));
    }

    proptest! {
        #[test]
        fn prop_printed_instants_are_read_back(seconds in 0u64..253_402_300_799) {
            let mut out = Vec::new();
            print_nntp(UnixTime(seconds), &mut out);
            let (date, time) = out.split_at(8);
            prop_assert_eq!(parse_nntp(date, time, NOW), Ok(UnixTime(seconds)));
        }
    }
}
