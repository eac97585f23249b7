//! Calendar arithmetic: seconds since 1970 to year, month, day and back.
//!
//! Days are counted in 400-year eras that begin in March, so that the leap day is the last day of a year and no
//! month needs a table.  All results are exact for the years 0 to 9999; later instants are shown as the last second of 9999.

use crate::ids::UnixTime;

const SECONDS_PER_DAY: i64 = 86_400;
/// Days from 0000-03-01 to 1970-01-01.
const EPOCH_DAYS: i64 = 719_468;
const DAYS_PER_ERA: i64 = 146_097;
/// 9999-12-31 23:59:59.
const LAST_SECOND: u64 = 253_402_300_799;

/// A moment in UTC, by the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CivilTime {
    /// 0 to 9999.
    pub year: u16,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
    /// 0 to 23.
    pub hour: u8,
    /// 0 to 59.
    pub minute: u8,
    /// 0 to 60; 60 only in what was read, a leap second.
    pub second: u8,
}

impl CivilTime {
    /// The calendar's view of an instant.
    #[must_use]
    pub fn of(time: UnixTime) -> Self {
        let seconds = time.0.min(LAST_SECOND) as i64;
        let (days, rest) = (seconds / SECONDS_PER_DAY, seconds % SECONDS_PER_DAY);
        let days = days + EPOCH_DAYS;
        let era = days / DAYS_PER_ERA;
        let day_of_era = days % DAYS_PER_ERA;
        let year_of_era =
            (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
        let month = if shifted_month < 10 {
            shifted_month + 3
        } else {
            shifted_month - 9
        };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        Self {
            year: year as u16,
            month: month as u8,
            day: day as u8,
            hour: (rest / 3600) as u8,
            minute: (rest / 60 % 60) as u8,
            second: (rest % 60) as u8,
        }
    }

    /// Whether every field is in range and the month has that day.
    #[must_use]
    pub const fn is_valid(&self) -> bool {
        self.year <= 9999
            && 1 <= self.month
            && self.month <= 12
            && 1 <= self.day
            && self.day <= days_in_month(self.year, self.month)
            && self.hour <= 23
            && self.minute <= 59
            && self.second <= 60
    }

    /// Seconds since 1970, negative before.  Fields out of range give some number, never a panic.
    #[must_use]
    pub const fn to_seconds(&self) -> i64 {
        let year = self.year as i64 - (self.month <= 2) as i64;
        let era = year.div_euclid(400);
        let year_of_era = year.rem_euclid(400);
        let shifted_month = (self.month as i64 + 9) % 12;
        let day_of_year = (153 * shifted_month + 2) / 5 + self.day as i64 - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        let days = era * DAYS_PER_ERA + day_of_era - EPOCH_DAYS;
        days * SECONDS_PER_DAY
            + self.hour as i64 * 3600
            + self.minute as i64 * 60
            + self.second as i64
    }

    /// The instant; before 1970 it is zero.
    #[must_use]
    pub const fn to_unix(&self) -> UnixTime {
        unix(self.to_seconds())
    }

    /// The day of the week, 0 for Sunday.
    #[must_use]
    pub const fn weekday(&self) -> u8 {
        // 1970-01-01 was a Thursday.
        (self.to_seconds().div_euclid(SECONDS_PER_DAY) + 4).rem_euclid(7) as u8
    }
}

/// The instant of some seconds since 1970, zero if before.
pub(super) const fn unix(seconds: i64) -> UnixTime {
    UnixTime(if seconds < 0 {
        0
    } else {
        seconds.unsigned_abs()
    })
}

const fn is_leap(year: u16) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

const fn days_in_month(year: u16, month: u8) -> u8 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap(year) => 29,
        2 => 28,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn civil(year: u16, month: u8, day: u8, hour: u8, minute: u8, second: u8) -> CivilTime {
        CivilTime {
            year,
            month,
            day,
            hour,
            minute,
            second,
        }
    }

    #[test]
    fn known_instants() {
        for (seconds, expected, weekday) in [
            (0, civil(1970, 1, 1, 0, 0, 0), 4),
            (951_782_400, civil(2000, 2, 29, 0, 0, 0), 2),
            (1_000_000_000, civil(2001, 9, 9, 1, 46, 40), 0),
            (4_102_444_799, civil(2099, 12, 31, 23, 59, 59), 4),
            (LAST_SECOND, civil(9999, 12, 31, 23, 59, 59), 5),
        ] {
            assert_eq!(CivilTime::of(UnixTime(seconds)), expected);
            assert_eq!(
                (expected.to_unix(), expected.weekday()),
                (UnixTime(seconds), weekday)
            );
        }
        assert_eq!(
            CivilTime::of(UnixTime(u64::MAX)),
            CivilTime::of(UnixTime(LAST_SECOND))
        );
    }

    #[test]
    fn before_1970_is_zero() {
        let old = civil(1969, 12, 31, 23, 59, 59);
        assert_eq!(
            (old.to_seconds(), old.to_unix(), old.weekday()),
            (-1, UnixTime(0), 3)
        );
        assert_eq!(civil(0, 1, 1, 0, 0, 0).to_unix(), UnixTime(0));
    }

    #[test]
    fn validity() {
        assert!(civil(2000, 2, 29, 23, 59, 60).is_valid());
        assert!(!civil(1900, 2, 29, 0, 0, 0).is_valid());
        assert!(!civil(2001, 4, 31, 0, 0, 0).is_valid());
        assert!(!civil(2001, 0, 1, 0, 0, 0).is_valid() && !civil(2001, 13, 1, 0, 0, 0).is_valid());
        assert!(!civil(2001, 1, 1, 24, 0, 0).is_valid() && !civil(2001, 1, 1, 0, 60, 0).is_valid());
    }

    proptest! {
        #[test]
        fn prop_instants_round_trip(seconds in 0..=LAST_SECOND) {
            let civil = CivilTime::of(UnixTime(seconds));
            prop_assert!(civil.is_valid());
            prop_assert_eq!(civil.to_unix(), UnixTime(seconds));
        }

        #[test]
        fn prop_days_follow_each_other(day in 0u64..2_932_000) {
            let today = CivilTime::of(UnixTime(day * 86_400));
            let tomorrow = CivilTime::of(UnixTime((day + 1) * 86_400));
            prop_assert!(today < tomorrow);
            prop_assert_eq!((today.weekday() + 1) % 7, tomorrow.weekday());
        }
    }
}
