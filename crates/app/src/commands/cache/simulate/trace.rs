//! Traces from access logs.

use std::io::{BufRead, BufReader, Read as _};
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use newsreel_cache::ACCESS_LINE_OCTETS_MAX;
use newsreel_cache::simulate::{Logged, Request};
use serde::Serialize;

use super::REQUESTS_MAX;
use crate::{input, output};

/// Where a trace is from.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Source {
    /// Nowhere.
    MadeUp {
        /// What it follows from.
        seed: u64,
    },
    /// Access logs.
    Logged {
        files: Vec<PathBuf>,
        /// When the first and the last request were made.
        from: u64,
        to: u64,
        /// Requests that the cache which wrote it answered from what it kept.
        hits: u64,
        requests: u64,
        /// Lines that are none.
        wrong_lines: u64,
    },
}

impl Source {
    /// It for people.
    pub(super) fn said(&self) -> String {
        match self {
            Self::MadeUp { seed } => format!("made up, seed {seed}"),
            Self::Logged {
                files,
                from,
                to,
                hits,
                requests,
                wrong_lines,
            } => {
                let files: Vec<String> = files.iter().map(|it| it.display().to_string()).collect();
                let [from, to] = [from, to].map(|at| output::date(&(*at).into()));
                let part = 100.0 * *hits as f64 / (*requests).max(1) as f64;
                let mut text = format!(
                    "{}, from {from} to {to}; the cache that wrote it had {part:.2} % hits",
                    output::foreign(&files.join(" "))
                );
                if *wrong_lines > 0 {
                    let lines = output::count(*wrong_lines, "line");
                    text += &format!("; {lines} passed over that cannot be read");
                }
                text
            }
        }
    }
}

/// Reads access logs.
pub(super) fn read(files: &[PathBuf]) -> Result<(Source, Vec<Request>)> {
    let mut logged = Logged::default();
    for file in files {
        let (stream, _) = input::open(file)?;
        let mut take = |line: &[u8]| {
            logged.read(line);
            not_too_many(&logged)
        };
        let taken = each_line(BufReader::new(stream), &mut take);
        taken.with_context(|| format!("cannot read {}", file.display()))?;
    }
    let logged = logged.in_order();
    let (Some(first), Some(last)) = (logged.trace.first(), logged.trace.last()) else {
        bail!(
            "no line of an access log in {}: a caching server writes one where `cache.access_log_octets` says so",
            output::count(files.len() as u64, "file")
        );
    };
    let source = Source::Logged {
        files: files.to_vec(),
        from: first.at,
        to: last.at,
        hits: logged.hits,
        requests: logged.trace.len() as u64,
        wrong_lines: logged.wrong,
    };
    Ok((source, logged.trace))
}

fn not_too_many(logged: &Logged) -> Result<()> {
    if logged.trace.len() as u64 > REQUESTS_MAX {
        bail!("there are more than {REQUESTS_MAX} requests: give less of them");
    }
    Ok(())
}

/// Gives each line without its end; of one that is too long only its beginning, which is no line of a log.
fn each_line(mut from: impl BufRead, take: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
    let mut line = Vec::new();
    let mut is_begun = false;
    loop {
        line.clear();
        let most = ACCESS_LINE_OCTETS_MAX as u64;
        if (&mut from).take(most).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let ends = line.last() == Some(&b'\n');
        if !is_begun {
            take(line.strip_suffix(b"\n").unwrap_or(&line))?;
        }
        is_begun = !ends;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_is_one_line() {
        let long = "x".repeat(3 * ACCESS_LINE_OCTETS_MAX);
        let text = format!("one\n{long}\n\ntwo");
        let mut lines = Vec::new();
        let mut take = |line: &[u8]| {
            lines.push(line.len());
            Ok(())
        };
        each_line(text.as_bytes(), &mut take).unwrap();
        assert_eq!(lines, [3, ACCESS_LINE_OCTETS_MAX, 0, 3]);
    }
}
