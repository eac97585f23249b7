//! The reference page of the configuration, made from the table of keys and the defaults.

use std::fmt::Write as _;

use anyhow::Result;

use super::Config;
use super::explain::{default_of, kind_text};
use super::fixed::fixed;
use super::live::when;
use super::read::limits_text;
use super::schema::{self, Key, Kind};

const OPENING: &str = "\
# Configuration

Made by `cargo xtask docs` from the doc comments of the section structs; do not edit.

The file is TOML. Without a file every key has its default; without `[[buffer]]`, `[[set]]` and `[[rule]]` there are
two buffers of 1 GiB. Buffers without a set are one set, and a single set without a rule takes everything.
Relative paths count from the file's directory.

Sizes may be written as `\"64KiB\"` or `\"1GiB\"`,
durations as `\"90s\"`, `\"1h30min\"` or `\"10d\"`; a plain number is in the key's unit. Unknown keys and bad values are
refused, all of them at once: `newsreel config check FILE`. One key: `newsreel config explain KEY`.

SIGHUP reads the file again; a bad one changes nothing. What is marked *taken over by SIGHUP* is in force at once, for
new connections and new articles; the rest is from the next start on, and the log names what waits for it.
Keys that must fit each other are held against each other; a default gives way to what the file says.
";

const FIXED: &str = "
## Limits that are fixed

Every other queue, buffer, line and table has its limit in a key above. Left out is how much work in the background does in
one step: no input makes that longer.

| of what | at most | why it is no key |
|---|---|---|
";

/// The page, in Markdown.
pub(crate) fn reference() -> Result<String> {
    let defaults = Config::default().values()?;
    let mut out = OPENING.to_owned();
    let mut section = None;
    for key in schema::keys() {
        if key.is_tables() {
            section = Some(key.path.as_str());
            let _ = writeln!(out, "\n## `{}`\n\n{}", schema::header(&key.path), key.doc);
            continue;
        }
        if section != Some(key.section()) {
            section = Some(key.section());
            let _ = writeln!(out, "\n## `{}`", schema::header(key.section()));
        }
        entry(key, &default_of(&defaults, key), &mut out);
    }
    out.push_str(FIXED);
    for row in fixed() {
        let _ = writeln!(out, "| {} | {} | {} |", row.what, row.most, row.why);
    }
    Ok(out)
}

fn entry(key: &Key, default: &str, out: &mut String) {
    // A line break, no paragraph: the page is long enough.
    let _ = writeln!(out, "\n### `{}`\n\n{}\\", key.path, key.doc);
    let mut facts = vec![kind_text(key)];
    if default != "-" {
        facts.push(format!("default `{default}`"));
    }
    if key.kind == Kind::Integer {
        facts.push(limits_text(key));
    }
    facts.push(when(&key.path).to_owned());
    let _ = writeln!(out, "{}", facts.join("; "));
    if !key.choices.is_empty() {
        out.push('\n');
    }
    for (word, doc) in &key.choices {
        let _ = writeln!(out, "- `\"{word}\"`: {doc}");
    }
}
