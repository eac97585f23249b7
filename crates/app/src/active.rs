//! Reads lists of groups: bare names, `active` files (name, high, low, flag) and `newsgroups` files (descriptions).
//!
//! Every bad line is found and named, and whether a group is missing for it; nothing is decided here about taking the
//! good ones.  A name stands once.

use std::collections::{BTreeMap, HashMap, HashSet};

use newsreel_engine::{GROUP_HIGH_END, GROUP_TEXT_OCTETS_MAX};
use newsreel_wire::GroupName;
use serde::{Deserialize, Serialize};

/// A group as a list names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListedGroup {
    /// Its name.
    pub(crate) name: String,
    /// Its status field.
    pub(crate) status: String,
    /// Its description; may be empty.
    pub(crate) description: String,
    /// The highest number given elsewhere; numbering goes on above it.
    pub(crate) high: u64,
    /// When it was made elsewhere, in seconds, and by whom.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) made: Option<(u64, String)>,
}

/// A line that cannot be used, or looks wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct BadLine {
    /// The file, as it was named.
    pub(crate) file: String,
    /// The line's number.
    pub(crate) line: usize,
    /// What is wrong.
    pub(crate) what: String,
    /// Whether a group is missing for it, and not a description only.
    #[serde(skip)]
    pub(crate) is_group: bool,
}

/// What the files say.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Listed {
    /// The good lines, in their order.
    pub(crate) groups: Vec<ListedGroup>,
    /// The bad ones, in theirs.
    pub(crate) bad: Vec<BadLine>,
    /// Good ones that look wrong.
    pub(crate) strange: Vec<BadLine>,
    /// Descriptions of groups that the first file does not name: each name and its last text.
    pub(crate) others: BTreeMap<String, String>,
    /// The line of each good name.
    lines: HashMap<String, usize>,
}

impl Listed {
    /// Whether groups that the first file means to list are not among the good lines.
    pub(crate) fn lacks_groups(&self) -> bool {
        self.bad.iter().any(|bad| bad.is_group)
    }

    /// Moves groups from the good lines to the bad ones of the first file: names, and what is wrong with them.
    pub(crate) fn refuse(&mut self, file: &str, wrong: &HashMap<String, String>) {
        self.groups.retain(|group| !wrong.contains_key(&group.name));
        let refused = wrong.keys().filter_map(|name| self.lines.get(name));
        let refused: HashSet<usize> = refused.copied().collect();
        self.strange.retain(|line| !refused.contains(&line.line));
        self.bad.extend(wrong.iter().map(|(name, what)| BadLine {
            file: file.to_owned(),
            line: self.lines.get(name).copied().unwrap_or_default(),
            what: what.clone(),
            is_group: true,
        }));
        // The descriptions' file comes after the groups', each in its order.
        self.bad.sort_by_key(|bad| (bad.file != file, bad.line));
    }
}

/// A file with the name it was given.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Named<'a> {
    pub(crate) name: &'a str,
    pub(crate) octets: &'a [u8],
}

/// Reads names or an `active` file, and perhaps a `newsgroups` file.
pub(crate) fn read(groups: Named<'_>, descriptions: Option<Named<'_>>) -> Listed {
    let mut listed = Listed::default();
    for (line, octets) in lines(groups.octets) {
        let told = |what, is_group| BadLine {
            file: groups.name.to_owned(),
            line,
            what,
            is_group,
        };
        match group(octets) {
            Ok((group, strange)) => {
                if let Some(first) = listed.lines.insert(group.name.clone(), line) {
                    let what = format!("{} stands in line {first} already", group.name);
                    listed.lines.insert(group.name, first);
                    listed.bad.push(told(what, true));
                } else {
                    listed.groups.push(group);
                    listed.strange.extend(strange.map(|what| told(what, false)));
                }
            }
            Err(what) => listed.bad.push(told(what, true)),
        }
    }
    if let Some(descriptions) = descriptions {
        describe(&mut listed, descriptions);
    }
    listed
}

fn describe(listed: &mut Listed, file: Named<'_>) {
    let mut places: HashMap<String, usize> = HashMap::new();
    for (at, group) in listed.groups.iter().enumerate() {
        places.insert(group.name.clone(), at);
    }
    for (line, octets) in lines(file.octets) {
        match description(octets) {
            // A name alone takes no description away.
            Ok((_, text)) if text.is_empty() => {}
            Ok((name, text)) => match places.get(&name).and_then(|at| listed.groups.get_mut(*at)) {
                Some(group) => group.description = text,
                None => {
                    listed.others.insert(name, text);
                }
            },
            Err(what) => listed.bad.push(BadLine {
                file: file.name.to_owned(),
                line,
                what,
                is_group: false,
            }),
        }
    }
}

/// Says of groups that are listed when they were made, and by whom, by the lines of an `active.times` file (name, seconds, creator); of
/// several about a group the last counts.  A file of which no line can be used is another one, and is told.
pub(crate) fn date(listed: &mut Listed, file: Named<'_>) {
    let (mut made, mut is_other) = (HashMap::new(), true);
    for (line, octets) in lines(file.octets) {
        let mut words = octets.split(u8::is_ascii_whitespace);
        let mut word = || words.find(|word| !word.is_empty()).unwrap_or_default();
        let name = String::from_utf8_lossy(word()).into_owned();
        let seconds = number(word(), "time in seconds");
        is_other &= seconds.is_err();
        // Groups that are no more stay in it.
        if !listed.lines.contains_key(&name) {
            continue;
        }
        let said = seconds.and_then(|seconds| {
            let by = legacy_text(word());
            match by.len() > GROUP_TEXT_OCTETS_MAX || by.contains(' ') {
                true => Err(format!(
                    "who made {name} has control characters or over {GROUP_TEXT_OCTETS_MAX} octets"
                )),
                false => Ok((seconds, by)),
            }
        });
        match said {
            Ok(said) => {
                made.insert(name, said);
            }
            Err(what) => listed.bad.push(BadLine {
                file: file.name.to_owned(),
                line,
                what,
                is_group: false,
            }),
        }
    }
    for group in &mut listed.groups {
        group.made = made.remove(&group.name);
    }
    if is_other {
        let first = lines(file.octets).next();
        listed.bad.push(BadLine {
            file: file.name.to_owned(),
            line: first.map_or(1, |(line, _)| line),
            what: "no line of it is a name, seconds and a creator, as in INN's active.times: it gives no group its time"
                .to_owned(),
            is_group: false,
        });
    }
}

/// Lines with their numbers; empty ones and comments are left out, a CR at the end is no part of a line.
fn lines(octets: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    octets
        .split(|octet| *octet == b'\n')
        .enumerate()
        .filter_map(|(at, line)| {
            let line = line.trim_ascii();
            (!line.is_empty() && !line.starts_with(b"#")).then_some((at + 1, line))
        })
}

/// Why there must be no group of this name (RFC 5536 section 3.1.4).
pub(crate) fn forbidden(name: &str) -> Option<&'static str> {
    if name == "poster" {
        return Some("Followup-To says that for the author");
    }
    let has = |word| name.split('.').any(|component| component == word);
    (has("all") || has("ctl")).then_some("no component may be `all` or `ctl`")
}

/// Whether a name is reserved there for what is no newsgroup; old servers list such names beside their groups.  Not meant
/// are the groups of control messages, which are filed there.
pub(crate) fn is_reserved(name: &str) -> bool {
    let first = name.split('.').next().unwrap_or_default();
    matches!(first, "to" | "junk" | "example")
}

/// Whether a name is one of examples: nobody has such groups.
pub(crate) fn is_example(name: &str) -> bool {
    name.split('.').next() == Some("example")
}

/// A group, and what is strange about its line.
fn group(line: &[u8]) -> Result<(ListedGroup, Option<String>), String> {
    let words: Vec<&[u8]> = line
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
        .collect();
    let mut strange = None;
    let (name, high, status) = match words[..] {
        [name] => (name, 0, "y".to_owned()),
        [name, high, low, flag] => {
            let high = number(high, "high mark")?;
            if high >= GROUP_HIGH_END {
                return Err(format!(
                    "the high mark {high} leaves no numbers to go on with"
                ));
            }
            let low = number(low, "low mark")?;
            // One above it is how an empty group is written.
            if low > high + 1 {
                strange = Some(format!(
                    "the low mark {low} is above the high mark {high}, which alone counts"
                ));
            }
            (name, high, status(flag)?)
        }
        _ => {
            let count = words.len();
            return Err(format!(
                "{count} words: write a name, or name, high, low and flag"
            ));
        }
    };
    let name = self::name(name)?;
    if let Some(why) = forbidden(&name) {
        return Err(format!("{name} cannot be a group: {why}"));
    }
    let group = ListedGroup {
        name,
        status,
        description: String::new(),
        high,
        made: None,
    };
    Ok((group, strange))
}

fn name(octets: &[u8]) -> Result<String, String> {
    match GroupName::parse(octets) {
        Ok(name) => Ok(name.as_str().to_owned()),
        Err(error) => Err(format!("{}: {error}", octets.escape_ascii())),
    }
}

fn number(octets: &[u8], what: &str) -> Result<u64, String> {
    let text = std::str::from_utf8(octets)
        .ok()
        .filter(|t| t.bytes().all(|b| b.is_ascii_digit()));
    text.and_then(|text| text.parse().ok())
        .ok_or_else(|| format!("{} is no {what}", octets.escape_ascii()))
}

/// A status field: one of the letters, or `=` and a group's name.
pub(crate) fn status(octets: &[u8]) -> Result<String, String> {
    match octets {
        [letter @ (b'y' | b'n' | b'm' | b'j' | b'x')] => Ok(char::from(*letter).to_string()),
        [b'=', target @ ..] => Ok(format!("={}", name(target)?)),
        _ => Err(format!(
            "{} is no status: y, n, m, j, x or =other.group",
            octets.escape_ascii()
        )),
    }
}

fn description(line: &[u8]) -> Result<(String, String), String> {
    let end = line.iter().position(u8::is_ascii_whitespace);
    let (head, text) = line.split_at(end.unwrap_or(line.len()));
    let (name, text) = (name(head)?, legacy_text(text.trim_ascii()));
    if text.len() > GROUP_TEXT_OCTETS_MAX {
        return Err(format!(
            "the description of {name} has over {GROUP_TEXT_OCTETS_MAX} octets"
        ));
    }
    Ok((name, text))
}

/// UTF-8 as it is; anything else as the Latin-1 it most often was.  Controls become spaces.
fn legacy_text(octets: &[u8]) -> String {
    let text = match std::str::from_utf8(octets) {
        Ok(text) => text.to_owned(),
        Err(_) => octets.iter().map(|octet| char::from(*octet)).collect(),
    };
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(groups: &str, descriptions: Option<&[u8]>) -> String {
        let file = Named {
            name: "active",
            octets: groups.as_bytes(),
        };
        let listed = read(
            file,
            descriptions.map(|octets| Named {
                name: "newsgroups",
                octets,
            }),
        );
        let good = listed
            .groups
            .iter()
            .map(|g| format!("{} {} {} {:?}\n", g.name, g.high, g.status, g.description));
        let bad = listed
            .bad
            .iter()
            .map(|b| format!("{}:{}: {}\n", b.file, b.line, b.what));
        let others = listed
            .others
            .iter()
            .map(|(name, text)| format!("({name} {text:?})\n"));
        good.chain(bad).chain(others).collect()
    }

    #[test]
    fn names_and_active_lines() {
        assert_eq!(
            check(
                "misc.test\r\n# old\n\nalt.x 0000000042 0000000001 m\nalt.y 7 8 =alt.x",
                None
            ),
            "misc.test 0 y \"\"\nalt.x 42 m \"\"\nalt.y 7 =alt.x \"\"\n"
        );
    }

    #[test]
    fn reserved_names_are_told_from_forbidden_ones() {
        for name in ["poster", "all", "alt.all.x", "ctl.misc", "misc.ctl"] {
            assert!(forbidden(name).is_some() && !is_reserved(name), "{name}");
        }
        for name in ["to", "to.peer", "junk", "example.misc"] {
            assert!(forbidden(name).is_none() && is_reserved(name), "{name}");
        }
        for name in ["alt.poster", "misc.to", "misc.example", "control.cancel"] {
            assert!(forbidden(name).is_none() && !is_reserved(name), "{name}");
        }
        assert_eq!(
            check("misc.all", None),
            "active:1: misc.all cannot be a group: no component may be `all` or `ctl`\n"
        );
    }

    #[test]
    fn descriptions_find_their_groups() {
        let text = b"misc.test\t\tFor t\xe9sts.\nalt.gone  Elsewhere.\nmisc..x bad\nmisc.none";
        assert_eq!(
            check("misc.test\nmisc.none\n", Some(text)),
            "misc.test 0 y \"For t\u{e9}sts.\"\nmisc.none 0 y \"\"\n\
             newsgroups:3: misc..x: newsgroup name has an empty component (a dot at the start, \
             the end, or two together)\n(alt.gone \"Elsewhere.\")\n"
        );
    }

    #[test]
    fn when_groups_were_made_is_told_by_the_last_line_about_them() {
        let named = |name, octets| Named { name, octets };
        let mut listed = read(named("active", b"a.b 7 1 y\nc.d\ne.f\n"), None);
        let times = b"a.b 1 old\nno.more x y\n# c.d 9 x\na.b  1080000000\tusenet@inn.example\nc.d soon x\ne.f 5\ne.f 6 a\x01b\n";
        date(&mut listed, named("active.times", times));
        let made: Vec<_> = listed.groups.into_iter().map(|it| it.made).collect();
        let by_inn = (1_080_000_000, "usenet@inn.example".to_owned());
        assert_eq!(made, [Some(by_inn), None, Some((5, String::new()))]);
        let bad: Vec<_> = listed.bad.iter().map(|it| (it.line, &*it.what)).collect();
        let wrong =
            format!("who made e.f has control characters or over {GROUP_TEXT_OCTETS_MAX} octets");
        assert_eq!(bad, [(5, "soon is no time in seconds"), (7, &*wrong)]);
        assert!(!listed.bad.iter().any(|it| it.is_group));
    }

    #[test]
    fn every_bad_line_is_named() {
        let text =
            "a.b\na.b\nc d\ne.f 1 2 q\ne.f x 2 y\ng.h 1 2 =i..j\ng.h 99999999999999999999 1 y\n";
        let found = check(text, None);
        let lines: Vec<&str> = found.lines().collect();
        assert_eq!(lines.len(), 7, "{found}");
        assert_eq!(lines[1], "active:2: a.b stands in line 1 already");
        assert_eq!(
            lines[2],
            "active:3: 2 words: write a name, or name, high, low and flag"
        );
        assert_eq!(
            lines[3],
            "active:4: q is no status: y, n, m, j, x or =other.group"
        );
        assert_eq!(lines[4], "active:5: x is no high mark");
        assert!(lines[5].starts_with("active:6: i..j: "), "{found}");
        assert_eq!(lines[6], "active:7: 99999999999999999999 is no high mark");
    }
}
