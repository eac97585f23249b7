//! `newsreel peer`: the servers that articles are sent to.

use std::sync::Arc;

use anyhow::Result;
use newsreel_engine::Engine;
use newsreel_service::{Defer, Neighbours, Reject};
use serde_json::Value;

use crate::access::{self, Access, LookArgs, SpoolArgs};
use crate::control::request::{PeerAction, Request};
use crate::output;
use crate::server::peers;

const COLUMNS: &[(&str, &str)] = &[
    ("PEER", "peer"),
    ("FEED", "feed"),
    ("STATE", "state"),
    ("ACCEPTED", "accepted"),
    ("REFUSED", "refused"),
    ("REJECTED", "rejected"),
    ("WAITING", "waiting"),
    ("BEHIND", "behind"),
    ("OLDEST", "oldest"),
];

const RECEIVED: &[(&str, &str)] = &[
    ("FROM", "peer"),
    ("CONNECTIONS", "connections"),
    ("ACCEPTED", "accepted"),
    ("REFUSED", "refused"),
    ("DUPLICATE", "duplicate"),
    ("REJECTED", "rejections"),
    ("DEFERRED", "deferrals"),
    ("OCTETS", "octets"),
];

const PULLED: &[(&str, &str)] = &[
    ("PULL", "name"),
    ("STATE", "state"),
    ("EVERY", "every"),
    ("LAST", "last"),
    ("ACCEPTED", "accepted"),
];

const EXPLAINED: &[(&str, &str)] = &[("PEER", "peer"), ("FEED", "feed"), ("", "said")];

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// List the feeds and how they stand
    #[command(
        after_help = "WAITING are articles in memory that wait to be sent, for their answer, or to be tried again; BEHIND are articles of \
                      the log that go out by the feed and were not looked at (a + behind the number: or more, not all were counted); OLDEST is \
                      when the oldest of both came. STATE is `paused` after `newsreel peer pause`. The second table is what came from peers that are known (`from_addresses` and its like): REFUSED are offers of what is \
                      here, DUPLICATE articles that came all the same. The counts are since the server started. A feed that was taken out of the \
                      configuration is listed while its place is kept (`feeds.removed_s`).\n\nExample:\n  newsreel peer list"
    )]
    List {
        #[command(flatten)]
        spool: SpoolArgs,
    },
    /// Show all that is known of a peer's feeds, and of what came from it
    #[command(
        after_help = "Behind `rejected:` and `put off:` is what the peer was told.\n\nExample:\n  newsreel peer show news.example.org"
    )]
    Show {
        /// The peer, or one feed as PEER/FEED
        peer: String,
        #[command(flatten)]
        spool: SpoolArgs,
    },
    /// Say which feeds an article goes out by, what became of it, and why it does not go out by the others
    #[command(
        after_help = "What became of it is told, too: when the peer took, refused or rejected it, and why, of the articles that each feed \
                      settled last since the server started; of others whether it waits, or that the feed is behind it.\n\n\
                      Examples:\n  newsreel peer explain '<1@example.org>'\n  newsreel peer explain misc.test:1"
    )]
    Explain {
        /// An article that is here, by message-id, group and number, or token; of one that was, the message-id
        #[arg(value_name = "MESSAGE-ID|GROUP:NUMBER|TOKEN")]
        article: String,
        #[command(flatten)]
        spool: SpoolArgs,
    },
    /// Stop sending; what comes meanwhile waits in the log
    #[command(
        after_help = "It holds until `newsreel peer resume` or the next start of the server.\n\nExample:\n  newsreel peer pause news.example.org"
    )]
    Pause {
        /// The peer, or one feed as PEER/FEED
        peer: String,
        #[command(flatten)]
        spool: SpoolArgs,
    },
    /// Send again
    #[command(after_help = "Example:\n  newsreel peer resume news.example.org")]
    Resume {
        /// The peer, or one feed as PEER/FEED
        peer: String,
        #[command(flatten)]
        spool: SpoolArgs,
    },
    /// Try now what waits to be tried again, and connect now
    #[command(after_help = "Example:\n  newsreel peer flush news.example.org")]
    Flush {
        /// The peer, or one feed as PEER/FEED
        peer: String,
        #[command(flatten)]
        spool: SpoolArgs,
    },
    /// Give up what waits: it is never sent
    #[command(
        after_help = "Examples:\n  newsreel peer drop-backlog news.example.org --dry-run\n  newsreel peer drop-backlog news.example.org/binaries"
    )]
    DropBacklog {
        /// The peer, or one feed as PEER/FEED
        peer: String,
        /// Only say what would be given up
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        spool: SpoolArgs,
    },
}

pub(crate) fn run(verb: &Verb) -> Result<()> {
    let (action, name, spool) = match verb {
        Verb::List { spool } => (PeerAction::List, "", spool),
        Verb::Show { peer, spool } => (PeerAction::List, peer.as_str(), spool),
        Verb::Explain { article, spool } => (PeerAction::Explain, article.as_str(), spool),
        Verb::Pause { peer, spool } => (PeerAction::Pause, peer.as_str(), spool),
        Verb::Resume { peer, spool } => (PeerAction::Resume, peer.as_str(), spool),
        Verb::Flush { peer, spool } => (PeerAction::Flush, peer.as_str(), spool),
        Verb::DropBacklog {
            peer,
            dry_run,
            spool,
        } => {
            let action = match dry_run {
                true => PeerAction::TryDropBacklog,
                false => PeerAction::DropBacklog,
            };
            (action, peer.as_str(), spool)
        }
    };
    let name = match action {
        PeerAction::Explain => id_of(name, spool)?,
        _ => name.to_owned(),
    };
    let writes = match action {
        PeerAction::List | PeerAction::Explain | PeerAction::TryDropBacklog => Some(false),
        PeerAction::DropBacklog => Some(true),
        // There is nothing to be told without a server.
        PeerAction::Pause | PeerAction::Resume | PeerAction::Flush => None,
    };
    let way = writes.map(|writes| Access::open(&LookArgs::from(spool), writes));
    let report = match way.transpose()? {
        Some(Access::Offline(engine)) => alone(engine, spool, action, &name)?,
        Some(mut live @ Access::Live(_)) => live.ask(Request::Peer { action, name })?,
        None => access::change(spool, Request::Peer { action, name })?,
    };
    if spool.json {
        return output::json(&report);
    }
    output::said(&match verb {
        Verb::List { .. } => listed(&report),
        Verb::Show { .. } => {
            let sent = feeds(&report).iter().map(shown).collect::<String>();
            sent + &received(&report)
                .iter()
                .map(shown_received)
                .collect::<String>()
        }
        Verb::Explain { .. } => explained(&report),
        Verb::Pause { .. } => "paused; what comes meanwhile waits in the log\n".to_owned(),
        Verb::Resume { .. } => "sends again\n".to_owned(),
        Verb::Flush { .. } => "what waits is tried now\n".to_owned(),
        Verb::DropBacklog { .. } => {
            let number = |key: &str| report[key].as_u64().unwrap_or(0);
            let articles = output::count(number("in_memory"), "article");
            let behind = behind(&report);
            let said = match report["dry_run"] == true {
                true => "would be given up",
                false => "given up",
            };
            format!(
                "{said}: {articles} in memory, and {behind} of the log that were not looked at\n"
            )
        }
    })
}

/// The message-id of an article, however it is named.
fn id_of(article: &str, spool: &SpoolArgs) -> Result<String> {
    if article.starts_with('<') {
        return Ok(article.to_owned());
    }
    let which = article.to_owned();
    let found = access::ask(&LookArgs::from(spool), Request::Article { which })?;
    Ok(output::cell(&found["message_id"]))
}

/// Answers with nobody else at work on the spool.
fn alone(engine: Box<Engine>, spool: &SpoolArgs, action: PeerAction, name: &str) -> Result<Value> {
    let config = access::config_of(spool)?;
    let engine: Arc<Engine> = Arc::from(engine);
    let changes = action == PeerAction::DropBacklog;
    let peers = peers::alone(&engine, &config, changes)?;
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(1).enable_all().build()?;
    let (entered, neighbours) = (runtime.enter(), Neighbours::default());
    let known = config.peer.iter().filter(|peer| peer.is_known());
    neighbours.set(known.filter_map(|peer| peer.neighbour().ok()));
    let answer = peers::answer(&peers, &neighbours, action, name);
    drop(entered);
    if changes {
        peers.note()?;
    }
    drop((peers, runtime));
    engine.shutdown()?;
    let mut answer = answer.map_err(anyhow::Error::msg)?;
    answer["running"] = false.into();
    Ok(answer)
}

fn feeds(report: &Value) -> Vec<Value> {
    report["feeds"].as_array().cloned().unwrap_or_default()
}

fn listed(report: &Value) -> String {
    let mut feeds = feeds(report);
    let mut received = received(report);
    for from in &mut received {
        from["rejections"] = sum(&from["rejected"]).into();
        from["deferrals"] = sum(&from["deferred"]).into();
        from["octets"] = output::octets(&from["octets"]).into();
    }
    let pulls = super::pull::rows(report);
    if feeds.is_empty() && received.is_empty() && pulls.is_empty() {
        return "there is no [[peer]] in the configuration\n".to_owned();
    }
    for feed in &mut feeds {
        if feed["behind_is_more"] == true {
            feed["behind"] = behind(feed).into();
        }
        feed["oldest"] = output::or_dash(output::date(&feed["oldest"])).into();
        let connections = feed["connections"].as_array().cloned().unwrap_or_default();
        let sending = connections
            .iter()
            .filter(|it| it.as_str().is_some_and(|it| it.starts_with("sending")));
        feed["state"] = match (feed["paused"] == true, sending.count()) {
            (true, _) => "paused".to_owned(),
            _ if report["running"] == false && feed["kept_s"].is_null() => {
                "no server is running".to_owned()
            }
            _ if feed["quota_s"].is_number() => "its quota is used up".to_owned(),
            (false, 0) => connections.first().map_or_else(String::new, output::cell),
            (false, many) => format!("sends on {}", output::count(many as u64, "connection")),
        }
        .into();
    }
    let tables = [(COLUMNS, feeds), (RECEIVED, received), (PULLED, pulls)];
    let tables = tables.iter().filter(|(_, rows)| !rows.is_empty());
    let tables: Vec<String> = tables
        .map(|(columns, rows)| output::table(columns, rows))
        .collect();
    tables.join("\n")
}

/// Articles of the log that were not looked at.
fn behind(of: &Value) -> String {
    let more = if of["behind_is_more"] == true {
        "+"
    } else {
        ""
    };
    output::cell(&of["behind"]) + more
}

fn received(report: &Value) -> Vec<Value> {
    report["received"].as_array().cloned().unwrap_or_default()
}

/// All counts of a table by reason.
fn sum(reasons: &Value) -> u64 {
    let counts = reasons.as_object().into_iter().flatten();
    counts.filter_map(|(_, count)| count.as_u64()).sum()
}

fn shown_received(from: &Value) -> String {
    let cell = |key: &str| output::cell(&from[key]);
    let mut facts = vec![
        ("received from".to_owned(), cell("peer")),
        ("connections".to_owned(), cell("connections")),
        ("accepted".to_owned(), cell("accepted")),
        ("octets".to_owned(), output::octets(&from["octets"])),
        ("refused when offered".to_owned(), cell("refused")),
        ("duplicates".to_owned(), cell("duplicate")),
        ("failed here".to_owned(), cell("failed")),
        ("another in Path".to_owned(), cell("mismatched")),
    ];
    for (what, key) in [("rejected", "rejected"), ("put off", "deferred")] {
        for (why, count) in from[key].as_object().into_iter().flatten() {
            facts.push((format!("{what}: {}", told(why)), output::cell(count)));
        }
    }
    let facts: Vec<(&str, String)> = facts
        .iter()
        .map(|(name, fact)| (name.as_str(), fact.clone()))
        .collect();
    output::facts(&facts) + "\n"
}

/// What the peer was told, by the label of a reason.
fn told(label: &str) -> &str {
    let rejects = Reject::ALL.iter().map(|why| (why.label(), why.text()));
    let defers = Defer::ALL.iter().map(|why| (why.label(), why.text()));
    let mut all = rejects.chain(defers);
    // A server that is newer than this program may have others.
    all.find(|(it, _)| *it == label)
        .map_or(label, |(_, text)| text)
}

fn shown(feed: &Value) -> String {
    let cell = |key: &str| output::cell(&feed[key]);
    let mut facts = vec![
        ("feed", format!("{}/{}", cell("peer"), cell("feed"))),
        ("address", cell("address")),
        ("paused", cell("paused")),
        ("accepted", cell("accepted")),
        ("refused when asked", cell("refused")),
        ("rejected when sent", cell("rejected")),
        ("put off", cell("deferred")),
        ("gone before sent", cell("gone")),
        ("missed at most", cell("missed")),
        ("sent", output::octets(&feed["octets"])),
        ("waiting", cell("waiting")),
        ("behind in the log", behind(feed)),
        ("oldest", output::or_dash(output::date(&feed["oldest"]))),
    ];
    if feed["unreadable"].as_u64().is_some_and(|many| many > 0) {
        facts.push((
            "cannot be read",
            format!("{}; tried again", cell("unreadable")),
        ));
    }
    if let Some(seconds) = feed["quota_s"].as_u64() {
        facts.push(("quota", format!("used up; sends again in {seconds} s")));
    }
    if let Some(said) = feed["last_rejection"]["said"].as_str() {
        let at = output::date(&feed["last_rejection"]["at"]);
        facts.push(("last rejection", format!("{said} ({at})")));
    }
    for (name, key) in [
        ("gone", "gone_ids"),
        ("missed", "missed_ids"),
        ("cannot be read", "unreadable_ids"),
    ] {
        for id in feed[key].as_array().into_iter().flatten() {
            facts.push((name, output::cell(id)));
        }
    }
    for connection in feed["connections"].as_array().into_iter().flatten() {
        facts.push(("connection", output::cell(connection)));
    }
    output::facts(&facts) + "\n"
}

fn explained(report: &Value) -> String {
    let mut feeds = feeds(report);
    if feeds.is_empty() {
        return "there is no [[peer]] in the configuration\n".to_owned();
    }
    for feed in &mut feeds {
        let held = feed["held"].as_array().into_iter().flatten();
        let held: Vec<&str> = held.filter_map(Value::as_str).collect();
        let goes = match feed["why"].as_str() {
            None => "goes out".to_owned(),
            Some(why) => format!("does not go out: {why}"),
        };
        let (fate, is_over) = fate(&feed["fate"], report["running"] != false);
        // What is over is not held by anything, and what goes out is told by what became of it.
        let parts: Vec<String> = match (is_over, feed["why"].is_null()) {
            (true, true) => vec![fate],
            (true, false) => vec![fate, format!("now it {goes}")],
            (false, _) => {
                let all = [goes, fate].into_iter().filter(|part| !part.is_empty());
                all.chain(held.into_iter().map(str::to_owned)).collect()
            }
        };
        let said = parts.join("; ");
        feed["said"] = said.into();
    }
    output::table(EXPLAINED, &feeds)
}

/// What became of an article by a feed, and whether that is the last word; no server remembers what feeds settled unless it `is_running`.
fn fate(of: &Value, is_running: bool) -> (String, bool) {
    let at = || output::date(&of["at"]);
    let said = match of["what"].as_str().unwrap_or_default() {
        "accepted" => format!("accepted {}", at()),
        "written" => format!("written into the batch {} {}", output::cell(&of["file"]), at()),
        "refused" => format!("refused when offered {}", at()),
        "rejected" => {
            let why = of["said"].as_str().map(|why| format!(": {why}"));
            format!("rejected {}{}", at(), why.unwrap_or_default())
        }
        "gone" => format!("was gone before it could be sent, {}", at()),
        "missed" => format!("was missed {}: the log was kept no longer", at()),
        "waits" => "waits for a connection".to_owned(),
        "under-way" => "is under way".to_owned(),
        "put-off" => {
            let times = output::count(of["times"].as_u64().unwrap_or(0), "time");
            format!("put off {times}, tried again in {} s", of["again_s"])
        }
        "in-log" => "waits in the log".to_owned(),
        "open" => "was not settled when the server stopped; it is sent, or sent again, when one runs".to_owned(),
        "passed" => {
            let known = match is_running {
                true => "the feed remembers no more of it",
                false => "only a server that runs remembers more of it",
            };
            format!(
                "the feed is past it, and {known}: it was settled, dropped or not let out, or missed, since its log was gone"
            )
        }
        "too-far-back" => {
            "it is further back than the log was searched or kept, and so is the feed: it waits in the log, was settled, or is missed".to_owned()
        }
        _ => return (String::new(), false),
    };
    (said, !of["at"].is_null() || of["what"] == "passed")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// That all articles were rejected was told, and not why.
    #[test]
    fn a_feed_says_what_the_peer_rejected_last() {
        let feed = json!({"peer": "b", "feed": "main", "rejected": 18,
            "last_rejection": {"at": 1_767_225_600, "said": "439 <1@a.example> Already passed this site"}});
        let told = shown(&feed);
        assert!(
            told.contains(
                "439 <1@a.example> Already passed this site (Thu, 01 Jan 2026 00:00:00 +0000)"
            ),
            "{told}"
        );
        let none = shown(&json!({"peer": "b", "feed": "main", "last_rejection": null}));
        assert!(!none.contains("last rejection"), "{none}");
    }

    /// Reasons were named by their metric labels.
    #[test]
    fn what_came_is_told_with_reasons_in_words() {
        let from = json!({"peer": "b", "rejected": {"unwanted": 3, "from_tomorrow": 1}, "deferred": {"full": 2}});
        let told = shown_received(&from);
        for line in [
            "rejected: Unwanted newsgroups  3",
            "rejected: from_tomorrow        1",
            "put off: no room at present    2",
        ] {
            assert!(told.contains(line), "{told}");
        }
        let all = Reject::ALL.iter().map(|why| why.label());
        let labels = all.chain(Defer::ALL.iter().map(|why| why.label()));
        for label in labels {
            assert!(super::told(label).contains(' '), "{label}");
        }
    }
}
