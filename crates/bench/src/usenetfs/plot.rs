//! The paper's figures as SVG: both axes by powers of ten, a curve for each layout, natively and (paler) through a mount.

use plotters::prelude::{
    BLACK, ChartBuilder, HSLColor, IntoDrawingArea as _, IntoLogRange as _, LineSeries,
    PathElement, SVGBackend, SeriesLabelPosition, WHITE,
};
use plotters::style::{Color as _, RGBAColor};

use super::figures::Row;
use crate::error::Error;

/// A figure of the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// Figure 3: random lookups.
    RandomLookups,
    /// Figure 3: sequential lookups.
    SequentialLookups,
    /// Figure 4: additions, and removals of the oldest.
    AddAndRemove,
    /// Figure 5: reading the directory.
    Listing,
    /// Figure 6: what a day costs with the paper's mix of operations.
    Day,
}

/// How often each was asked for in the paper's day (Table 1): lookups, additions, removals, listings.
const DAY: [f64; 4] = [7_068_838.0, 345_647.0, 432_269.0, 38_371.0];

impl Figure {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::RandomLookups,
        Self::SequentialLookups,
        Self::AddAndRemove,
        Self::Listing,
        Self::Day,
    ];

    /// Its name in those of files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::RandomLookups => "3-random",
            Self::SequentialLookups => "3-sequential",
            Self::AddAndRemove => "4",
            Self::Listing => "5",
            Self::Day => "6",
        }
    }

    const fn titles(self) -> (&'static str, &'static str) {
        match self {
            Self::RandomLookups => ("Figure 3: random lookups", "us a lookup"),
            Self::SequentialLookups => ("Figure 3: sequential lookups", "us a lookup"),
            Self::AddAndRemove => ("Figure 4: one added, the oldest removed", "us both"),
            Self::Listing => ("Figure 5: reading the directory", "us"),
            Self::Day => ("Figure 6: a day with the mix of Table 1", "seconds"),
        }
    }

    /// What it shows of a row.
    #[must_use]
    pub fn of(self, row: &Row) -> f64 {
        match self {
            Self::RandomLookups => row.random_us,
            Self::SequentialLookups => row.sequential_us,
            Self::AddAndRemove => row.add_us + row.remove_us,
            Self::Listing => row.list_us,
            Self::Day => {
                let [lookups, additions, removals, listings] = DAY;
                let lookup = f64::midpoint(row.random_us, row.sequential_us);
                let us = lookups * lookup
                    + additions * row.add_us
                    + removals * row.remove_us
                    + listings * row.list_us;
                us / 1e6
            }
        }
    }
}

/// Draws a figure of the rows of one file system, of those with nothing in memory or of the others.
pub fn svg(figure: Figure, file_system: &str, cold: bool, rows: &[Row]) -> Result<String, Error> {
    let rows: Vec<&Row> = rows
        .iter()
        .filter(|r| r.file_system == file_system && r.cold == cold)
        .collect();
    let (title, _) = figure.titles();
    let state = if cold { ", nothing in memory" } else { "" };
    let title = format!("{title}, {file_system}{state}");
    let mut text = String::new();
    let drawn = draw(figure, &title, &rows, &mut text);
    drawn.map_err(|error| Error::Program {
        program: "the plot".to_owned(),
        why: error.to_string(),
    })?;
    Ok(text)
}

fn draw(
    figure: Figure,
    title: &str,
    rows: &[&Row],
    text: &mut String,
) -> Result<(), Box<dyn std::error::Error>> {
    let values = rows.iter().map(|row| figure.of(row));
    let (least, most) = values.fold((f64::MAX, f64::MIN), |(least, most), value| {
        (least.min(value), most.max(value))
    });
    let files = rows.iter().map(|row| row.files).max().unwrap_or(1);
    let area = SVGBackend::with_string(text, (900, 560)).into_drawing_area();
    area.fill(&WHITE)?;
    let (_, unit) = figure.titles();
    let mut chart = ChartBuilder::on(&area)
        .caption(title, ("sans-serif", 20))
        .margin(10)
        .x_label_area_size(40)
        .y_label_area_size(70)
        .build_cartesian_2d(
            (1.0..files.max(2) as f64).log_scale(),
            (least * 0.8..most * 1.25).log_scale(),
        )?;
    let mesh = &mut chart.configure_mesh();
    mesh.x_desc("files in the directory").y_desc(unit).draw()?;
    for (number, (layout, mounted)) in curves(rows).into_iter().enumerate() {
        let shown = rows
            .iter()
            .filter(|r| r.layout == layout && r.mounted == mounted);
        let points = shown.map(|row| (row.files as f64, figure.of(row)));
        let color = color(number / 2, mounted);
        let of = if mounted { "mounted" } else { "native" };
        chart
            .draw_series(LineSeries::new(points, color.stroke_width(2)))?
            .label(format!("{layout}, {of}"))
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], color.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK)
        .draw()?;
    area.present()?;
    Ok(())
}

/// Each layout natively and mounted, in the order in which they were measured.
fn curves<'a>(rows: &[&'a Row]) -> Vec<(&'a str, bool)> {
    let mut curves = Vec::new();
    for row in rows {
        for mounted in [false, true] {
            let curve = (row.layout.as_str(), mounted);
            if !curves.contains(&curve) {
                curves.push(curve);
            }
        }
    }
    curves
}

fn color(layout: usize, mounted: bool) -> RGBAColor {
    let hue = (layout as f64 / 6.0).fract();
    HSLColor(hue, 0.9, 0.4).mix(if mounted { 0.45 } else { 1.0 })
}
