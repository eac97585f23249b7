//! Which groups are kept in which layout: `WILDMAT LAYOUT`, the first that matches decides.
//!
//! Only new files follow them: where an older one lies its card says.

use newsreel_layout::Algorithm;
use newsreel_wire::Wildmat;

/// One directory for all articles of a group, as news servers have always had it.
const FLAT: &str = "flat";

/// The layouts of a set, in order.
#[derive(Debug, Default)]
pub(crate) struct Layouts(Vec<(Wildmat, Option<Algorithm>)>);

impl Layouts {
    /// Reads them.
    ///
    /// # Errors
    /// What is wrong, and what would be right.
    pub(crate) fn parse(lines: &[String]) -> Result<Self, String> {
        let parsed = lines.iter().map(|line| {
            let Some((groups, layout)) = line.trim().rsplit_once(char::is_whitespace) else {
                return Err(format!(
                    "{line:?} is no wildmat of groups and a layout, as in \"alt.binaries.* range1024\""
                ));
            };
            let groups = Wildmat::parse(groups.trim_end())
                .map_err(|error| format!("{line:?}: {error}"))?;
            let layout = match layout {
                FLAT => None,
                // Its own words name the layouts that split a directory.
                name => Some(name.parse().map_err(|error| format!("{error}, and {FLAT}"))?),
            };
            Ok((groups, layout))
        });
        parsed.collect::<Result<_, _>>().map(Self)
    }

    /// How the articles of a group are kept; nothing: all in its directory.
    pub(super) fn of(&self, group: &str) -> Option<Algorithm> {
        let mut layouts = self.0.iter();
        let found = layouts.find(|(groups, _)| groups.matches(group));
        found.and_then(|(_, layout)| *layout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(lines: &[&str]) -> Result<Layouts, String> {
        let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        Layouts::parse(&lines)
    }

    #[test]
    fn the_first_that_matches_decides() {
        let lines = ["alt.test flat", "alt.*,!alt.b*  range64", " * yyy "];
        let layouts = parse(&lines).unwrap();
        let of = |group| layouts.of(group).map(|layout| layout.to_string());
        assert_eq!(of("alt.test"), None);
        assert_eq!(of("alt.a").as_deref(), Some("range64"));
        assert_eq!(of("alt.binaries").as_deref(), Some("yyy"));
        assert_eq!(parse(&[]).unwrap().of("alt.a"), None);
    }

    #[test]
    fn what_is_wrong_is_told_with_what_would_be_right() {
        for (line, why) in [
            ("*", "as in \"alt.binaries.* range1024\""),
            ("", "as in"),
            ("* range1", "there are yyy, 34/56, 56/34, 456, range1024"),
            ("* FLAT", "16777216, and flat"),
            ("a[ yyy", "\"a[ yyy\": "),
        ] {
            let error = parse(&["x flat", line]).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
