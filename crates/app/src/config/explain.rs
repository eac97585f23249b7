//! `config explain KEY`: what a key is, from the one table of keys, with its default and the value in force.

use std::fmt::Write as _;

use anyhow::{Result, bail};
use newsreel_engine::ExpireRule;
use newsreel_feed::{FeedConfig, PeerConfig, PullConfig};
use newsreel_filter::FilterRule;
use newsreel_net::access::AccessRule;
use newsreel_store::StoreConfig;
use serde_json::json;

use super::Config;
use super::live::{is_live, when};
use super::read::{limits_text, wanted};
use super::schema::{self, Key, Kind};

/// What a key is: for people, and as JSON.
pub(crate) fn explain(path: &str, config: &Config) -> Result<(String, serde_json::Value)> {
    if let Some(key) = schema::find(path) {
        let (defaults, values) = (Config::default().values()?, config.values()?);
        let (default, now) = (default_of(&defaults, key), said(&values, key));
        let typed = [default_value(&defaults, key), value_of(&values, key)];
        let below: String = below(path)
            .map(|key| format!("{}\n    {}\n", key.path, key.doc))
            .collect();
        return Ok((text(key, &default, &now) + &below, value(key, typed)));
    }
    if schema::is_section(path) {
        let keys: Vec<&Key> = below(path).collect();
        let lines = keys
            .iter()
            .map(|key| format!("{}\n    {}\n", key.path, key.doc));
        let names: Vec<&str> = keys.iter().map(|key| key.path.as_str()).collect();
        return Ok((lines.collect(), json!({"section": path, "keys": names})));
    }
    bail!("{}", unknown(path))
}

/// All values in force as a file would say them, sizes and times readably.
pub(crate) fn shown(config: &Config) -> Result<String> {
    let mut values = config.values()?;
    for (name, value) in &mut values {
        make_readable(name, value);
    }
    Ok(toml::to_string(&values)?)
}

fn make_readable(path: &str, value: &mut toml::Value) {
    match value {
        toml::Value::Table(table) => {
            for (name, value) in table {
                make_readable(&format!("{path}.{name}"), value);
            }
        }
        toml::Value::Array(list) => {
            for value in list {
                make_readable(path, value);
            }
        }
        number => {
            let text = schema::find(path).and_then(|key| with_unit(key, number));
            if let Some(text) = text {
                *number = toml::Value::String(text);
            }
        }
    }
}

/// The keys of a section or of a table.
fn below(path: &str) -> impl Iterator<Item = &'static Key> {
    schema::keys().iter().filter(move |key| {
        let rest = key.path.strip_prefix(path);
        rest.is_some_and(|rest| rest.starts_with('.'))
    })
}

fn unknown(path: &str) -> String {
    let all: Vec<&str> = schema::keys().iter().map(|key| key.path.as_str()).collect();
    let same_name: Vec<&str> = schema::keys()
        .iter()
        .filter(|key| key.name() == path)
        .map(|key| key.path.as_str())
        .collect();
    if !same_name.is_empty() {
        return format!("no key {path:?}; did you mean {}?", same_name.join(" or "));
    }
    let section = path.rsplit_once('.').map(|(section, _)| section);
    let below = section.map(schema::names_below).unwrap_or_default();
    if let (Some(section), false) = (section, below.is_empty()) {
        return in_section(path, section, &below);
    }
    match schema::nearest(path, &all) {
        Some(near) => format!("no key {path:?}; did you mean {near}?"),
        None => format!(
            "no key {path:?}; sections: {}",
            schema::names_below("").join(", ")
        ),
    }
}

/// The section is known, the key is not: its keys, the nearest first.
fn in_section(path: &str, section: &str, below: &[&str]) -> String {
    let name = path.rsplit('.').next().unwrap_or(path);
    let names = schema::by_distance(name, below).join(", ");
    let near = match schema::nearest(name, below) {
        Some(near) => format!("did you mean {section}.{near}? "),
        None => String::new(),
    };
    format!("no key {path:?}; {near}[{section}] has {names}")
}

fn text(key: &Key, default: &str, now: &str) -> String {
    let mut out = format!("{}\n    {}\n\n", key.path, key.doc);
    let _ = writeln!(out, "    kind     {}", kind_text(key));
    let _ = writeln!(out, "    default  {default}");
    if now != default && now != "-" {
        let _ = writeln!(out, "    now      {now}");
    }
    if key.kind == Kind::Integer {
        let _ = writeln!(out, "    limits   {}", limits_text(key));
    }
    let _ = writeln!(out, "    changed  {}", when(&key.path));
    for (word, doc) in &key.choices {
        let _ = writeln!(out, "    {word:12} {doc}");
    }
    out
}

fn value(key: &Key, [default, now]: [Option<toml::Value>; 2]) -> serde_json::Value {
    let limits = key
        .limits
        .as_ref()
        .map(|limits| json!([limits.start(), limits.end()]));
    json!({
        "key": key.path,
        "doc": key.doc,
        "kind": kind_text(key),
        "unit": key.unit.map(super::units::Unit::name),
        "limits": limits,
        "live": is_live(&key.path),
        "choices": key.choices.iter().map(|(word, _)| word).collect::<Vec<_>>(),
        "default": default,
        "now": now,
    })
}

/// What it holds, for people.
pub(super) fn kind_text(key: &Key) -> String {
    let plain = match &key.kind {
        Kind::List(inner) => {
            let inner = wanted(key, inner);
            format!("a list, each {inner}")
        }
        kind => wanted(key, kind).to_owned(),
    };
    match key.unit {
        Some(unit) => format!("{plain} ({})", unit.name()),
        None => plain,
    }
}

/// Lists of tables with nothing but what must be given: what is left out has its default.
const BARE: &str = "
[[buffer]]
name = \"\"
octets = 0
[[set]]
name = \"\"
buffers = []
[[rule]]
set = \"\"
";

/// The default of a key in a table of a list, perhaps none; nothing for other keys.
fn of_table(key: &Key) -> Option<Option<toml::Value>> {
    let (list, name) = key.path.split_once('.')?;
    if list == "access" {
        let rule = toml::Table::try_from(AccessRule::default()).ok()?;
        return Some(rule.get(name).cloned());
    }
    if list == "filter" {
        let rule = toml::Table::try_from(FilterRule::default()).ok()?;
        return Some(rule.get(name).cloned());
    }
    if list == "expire" {
        let rule = toml::Table::try_from(ExpireRule::default()).ok()?;
        return Some(rule.get(name).cloned());
    }
    if let Some(key) = key.path.strip_prefix("peer.feed.") {
        let feed = toml::Table::try_from(FeedConfig::default()).ok()?;
        return Some(feed.get(key).cloned());
    }
    if list == "peer" && name != "feed" {
        let peer = toml::Table::try_from(PeerConfig::default()).ok()?;
        return Some(peer.get(name).cloned());
    }
    if list == "pull" {
        let pull = toml::Table::try_from(PullConfig::default()).ok()?;
        return Some(pull.get(name).cloned());
    }
    let store: StoreConfig = toml::from_str(BARE).ok()?;
    let lists = toml::Table::try_from(&store).ok()?;
    let table = lists.get(list)?.as_array()?.first()?.as_table()?;
    Some(table.get(name).cloned())
}

/// The default of a key; `values` are those of a configuration without a file.
pub(super) fn default_of(values: &toml::Table, key: &Key) -> String {
    if super::REQUIRED.contains(&key.path.as_str()) {
        return NOT_GIVEN.to_owned();
    }
    match of_table(key) {
        Some(Some(found)) => readable(key, &found),
        Some(None) => "none".to_owned(),
        None => said(values, key),
    }
}

/// The same, for programs.
fn default_value(values: &toml::Table, key: &Key) -> Option<toml::Value> {
    if super::REQUIRED.contains(&key.path.as_str()) {
        return None;
    }
    of_table(key).unwrap_or_else(|| value_of(values, key))
}

/// A value of a configuration, for programs.  A key of a table in a list has one in each, so it has none here.
fn value_of(values: &toml::Table, key: &Key) -> Option<toml::Value> {
    let mut parts = key.path.split('.');
    let first = values.get(parts.next()?)?;
    parts
        .try_fold(first, |value, part| value.as_table()?.get(part))
        .cloned()
}

/// What a key without a default says.
const NOT_GIVEN: &str = "none, it must be given";

/// A value of a configuration as a file would say it, and readably where it has a unit.
pub(super) fn said(values: &toml::Table, key: &Key) -> String {
    let mut parts = key.path.split('.');
    let first = parts.next().and_then(|part| values.get(part));
    let found = parts.try_fold(first, |value, part| match value {
        Some(toml::Value::Table(table)) => Some(table.get(part)),
        Some(toml::Value::Array(_)) => None,
        _ => Some(None),
    });
    match found {
        None => "-".to_owned(),
        Some(None) => "none".to_owned(),
        Some(Some(value)) => readable(key, value),
    }
}

fn readable(key: &Key, value: &toml::Value) -> String {
    with_unit(key, value).map_or_else(|| value.to_string(), |text| format!("\"{text}\""))
}

/// A number as one would say it, where it has a unit and a larger one fits.
fn with_unit(key: &Key, value: &toml::Value) -> Option<String> {
    let number = u64::try_from(value.as_integer()?).ok()?;
    let text = key.unit?.print(number);
    (text != number.to_string()).then_some(text)
}
