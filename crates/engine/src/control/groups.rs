//! newgroup, rmgroup and checkgroups: what a message asks for, as changes of the groups that are here (RFC 5537 section 5.2).
//!
//! A message is read whole before anything is decided, and one that is malformed asks for nothing.  Names that RFC 5536
//! section 3.1.4 reserves are never made or removed.  What an administrator has set here (closed, aliases, local posting)
//! is left; only the moderated flag of groups that are open is changed.

use newsreel_index::Groups;
use newsreel_wire::article::{Control, Headers, Known, first_mailbox};
use newsreel_wire::date::parse_relaxed;
use newsreel_wire::nntp::framing::dot_unstuff;
use newsreel_wire::{ArticleNumber, GroupName, UnixTime};
use serde::Serialize;

use crate::admin::GROUP_TEXT_OCTETS_MAX;
use crate::requests::{GroupChange, GroupSpec};

/// A checkgroups with more lines than this asks for nothing: no hierarchy has a tenth of it.
pub const CHECKGROUPS_LINES_MAX: usize = 100_000;

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Newgroup,
    Rmgroup,
    Checkgroups,
}

impl Verb {
    pub(crate) const ALL: [Self; 3] = [Self::Newgroup, Self::Rmgroup, Self::Checkgroups];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Newgroup => "newgroup",
            Self::Rmgroup => "rmgroup",
            Self::Checkgroups => "checkgroups",
        }
    }

    /// By its name.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|verb| verb.name().eq_ignore_ascii_case(name))
    }
}

/// What a group is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Wanted {
    name: String,
    is_moderated: bool,
    description: Option<String>,
}

/// One change of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "change", rename_all = "kebab-case")]
pub enum GroupAsked {
    /// It is to be made.
    Make {
        /// Its name.
        name: String,
        /// `y` or `m`.
        status: String,
        /// The line of LIST NEWSGROUPS.
        description: String,
    },
    /// It is to be changed; what is absent stays.
    Set {
        /// Its name.
        name: String,
        /// `y` or `m`.
        status: Option<String>,
        /// The line of LIST NEWSGROUPS.
        description: Option<String>,
    },
    /// It is to be removed.
    Remove {
        /// Its name.
        name: String,
    },
}

impl GroupAsked {
    /// The group.
    pub fn name(&self) -> &str {
        match self {
            Self::Make { name, .. } | Self::Set { name, .. } | Self::Remove { name } => name,
        }
    }
}

/// Changes as the sequencer takes them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    pub(crate) make: Vec<GroupSpec>,
    pub(crate) set: Vec<(String, GroupChange)>,
    pub(crate) remove: Vec<String>,
}

impl Changes {
    /// These; `creator` is who LIST ACTIVE.TIMES names.
    pub(crate) fn of(asked: Vec<GroupAsked>, creator: &str) -> Self {
        let mut changes = Self::default();
        for one in asked {
            match one {
                GroupAsked::Make {
                    name,
                    status,
                    description,
                } => changes.make.push(GroupSpec {
                    name,
                    status,
                    description,
                    creator: creator.to_owned(),
                    high: ArticleNumber(0),
                }),
                GroupAsked::Set {
                    name,
                    status,
                    description,
                } => {
                    let high = None;
                    let change = GroupChange {
                        status,
                        description,
                        high,
                    };
                    changes.set.push((name, change));
                }
                GroupAsked::Remove { name } => changes.remove.push(name),
            }
        }
        changes
    }

    /// Keeps those of groups of which this says so.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&str) -> bool) {
        self.make.retain(|spec| keep(&spec.name));
        self.set.retain(|(name, _)| keep(name));
        self.remove.retain(|name| keep(name));
    }
}

/// A message, read.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) verb: Verb,
    /// The address in From, in small letters.
    pub(crate) sender: String,
    /// The groups that it says something of.
    pub(crate) about: Vec<String>,
    /// What it would change here.
    pub(crate) asked: Vec<GroupAsked>,
    /// Its Date, if it has one.
    pub(crate) date: Option<UnixTime>,
    /// Of a checkgroups, its serial number.
    pub(crate) serial: Option<u64>,
    /// Of a checkgroups, which groups it means: those of them that it does not list are not to be here.
    pub(crate) scope: Option<Scope>,
}

/// The groups that a checkgroups means.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Scope {
    /// The hierarchies that it names, and whether each is meant or left out; the longest that a group belongs to decides.
    pub(crate) named: Vec<(String, bool)>,
    /// Where it names none: the first parts of the names that it lists, in order.
    pub(crate) tops: Vec<String>,
}

/// Whether it is a message about groups.
pub(crate) fn is_about_groups(headers: &Headers<'_>) -> bool {
    let control = headers.content(Known::Control).and_then(Control::parse);
    control.is_some_and(|control| Verb::parse(control.verb()).is_some())
}

/// Reads a message about groups.  `None`: it is none.  `Err`: what is wrong with it.
pub(crate) fn read(
    headers: &Headers<'_>,
    groups: &Groups,
) -> Option<Result<Message, &'static str>> {
    let control = Control::parse(headers.content(Known::Control)?)?;
    let verb = Verb::parse(control.verb())?;
    Some(message(headers, &control, verb, groups))
}

fn message(
    headers: &Headers<'_>,
    control: &Control<'_>,
    verb: Verb,
    groups: &Groups,
) -> Result<Message, &'static str> {
    if headers.content(Known::Approved).is_none() {
        return Err("it has no Approved field");
    }
    let from = headers.content(Known::From).unwrap_or_default();
    let sender = first_mailbox(from).map_err(|_| "its From has no address")?;
    let sender = String::from_utf8_lossy(sender).to_lowercase();
    let arguments: Option<Vec<&str>> = control
        .arguments()
        .map(|word| std::str::from_utf8(word).ok())
        .collect();
    let arguments = arguments.ok_or("its arguments are no UTF-8")?;
    let (mut serial, mut scope) = (None, None);
    let (about, asked) = match (verb, &arguments[..]) {
        (Verb::Newgroup, [name, flags @ ..]) => {
            let is_moderated = match flags {
                [] => false,
                [flag] => flag.eq_ignore_ascii_case("moderated"),
                _ => return Err("it has too many arguments"),
            };
            let name = usable(name)?;
            let wanted = Wanted {
                description: description(&text(headers), &name),
                name: name.clone(),
                is_moderated,
            };
            (vec![name], made(&[wanted], groups))
        }
        (Verb::Rmgroup, [name]) => {
            let name = usable(name)?;
            let is_there = groups.by_name(&name).is_some();
            let asked = is_there.then(|| GroupAsked::Remove { name: name.clone() });
            (vec![name], asked.into_iter().collect())
        }
        (Verb::Checkgroups, arguments) => {
            let (about, asked, meant) = checked(&text(headers), arguments, groups)?;
            scope = Some(meant);
            serial = serial_number(arguments)?;
            (about, asked)
        }
        _ => return Err("it names no group, or more than one"),
    };
    let date = headers.content(Known::Date);
    Ok(Message {
        verb,
        sender,
        date: date.and_then(|date| parse_relaxed(date).ok()),
        about,
        asked,
        serial,
        scope,
    })
}

/// A group's name that a message may be about.
fn usable(name: &str) -> Result<String, &'static str> {
    let parsed = GroupName::parse(name.as_bytes());
    let parsed = parsed.map_err(|_| "a group's name in it is malformed")?;
    match parsed.is_reserved() {
        true => Err("a group's name in it is reserved"),
        false => Ok(name.to_owned()),
    }
}

/// The body without what the wire adds to it, but for the CR at the ends of lines.
pub(crate) fn plain_body(headers: &Headers<'_>) -> Vec<u8> {
    let body = headers.body();
    let mut plain = Vec::with_capacity(body.len());
    dot_unstuff(body.strip_suffix(b".\r\n").unwrap_or(body), &mut plain);
    plain
}

/// The body as text: UTF-8, or octets as ISO 8859-1 where it is none, which is what old messages are mostly in.
pub(crate) fn text(headers: &Headers<'_>) -> String {
    String::from_utf8(plain_body(headers)).unwrap_or_else(|error| {
        error
            .as_bytes()
            .iter()
            .map(|octet| char::from(*octet))
            .collect()
    })
}

/// A line `name description`; `None`: it is none.
fn group_line(line: &str) -> Option<(&str, &str)> {
    let (name, description) = line.split_once(['\t', ' ']).unwrap_or((line, ""));
    let description = description.trim();
    let is_plain = !description.contains(|c: char| c.is_control() || c == '\u{fffd}');
    let is_name = GroupName::parse(name.as_bytes()).is_ok();
    (is_name && is_plain && description.len() <= GROUP_TEXT_OCTETS_MAX)
        .then_some((name, description))
}

/// What a newgroup says of its group: behind the line that everybody writes, or in a part of its own type (RFC 5537
/// section 5.2.1.1).
fn description(body: &str, group: &str) -> Option<String> {
    let is_mark = |line: &&str| {
        let line = line.trim().to_ascii_lowercase();
        line.starts_with("for your newsgroups file")
            || line.starts_with("content-type:") && line.contains("application/news-groupinfo")
    };
    let behind = body.lines().skip_while(|line| !is_mark(line)).skip(1);
    let mut lines = behind
        .filter_map(group_line)
        .filter(|(name, _)| *name == group);
    let (_, description) = lines.next()?;
    (!description.is_empty()).then(|| description.to_owned())
}

/// What makes the groups here such as these.
fn made(wanted: &[Wanted], groups: &Groups) -> Vec<GroupAsked> {
    let one = |wanted: &Wanted| {
        let status = if wanted.is_moderated { "m" } else { "y" };
        let name = wanted.name.clone();
        let Some(there) = groups.by_name(&name) else {
            return Some(GroupAsked::Make {
                name,
                status: status.to_owned(),
                description: wanted.description.clone().unwrap_or_default(),
            });
        };
        let is_open = matches!(there.status(), "y" | "m");
        let status = (is_open && there.status() != status).then(|| status.to_owned());
        let description = wanted
            .description
            .clone()
            .filter(|new| new != there.description());
        (status.is_some() || description.is_some()).then_some(GroupAsked::Set {
            name,
            status,
            description,
        })
    };
    wanted.iter().filter_map(one).collect()
}

/// What a checkgroups is about, and what it asks for: groups of its list that are not here so, and groups here that are in its scope and not in
/// its list (RFC 5537 section 5.2.3).
fn checked(
    body: &str,
    arguments: &[&str],
    groups: &Groups,
) -> Result<(Vec<String>, Vec<GroupAsked>, Scope), &'static str> {
    let mut wanted: Vec<Wanted> = Vec::new();
    for (name, description) in body
        .lines()
        .take(CHECKGROUPS_LINES_MAX)
        .filter_map(group_line)
    {
        // A line of prose has a first word, too; a name has a dot, and so has what people put behind a sentence.
        if name.contains('.') && !description.is_empty() {
            wanted.push(Wanted {
                name: usable(name)?,
                is_moderated: description.to_lowercase().ends_with("(moderated)"),
                description: Some(description.to_owned()),
            });
        }
    }
    if wanted.is_empty() {
        return Err("it lists no group");
    }
    wanted.sort_by(|a, b| a.name.cmp(&b.name));
    if wanted
        .windows(2)
        .any(|pair| matches!(pair, [a, b] if a.name == b.name))
    {
        return Err("it lists a group twice");
    }
    let named = named(arguments)?;
    let mut tops = Vec::new();
    if named.is_empty() {
        let listed = wanted.iter().filter_map(|one| one.name.split('.').next());
        tops = listed.map(str::to_owned).collect();
        tops.sort();
        tops.dedup();
    }
    let scope = Scope { named, tops };
    let mut asked = made(&wanted, groups);
    let is_wanted = |name: &str| {
        wanted
            .binary_search_by(|one| one.name.as_str().cmp(name))
            .is_ok()
    };
    for id in groups.sorted().iter() {
        let Some(group) = groups.by_id(*id) else {
            continue;
        };
        let name = group.name();
        if scope.means(name) && !is_wanted(name) && usable(name).is_ok() {
            let name = name.to_owned();
            asked.push(GroupAsked::Remove { name });
        }
    }
    let listed = wanted.iter().map(|one| one.name.as_str());
    let about = listed.chain(asked.iter().map(GroupAsked::name));
    Ok((about.map(str::to_owned).collect(), asked, scope))
}

/// The hierarchies in the arguments, and whether each is meant or left out; the serial number is no part of it.
pub(super) fn named(arguments: &[&str]) -> Result<Vec<(String, bool)>, &'static str> {
    let named = arguments.iter().filter(|word| !word.starts_with('#'));
    let named = named.map(|word| match word.strip_prefix('!') {
        Some(rest) => (rest.to_owned(), false),
        None => ((*word).to_owned(), true),
    });
    let named: Vec<_> = named.collect();
    let is_name = |name: &str| GroupName::parse(name.as_bytes()).is_ok();
    match named.iter().all(|(name, _)| is_name(name)) {
        true => Ok(named),
        false => Err("its scope is malformed"),
    }
}

/// The serial number in the arguments of a checkgroups.
pub(super) fn serial_number(arguments: &[&str]) -> Result<Option<u64>, &'static str> {
    let mut numbers = arguments.iter().filter_map(|word| word.strip_prefix('#'));
    let is_number = |text: &&str| text.bytes().all(|octet| octet.is_ascii_digit());
    let read = |text: &str| {
        let digits = Some(text).filter(is_number)?;
        digits.parse::<u64>().ok()
    };
    match (numbers.next(), numbers.next()) {
        (None, _) => Ok(None),
        (Some(text), None) => match read(text) {
            None => Err("its serial number is malformed"),
            number => Ok(number),
        },
        (Some(_), Some(_)) => Err("it has more than one serial number"),
    }
}

impl Scope {
    /// Whether it means this group.
    pub(crate) fn means(&self, group: &str) -> bool {
        self.top_of(group).is_some()
    }

    /// The hierarchy of this group, as far as it means that.
    pub(crate) fn top_of<'a>(&'a self, group: &'a str) -> Option<&'a str> {
        if self.named.is_empty() {
            let top = group.split('.').next().unwrap_or_default();
            return Some(top).filter(|top| self.tops.iter().any(|one| one == top));
        }
        let belongs = |top: &str| {
            let rest = group.strip_prefix(top);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let named = self.named.iter().filter(|(top, _)| belongs(top));
        let longest = named.max_by_key(|(top, _)| top.len());
        longest
            .filter(|(_, is_in)| *is_in)
            .map(|(top, _)| top.as_str())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn descriptions_of_a_newgroup() {
        for (body, expected) in [
            (
                "For your newsgroups file:\na.b\tAbout b.\n",
                Some("About b."),
            ),
            (
                "a.b is a group.\n\nFor your newsgroups file:\n\na.b    About b. (Moderated)\n",
                Some("About b. (Moderated)"),
            ),
            (
                "--x\nContent-Type: application/news-groupinfo; charset=utf-8\n\nFor your newsgroups file:\na.b\tGr\u{fc}n\n--x--\n",
                Some("Gr\u{fc}n"),
            ),
            (
                "--x\nContent-Type: application/news-groupinfo\n\na.b\tB\n--x--\n",
                Some("B"),
            ),
            ("a.b About b.\n", None),
            ("For your newsgroups file:\na.c About c.\n", None),
            ("For your newsgroups file:\na.b\n", None),
            ("For your newsgroups file:\na.b\tx\u{7}\n", None),
            ("", None),
        ] {
            assert_eq!(description(body, "a.b").as_deref(), expected, "{body:?}");
        }
        let long = format!(
            "For your newsgroups file:\na.b\t{}\n",
            "x".repeat(GROUP_TEXT_OCTETS_MAX + 1)
        );
        assert_eq!(description(&long, "a.b"), None);
    }

    #[test]
    fn serial_numbers() {
        let read = |arguments: &str| {
            let words: Vec<&str> = arguments.split_whitespace().collect();
            serial_number(&words)
        };
        for bad in ["#", "#x", "#-1", "#+1", "#1 #2", "de #99999999999999999999"] {
            assert!(read(bad).is_err(), "{bad}");
        }
        for (good, number) in [
            ("", None),
            ("de", None),
            ("de #007", Some(7)),
            ("#8", Some(8)),
        ] {
            assert_eq!(read(good), Ok(number), "{good}");
        }
    }

    #[test]
    fn scopes() {
        let all = ["de", "!de.alt", "de.alt.test", "#248"];
        let scope = Scope {
            named: named(&all).unwrap(),
            tops: Vec::new(),
        };
        for (group, is_in) in [
            ("de.comp", true),
            ("de.alt.x", false),
            ("de.alt.test.y", true),
            ("dea.x", false),
            ("comp.de", false),
        ] {
            assert_eq!(scope.means(group), is_in, "{group}");
        }
        assert!(named(&["de..x"]).is_err());
    }

    proptest! {
        /// Whatever a body is, what is taken from it can stand in a line of LIST.
        #[test]
        fn prop_a_description_is_one_line(body in "(For your newsgroups file:\n|a[.]b|\t|[^\u{0}]| |\n){0,40}") {
            if let Some(text) = description(&body, "a.b") {
                prop_assert!(!text.is_empty() && !text.contains(char::is_control));
            }
            let words: Vec<&str> = body.split_whitespace().collect();
            if let Ok(named) = named(&words) {
                Scope { named, tops: Vec::new() }.means("a.b");
            }
        }
    }

    #[test]
    fn reserved_names() {
        for name in [
            "control.x",
            "junk",
            "to.here",
            "example.x",
            "a.all",
            "a.ctl.b",
            "poster",
            "a..b",
        ] {
            assert!(usable(name).is_err(), "{name}");
        }
        for name in ["a.b", "comp.control", "misc.junk"] {
            assert!(usable(name).is_ok(), "{name}");
        }
    }
}
