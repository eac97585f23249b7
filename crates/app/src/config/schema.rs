//! The table of configuration keys: what exists, of what kind, within which limits, and what it does.
//!
//! The table is made from the doc comments of the section structs (`cargo xtask docs` writes `keys.toml`, tidy holds it
//! fresh), so a key cannot exist without a text, nor a text without a key.

use std::ops::RangeInclusive;
use std::sync::OnceLock;

use newsreel_store::methods::{self, Method};
use serde::Deserialize;

use super::limits;
use super::units::Unit;

/// What a key holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `true` or `false`.
    Boolean,
    /// A whole number, perhaps with a unit.
    Integer,
    /// A number.
    Number,
    /// Any text.
    Text,
    /// A place in the file system.
    Path,
    /// `host:port` with a numeric host.
    Address,
    /// One of a few words.
    Choice,
    /// A table with keys of its own.
    Table,
    /// Some of the same kind.
    List(Box<Self>),
}

impl Kind {
    fn parse(text: &str) -> Option<Self> {
        if let Some(inner) = text.strip_prefix("list of ") {
            return Some(Self::List(Box::new(Self::parse(inner)?)));
        }
        Some(match text.strip_prefix("optional ").unwrap_or(text) {
            "boolean" => Self::Boolean,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "text" => Self::Text,
            "path" => Self::Path,
            "address" => Self::Address,
            "choice" => Self::Choice,
            "table" => Self::Table,
            _ => return None,
        })
    }
}

/// One key.
#[derive(Debug)]
pub(crate) struct Key {
    /// Section and name, `listen.backlog`.
    pub(crate) path: String,
    /// What it holds.
    pub(crate) kind: Kind,
    /// The words of a choice, with their texts.
    pub(crate) choices: Vec<(String, String)>,
    /// What it does.
    pub(crate) doc: String,
    /// What its number counts.
    pub(crate) unit: Option<Unit>,
    /// The least and the most it may be.
    pub(crate) limits: Option<RangeInclusive<i64>>,
}

impl Key {
    /// The section, or nothing for a key at the top.
    pub(crate) fn section(&self) -> &str {
        self.path
            .rsplit_once('.')
            .map_or("", |(section, _)| section)
    }

    /// Whether it is a list of tables with keys of their own.
    pub(crate) fn is_tables(&self) -> bool {
        matches!(&self.kind, Kind::List(inner) if **inner == Kind::Table)
    }

    /// The last part.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('.').next().unwrap_or(&self.path)
    }
}

#[derive(Deserialize)]
struct Table {
    key: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    path: String,
    kind: String,
    #[serde(default)]
    choices: Vec<(String, String)>,
    doc: String,
}

/// Every key, section by section.
pub(crate) fn keys() -> &'static [Key] {
    static KEYS: OnceLock<Vec<Key>> = OnceLock::new();
    KEYS.get_or_init(|| {
        let table: Table =
            toml::from_str(include_str!("keys.toml")).unwrap_or(Table { key: vec![] });
        table.key.into_iter().filter_map(key).collect()
    })
}

fn key(row: Row) -> Option<Key> {
    let kind = Kind::parse(&row.kind)?;
    let unit = if kind == Kind::Integer {
        Unit::of_key(&row.path)
    } else {
        None
    };
    // The table of methods knows them, not the type of the key.
    let (kind, choices) = if row.path == "set.method" {
        let method = |method: &Method| (method.name.to_owned(), method.doc.to_owned());
        (Kind::Choice, methods::all().map(method).collect())
    } else {
        (kind, row.choices)
    };
    Some(Key {
        limits: limits::of(&row.path),
        unit,
        kind,
        path: row.path,
        choices,
        doc: row.doc,
    })
}

/// The key of that path.
pub(crate) fn find(path: &str) -> Option<&'static Key> {
    keys().iter().find(|key| key.path == path)
}

/// Whether some key begins with this section.
pub(crate) fn is_section(path: &str) -> bool {
    keys().iter().any(|key| {
        key.path
            .strip_prefix(path)
            .is_some_and(|rest| rest.starts_with('.'))
    })
}

/// How a section's first line is written: `[listen]`, `[[peer]]`.
pub(crate) fn header(section: &str) -> String {
    let mut lists = keys().iter().filter(|key| key.is_tables());
    match lists.any(|key| key.path == section) {
        true => format!("[[{section}]]"),
        false => format!("[{section}]"),
    }
}

/// The sections and keys directly below a path.
pub(crate) fn names_below(section: &str) -> Vec<&'static str> {
    let mut names: Vec<&str> = keys()
        .iter()
        .filter_map(|key| {
            let rest = if section.is_empty() {
                key.path.as_str()
            } else {
                key.path.strip_prefix(section)?.strip_prefix('.')?
            };
            rest.split('.').next()
        })
        .collect();
    names.dedup();
    names
}

/// The name that is nearest to one that does not exist, if any is near.
pub(crate) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let far = (name.len() / 3).max(2);
    known
        .iter()
        .map(|known| (distance(name, known), *known))
        .filter(|(distance, _)| *distance <= far)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// Names, those that are nearest to one that does not exist first.
pub(crate) fn by_distance<'a>(name: &str, known: &[&'a str]) -> Vec<&'a str> {
    let mut names = known.to_vec();
    names.sort_by_key(|known| distance(name, known));
    names
}

/// How many letters must be put in, taken out, replaced or swapped with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let replaced = last[j] + usize::from(x != y);
            let mut best = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_whole() {
        let rows: Table = toml::from_str(include_str!("keys.toml")).unwrap();
        assert_eq!(
            rows.key.len(),
            keys().len(),
            "a row has a kind that is not known here"
        );
        for key in keys() {
            assert!(!key.doc.is_empty(), "{}", key.path);
            assert_eq!(
                key.choices.is_empty(),
                key.kind != Kind::Choice,
                "{}",
                key.path
            );
        }
    }

    #[test]
    fn every_number_has_limits_and_every_limit_a_number() {
        for key in keys().iter().filter(|key| key.kind == Kind::Integer) {
            assert!(
                key.limits.is_some(),
                "{} has no limits in limits.rs",
                key.path
            );
        }
        for (path, _) in limits::LIMITS {
            let key =
                find(path).unwrap_or_else(|| panic!("limits.rs names {path}, which is no key"));
            assert_eq!(key.kind, Kind::Integer, "{path}");
        }
    }

    #[test]
    fn near_names_are_found() {
        let names = ["connections_max", "backlog", "addresses"];
        assert_eq!(nearest("adresses", &names), Some("addresses"));
        assert_eq!(nearest("bakclog", &names), Some("backlog"));
        assert_eq!(nearest("colour", &names), None);
        assert_eq!(distance("", "abc"), 3);
    }
}
