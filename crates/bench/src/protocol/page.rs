//! The rows as a table: for a terminal, and Markdown for a report.

use std::fmt::Write as _;

use super::{Asked, ProtocolReport, Row};
use crate::compare::Spread;

impl ProtocolReport {
    /// For a terminal.
    #[must_use]
    pub fn human(&self) -> String {
        let mut text = String::new();
        for row in &self.rows {
            let met = if row.is_met { "" } else { "  NOT MET" };
            // Writing to a text cannot fail.
            let _ = writeln!(
                text,
                "{:10} {:>10} {} (asked: {}{}){met}",
                row.name,
                found(row),
                row.unit,
                asked(row.asked),
                elsewhere(row)
            );
        }
        text
    }

    /// For a report; bold: less than was asked.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut text = "| what | asked | found | of the rounds |\n|---|---|---|---|\n".to_owned();
        for row in &self.rows {
            let mark = if row.is_met { "" } else { "**" };
            let values: Vec<String> = row.values.iter().map(|value| figure(*value)).collect();
            // Writing to a text cannot fail.
            let _ = writeln!(
                text,
                "| {} | {} {} | {mark}{}{mark}{}{} | {} |",
                row.what,
                asked(row.asked),
                row.unit,
                found(row),
                beside(row),
                elsewhere(row),
                values.join(", ")
            );
        }
        text
    }
}

/// What a ratio of waiting times is of, in the round in the middle of the list.
fn beside(row: &Row) -> String {
    let waited = row.waited_us.get(row.waited_us.len() / 2);
    waited.map_or_else(String::new, |[alone, beside]| {
        format!(" ({alone:.0}, then {beside:.0} us)")
    })
}

/// The control.
fn elsewhere(row: &Row) -> String {
    let control = Spread::of(row.elsewhere.clone());
    control.map_or_else(String::new, |control| {
        let times = figure(control.median);
        format!("; {times} with the attackers at another server")
    })
}

fn asked(asked: Asked) -> String {
    match asked {
        Asked::AtLeast(least) => format!("at least {}", figure(least)),
        Asked::Below(bound) => format!("below {}", figure(bound)),
    }
}

fn found(row: &Row) -> String {
    row.found
        .map_or_else(String::new, |found| figure(found.median))
}

/// With as many digits as mean something.
fn figure(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}
