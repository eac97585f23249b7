//! The figures as tables: a line for a terminal, and Markdown for a report, as the paper has them.

use std::fmt::Write as _;

use super::figures::{Row, Statistics};

const MB: f64 = 1e6;
pub(crate) const UNTOLD: &str = "not told";

/// One row, for a terminal.
#[must_use]
pub fn human(row: &Row) -> String {
    let device = row.statistics.device;
    let operations = device.map_or_else(|| UNTOLD.to_owned(), |d| d.operations().to_string());
    let mut text = format!(
        "{:4} {:8} {:18} {:>7.0} articles/s, {:>6.1} us CPU, disk operations {operations:>8}, written {} of the articles' octets",
        row.file_system,
        row.server,
        row.method,
        row.per_second,
        row.statistics.server_cpu_us,
        ratio(row.whole.written_ratio),
    );
    for complaint in &row.complaints {
        // Writing to a text cannot fail.
        let _ = write!(text, "\n     {complaint}");
    }
    text
}

/// Both figures and the run of small articles, of one file system.
#[must_use]
pub fn markdown(file_system: &str, rows: &[Row]) -> String {
    let shown: Vec<&Row> = rows
        .iter()
        .filter(|r| r.file_system == file_system)
        .collect();
    let mut text = String::new();
    transmission(&mut text, &shown);
    text.push('\n');
    statistics(&mut text, &shown, rows);
    text.push('\n');
    others(&mut text, &shown);
    text
}

/// One row of a table.
pub(crate) fn line(text: &mut String, cells: impl IntoIterator<Item = String>) {
    let cells: Vec<String> = cells.into_iter().collect();
    // Writing to a text cannot fail.
    let _ = writeln!(text, "| {} |", cells.join(" | "));
}

/// The first row of one.
pub(crate) fn heading(text: &mut String, cells: &[String]) {
    line(text, cells.iter().cloned());
    let _ = writeln!(text, "|{}", "---|".repeat(cells.len()));
}

/// Figure 8: the batches, then who took how long for each.
fn transmission(text: &mut String, rows: &[&Row]) {
    let Some(first) = rows.first() else { return };
    let numbers = (1..=first.batches.len()).map(|n| n.to_string());
    let titles = ["batch".to_owned()].into_iter().chain(numbers);
    let titles: Vec<String> = titles
        .chain(["articles/s".to_owned(), "factor".to_owned()])
        .collect();
    heading(text, &titles);
    let blank = || [String::new(), String::new()];
    let said = |name: &str, of: &dyn Fn(&super::Batch) -> String| {
        let batches = first.batches.iter().map(of);
        [name.to_owned()]
            .into_iter()
            .chain(batches)
            .chain(blank())
            .collect::<Vec<_>>()
    };
    line(text, said("articles", &|batch| batch.articles.to_string()));
    line(text, said("groups", &|batch| batch.groups.to_string()));
    line(text, said("KB", &|batch| (batch.octets / 1000).to_string()));
    for row in rows {
        let took = row
            .batches
            .iter()
            .map(|batch| format!("{:.3} s", batch.seconds));
        let mark = if row.complaints.is_empty() {
            ""
        } else {
            " (!)"
        };
        let name = format!("{} {}{mark}", row.server, row.method);
        let cells = [name].into_iter().chain(took);
        line(
            text,
            cells.chain([format!("{:.0}", row.per_second), ratio(row.factor)]),
        );
    }
}

type Value = (&'static str, fn(&Statistics) -> Option<f64>);

/// The lines of figure 9.
const VALUES: [Value; 18] = [
    ("CPU idle, %", |s| Some(s.cpu?.idle)),
    ("CPU user, %", |s| Some(s.cpu?.user)),
    ("CPU system, %", |s| Some(s.cpu?.system)),
    ("CPU wait, %", |s| Some(s.cpu?.wait)),
    ("server's CPU, us an article", |s| Some(s.server_cpu_us)),
    ("read calls", |s| Some(s.read_calls as f64)),
    ("write calls", |s| Some(s.write_calls as f64)),
    ("path look-ups", |s| Some(s.calls?.path_lookups as f64)),
    ("inodes made", |s| Some(s.calls?.inodes_made as f64)),
    ("inodes fetched", |s| Some(s.calls?.inodes_fetched as f64)),
    ("pages into the cache", |s| {
        Some(s.calls?.pages_cached as f64)
    }),
    ("read from the device, KB", |s| {
        Some(s.device?.read_octets as f64 / 1e3)
    }),
    ("written to the device, KB", |s| {
        Some(s.device?.written_octets as f64 / 1e3)
    }),
    ("reads of the device", |s| Some(s.device?.reads as f64)),
    ("writes of the device", |s| Some(s.device?.writes as f64)),
    ("flushes of the device", |s| Some(s.device?.flushes as f64)),
    ("service time, ms", |s| s.device?.service_ms),
    ("last writing, s", |s| Some(s.settling_seconds)),
];

fn statistics(text: &mut String, shown: &[&Row], rows: &[Row]) {
    let names = shown
        .iter()
        .map(|row| format!("{} {}", row.server, row.method));
    let titles: Vec<String> = ["statistic".to_owned()].into_iter().chain(names).collect();
    heading(text, &titles);
    for (name, of) in VALUES {
        let cells = shown.iter().map(|row| {
            let Some(value) = of(&row.statistics) else {
                return UNTOLD.to_owned();
            };
            let reference = row.reference(rows).filter(|_| !row.is_reference());
            let base = reference.and_then(|reference| of(&reference.statistics));
            number(value) + &base.map(|base| delta(value, base)).unwrap_or_default()
        });
        line(text, [name.to_owned()].into_iter().chain(cells));
    }
}

fn others(text: &mut String, rows: &[&Row]) {
    let titles = [
        "",
        "small articles/s",
        "peak",
        "written in all, MB",
        "for an octet of articles",
        "disk operations an article",
    ];
    heading(text, &titles.map(str::to_owned));
    for row in rows {
        let short = row.short.as_ref();
        let peak = short.and_then(|short| short.peak);
        let device = row.whole.device;
        let articles: u64 = row.batches.iter().map(|batch| batch.articles).sum();
        let operations = row
            .statistics
            .device
            .map(|d| d.operations() as f64 / articles.max(1) as f64);
        let cells = [
            format!("{} {}", row.server, row.method),
            short.map_or_else(String::new, |short| format!("{:.0}", short.sustained)),
            peak.map_or_else(String::new, |peak| format!("{peak:.0}")),
            device.map_or_else(
                || UNTOLD.to_owned(),
                |d| number(d.written_octets as f64 / MB),
            ),
            ratio(row.whole.written_ratio),
            operations.map_or_else(|| UNTOLD.to_owned(), |each| format!("{each:.3}")),
        ];
        line(text, cells);
    }
}

fn ratio(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| format!("{value:.2}"))
}

fn number(value: f64) -> String {
    match value {
        value if value.abs() < 10.0 => format!("{value:.2}"),
        value if value.abs() < 1000.0 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

/// The paper's last column; nothing is said of a base of nothing.
fn delta(value: f64, base: f64) -> String {
    if base == 0.0 {
        return String::new();
    }
    format!(" ({:+.0} %)", 100.0 * (value - base) / base)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_relative() {
        assert_eq!(delta(50.0, 200.0), " (-75 %)");
        assert_eq!(delta(3.0, 1.0), " (+200 %)");
        assert_eq!(delta(3.0, 0.0), "");
        assert_eq!(
            (number(0.5), number(99.5), number(12_345.6)),
            ("0.50".into(), "99.5".into(), "12346".into())
        );
    }
}
