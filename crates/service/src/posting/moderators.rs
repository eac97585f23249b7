//! Who moderates what: patterns and addresses, as in INN's file `moderators`.
//!
//! `pattern:address`, the first whose pattern matches; `%s` in the address is the group's name with dashes for dots, `%%`
//! a percent sign.  What comes out is an address or nothing: a group whose name makes a bad one has no moderator.

use newsreel_wire::Wildmat;
use newsreel_wire::article::is_address;

/// The table.
#[derive(Debug, Clone, Default)]
pub struct Moderators {
    rows: Vec<(Wildmat, String)>,
}

impl Moderators {
    /// Reads `pattern:address` entries.
    ///
    /// # Errors
    /// What would be right, naming the entry.
    pub fn parse(entries: &[String]) -> Result<Self, String> {
        let mut rows = Vec::with_capacity(entries.len());
        for entry in entries {
            let Some((pattern, address)) = entry.rsplit_once(':') else {
                return Err(format!(
                    "{entry:?} must be a pattern, a colon and an address"
                ));
            };
            let wildmat = Wildmat::parse(pattern.trim())
                .map_err(|why| format!("the pattern of {entry:?}: {why}"))?;
            let address = address.trim().to_owned();
            if address_of(&address, "a.group").is_none() {
                let right = "must end with an address such as %s@moderators.example";
                return Err(format!("{entry:?} {right}"));
            }
            rows.push((wildmat, address));
        }
        Ok(Self { rows })
    }

    /// Where articles for this group go.
    #[must_use]
    pub fn find(&self, group: &str) -> Option<String> {
        let row = self.rows.iter().find(|(wildmat, _)| wildmat.matches(group));
        address_of(&row?.1, group)
    }

    /// The entries as LIST MODERATORS shows them (RFC 6048 section 2.4), in their order.
    pub fn lines(&self) -> impl Iterator<Item = String> + '_ {
        let rows = self.rows.iter();
        rows.map(|(wildmat, address)| format!("{}:{address}", wildmat.as_str()))
    }
}

/// An address from its template; `None` when that is not one, or could be taken for an option by a program.
#[must_use]
pub fn address_of(template: &str, group: &str) -> Option<String> {
    let mut address = String::with_capacity(template.len() + group.len());
    let mut rest = template.chars();
    while let Some(next) = rest.next() {
        match next {
            '%' => match rest.next()? {
                's' => address.extend(group.chars().map(|c| if c == '.' { '-' } else { c })),
                '%' => address.push('%'),
                _ => return None,
            },
            other => address.push(other),
        }
    }
    let is_good = is_address(address.as_bytes()) && !address.starts_with(['-', '"', '|', '/']);
    is_good.then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moderators(entries: &[&str]) -> Result<Moderators, String> {
        let entries: Vec<String> = entries.iter().map(|&entry| entry.to_owned()).collect();
        Moderators::parse(&entries)
    }

    #[test]
    fn the_first_that_matches_holds() {
        let table = moderators(&[
            "comp.a.b:ada@a.example",
            "comp.*:%s@moderators.example",
            "*: x%%y@all.example",
        ])
        .unwrap();
        let find = |group| table.find(group).unwrap();
        assert_eq!(find("comp.a.b"), "ada@a.example");
        assert_eq!(find("comp.c.d+"), "comp-c-d+@moderators.example");
        assert_eq!(find("news.x"), "x%y@all.example");
        let lines: Vec<String> = table.lines().collect();
        assert_eq!(lines[1], "comp.*:%s@moderators.example");
    }

    #[test]
    fn bad_entries_and_dangerous_addresses() {
        for entry in [
            "comp.*",
            "comp.*:nobody",
            "comp.*:%x@a.example",
            "[:a@b.example:",
            "c.*:-oQ@a",
        ] {
            assert!(moderators(&[entry]).is_err(), "{entry}");
        }
        for (template, group) in [
            ("%s@a", "-x"),
            ("%s", "a.b"),
            ("%", "a"),
            ("%s@a", "\u{e4}.b"),
        ] {
            assert_eq!(address_of(template, group), None, "{template} {group}");
        }
    }
}
