//! The figures as tables: for people at a terminal, and as Markdown for a report.

use std::fmt::Write as _;

use super::figures::Row;

const TITLES: [&str; 8] = [
    "files",
    "layout",
    "as",
    "random",
    "sequential",
    "add",
    "remove",
    "list",
];

fn cells(row: &Row) -> [String; 8] {
    let us = |value: f64| match value {
        value if value < 10.0 => format!("{value:.2}"),
        value if value < 1000.0 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    };
    [
        row.files.to_string(),
        row.layout.clone(),
        if row.mounted { "mounted" } else { "native" }.to_owned(),
        us(row.random_us),
        us(row.sequential_us),
        us(row.add_us),
        us(row.remove_us),
        us(row.list_us),
    ]
}

/// One row, for a terminal.
#[must_use]
pub fn human(row: &Row) -> String {
    let [files, layout, by, random, sequential, add, remove, list] = cells(row);
    format!(
        "{:5} {files:>7} {layout:10} {by:8} us: random {random:>7}, sequential {sequential:>7}, add {add:>7}, remove \
         {remove:>7}, list {list:>9}",
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
