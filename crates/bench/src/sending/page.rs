//! What was measured, for a terminal and for a report.

use super::{Report, Row, SCENES};
use crate::storage::{heading, line};
use crate::usenetfs::GOAL_TITLES;

const TITLES: [&str; 7] = [
    "what",
    "peers",
    "articles sent",
    "seconds",
    "articles/s",
    "sender's processor time each, us",
    "its memory, MiB",
];

/// One row, for a terminal.
#[must_use]
pub fn human(row: &Row) -> String {
    let cpu = row.cpu_us.map_or_else(String::new, |us| {
        format!(", {us:.2} us of the sender's processor time each")
    });
    let memory = row.rss_octets.map_or_else(String::new, |octets| {
        format!(", its memory {} MiB", octets >> 20)
    });
    format!(
        "{:6} {}, peers: {}: {} sent in {:.2} s, {:.0}/s{cpu}{memory}",
        row.scene,
        row.what,
        row.peers,
        row.sent,
        row.seconds,
        row.per_second(),
    )
}

/// All of it: what was asked first.
#[must_use]
pub fn markdown(report: &Report) -> String {
    let mut text = GOAL_TITLES.to_owned();
    text.extend(report.goals.iter().map(crate::usenetfs::Goal::markdown));
    for (name, words, _) in SCENES {
        let rows: Vec<&Row> = report.rows.iter().filter(|row| row.scene == name).collect();
        if rows.is_empty() {
            continue;
        }
        text += &format!("\n**{words}** (`--scenes {name}`)\n\n");
        heading(&mut text, &TITLES.map(str::to_owned));
        for row in rows {
            line(&mut text, cells(row));
        }
    }
    text
}

fn cells(row: &Row) -> [String; 7] {
    let none = || "-".to_owned();
    [
        row.what.clone(),
        row.peers.to_string(),
        row.sent.to_string(),
        format!("{:.2}", row.seconds),
        format!("{:.0}", row.per_second()),
        row.cpu_us.map_or_else(none, |us| format!("{us:.2}")),
        row.rss_octets
            .map_or_else(none, |octets| (octets >> 20).to_string()),
    ]
}
