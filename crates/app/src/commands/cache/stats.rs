//! `newsreel cache stats`: what a running caching server has answered, and from where.

use anyhow::Result;
use serde_json::{Value, json};

use super::Which;
use crate::control::request::Request;
use crate::output::{self, cell, count, duration, octets};

#[derive(Debug, Clone, clap::Args)]
#[command(
    after_help = "HITS are answers from what is kept or came for another reader, of all ANSWERS since the server started; SAVED are \
                  their octets. An article that came ahead of its first reader is no hit for him, unless it was prefetched. \
                  GAIN is the part of all octets that is. KEPT and FETCHED are how long readers waited for one, in \
                  milliseconds: for what was kept, and for what the upstream server was asked for; beside each stands the \
                  time within which 95 of a hundred were answered. POLICY is the one in force at the time.\n\n\
                  Examples:\n  newsreel cache stats --directory /var/cache/newsreel\n  newsreel cache stats --groups"
)]
pub(crate) struct Args {
    /// Show the groups whose articles were asked for most
    #[arg(long)]
    groups: bool,
    #[command(flatten)]
    which: Which,
}

const GROUPS: &[(&str, &str)] = &[
    ("GROUP", "group"),
    ("ARTICLES", "answers"),
    ("HITS", "hits"),
    ("", "hits_part"),
    ("SAVED", "saved"),
    ("GAIN", "gain"),
];

const COLUMNS: &[(&str, &str)] = &[
    ("", "what"),
    ("ANSWERS", "answers"),
    ("HITS", "hits"),
    ("", "hits_part"),
    ("OCTETS", "octets"),
    ("SAVED", "saved"),
    ("GAIN", "gain"),
    ("KEPT", "kept_ms"),
    ("95 %", "kept_95"),
    ("FETCHED", "fetched_ms"),
    ("95 %", "fetched_95"),
];

pub(super) fn run(args: &Args) -> Result<()> {
    let status = args.which.ask_with(&Request::Status, &mut |_| {})?;
    if args.which.json {
        return output::json(&status);
    }
    if args.groups {
        let rows: Vec<Value> = all(&status["by_group"]).iter().map(group_row).collect();
        return match rows.as_slice() {
            [] => output::text("no article was asked for since the start\n"),
            rows => output::said(&output::table(GROUPS, rows)),
        };
    }
    output::said(&said(&status))
}

/// Of so many these, in parts of a hundred.
fn part_of(these: u64, all: u64) -> String {
    match all {
        0 => "-".to_owned(),
        all => format!("{} %", (these * 100 + all / 2) / all),
    }
}

/// A group's articles as they are shown.
fn group_row(counted: &Value) -> Value {
    let number = |key: &str| counted[key].as_u64().unwrap_or(0);
    let (hits, answers) = (number("hits"), number("hits") + number("misses"));
    let (saved, octets_in_all) = (
        number("saved_octets"),
        number("saved_octets") + number("fetched_octets"),
    );
    let name = match counted["group"].as_str() {
        None | Some("") => "(others)".to_owned(),
        Some(name) => output::foreign(name),
    };
    json!({
        "group": name,
        "answers": answers,
        "hits": hits,
        "hits_part": part_of(hits, answers),
        "saved": octets(&saved.into()),
        "gain": part_of(saved, octets_in_all),
    })
}

/// What a caching server says of itself, for people.
pub(crate) fn said(status: &Value) -> String {
    let (server, cache) = (&status["server"], &status["cache"]);
    let listening: Vec<String> = all(&server["listening"]).iter().map(cell).collect();
    let up = duration(&status["uptime_s"]);
    let mut facts = vec![
        ("cache", cell(&cache["directory"])),
        ("server", format!("pid {}, up {up}", cell(&server["pid"]))),
        ("listening", listening.join(" ")),
        (
            "connections",
            super::super::status::connections(&server["connections"]),
        ),
    ];
    if status["is_offline"] == true {
        facts.push(("offline", "no upstream server is asked".to_owned()));
    }
    let posts = |key: &str| status["posts"][key].as_u64().unwrap_or(0);
    if posts("waiting") > 0 {
        let (waiting, refused) = (count(posts("waiting"), "post"), posts("refused"));
        let text = format!("{waiting} in the queue, {refused} of them refused");
        facts.push(("posts", text));
    }
    for upstream in all(&status["upstreams"]) {
        let (lent, idle) = (&upstream["lent"], &upstream["idle"]);
        let address = cell(&upstream["address"]);
        facts.push((
            "upstream",
            format!("{address}, {lent} connections in use, {idle} idle"),
        ));
    }
    facts.extend(kept(cache));
    if cache["is_broken"] == true {
        let what = "the table FAILED: nothing is kept but in memory until its disk can be used, or the next start; the log says which";
        facts.push(("trouble", what.to_owned()));
    }
    let mut rows: Vec<Value> = all(&status["asked"]).iter().map(row).collect();
    rows.push(row(&total(all(&status["asked"]))));
    let policies = all(&status["by_policy"]).iter().map(|counted| {
        let mut row = row(counted);
        row["what"] = format!("articles, {}", cell(&counted["what"])).into();
        row
    });
    // One that was in force all the time has all articles.
    if all(&status["by_policy"]).len() > 1 {
        rows.extend(policies);
    }
    format!(
        "{}\n{}",
        output::facts(&facts),
        output::table(COLUMNS, &rows)
    )
}

/// What a cache keeps, and by which policy.
fn kept(cache: &Value) -> Vec<(&'static str, String)> {
    let some = |key: &str, what: &str| count(cache[key].as_u64().unwrap_or(0), what);
    let of = |key: &str, most: &str, memory: &str| {
        let (now, most, memory) = (&cache[key], &cache[most], &cache[memory]);
        let (now, most, memory) = (octets(now), octets(most), octets(memory));
        format!("{now} of {most} on disk, {memory} in memory")
    };
    let articles = of("octets", "octets_max", "memory_octets");
    let overview = of(
        "overview_octets",
        "overview_octets_max",
        "overview_memory_octets",
    );
    let again = match cache["written_octets"].as_u64() {
        None | Some(0) => String::new(),
        Some(came) => {
            let again = cache["written_again_octets"].as_u64().unwrap_or(0);
            let part = again as f64 / came as f64;
            format!(", {part:.2} octets written again for each that came")
        }
    };
    let (policy, wanted) = (cell(&cache["policy"]), octets(&cache["wanted_octets"]));
    let mut facts = vec![
        (
            "articles",
            format!("{}, {articles}", some("articles", "article")),
        ),
        (
            "overview",
            format!("{}, {overview}", some("groups", "group")),
        ),
        ("policy", format!("{policy}, wants {wanted} to stay{again}")),
    ];
    let pins: Vec<String> = all(&cache["pins"]).iter().map(cell).collect();
    if !pins.is_empty() {
        let (now, most) = (
            octets(&cache["pinned_octets"]),
            octets(&cache["pinned_octets_max"]),
        );
        let pins = output::foreign(&pins.join(" "));
        let kept = format!("{now} of {most} used to keep what would have gone");
        facts.push(("pinned", format!("{pins}, {kept}")));
    }
    facts
}

fn all(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// All databases as one.
fn total(asked: &[Value]) -> Value {
    let part = |part: &str| {
        let sum = |key: &str| {
            let each = asked.iter().map(|it| it[part][key].as_u64().unwrap_or(0));
            each.sum::<u64>()
        };
        json!({"answers": sum("answers"), "octets": sum("octets"), "us": sum("us")})
    };
    json!({"what": "all", "kept": part("kept"), "fetched": part("fetched")})
}

/// A database's questions as they are shown.
fn row(asked: &Value) -> Value {
    let number = |part: &str, key: &str| asked[part][key].as_u64().unwrap_or(0);
    let whole = |key: &str| number("kept", key) + number("fetched", key);
    let part = |key: &str| part_of(number("kept", key), whole(key));
    let mean = |kind: &str| match number(kind, "answers") {
        0 => "-".to_owned(),
        answers => format!("{:.2}", number(kind, "us") as f64 / answers as f64 / 1000.0),
    };
    // Where it is longer than all that are told apart, or nothing was asked.
    let within = |kind: &str| match asked[kind]["us_95_percent"].as_u64() {
        Some(us) => (us as f64 / 1000.0).to_string(),
        None => "-".to_owned(),
    };
    json!({
        "what": asked["what"],
        "answers": whole("answers"),
        "hits": number("kept", "answers"),
        "hits_part": part("answers"),
        "octets": octets(&whole("octets").into()),
        "saved": octets(&number("kept", "octets").into()),
        "gain": part("octets"),
        "kept_ms": mean("kept"),
        "kept_95": within("kept"),
        "fetched_ms": mean("fetched"),
        "fetched_95": within("fetched"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_means_are_said_and_nothing_is_divided_by_nothing() {
        let part = |answers: u64, octets: u64, us: u64| json!({"answers": answers, "octets": octets, "us": us});
        let asked = json!({"what": "articles", "kept": part(2, 300, 1000), "fetched": part(1, 100, 20_000)});
        let said = row(&asked);
        assert_eq!(said["hits_part"], "67 %");
        assert_eq!(said["gain"], "75 %");
        assert_eq!(
            (&said["kept_ms"], &said["fetched_ms"]),
            (&json!("0.50"), &json!("20.00"))
        );
        let nothing = row(&json!({"what": "list"}));
        assert_eq!(
            (&nothing["gain"], &nothing["kept_ms"]),
            (&json!("-"), &json!("-"))
        );
    }
}
