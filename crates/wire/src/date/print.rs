//! Writing dates: RFC 5322 section 3.3 for articles, 14 digits for the DATE command (RFC 3977 section 7.1).
//!
//! Only the current forms are written, never an obsolete one, and always in UTC.

use super::civil::CivilTime;
use crate::ids::UnixTime;

const WEEKDAYS: [&[u8; 3]; 7] = [b"Sun", b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat"];
const MONTHS: [&[u8; 3]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

/// Appends `Fri, 21 Nov 1997 09:55:06 +0000`.
pub fn print_rfc5322(time: UnixTime, out: &mut Vec<u8>) {
    let civil = CivilTime::of(time);
    let name =
        |names: &[&'static [u8; 3]], at: u8| names.get(usize::from(at)).copied().unwrap_or(b"???");
    out.extend_from_slice(name(&WEEKDAYS, civil.weekday()));
    out.extend_from_slice(b", ");
    two(civil.day, out);
    out.push(b' ');
    out.extend_from_slice(name(&MONTHS, civil.month - 1));
    out.push(b' ');
    year(civil.year, out);
    out.push(b' ');
    two(civil.hour, out);
    out.push(b':');
    two(civil.minute, out);
    out.push(b':');
    two(civil.second, out);
    out.extend_from_slice(b" +0000");
}

/// Appends `19971121095506`.
pub fn print_nntp(time: UnixTime, out: &mut Vec<u8>) {
    let civil = CivilTime::of(time);
    year(civil.year, out);
    for part in [
        civil.month,
        civil.day,
        civil.hour,
        civil.minute,
        civil.second,
    ] {
        two(part, out);
    }
}

fn year(year: u16, out: &mut Vec<u8>) {
    two((year / 100) as u8, out);
    two((year % 100) as u8, out);
}

fn two(number: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(&[b'0' + number / 10 % 10, b'0' + number % 10]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms() {
        let mut out = Vec::new();
        print_rfc5322(UnixTime(880_106_106), &mut out);
        out.push(b'|');
        print_nntp(UnixTime(880_106_106), &mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "Fri, 21 Nov 1997 09:55:06 +0000|19971121095506"
        );
    }
}
