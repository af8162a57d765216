//! Draws the pictures of a page as SVG, and builds charts from plain numbers.

use presentation::chart::{Axis, Chart, Series};
use presentation::svg::{Area, Svg};

use super::page::{Panel, Picture};

/// Size of a panel in pixels.
const PANEL: (f64, f64) = (470.0, 330.0);

/// The SVG file of a picture: panels in rows of at most two.
pub(super) fn svg(picture: &Picture) -> String {
    let columns = picture.panels.len().clamp(1, 2);
    let rows = picture.panels.len().div_ceil(columns);
    let mut svg = Svg::new(columns as f64 * PANEL.0, rows as f64 * PANEL.1, &picture.shows);
    for (place, panel) in picture.panels.iter().enumerate() {
        let corner = ((place % columns) as f64 * PANEL.0, (place / columns) as f64 * PANEL.1);
        let area = Area::at(corner, PANEL);
        match panel {
            Panel::Lines(chart) => chart.draw(&mut svg, area),
            Panel::Bars(bars) => bars.draw(&mut svg, area),
        }
    }
    svg.finish()
}

/// A chart whose axes begin at 0 and end just beyond the points of its series.
pub(super) fn chart(
    caption: impl Into<String>,
    horizontal: &str,
    vertical: &str,
    series: Vec<Series>,
) -> Chart {
    let points = || series.iter().flat_map(|series| series.line.iter().chain(&series.dots));
    let most =
        |value: fn(&(f64, f64)) -> f64| points().map(value).filter(|it| it.is_finite()).fold(1e-9, f64::max);
    let axis = |title: &str, to| Axis { title: title.to_owned(), from: 0.0, to, whole: false };
    Chart {
        caption: caption.into(),
        horizontal: axis(horizontal, 1.02 * most(|point| point.0)),
        vertical: axis(vertical, 1.08 * most(|point| point.1)),
        bands: Vec::new(),
        level: None,
        series,
    }
}

/// A line through points.
pub(super) fn line(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Series {
    Series {
        name: name.into(),
        dots: Vec::new(),
        radius: 0.0,
        opacity: 1.0,
        line: points.into_iter().collect(),
    }
}

/// Dots.
pub(super) fn dots(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Series {
    Series { dots: points.into_iter().collect(), radius: 2.5, opacity: 0.6, ..line(name, []) }
}
