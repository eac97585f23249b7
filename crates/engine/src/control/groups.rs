//! newgroup, rmgroup and checkgroups: how one is read (RFC 5537 section 5.2), and its changes as the sequencer takes them.
//!
//! A message is read whole before anything is decided, and one that is malformed asks for nothing.  What it says is in
//! [`Meaning`].

use newsreel_wire::article::{Control, Headers, Known, first_mailbox};
use newsreel_wire::date::parse_relaxed;
use newsreel_wire::nntp::framing::dot_unstuff;
use newsreel_wire::{ArticleNumber, GroupName, UnixTime};

use super::meaning::{GroupAsked, Meaning, Scope, Wanted, check_name, check_parsed};
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
                    created: None,
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

    /// How many groups are changed.
    pub(crate) fn count(&self) -> usize {
        self.make.len() + self.set.len() + self.remove.len()
    }
}

/// A message, read.
#[derive(Debug)]
pub(crate) struct Message {
    /// The address in From, in small letters.
    pub(crate) sender: String,
    /// Its Date, if it has one.
    pub(crate) date: Option<UnixTime>,
    /// Of a checkgroups, its serial number.
    pub(crate) serial: Option<u64>,
    pub(crate) meaning: Meaning,
}

impl Message {
    pub(crate) const fn verb(&self) -> Verb {
        self.meaning.verb()
    }

    /// Whether it lists groups, which may be many.
    pub(crate) const fn is_list(&self) -> bool {
        matches!(self.meaning, Meaning::Checkgroups { .. })
    }
}

/// What a message about groups is; `None`: it is none.
pub(crate) fn verb_of(headers: &Headers<'_>) -> Option<Verb> {
    Verb::parse(Control::parse(headers.content(Known::Control)?)?.verb())
}

/// The address in From, in small letters, if it has one.
pub(super) fn sender(headers: &Headers<'_>) -> Option<String> {
    let from = headers.content(Known::From).unwrap_or_default();
    let sender = first_mailbox(from).ok()?;
    Some(String::from_utf8_lossy(sender).to_lowercase())
}

/// Reads a message about groups.  `None`: it is none.  `Err`: what is wrong with it.
pub(crate) fn read(headers: &Headers<'_>) -> Option<Result<Message, &'static str>> {
    let control = Control::parse(headers.content(Known::Control)?)?;
    let verb = Verb::parse(control.verb())?;
    Some(message(headers, &control, verb))
}

fn message(
    headers: &Headers<'_>,
    control: &Control<'_>,
    verb: Verb,
) -> Result<Message, &'static str> {
    if headers.content(Known::Approved).is_none() {
        return Err("it has no Approved field");
    }
    let sender = sender(headers).ok_or("its From has no address")?;
    let arguments: Option<Vec<&str>> = control
        .arguments()
        .map(|word| std::str::from_utf8(word).ok())
        .collect();
    let arguments = arguments.ok_or("its arguments are no UTF-8")?;
    let mut serial = None;
    let meaning = match (verb, &arguments[..]) {
        (Verb::Newgroup, [name, flags @ ..]) => {
            let is_moderated = match flags {
                [] => false,
                [flag] => flag.eq_ignore_ascii_case("moderated"),
                _ => return Err("it has too many arguments"),
            };
            check_name(name)?;
            Meaning::Newgroup(Wanted {
                description: description(&text(headers), name),
                name: (*name).to_owned(),
                is_moderated,
            })
        }
        (Verb::Rmgroup, [name]) => {
            check_name(name)?;
            Meaning::Rmgroup((*name).to_owned())
        }
        (Verb::Checkgroups, arguments) => {
            serial = serial_number(arguments)?;
            listed(&text(headers), arguments)?
        }
        _ => return Err("it names no group, or more than one"),
    };
    let date = headers.content(Known::Date);
    Ok(Message {
        sender,
        date: date.and_then(|date| parse_relaxed(date).ok()),
        serial,
        meaning,
    })
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
fn group_line(line: &str) -> Option<(GroupName<'_>, &str)> {
    let (name, description) = line.split_once(['\t', ' ']).unwrap_or((line, ""));
    let description = description.trim();
    let is_plain = !description.contains(|c: char| c.is_control() || c == '\u{fffd}');
    let is_text = is_plain && description.len() <= GROUP_TEXT_OCTETS_MAX;
    let name = is_text.then(|| GroupName::parse(name.as_bytes()).ok())??;
    Some((name, description))
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
        .filter(|(name, _)| name.as_str() == group);
    let (_, description) = lines.next()?;
    (!description.is_empty()).then(|| description.to_owned())
}

/// What a checkgroups says (RFC 5537 section 5.2.3).  Groups that it lists outside its scope are not its to say something of.
fn listed(body: &str, arguments: &[&str]) -> Result<Meaning, &'static str> {
    let named = named(arguments)?;
    if body.lines().nth(CHECKGROUPS_LINES_MAX).is_some() {
        // What stands behind them would count as left out.
        return Err("it has more lines than any list of groups");
    }
    let mut wanted: Vec<Wanted> = Vec::new();
    for (name, description) in body.lines().filter_map(group_line) {
        // A line of prose has a first word, too; a name has a dot, and so has what people put behind a sentence.
        if !description.is_empty() && name.as_str().contains('.') {
            check_parsed(name)?;
            wanted.push(Wanted {
                name: name.as_str().to_owned(),
                is_moderated: ends_moderated(description),
                description: Some(description.to_owned()),
            });
        }
    }
    let scope = Scope::new(named, wanted.iter().map(|one| one.name.as_str()));
    if !scope.named().is_empty() {
        wanted.retain(|one| scope.means(&one.name));
    }
    if wanted.is_empty() {
        // That would remove all of its hierarchies.
        return Err("it lists no group of its hierarchies");
    }
    wanted.sort_by(|a, b| a.name.cmp(&b.name));
    if wanted
        .windows(2)
        .any(|pair| matches!(pair, [a, b] if a.name == b.name))
    {
        return Err("it lists a group twice");
    }
    Ok(Meaning::Checkgroups { wanted, scope })
}

/// Whether a description says that the group is moderated.
fn ends_moderated(description: &str) -> bool {
    const MARK: &str = "(moderated)";
    let from = description.len().checked_sub(MARK.len());
    let end = from.and_then(|from| description.get(from..));
    end.is_some_and(|end| end.eq_ignore_ascii_case(MARK))
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
    fn a_list_says_nothing_of_what_is_outside_its_scope() {
        let body = "de.b\tB.\nfr.a\tA. (Moderated)\nde.a\tA. (moderated)\nde.sub.a\tA.\n";
        let names = |arguments: &str| {
            let words: Vec<&str> = arguments.split_whitespace().collect();
            let meaning = listed(body, &words)?;
            let of = |it: &Wanted| it.name.clone() + if it.is_moderated { " m" } else { "" };
            let Meaning::Checkgroups { wanted, .. } = meaning else {
                return Err("no list");
            };
            Ok(wanted.iter().map(of).collect::<Vec<_>>().join(", "))
        };
        let of_de = "de.a m, de.b";
        for (arguments, expected) in [
            ("", Ok(format!("{of_de}, de.sub.a, fr.a m"))),
            ("de #7", Ok(format!("{of_de}, de.sub.a"))),
            ("de !de.sub", Ok(of_de.to_owned())),
            ("es #7", Err("it lists no group of its hierarchies")),
        ] {
            assert_eq!(names(arguments), expected, "{arguments}");
        }
        assert!(named(&["de..x"]).is_err());
    }

    /// Groups that stood behind so many lines counted as left out, and were removed.
    #[test]
    fn a_list_that_is_too_long_asks_for_nothing() {
        let of = |empty: usize| {
            let body = format!("de.a\tA.\n{}de.b\tB.\n", "\n".repeat(empty));
            listed(&body, &["de"])
        };
        let whole = of(CHECKGROUPS_LINES_MAX - 2).unwrap();
        assert_eq!(whole.named().collect::<Vec<_>>(), ["de.a", "de.b"]);
        assert!(of(CHECKGROUPS_LINES_MAX - 1).is_err());
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
                Scope::new(named, std::iter::empty()).means("a.b");
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
            assert!(check_name(name).is_err(), "{name}");
        }
        for name in ["a.b", "comp.control", "misc.junk"] {
            assert!(check_name(name).is_ok(), "{name}");
        }
    }
}
