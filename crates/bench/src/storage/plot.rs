//! The figures as SVG: a bar for each server and method, those of one file system below each other.

use super::figures::Row;
use crate::error::Error;
use crate::plot;

/// What is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// Figure 8: articles in a second.
    Rate,
    /// Figure 9: reads and writes of the device.
    Operations,
}

impl Figure {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Rate, Self::Operations];

    /// Its name in those of files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rate => "8",
            Self::Operations => "9",
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::Rate => "Figure 8: articles accepted in a second",
            Self::Operations => "Figure 9: disk operations for a hundred articles",
        }
    }

    /// What it shows of a row; none where that was not told.
    fn of(self, row: &Row) -> Option<f64> {
        match self {
            Self::Rate => Some(row.per_second),
            Self::Operations => {
                let articles: u64 = row.batches.iter().map(|batch| batch.articles).sum();
                let operations = row.statistics.device?.operations();
                Some(100.0 * operations as f64 / articles.max(1) as f64)
            }
        }
    }
}

/// Draws a figure of the rows of one file system.
pub fn svg(figure: Figure, file_system: &str, rows: &[Row]) -> Result<String, Error> {
    let shown = rows.iter().filter(|row| row.file_system == file_system);
    let bars: Vec<(String, f64)> = shown
        .filter_map(|row| Some((format!("{} {}", row.server, row.method), figure.of(row)?)))
        .collect();
    plot::bars(&format!("{}, {file_system}", figure.title()), &bars)
}
