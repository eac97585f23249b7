//! Sizes as people say them: `45 MiB`, at least two digits of them exact.

/// A number of octets as people say it, rounded to the unit.
#[must_use]
pub fn said_octets(octets: u64) -> String {
    let mut rest = octets;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if rest < 10 * 1024 {
            return format!("{rest} {unit}");
        }
        rest = (rest + 512) / 1024;
    }
    format!("{rest} TiB")
}

#[cfg(test)]
mod tests {
    use super::said_octets;

    #[test]
    fn sizes_have_units() {
        let said = [0, 10_239, 23_552, 46_818_860, 1 << 50].map(said_octets);
        assert_eq!(said, ["0 B", "10239 B", "23 KiB", "45 MiB", "1024 TiB"]);
    }
}
