//! When an article asks to go (its Expires field), as the overview keeps it beside each row.
//!
//! In the sixteen bits that a row has for flags: whole hours from arrival on, rounded up.  0: it asks for nothing.

use newsreel_wire::UnixTime;

const HOUR_S: u64 = 3600;

/// The flags of a row whose article asks to go then.  What lies before its arrival counts as the first hour, what is more
/// than seven years ahead as that.
pub(crate) fn flags(arrival: UnixTime, expires: UnixTime) -> u16 {
    let hours = expires.0.saturating_sub(arrival.0).div_ceil(HOUR_S);
    u16::try_from(hours.max(1)).unwrap_or(u16::MAX)
}

/// How long after its arrival the article of a row asks to go, seconds.
pub(crate) fn after_s(flags: u16) -> Option<u64> {
    (flags > 0).then(|| u64::from(flags) * HOUR_S)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_article_asks_for_is_kept_to_the_hour() {
        let came = UnixTime(1_000_000);
        for (expires, after) in [
            (0, 3600),
            (1_000_000, 3600),
            (1_000_001, 3600),
            (1_003_601, 7200),
            (1_000_000 + 86_400, 86_400),
            (u64::MAX, 65_535 * 3600),
        ] {
            let kept = flags(came, UnixTime(expires));
            assert_eq!(after_s(kept), Some(after), "{expires}");
        }
        assert_eq!(after_s(0), None);
    }
}
