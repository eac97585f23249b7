//! Curves as SVG.

use anyhow::{Result, anyhow};
use plotters::prelude::{
    BLACK, ChartBuilder, Color as _, HSLColor, IntoDrawingArea as _, LineSeries, PathElement,
    SVGBackend, WHITE,
};

/// A curve.
pub(super) struct Curve {
    pub(super) name: &'static str,
    pub(super) is_thin: bool,
    pub(super) points: Vec<(f64, f64)>,
}

const SIZE: (u32, u32) = (900, 540);

/// Draws curves over the same axes.
pub(super) fn svg(title: &str, curves: &[Curve]) -> Result<String> {
    let mut text = String::new();
    let drawn = draw(title, curves, &mut text);
    drawn.map_err(|error| anyhow!("the figure cannot be drawn: {error}"))?;
    Ok(text)
}

fn draw(
    title: &str,
    curves: &[Curve],
    text: &mut String,
) -> Result<(), Box<dyn std::error::Error>> {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let right = points().map(|point| point.0).fold(1.0, f64::max);
    let top = points().map(|point| point.1).fold(1.0, f64::max);
    let area = SVGBackend::with_string(text, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(title, ("sans-serif", 20))
        .margin(10)
        .x_label_area_size(30)
        .y_label_area_size(50)
        .build_cartesian_2d(0.0..right, 0.0..top * 1.05)?;
    chart.configure_mesh().draw()?;
    let count = curves.len().max(1) as f64;
    for (place, curve) in curves.iter().enumerate() {
        let hue = place as f64 / count;
        let width = if curve.is_thin { 1 } else { 2 };
        let style = HSLColor(hue, 0.9, 0.4).stroke_width(width);
        chart
            .draw_series(LineSeries::new(curve.points.iter().copied(), style))?
            .label(curve.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], style));
    }
    chart
        .configure_series_labels()
        .background_style(WHITE)
        .border_style(BLACK)
        .draw()?;
    area.present()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_curve_has_its_name() {
        let curve = |name| Curve {
            name,
            is_thin: false,
            points: vec![(1.0, 2.0), (3.0, 4.0)],
        };
        let text = svg("Figure 4", &[curve("lrug"), curve("baf")]).unwrap();
        for word in ["<svg", "Figure 4", "lrug", "baf", "polyline"] {
            assert!(text.contains(word), "{word}");
        }
    }
}
