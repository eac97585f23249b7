//! The Date field of generated articles.
//!
//! Invariant: the text always has the same length, so that an article's size does not depend on the
//! day a benchmark is run on. Must not read a clock.

const DAYS: [&[u8; 3]; 7] = [b"Thu", b"Fri", b"Sat", b"Sun", b"Mon", b"Tue", b"Wed"];
const MONTHS: [&[u8; 3]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

/// `Thu, 01 Jan 1970 00:00:00 +0000` for 0.
pub(crate) fn write(out: &mut Vec<u8>, unix_secs: u64) {
    let (days, rest) = (unix_secs / 86_400, unix_secs % 86_400);
    let (year, month, day) = civil(days);
    out.extend_from_slice(DAYS[(days % 7) as usize]);
    out.extend_from_slice(b", ");
    two_digits(out, day);
    out.push(b' ');
    out.extend_from_slice(MONTHS[(month % 12) as usize]);
    out.push(b' ');
    two_digits(out, year / 100 % 100);
    two_digits(out, year % 100);
    out.push(b' ');
    two_digits(out, rest / 3600);
    out.push(b':');
    two_digits(out, rest / 60 % 60);
    out.push(b':');
    two_digits(out, rest % 60);
    out.extend_from_slice(b" +0000");
}

fn two_digits(out: &mut Vec<u8>, number: u64) {
    out.push(b'0' + (number / 10 % 10) as u8);
    out.push(b'0' + (number % 10) as u8);
}

/// Year, month from 0 and day of the month of a day since 1970 (years counted from March, so that
/// the leap day is the last of its year).
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, day) = (shifted / 146_097, shifted % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let march_month = (5 * day + 2) / 153;
    let day = day - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 {
        march_month + 2
    } else {
        march_month - 10
    };
    (era * 400 + year + u64::from(month < 2), month, day)
}

#[cfg(test)]
mod tests {
    #[test]
    fn known_days() {
        for (secs, text) in [
            (0, "Thu, 01 Jan 1970 00:00:00 +0000"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 +0000"),
            (1_709_251_199, "Thu, 29 Feb 2024 23:59:59 +0000"),
            (1_735_689_599, "Tue, 31 Dec 2024 23:59:59 +0000"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 +0000"),
        ] {
            let mut out = Vec::new();
            super::write(&mut out, secs);
            assert_eq!(String::from_utf8(out).unwrap(), text);
        }
    }
}
