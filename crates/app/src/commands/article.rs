//! `newsreel article show`: an article with where it lies; `newsreel article cancel`: out with it.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use newsreel_engine::ArticleRef;
use serde_json::{Value, json};

use super::group::FILE_OCTETS_MAX;
use crate::access::{self, Access, LookArgs, SpoolArgs};
use crate::control::request::Request;
use crate::{input, output};

/// Articles asked for in one request.
const AT_ONCE: usize = 1000;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Show an article, by message-id, group and number, or token
    #[command(
        after_help = "Examples:\n  newsreel article show '<1@host.example>'\n  \
                      newsreel article show misc.test:3000\n  newsreel article show C0:24da800:1e"
    )]
    Show {
        /// `<MESSAGE-ID>`, `GROUP:NUMBER` or `TOKEN`
        article: String,
        /// Only the article itself, without the facts above it
        #[arg(long)]
        plain: bool,
        #[command(flatten)]
        spool: LookArgs,
    },
    /// Take articles out at once: nobody is shown them any more, and their message-ids stay known
    #[command(
        after_help = "Examples:\n  newsreel article cancel '<1@host.example>'\n  \
                      newsreel article cancel --dry-run misc.test:3000 misc.test:3001\n  \
                      newsreel article cancel - < message-ids"
    )]
    Cancel {
        /// `<MESSAGE-ID>`, `GROUP:NUMBER` or `TOKEN`; `-`: one a line from the standard input
        #[arg(required = true)]
        articles: Vec<String>,
        /// Only say what would be taken out
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        spool: SpoolArgs,
    },
}

pub(crate) fn run(verb: &Verb) -> Result<()> {
    match verb {
        Verb::Show {
            article,
            plain,
            spool,
        } => show(article, *plain, spool),
        Verb::Cancel {
            articles,
            dry_run,
            spool,
        } => cancel(&named(articles)?, *dry_run, spool),
    }
}

/// The articles meant, those from the standard input included: all of them can be meant, or none is asked for.
fn named(articles: &[String]) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for article in articles {
        if article != input::STANDARD_INPUT {
            all.push(article.clone());
            continue;
        }
        let octets = input::read(Path::new(article), FILE_OCTETS_MAX)?.octets;
        let text = String::from_utf8(octets).context("the standard input is not UTF-8")?;
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        all.extend(lines.map(str::to_owned));
    }
    for article in &all {
        if let Err(error) = article.parse::<ArticleRef>() {
            bail!("{error}; nothing was cancelled");
        }
    }
    Ok(all)
}

fn cancel(articles: &[String], dry_run: bool, spool: &SpoolArgs) -> Result<()> {
    let mut access = Access::open(&spool.into(), !dry_run)?;
    let mut done = json!({"cancelled": [], "not_here": [], "failed": []});
    if dry_run {
        done["dry_run"] = true.into();
    }
    for which in articles.chunks(AT_ONCE) {
        let which = which.to_vec();
        let before = done["cancelled"].as_array().map_or(0, Vec::len);
        let before = output::count(before as u64, "article");
        let answer = access
            .ask(Request::ArticleCancel { which, dry_run })
            .with_context(|| format!("{before} had been cancelled when it failed"))?;
        for kind in ["cancelled", "not_here", "failed"] {
            if let (Some(all), Some(some)) = (done[kind].as_array_mut(), answer[kind].as_array()) {
                all.extend(some.iter().cloned());
            }
        }
    }
    access.close()?;
    let all = |kind: &str| done[kind].as_array().map(Vec::as_slice).unwrap_or_default();
    if spool.json {
        output::json(&done)?;
    } else {
        let said = if dry_run { "would cancel" } else { "cancelled" };
        let line = |said: &str, one: &Value| format!("{said} {}", output::cell(one));
        let mut lines: Vec<String> = all("cancelled").iter().map(|one| line(said, one)).collect();
        lines.extend(all("not_here").iter().map(|one| line("not here", one)));
        for failed in all("failed") {
            let why = output::cell(&failed["why"]);
            lines.push(format!("{}: {why}", line("left", &failed["which"])));
        }
        output::text(&(lines.join("\n") + "\n"))?;
    }
    match (all("failed").len(), all("cancelled").len()) {
        (0, 0) => bail!("none of these articles is here"),
        (0, _) => Ok(()),
        (1, _) => bail!("1 article was left as it is"),
        (failed, _) => bail!("{failed} articles were left as they are"),
    }
}

fn show(article: &str, plain: bool, spool: &LookArgs) -> Result<()> {
    let found = access::ask(
        spool,
        Request::Article {
            which: article.to_owned(),
        },
    )?;
    if spool.json {
        return output::json(&found);
    }
    let text = output::foreign(found["text"].as_str().unwrap_or_default());
    if plain {
        return match found["octets_as_latin1"].as_str() {
            Some(octets) if !output::is_terminal() => {
                let octets = octets.replace("\r\n", "\n");
                // Each character stands for an octet.
                output::octets_out(&octets.chars().map(|c| c as u8).collect::<Vec<_>>())
            }
            _ => output::text(&text),
        };
    }
    let xref = found["xref"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let places: Vec<String> = xref
        .iter()
        .map(|place| format!("{}:{}", output::cell(&place[0]), place[1]))
        .collect();
    let facts = output::facts(&[
        ("message-id", output::cell(&found["message_id"])),
        ("token", output::cell(&found["token"])),
        ("filed in", output::or_dash(places.join(" "))),
        ("arrived", output::date(&found["arrival"])),
        ("sequence", output::cell(&found["sequence"])),
        ("octets", output::cell(&found["octets"])),
    ]);
    output::text(&format!("{facts}\n{text}"))
}
