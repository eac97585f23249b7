//! The figures as tables: for people at a terminal, and as Markdown for a report.

use std::fmt::Write as _;

use super::figures::Row;

const TITLES: [&str; 12] = [
    "files",
    "layout",
    "as",
    "in memory",
    "random",
    "again",
    "asked",
    "sequential",
    "add",
    "remove",
    "list",
    "emptied",
];

fn cells(row: &Row) -> [String; 12] {
    let us = |value: f64| match value {
        value if value < 10.0 => format!("{value:.2}"),
        value if value < 1000.0 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    };
    [
        row.files.to_string(),
        row.layout.clone(),
        if row.mounted { "mounted" } else { "native" }.to_owned(),
        if row.cold { "nothing" } else { "blocks" }.to_owned(),
        us(row.random_us),
        us(row.known_us),
        row.known_requests
            .map_or_else(|| "-".to_owned(), |requests| requests.to_string()),
        us(row.sequential_us),
        us(row.add_us),
        us(row.remove_us),
        us(row.list_us),
        row.emptied_list_us.map_or_else(|| "-".to_owned(), us),
    ]
}

/// One row, for a terminal.
#[must_use]
pub fn human(row: &Row) -> String {
    let [
        files,
        layout,
        by,
        memory,
        random,
        again,
        asked,
        sequential,
        add,
        remove,
        list,
        emptied,
    ] = cells(row);
    let emptied = match row.emptied_list_us {
        Some(_) => format!(", emptied {emptied:>7}"),
        None => String::new(),
    };
    format!(
        "{:5} {files:>7} {layout:10} {by:8} {memory:7} us: random {random:>7}, again {again:>5} ({asked} asked), sequential {sequential:>7}, add {add:>7}, \
         remove {remove:>7}, list {list:>9}{emptied}",
        row.file_system
    )
}

/// The rows of one file system at one size, as a table.
#[must_use]
pub fn markdown(file_system: &str, files: u64, rows: &[Row]) -> String {
    let mut text = format!(
        "| {} |\n|{}\n",
        TITLES.join(" | "),
        "---|".repeat(TITLES.len())
    );
    let shown = rows.iter();
    for row in shown.filter(|row| row.file_system == file_system && row.files == files) {
        // Writing to a text cannot fail.
        let _ = writeln!(text, "| {} |", cells(row).join(" | "));
    }
    text
}
