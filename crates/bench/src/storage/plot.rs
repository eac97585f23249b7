//! The figures as SVG: a bar for each server and method, those of one file system below each other.

use plotters::prelude::{
    BLACK, ChartBuilder, Color as _, HSLColor, IntoDrawingArea as _, IntoFont as _, Rectangle,
    SVGBackend, Text, WHITE,
};

use super::figures::Row;
use crate::error::Error;

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
    let mut text = String::new();
    let title = format!("{}, {file_system}", figure.title());
    let drawn = draw(&title, &bars, &mut text);
    drawn.map_err(|error| Error::Program {
        program: "the plot".to_owned(),
        why: error.to_string(),
    })?;
    Ok(text)
}

const WIDTH: u32 = 900;
const BAR_HEIGHT: u32 = 34;
/// Of the width, so much is for names on the left; as much again at the right is for the numbers.
const NAMES: f64 = 0.3;

fn draw(
    title: &str,
    bars: &[(String, f64)],
    text: &mut String,
) -> Result<(), Box<dyn std::error::Error>> {
    let most = bars.iter().map(|bar| bar.1).fold(1e-9, f64::max);
    let count = bars.len().max(1);
    let height = 60 + BAR_HEIGHT * count as u32;
    let area = SVGBackend::with_string(text, (WIDTH, height)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(title, ("sans-serif", 20))
        .margin(10)
        .build_cartesian_2d(-most * NAMES..most * (1.0 + NAMES / 2.0), 0.0..count as f64)?;
    let font = ("sans-serif", 14).into_font().color(&BLACK);
    for (place, (name, value)) in bars.iter().enumerate() {
        let bottom = (count - 1 - place) as f64;
        let (low, high, middle) = (bottom + 0.15, bottom + 0.85, bottom + 0.65);
        let hue = if name.starts_with("newsreel") {
            0.6
        } else {
            0.08
        };
        let style = HSLColor(hue, 0.7, 0.45).filled();
        let said = if *value < 100.0 {
            format!("{value:.1}")
        } else {
            format!("{value:.0}")
        };
        chart.draw_series([Rectangle::new([(0.0, low), (*value, high)], style)])?;
        chart.draw_series([
            Text::new(name.clone(), (-most * NAMES, middle), font.clone()),
            Text::new(said, (value + most * 0.01, middle), font.clone()),
        ])?;
    }
    area.present()?;
    Ok(())
}
