//! `newsreel article show`: an article with where it lies.

use anyhow::Result;

use crate::access::{self, LookArgs};
use crate::control::request::Request;
use crate::output;

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
}

pub(crate) fn run(verb: &Verb) -> Result<()> {
    let Verb::Show {
        article,
        plain,
        spool,
    } = verb;
    let found = access::ask(
        spool,
        Request::Article {
            which: article.clone(),
        },
    )?;
    if spool.json {
        return output::json(&found);
    }
    let text = output::foreign(found["text"].as_str().unwrap_or_default());
    if *plain {
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
        ("message-id", output::cell(&found["id"])),
        ("token", output::cell(&found["token"])),
        ("filed in", places.join(" ")),
        ("arrived", output::date(&found["arrival"])),
        ("sequence", output::cell(&found["sequence"])),
        ("octets", output::cell(&found["octets"])),
    ]);
    output::text(&format!("{facts}\n{text}"))
}
