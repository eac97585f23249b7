//! `newsreel cache list`: what a running caching server keeps.

use anyhow::Result;
use newsreel_cache::keep::LISTED_ARTICLES_MAX;
use newsreel_wire::Wildmat;
use serde_json::{Value, json};

use super::Which;
use crate::control::cache_request::CacheRequest;
use crate::output::{self, cell, date, octets, or_dash};

#[derive(Debug, Clone, clap::Args)]
#[command(
    after_help = "An article belongs to the first group of its Newsgroups field. The last row, without a name, is of groups \
                  that nobody has asked for here: their articles were read by message-id, or in other groups. \
                  With --articles those that were read last come first. What was fetched was read once then, also what was \
                  fetched ahead of readers or by `newsreel cache prefetch`: so the policy counts it.\n\n\
                  Examples:\n  newsreel cache list\n  newsreel cache list --articles 'comp.lang.*'"
)]
pub(super) struct Args {
    /// The groups
    #[arg(value_name = "WILDMAT", default_value = "*")]
    groups: String,
    /// List the articles of these groups
    #[arg(long)]
    articles: bool,
    /// So many articles at most
    #[arg(long, value_name = "NUMBER", default_value_t = 1000, requires = "articles",
          value_parser = clap::value_parser!(u64).range(1..=LISTED_ARTICLES_MAX as u64))]
    limit: u64,
    #[command(flatten)]
    which: Which,
}

const GROUPS: &[(&str, &str)] = &[
    ("GROUP", "name"),
    ("ARTICLES", "articles"),
    ("OCTETS", "octets"),
    ("OVERVIEW", "overview"),
    ("LAST READ", "last_read"),
];

const ARTICLES: &[(&str, &str)] = &[
    ("MESSAGE-ID", "id"),
    ("GROUP", "group"),
    ("OCTETS", "octets"),
    ("READ", "read"),
    ("LAST READ", "last_read"),
];

pub(super) fn run(args: &Args) -> Result<()> {
    // Told before a server is looked for.
    Wildmat::parse(&args.groups)?;
    let articles = args.articles.then_some(args.limit as usize);
    let listed = args.which.ask(CacheRequest::List {
        wildmat: args.groups.clone(),
        articles,
    })?;
    match args.which.json {
        true => output::json(&listed),
        false => output::said(&said(&listed)),
    }
}

fn all(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn named(value: &Value) -> String {
    or_dash(output::foreign(&cell(value)))
}

fn said(listed: &Value) -> String {
    let group = |row: &Value| {
        json!({
            "name": named(&row["name"]),
            "articles": row["articles"],
            "octets": octets(&row["octets"]),
            "overview": octets(&row["overview_octets"]),
            "last_read": or_dash(date(&row["last_read"])),
        })
    };
    let article = |row: &Value| {
        json!({
            "id": named(&row["id"]),
            "group": named(&row["group"]),
            "octets": octets(&row["octets"]),
            "read": row["read"],
            "last_read": or_dash(date(&row["last_read"])),
        })
    };
    let (groups, articles) = (all(&listed["groups"]), all(&listed["articles"]));
    if groups.is_empty() && articles.is_empty() {
        return "nothing is kept of it\n".to_owned();
    }
    if articles.is_empty() {
        let rows: Vec<Value> = groups.iter().map(group).collect();
        return output::table(GROUPS, &rows);
    }
    let rows: Vec<Value> = articles.iter().map(article).collect();
    let mut text = output::table(ARTICLES, &rows);
    let matching = listed["matching"].as_u64().unwrap_or(0);
    if matching > rows.len() as u64 {
        text += &format!("{} of {matching}; --limit says how many\n", rows.len());
    }
    text
}
