//! Reads a configuration file and finds everything that is wrong with it in one go.
//!
//! Every key is held against the table of keys: unknown ones, wrong kinds and values out of limits become problems with
//! their place, readable sizes and durations become numbers.  What comes out has only known keys of the right kind.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::{Problem, place};
use super::schema::{self, Key, Kind};

/// An address in the place of one that could not be read: it is in nobody's way.
const ANY_ADDRESS: &str = "127.0.0.1:0";

/// How names begin in the place of those that could not be read.
const STAND_IN: &str = "unread-";

/// Keys that people write for others, far from them in letters.
const OTHERWISE: &[(&str, &str)] = &[("moderation.program", "sendmail")];

/// Whether a name is none that somebody wrote.
pub(super) fn is_stand_in(name: &str) -> bool {
    name.strip_prefix(STAND_IN)
        .is_some_and(|rest| rest.bytes().all(|octet| octet.is_ascii_digit()))
}

/// A file as read: its values with readable ones made into numbers, and where each key stands.
#[derive(Debug, Default)]
pub(crate) struct Read {
    /// Known keys with values of the right kind.
    pub(crate) values: toml::Table,
    /// Where each key's value stands, by path; keys of tables in lists carry the place in the list, `buffer[1].name`.
    pub(crate) places: BTreeMap<String, (usize, usize)>,
    /// Keys, sections and lists of which something is wrong or missing, and keys that unknown ones were meant to be.
    pub(crate) unsound: BTreeSet<String>,
    /// Whether the text is no TOML: what was read may not be what was meant.
    pub(crate) is_torn: bool,
    /// What is wrong.
    pub(crate) problems: Vec<Problem>,
}

impl Read {
    /// Whether this key of tables in a list, `buffer.name`, could not be read in one of them.
    pub(crate) fn is_unsound(&self, key: &str) -> bool {
        self.unsound.iter().any(|unsound| {
            let unsound = without_places(unsound);
            let rest = key.strip_prefix(unsound.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
    }
}

impl Read {
    /// Whether what is said of an entry of a list can be believed, though other things are wrong: nothing in it was read otherwise than it
    /// was written, so that what is missing was not there.
    pub(crate) fn is_entry_sound(&self, key: &str) -> bool {
        let Some(entry) = key.find(']').and_then(|end| key.get(..=end)) else {
            return false;
        };
        let list = without_places(entry) + ".";
        let spoils = |unsound: &String| {
            let is_known = schema::find(&without_places(unsound)).is_some();
            is_known && (unsound.starts_with(entry) || unsound.starts_with(&list))
        };
        !self.is_torn && self.places.contains_key(entry) && !self.unsound.iter().any(spoils)
    }
}

/// `buffer.name` of `buffer[1].name`.
fn without_places(said: &str) -> String {
    let mut out = String::with_capacity(said.len());
    for part in said.split('[') {
        out.push_str(part.split_once(']').map_or(part, |(_, rest)| rest));
    }
    out
}

/// Reads the text of a file.
pub(crate) fn read(text: &str) -> Read {
    let (document, errors) = DeTable::parse_recoverable(text);
    let mut reader = Reader {
        text,
        read: Read::default(),
    };
    for error in errors {
        let span = error.span().unwrap_or(0..0);
        let (what, right) = reader.syntax(&error, &span, document.get_ref());
        // Of what is there twice we do not know which is meant; all else is as it was written.
        match twice(text, &error, &span) {
            Some(key) => reader.read.unsound.extend([key]),
            None => reader.read.is_torn = true,
        }
        reader.problem(&span, what, right);
    }
    reader.read.values = reader.table(document.get_ref(), "", "");
    if reader.read.is_torn {
        // What follows a syntax error may have been read wrongly: keep to what is surely wrong.
        reader
            .read
            .problems
            .retain(|problem| !problem.what.starts_with("a key is missing"));
    }
    reader.read.problems.sort();
    reader.read
}

struct Reader<'t> {
    text: &'t str,
    read: Read,
}

impl Reader<'_> {
    fn problem(&mut self, span: &Range<usize>, what: String, right: String) {
        let (line, column) = place(self.text, span.start);
        self.read.problems.push(Problem {
            line,
            column,
            what,
            right,
        });
    }

    /// What a syntax error is, and what to do about it.
    fn syntax(
        &self,
        error: &toml::de::Error,
        span: &Range<usize>,
        document: &DeTable<'_>,
    ) -> (String, String) {
        let what = error.message().trim().replace('\n', ", ");
        let word = self.text.get(span.clone()).unwrap_or_default();
        let word = word.trim_matches(['"', '\'', '[', ']', ' ']);
        if what != "duplicate key" || word.is_empty() {
            return (what, "see https://toml.io".to_owned());
        }
        let first = last_before(document, word, span.start);
        let right = match first.or_else(|| header_before(self.text, span.start)) {
            Some(first) => {
                let (line, _) = place(self.text, first);
                format!("it stands in line {line} already; keep one of them")
            }
            None => "keep one of them".to_owned(),
        };
        (format!("{what} `{word}`"), right)
    }

    /// Reads a table; `path` is how the table of keys calls it, `said` how this file does.
    fn table(&mut self, table: &DeTable<'_>, path: &str, said: &str) -> toml::Table {
        let mut values = toml::Table::new();
        for (name, value) in table {
            let word: &str = name.get_ref();
            let path = joined(path, word);
            let said = joined(said, word);
            let problems = self.read.problems.len();
            let found = if let Some(key) = schema::find(&path) {
                self.read
                    .places
                    .insert(said.clone(), place(self.text, value.span().start));
                self.value(key, &key.kind, value, &said)
            } else if schema::is_section(&path) {
                self.section(value, &path, &said)
            } else {
                self.unknown(&name.span(), word, &path, &said);
                None
            };
            // Of sections and of lists of tables only the keys that are wrong; of other lists all.
            let has_keys = found.is_some() && schema::find(&path).is_none_or(Key::is_tables);
            if self.read.problems.len() > problems && !has_keys {
                self.read.unsound.insert(said);
            }
            if let Some(found) = found {
                values.insert(word.to_owned(), found);
            }
        }
        values
    }

    fn section(
        &mut self,
        value: &Spanned<DeValue<'_>>,
        path: &str,
        said: &str,
    ) -> Option<toml::Value> {
        self.read
            .places
            .insert(said.to_owned(), place(self.text, value.span().start));
        let Some(table) = value.get_ref().as_table() else {
            let what = format!("{said} is a section, not {}", article(value.get_ref()));
            self.problem(
                &value.span(),
                what,
                format!("write [{path}] on a line of its own"),
            );
            return None;
        };
        Some(toml::Value::Table(self.table(table, path, said)))
    }

    fn unknown(&mut self, span: &Range<usize>, word: &str, path: &str, said: &str) {
        let section = path.rsplit_once('.').map_or("", |(section, _)| section);
        let known = schema::names_below(section);
        // What several sections have is meant for none of them more than for another.
        let mut same = schema::keys().iter().filter(|key| key.name() == word);
        let elsewhere = same.next().filter(|_| same.next().is_none());
        let usual = OTHERWISE.iter().find(|(wrong, _)| *wrong == path);
        let nearest = usual.map(|(_, right)| *right);
        let nearest = nearest.or_else(|| schema::nearest(word, &known));
        let meant = nearest.map(|near| joined(section, near));
        let meant = meant.or_else(|| elsewhere.map(|key| key.path.clone()));
        self.read.unsound.extend(meant);
        let right = match (nearest, elsewhere) {
            (Some(near), _) => format!("did you mean `{near}`?"),
            (None, _) if schema::is_section(word) => {
                format!("{} is a section of its own", schema::header(word))
            }
            (None, Some(key)) => format!("it belongs into {}", schema::header(key.section())),
            (None, None) => format!("known here: {}", known.join(", ")),
        };
        self.problem(span, format!("unknown key `{said}`"), right);
    }

    fn value(
        &mut self,
        key: &Key,
        kind: &Kind,
        value: &Spanned<DeValue<'_>>,
        said: &str,
    ) -> Option<toml::Value> {
        let span = value.span();
        match (kind, value.get_ref()) {
            (Kind::Boolean, DeValue::Boolean(flag)) => Some(toml::Value::Boolean(*flag)),
            (Kind::Integer, DeValue::Integer(number)) => {
                let parsed = i128::from_str_radix(number.as_str(), number.radix());
                let number = parsed.unwrap_or(i128::MAX);
                self.integer(key, number, &span, said)
            }
            (Kind::Integer, DeValue::String(text)) if key.unit.is_some() => {
                let parsed = key.unit.map_or(Ok(0), |unit| unit.parse(text));
                match parsed {
                    Ok(number) => self.integer(key, i128::from(number), &span, said),
                    Err(right) => {
                        self.problem(&span, format!("{said} = {text:?} cannot be read"), right);
                        None
                    }
                }
            }
            (Kind::Number, DeValue::Float(number)) => {
                number.as_str().parse().ok().map(toml::Value::Float)
            }
            (Kind::Path, DeValue::String(text)) if text.contains('\0') => {
                let right = "no path can have a NUL: leave it out".to_owned();
                self.problem(&span, format!("{said} = {:?} has a NUL", &**text), right);
                None
            }
            (Kind::Text | Kind::Path, DeValue::String(text)) => {
                Some(toml::Value::String(text.to_string()))
            }
            (Kind::Address, DeValue::String(text)) => self.address(text, &span, said),
            (Kind::Choice, DeValue::String(text)) => self.choice(key, text, &span, said),
            (Kind::List(inner), DeValue::Array(list)) => Some(self.list(key, inner, list, said)),
            (Kind::Table, DeValue::Table(table)) => {
                let values = self.table(table, &key.path, said);
                self.missing(key, &values, &span, said);
                Some(filled(key, values, span.start))
            }
            (_, other) => {
                let what = format!("{said} is {}, not {}", wanted(key, kind), article(other));
                self.problem(&span, what, right(key, kind));
                None
            }
        }
    }

    fn list(
        &mut self,
        key: &Key,
        inner: &Kind,
        list: &[Spanned<DeValue<'_>>],
        said: &str,
    ) -> toml::Value {
        let mut out = Vec::new();
        for (at, item) in list.iter().enumerate() {
            let said = format!("{said}[{at}]");
            let start = item.span().start;
            let place = place(self.text, start);
            self.read.places.insert(said.clone(), place);
            let value = self.value(key, inner, item, &said);
            // What could not be read keeps its place in the list, so that others are told by theirs.
            let stand_in = match (&value, inner) {
                (None, Kind::Table) => Some(filled(key, toml::Table::new(), start)),
                (None, Kind::Address) => Some(toml::Value::String(ANY_ADDRESS.to_owned())),
                _ => None,
            };
            if stand_in.is_some() {
                self.read.unsound.insert(said);
            }
            out.extend(value.or(stand_in));
        }
        toml::Value::Array(out)
    }

    fn integer(
        &mut self,
        key: &Key,
        number: i128,
        span: &Range<usize>,
        said: &str,
    ) -> Option<toml::Value> {
        let limits = key.limits.clone().unwrap_or(0..=i64::MAX);
        match i64::try_from(number)
            .ok()
            .filter(|number| limits.contains(number))
        {
            Some(number) => Some(toml::Value::Integer(number)),
            None => {
                let what = format!("{said} = {number} is out of its limits");
                self.problem(span, what, format!("give {}", limits_text(key)));
                None
            }
        }
    }

    fn address(&mut self, text: &str, span: &Range<usize>, said: &str) -> Option<toml::Value> {
        if let Err(error) = text.parse::<SocketAddr>() {
            let right =
                "write host:port with a numeric host, as in \"127.0.0.1:119\" or \"[::1]:119\"";
            self.problem(
                span,
                format!("{said} = {text:?}: {error}"),
                right.to_owned(),
            );
            return None;
        }
        Some(toml::Value::String(text.to_owned()))
    }

    fn choice(
        &mut self,
        key: &Key,
        text: &str,
        span: &Range<usize>,
        said: &str,
    ) -> Option<toml::Value> {
        if key.choices.iter().any(|(word, _)| word == text) {
            return Some(toml::Value::String(text.to_owned()));
        }
        self.problem(
            span,
            format!("{said} = {text:?} is none of its words"),
            right(key, &Kind::Choice),
        );
        None
    }

    /// Keys of a table in a list that have no default must be there.
    fn missing(&mut self, key: &Key, values: &toml::Table, span: &Range<usize>, said: &str) {
        for required in super::REQUIRED.iter().filter_map(|path| schema::find(path)) {
            if required.section() == key.path && !values.contains_key(required.name()) {
                let name = required.name();
                let given = self.read.places.contains_key(&format!("{said}.{name}"));
                self.read.unsound.insert(format!("{said}.{name}"));
                if !given {
                    let what = format!("a key is missing: {said} needs `{name}`");
                    self.problem(span, what, required.doc.clone());
                }
            }
        }
    }
}

/// A table with what it cannot do without: a stand-in for what could not be read, so that the rest of it is looked at.
/// `at` makes names of their own.
fn filled(key: &Key, mut values: toml::Table, at: usize) -> toml::Value {
    for required in super::REQUIRED.iter().filter_map(|path| schema::find(path)) {
        if required.section() == key.path && !values.contains_key(required.name()) {
            let stand_in = match &required.kind {
                Kind::List(_) => toml::Value::Array(Vec::new()),
                Kind::Integer => {
                    let limits = required.limits.as_ref();
                    toml::Value::Integer(limits.map_or(0, |limits| *limits.start()))
                }
                _ => toml::Value::String(format!("{STAND_IN}{at}")),
            };
            values.insert(required.name().to_owned(), stand_in);
        }
    }
    toml::Value::Table(values)
}

/// Where a key of this name stands last before an offset.
fn last_before(table: &DeTable<'_>, word: &str, end: usize) -> Option<usize> {
    let inside = |value: &DeValue<'_>| match value {
        DeValue::Table(table) => last_before(table, word, end),
        DeValue::Array(list) => list
            .iter()
            .filter_map(|item| last_before(item.get_ref().as_table()?, word, end))
            .max(),
        _ => None,
    };
    let of_entry = |(name, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
        let name: (&std::borrow::Cow<'_, str>, usize) = (name.get_ref(), name.span().start);
        let own = (name.0 == word && name.1 < end).then_some(name.1);
        own.max(inside(value.get_ref()))
    };
    table.iter().filter_map(of_entry).max()
}

/// The key or section that a syntax error says is there twice.
fn twice(text: &str, error: &toml::de::Error, span: &Range<usize>) -> Option<String> {
    if error.message().trim() != "duplicate key" {
        return None;
    }
    let bare = |header: &str| header.trim().trim_matches(['[', ']', ' ']).to_owned();
    let begin = text.get(..span.start)?.rfind('\n').map_or(0, |at| at + 1);
    let line = text.get(begin..)?.lines().next()?;
    if line.trim_start().starts_with('[') {
        return Some(bare(line));
    }
    let before = text.get(..begin)?.lines();
    let header = before.rev().find(|line| line.trim_start().starts_with('['));
    let word = text.get(span.clone())?.trim_matches(['"', '\'', ' ']);
    Some(joined(&header.map(bare).unwrap_or_default(), word))
}

/// Where the same section begins first, if a section's header stands at an offset: of two only the second is a key of
/// the document.
fn header_before(text: &str, at: usize) -> Option<usize> {
    let begin = text.get(..at)?.rfind('\n')? + 1;
    let header = text.get(begin..)?.lines().next()?.trim();
    let mut first = 0;
    for line in text.get(..begin)?.split_inclusive('\n') {
        if header.starts_with('[') && line.trim() == header {
            return Some(first);
        }
        first += line.len();
    }
    None
}

fn joined(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

/// What a value is, for a message.
fn article(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("the text {text:?}"),
        DeValue::Integer(number) => format!("the number {number}"),
        DeValue::Float(number) => format!("the number {number}"),
        DeValue::Boolean(flag) => format!("{flag}"),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

/// What a kind is, for a message.
pub(crate) fn wanted(key: &Key, kind: &Kind) -> &'static str {
    match kind {
        Kind::Boolean => "a boolean",
        Kind::Integer => match key.unit {
            Some(super::units::Unit::Octets) => "a size",
            Some(_) => "a duration",
            None => "a whole number",
        },
        Kind::Number => "a number",
        Kind::Text => "a text",
        Kind::Path => "a path",
        Kind::Address => "an address",
        Kind::Choice => "a choice of words",
        Kind::Table => "a table",
        Kind::List(_) => "a list",
    }
}

/// How a value of a kind is written.
fn right(key: &Key, kind: &Kind) -> String {
    match kind {
        Kind::Boolean => "write true or false, without quotes".to_owned(),
        Kind::Integer => match key.unit {
            Some(unit) => format!("write {}, {}", unit.example(), limits_text(key)),
            None => format!("write a number, {}", limits_text(key)),
        },
        Kind::Number => "write a number".to_owned(),
        Kind::Text | Kind::Path => "write it in quotes".to_owned(),
        Kind::Address => "write \"host:port\" in quotes".to_owned(),
        Kind::Choice => {
            let words: Vec<String> = key
                .choices
                .iter()
                .map(|(word, _)| format!("\"{word}\""))
                .collect();
            format!("write {}", words.join(" or "))
        }
        Kind::Table => "write a table with its keys".to_owned(),
        Kind::List(inner) if **inner == Kind::Table => format!("write [[{}]]", key.path),
        Kind::List(inner) => {
            format!("write a list in brackets; of each: {}", right(key, inner))
        }
    }
}

/// The limits of a number, for people.
pub(crate) fn limits_text(key: &Key) -> String {
    let limits = key.limits.clone().unwrap_or(0..=i64::MAX);
    let say = |number: i64| match (key.unit, u64::try_from(number)) {
        (Some(unit), Ok(number)) => unit.print(number),
        _ => number.to_string(),
    };
    format!("{} to {}", say(*limits.start()), say(*limits.end()))
}
