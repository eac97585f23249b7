//! Readable sizes and durations: `"1GiB"` and `"10d"` for numbers whose key says octets, seconds and so on.
//!
//! A key's unit follows from its name (`segment_octets`, `drain_s`); a plain number is in that unit.  A text must come
//! out as a whole number of it, so nothing is rounded silently.

/// What a number counts, as its key's name says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Octets.
    Octets,
    /// Time, in parts of this many microseconds.
    Time {
        /// One unit in microseconds.
        microseconds: u64,
        /// Its name.
        name: &'static str,
    },
}

const SIZES: [(&str, u64); 11] = [
    ("B", 1),
    ("KB", 1000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("k", 1 << 10),
    ("M", 1 << 20),
];

const TIMES: [(&str, u64); 7] = [
    ("us", 1),
    ("ms", 1000),
    ("s", 1_000_000),
    ("min", 60_000_000),
    ("h", 3_600_000_000),
    ("d", 86_400_000_000),
    ("w", 604_800_000_000),
];

impl Unit {
    /// The unit that a key's last part names, if any.
    pub(crate) fn of_key(key: &str) -> Option<Self> {
        let last = key.rsplit('.').next().unwrap_or(key);
        // What is counted in a time is no time: `articles_per_s`.
        let mut words = last.split('_').take_while(|word| *word != "per");
        words.find_map(|word| match word {
            "octets" | "bytes" | "size" | "larger" => Some(Self::Octets),
            "us" => Some(Self::Time {
                microseconds: 1,
                name: "microseconds",
            }),
            "ms" => Some(Self::Time {
                microseconds: 1000,
                name: "milliseconds",
            }),
            "s" => Some(Self::Time {
                microseconds: 1_000_000,
                name: "seconds",
            }),
            "days" => Some(Self::Time {
                microseconds: 86_400_000_000,
                name: "days",
            }),
            _ => None,
        })
    }

    /// Its name, for people.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Octets => "octets",
            Self::Time { name, .. } => name,
        }
    }

    /// How a value may be written.
    pub(crate) fn example(self) -> &'static str {
        match self {
            Self::Octets => "a number of octets, or a text such as \"64KiB\", \"1GiB\"",
            Self::Time { .. } => {
                "a number, or a text such as \"500ms\", \"90s\", \"1h30min\", \"10d\""
            }
        }
    }

    /// Reads a text as a number of this unit.
    pub(crate) fn parse(self, text: &str) -> Result<u64, String> {
        let (factors, one): (&[(&str, u64)], u64) = match self {
            Self::Octets => (&SIZES, 1),
            Self::Time { microseconds, .. } => (&TIMES, microseconds),
        };
        let mut rest = text.trim();
        if rest == "0" {
            // It is as much in every unit.
            return Ok(0);
        }
        if rest == "never" && matches!(self, Self::Time { .. }) {
            let right = "there is no word for that: leave the key out where that means it, or write a very long time, such as \"36500d\"";
            return Err(right.to_owned());
        }
        let mut sum: u64 = 0;
        while !rest.is_empty() {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let (number, after) = rest.split_at(digits);
            let after = after.trim_start();
            let letters = after.bytes().take_while(u8::is_ascii_alphabetic).count();
            let (name, after) = after.split_at(letters);
            let factor = factors
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, factor)| factor);
            let (Ok(number), Some(factor)) = (number.parse::<u64>(), factor) else {
                return Err(format!("write {}", self.example()));
            };
            let part = number
                .checked_mul(*factor)
                .and_then(|part| sum.checked_add(part));
            sum = part.ok_or("this is more than can be counted")?;
            rest = after.trim_start();
        }
        if !sum.is_multiple_of(one) {
            return Err(format!("this must be a whole number of {}", self.name()));
        }
        if text.trim().is_empty() {
            return Err(format!("write {}", self.example()));
        }
        Ok(sum / one)
    }

    /// A number of this unit as one would say it: the largest unit that leaves a whole number.
    pub(crate) fn print(self, number: u64) -> String {
        match self {
            Self::Octets => {
                let binary = SIZES.iter().rev().filter(|(name, _)| name.ends_with("iB"));
                say(number, binary).unwrap_or_else(|| number.to_string())
            }
            Self::Time { microseconds, .. } => {
                let total = number.saturating_mul(microseconds);
                let short = TIMES.iter().rev().filter(|(name, _)| *name != "w");
                say(total, short).unwrap_or_else(|| number.to_string())
            }
        }
    }
}

fn say<'a>(number: u64, units: impl Iterator<Item = &'a (&'a str, u64)>) -> Option<String> {
    let (name, factor) = units
        .filter(|(_, factor)| number >= *factor && number.is_multiple_of(*factor))
        .max_by_key(|(_, factor)| *factor)?;
    Some(format!("{}{name}", number / factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(key: &str, text: &str) -> String {
        let unit = Unit::of_key(key).unwrap();
        match unit.parse(text) {
            Ok(number) => format!("{number} = {}", unit.print(number)),
            Err(error) => error,
        }
    }

    #[test]
    fn sizes_and_durations_are_read_and_said() {
        assert_eq!(check("log.segment_octets", "64MiB"), "67108864 = 64MiB");
        assert_eq!(check("a.size", "1 GB"), "1000000000 = 1000000000");
        assert_eq!(check("a.octets_max", "1KiB 1B"), "1025 = 1025");
        assert_eq!(check("a.age_s_max", "10d"), "864000 = 10d");
        assert_eq!(check("a.wait_ms", "1h30min"), "5400000 = 90min");
        assert_eq!(check("a.keep_days", "2w"), "14 = 14d");
        assert_eq!(check("a.drain_s", "0s"), "0 = 0");
        assert_eq!(check("engine.log_keep_octets", " 0 "), "0 = 0");
        assert_eq!(check("a.drain_s", "0"), "0 = 0");
    }

    #[test]
    fn what_is_no_whole_number_of_the_unit_is_refused() {
        assert_eq!(
            check("a.drain_s", "500ms"),
            "this must be a whole number of seconds"
        );
        assert_eq!(
            check("a.octets", "99999999TiB"),
            "this is more than can be counted"
        );
        for text in ["", "12", "00", "0 0s", "GiB", "1XB", "1.5GiB", "-1s"] {
            let said = check("a.octets", text);
            assert!(
                said.starts_with("write a number of octets"),
                "{text}: {said}"
            );
        }
        // INN's word for it.
        let never = check("expire.keep_s_max", "never");
        assert!(never.contains("such as \"36500d\""), "{never}");
        for key in ["listen.connections_max", "access.commands_per_s_max"] {
            assert_eq!(Unit::of_key(key), None, "{key}");
        }
        assert_eq!(Unit::of_key("scrub.octets_per_s"), Some(Unit::Octets));
    }
}
