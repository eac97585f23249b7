//! What the commands print: JSON for programs, tables and facts for people; both from the same value.
//!
//! Standard output is written here only.  A reader that goes away (`| head`) ends the program quietly.

use std::io::{self, IsTerminal as _, Write as _};

use anyhow::Result;
use serde_json::{Value, json};

use crate::typed;

/// Writes a text to standard output.
pub(crate) fn text(text: &str) -> Result<()> {
    octets_out(text.as_bytes())
}

/// Whether standard output is a terminal.
pub(crate) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Writes octets to standard output.
pub(crate) fn octets_out(octets: &[u8]) -> Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(octets).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Quiet.into()),
        other => Ok(other?),
    }
}

/// Ends the program without a word: whoever listened has gone.
#[derive(Debug)]
pub(crate) struct Quiet;

impl std::fmt::Display for Quiet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("output closed")
    }
}

impl std::error::Error for Quiet {}

/// Says on standard error what is not wrong, but may not be meant.
pub(crate) fn warning(line: &str) {
    complain("warning", line);
}

/// Says on standard error why it failed.
pub(crate) fn error(what: &str) {
    complain("error", what);
}

/// Writes to standard error, where a program that reads the standard output is not disturbed.  Nobody may be listening.
fn complain(kind: &str, what: &str) {
    let what = typed::hinted(what);
    let line = match typed::is_json() {
        true => format!("{}\n", json!({kind: what})),
        // There may be names of others in it.
        false if is_watched() => format!("{kind}: {}\n", printable(&what)),
        false => format!("{kind}: {what}\n"),
    };
    let _ = io::stderr().lock().write_all(line.as_bytes());
}

/// Writes our own words to standard output; commands they name get the options that say which spool is meant.
pub(crate) fn said(text: &str) -> Result<()> {
    self::text(&typed::hinted(text))
}

/// Writes a value as JSON.
pub(crate) fn json(value: &Value) -> Result<()> {
    text(&format!("{value:#}\n"))
}

/// Whether a person is looking at the progress.
pub(crate) fn is_watched() -> bool {
    io::stderr().is_terminal()
}

/// Foreign text for a terminal: plain line ends, and no other control characters that a terminal would obey.
pub(crate) fn foreign(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    match is_terminal() {
        true => printable(&text),
        false => text,
    }
}

/// Foreign text in what a person is told, wherever that is shown: no control characters but line ends and TABs.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c.is_control() && !"\n\t".contains(c) {
                '?'
            } else {
                c
            }
        })
        .collect()
}

/// An error and its causes in one line.  Ours say their cause themselves, so it is not said again.
pub(crate) fn chain(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        if line.contains(&cause) {
            continue;
        }
        if !line.is_empty() {
            line.push_str(": ");
        }
        line.push_str(&cause);
    }
    line
}

/// A table: titles and the keys of the rows' objects, numbers to the right.
pub(crate) fn table(columns: &[(&str, &str)], rows: &[Value]) -> String {
    let cells: Vec<Vec<String>> = rows
        .iter()
        .map(|row| columns.iter().map(|(_, key)| cell(&row[*key])).collect())
        .collect();
    let width_of = |at: usize| {
        let longest = cells
            .iter()
            .map(|row| row[at].chars().count())
            .max()
            .unwrap_or(0);
        longest.max(columns[at].0.len())
    };
    let widths: Vec<usize> = (0..columns.len()).map(width_of).collect();
    let numeric: Vec<bool> = columns
        .iter()
        .map(|(_, key)| !rows.is_empty() && rows.iter().all(|row| row[*key].is_number()))
        .collect();
    let line = |words: Vec<&str>| {
        let mut line = String::new();
        for (at, word) in words.iter().enumerate() {
            let padding = " ".repeat(widths[at].saturating_sub(word.chars().count()));
            let (left, right) = if numeric[at] {
                (padding.as_str(), "")
            } else {
                ("", padding.as_str())
            };
            line.push_str(left);
            line.push_str(word);
            line.push_str(right);
            line.push_str("  ");
        }
        format!("{}\n", line.trim_end())
    };
    let mut out = line(columns.iter().map(|(title, _)| *title).collect());
    for row in &cells {
        out.push_str(&line(row.iter().map(String::as_str).collect()));
    }
    out
}

/// Facts, one a line: titles and values.
pub(crate) fn facts(facts: &[(&str, String)]) -> String {
    let width = facts
        .iter()
        .map(|(title, _)| title.len())
        .max()
        .unwrap_or(0);
    facts
        .iter()
        .map(|(title, value)| format!("{title:width$}  {value}\n"))
        .collect()
}

/// A value as it stands in a table.
pub(crate) fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text
            .chars()
            .map(|c| if c.is_control() { '?' } else { c })
            .collect(),
        other => other.to_string(),
    }
}

/// A text, or the dash that stands where there is none.
pub(crate) fn or_dash(text: String) -> String {
    match text.is_empty() {
        true => "-".to_owned(),
        false => text,
    }
}

/// So many of what is called so: `1 group`, `2 groups`.
pub(crate) fn count(number: u64, what: &str) -> String {
    let plural = match number {
        1 => "",
        _ if what.ends_with("ch") => "es",
        _ => "s",
    };
    format!("{number} {what}{plural}")
}

/// A number of octets as people say it.
pub(crate) fn octets(value: &Value) -> String {
    value
        .as_u64()
        .map_or_else(|| cell(value), newsreel_host::said_octets)
}

/// Seconds as people say them.
pub(crate) fn duration(value: &Value) -> String {
    let Some(seconds) = value.as_u64() else {
        return cell(value);
    };
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, _, _) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

/// Seconds since 1970 as a date of UTC.
pub(crate) fn date(value: &Value) -> String {
    let Some(seconds) = value.as_u64() else {
        return cell(value);
    };
    let mut text = Vec::new();
    newsreel_wire::date::print_rfc5322(newsreel_wire::UnixTime(seconds), &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tables_are_aligned_and_hide_controls() {
        let rows = [
            json!({"name": "a.b", "high": 5}),
            json!({"name": "c\u{1b}[31m", "high": 1000}),
        ];
        assert_eq!(
            table(&[("NAME", "name"), ("HIGH", "high")], &rows),
            "NAME    HIGH\na.b        5\nc?[31m  1000\n"
        );
        assert_eq!(
            facts(&[("a", "1".into()), ("long", "2".into())]),
            "a     1\nlong  2\n"
        );
    }

    #[test]
    fn a_cause_is_said_once() {
        let path = std::path::Path::new("/spool/lock");
        let cause = io::Error::from_raw_os_error(22);
        let disk = newsreel_host::Error::from_io(newsreel_host::Op::Lock, path, cause);
        let error = anyhow::Error::from(disk).context("cannot start");
        assert_eq!(
            chain(&error),
            "cannot start: cannot lock /spool/lock: Invalid argument (os error 22)"
        );
        let hinted = newsreel_bench::Error::Connect {
            server: ([127, 0, 0, 1], 9).into(),
            source: io::ErrorKind::ConnectionRefused.into(),
        };
        assert_eq!(
            chain(&hinted.into()),
            "cannot connect to 127.0.0.1:9: connection refused; is the server running?"
        );
    }

    #[test]
    fn numbers_are_said_as_people_do() {
        assert_eq!(octets(&json!(1_073_741_824_u64)), "1024 MiB");
        assert_eq!(octets(&json!(10_000)), "10000 B");
        assert_eq!(duration(&json!(59)), "59 s");
        assert_eq!(duration(&json!(3_700)), "1 h 1 min");
        assert_eq!(duration(&json!(200_000)), "2 d 7 h");
        assert_eq!(date(&json!(0)), "Thu, 01 Jan 1970 00:00:00 +0000");
        assert_eq!(date(&json!(null)), "-");
    }
}
