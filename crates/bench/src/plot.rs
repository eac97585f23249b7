//! Figures as SVG: bars below each other, and curves over passes.
//!
//! Invariant: one scale begins at nothing, so that twice as long is twice as much.

use plotters::prelude::{
    BLACK, ChartBuilder, Color as _, HSLColor, IntoDrawingArea as _, IntoFont as _, LineSeries,
    PathElement, Rectangle, SVGBackend, SeriesLabelPosition, Text, WHITE,
};

use crate::error::Error;

/// Names and values.
pub type Bars = [(String, f64)];
/// Names and points.
pub type Curves = [(String, Vec<(f64, f64)>)];
type Drawn = Result<(), Box<dyn std::error::Error>>;

/// A bar for each name, with its value behind it; those of this program have a colour of their own.
pub fn bars(title: &str, bars: &Bars) -> Result<String, Error> {
    let mut text = String::new();
    let drawn = draw_bars(title, bars, &mut text);
    told(drawn, text)
}

/// A curve for each name, from 1 on or less.
pub fn curves(title: &str, (across, up): (&str, &str), curves: &Curves) -> Result<String, Error> {
    let mut text = String::new();
    let drawn = draw_curves(title, (across, up), curves, &mut text);
    told(drawn, text)
}

fn told(drawn: Drawn, text: String) -> Result<String, Error> {
    drawn.map_err(|error| Error::Program {
        program: "the plot".to_owned(),
        why: error.to_string(),
    })?;
    Ok(text)
}

const WIDTH: u32 = 900;
const HEIGHT: u32 = 500;
const BAR_HEIGHT: u32 = 34;
/// Of the width, so much is for names on the left; as much again at the right is for the numbers.
const NAMES: f64 = 0.3;
/// A curve's colour is so far from that of the one before.
const HUE_STEP: f64 = 0.381_966;

fn draw_bars(title: &str, bars: &Bars, text: &mut String) -> Drawn {
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
        let hue = if name.contains("newsreel") { 0.6 } else { 0.08 };
        let style = HSLColor(hue, 0.7, 0.45).filled();
        let said = match *value {
            value if value < 1.0 => format!("{value:.3}"),
            value if value < 100.0 => format!("{value:.1}"),
            value => format!("{value:.0}"),
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

fn draw_curves(
    title: &str,
    (across, up): (&str, &str),
    curves: &Curves,
    text: &mut String,
) -> Drawn {
    let points = curves.iter().flat_map(|(_, points)| points);
    let widest = |(first, last, most): (f64, f64, f64), (x, y): &(f64, f64)| {
        (first.min(*x), last.max(*x), most.max(*y))
    };
    let (first, last, most) = points.fold((1.0, 2.0, 1e-9), widest);
    let area = SVGBackend::with_string(text, (WIDTH, HEIGHT)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(title, ("sans-serif", 20))
        .margin(10)
        .x_label_area_size(40)
        .y_label_area_size(70)
        .build_cartesian_2d(first..last, 0.0..most * 1.1)?;
    let mesh = &mut chart.configure_mesh();
    mesh.x_desc(across).y_desc(up).draw()?;
    for (place, (name, points)) in curves.iter().enumerate() {
        let color = HSLColor((place as f64 * HUE_STEP).fract(), 0.8, 0.4);
        let stroke = color.stroke_width(2);
        chart
            .draw_series(LineSeries::new(points.iter().copied(), stroke))?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], stroke));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK)
        .draw()?;
    area.present()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_in_the_picture() {
        let picture = bars("Bars", &[("newsreel a".into(), 2.0), ("inn b".into(), 0.5)]).unwrap();
        assert!(picture.starts_with("<svg"), "{picture}");
        for name in ["newsreel a", "inn b", "0.500"] {
            assert_eq!(picture.matches(name).count(), 1, "{name} in {picture}");
        }
        let two = [
            ("one".into(), vec![(1.0, 5.0), (2.0, 4.0)]),
            ("two".into(), vec![]),
        ];
        let picture = curves("Curves", ("pass", "articles"), &two).unwrap();
        for name in ["one", "two", "pass", "articles"] {
            assert!(picture.contains(name), "{name} in {picture}");
        }
        // Nothing to draw is no reason to fail.
        assert!(curves("None", ("x", "y"), &[]).is_ok() && bars("None", &[]).is_ok());
    }
}
