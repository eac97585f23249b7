//! What builds beside a news server took: a table, and figure 7 as SVG.

use serde::Serialize;

use crate::error::Error;
use crate::plot;

/// One build.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Build {
    /// When it began, since the first one did.
    pub at_seconds: f64,
    /// How long it took.
    pub seconds: f64,
}

/// The builds beside one server, without or with its largest groups managed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BesideRow {
    /// The server.
    pub server: String,
    /// Whether its largest groups are managed.
    pub is_managed: bool,
    /// The file system of articles and builds.
    pub file_system: String,
    /// Every build.
    pub builds: Vec<Build>,
    /// Articles that the server took meanwhile.
    pub fed: u64,
    /// Articles that it did not want.
    pub refused: u64,
    /// How often it let articles go.
    pub expiries: u64,
    /// Articles that the peer has answered for.
    pub sent: u64,
}

/// The head of the table.
pub const BESIDE_TITLES: &str = "| server | largest groups | builds | mean, s | least, s | most, s | articles fed | expiries | sent |\n\
     |---|---|---|---|---|---|---|---|---|\n";

/// How groups are kept, in words.
pub(super) const fn way(is_managed: bool) -> &'static str {
    if is_managed { "managed" } else { "flat" }
}

impl BesideRow {
    /// The mean of all builds.
    #[must_use]
    pub fn mean_seconds(&self) -> f64 {
        self.builds.iter().map(|build| build.seconds).sum::<f64>() / self.builds.len().max(1) as f64
    }

    /// The quickest build.
    #[must_use]
    pub fn least_seconds(&self) -> f64 {
        let seconds = self.builds.iter().map(|build| build.seconds);
        seconds.reduce(f64::min).unwrap_or_default()
    }

    /// The slowest build.
    #[must_use]
    pub fn most_seconds(&self) -> f64 {
        let seconds = self.builds.iter().map(|build| build.seconds);
        seconds.reduce(f64::max).unwrap_or_default()
    }

    fn curve(&self) -> (String, Vec<(f64, f64)>) {
        let points = self.builds.iter();
        let points = points.map(|build| (build.at_seconds, build.seconds));
        let name = format!("{}, {}", self.server, way(self.is_managed));
        (name, points.collect())
    }

    /// As a line of a table in Markdown, below [`BESIDE_TITLES`].
    #[must_use]
    pub fn markdown(&self) -> String {
        format!(
            "| {} | {} | {} | {:.2} | {:.2} | {:.2} | {} | {} | {} |\n",
            self.server,
            way(self.is_managed),
            self.builds.len(),
            self.mean_seconds(),
            self.least_seconds(),
            self.most_seconds(),
            self.fed,
            self.expiries,
            self.sent
        )
    }
}

/// Figure 7: when each build began, and how long it took.
pub fn beside_svg(rows: &[BesideRow]) -> Result<String, Error> {
    let on = rows.first().map_or("", |row| row.file_system.as_str());
    let title = format!("Figure 7: builds beside a news server, {on}");
    let curves: Vec<(String, Vec<(f64, f64)>)> = rows.iter().map(BesideRow::curve).collect();
    plot::curves(&title, ("seconds", "seconds a build"), &curves)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_peaks_of_the_builds_and_a_curve_for_each_server() {
        let row = |is_managed, seconds: &[f64]| BesideRow {
            server: "inn".to_owned(),
            is_managed,
            file_system: "ext2".to_owned(),
            builds: (0..seconds.len())
                .map(|n| Build {
                    at_seconds: 10.0 * n as f64,
                    seconds: seconds[n],
                })
                .collect(),
            fed: 100,
            refused: 0,
            expiries: 2,
            sent: 90,
        };
        let rows = [row(false, &[4.0, 12.0, 5.0]), row(true, &[4.0])];
        assert_eq!(
            rows[0].markdown(),
            "| inn | flat | 3 | 7.00 | 4.00 | 12.00 | 100 | 2 | 90 |\n"
        );
        let svg = beside_svg(&rows).unwrap();
        for curve in ["inn, flat", "inn, managed", "ext2"] {
            assert!(svg.contains(curve), "{svg}");
        }
        assert_eq!(row(true, &[]).most_seconds(), 0.0);
    }
}
