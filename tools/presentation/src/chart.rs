//! Draws a chart: lines and dots between two axes, with a legend and shaded bands.

use crate::format::decimal;
use crate::svg::{Anchor, Area, Svg, ticks};

/// Colours that colour-blind people can distinguish (Okabe and Ito).
pub const COLOURS: [&str; 7] = ["#d55e00", "#0072b2", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000"];

/// Fill of a band: a pale version of the orange of [`COLOURS`].
const BAND: &str = "#fbefd6";

const GRID: &str = "#dddddd";

/// One chart.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Text above the chart.
    pub caption: String,
    /// The horizontal axis.
    pub horizontal: Axis,
    /// The vertical axis.
    pub vertical: Axis,
    /// Labelled parts of the horizontal axis.
    pub bands: Vec<Band>,
    /// A horizontal line for comparison.
    pub level: Option<f64>,
    /// The lines and dots.
    pub series: Vec<Series>,
}

/// An axis.
#[derive(Clone, Debug)]
pub struct Axis {
    /// What the numbers mean, with their unit.
    pub title: String,
    /// Smallest number.
    pub from: f64,
    /// Largest number.
    pub to: f64,
    /// Whether only whole numbers have a label, as for numbers of workers.
    pub whole: bool,
}

/// A part of the horizontal axis.
#[derive(Clone, Debug)]
pub struct Band {
    /// Text at the top of the band.
    pub label: String,
    /// Begin of the band.
    pub from: f64,
    /// End of the band.
    pub to: f64,
}

/// Dots and a line of one colour.
#[derive(Clone, Debug)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Positions of dots. Dots above the vertical axis are left out.
    pub dots: Vec<(f64, f64)>,
    /// Radius of a dot in pixels.
    pub radius: f64,
    /// Opacity of a dot, at most 1.
    pub opacity: f64,
    /// Points of the line; empty without a line.
    pub line: Vec<(f64, f64)>,
}

/// Space for text around the plot, in pixels.
const LEFT: f64 = 78.0;
const RIGHT: f64 = 18.0;
const BELOW: f64 = 44.0;

impl Chart {
    /// Draws the chart and its text into an area.
    pub fn draw(&self, svg: &mut Svg, area: Area) {
        let middle = area.left + (LEFT + area.width - RIGHT) / 2.0;
        // A letter is about half as wide as high. A long caption gets a smaller size.
        let fits = (area.width - LEFT - RIGHT) / (0.55 * self.caption.chars().count().max(1) as f64);
        svg.sized_text(
            (middle, area.top + 24.0),
            fits.clamp(9.0, 17.0) as u32,
            Anchor::Middle,
            &self.caption,
        );
        let legend = Area::at((area.left + LEFT, area.top + 36.0), (area.width - LEFT - RIGHT, 0.0));
        let high = svg.legend(legend, &self.legend());
        let top = legend.top + high + 6.0;
        let inner = Area::at((legend.left, top), (legend.width, area.bottom() - BELOW - top));
        self.draw_bands(svg, inner);
        self.draw_axes(svg, inner);
        let at = |(x, y): (f64, f64)| (self.horizontal.right_of(inner, x), self.vertical.above(inner, y));
        for (series, colour) in self.series.iter().zip(COLOURS.into_iter().cycle()) {
            let visible = series.dots.iter().filter(|(_, y)| *y <= self.vertical.to);
            svg.dots(visible.map(|&dot| at(dot)), series.radius, colour, series.opacity);
            svg.path(series.line.iter().map(|&point| at(point)), colour, 2.0);
        }
        self.name_bands(svg, inner);
    }

    fn legend(&self) -> Vec<(String, &'static str)> {
        let names = self.series.iter().map(|series| series.name.clone());
        names.zip(COLOURS.into_iter().cycle()).collect()
    }

    fn draw_bands(&self, svg: &mut Svg, inner: Area) {
        for band in &self.bands {
            let [left, right] = [band.from, band.to].map(|x| self.horizontal.right_of(inner, x));
            svg.rect(Area { left, width: right - left, ..inner }, BAND, None);
        }
    }

    /// Drawn last, so that nothing covers the names.
    fn name_bands(&self, svg: &mut Svg, inner: Area) {
        for band in &self.bands {
            let left = self.horizontal.right_of(inner, band.from);
            svg.sized_text((left + 8.0, inner.top + 18.0), 13, Anchor::Start, &band.label);
        }
    }

    fn draw_axes(&self, svg: &mut Svg, inner: Area) {
        for (number, label) in self.horizontal.labels() {
            let x = self.horizontal.right_of(inner, number);
            svg.line((x, inner.top), (x, inner.bottom() + 4.0), GRID, 1.0);
            svg.sized_text((x, inner.bottom() + 17.0), 12, Anchor::Middle, &label);
        }
        for (number, label) in self.vertical.labels() {
            let y = self.vertical.above(inner, number);
            svg.line((inner.left - 4.0, y), (inner.right(), y), GRID, 1.0);
            svg.sized_text((inner.left - 7.0, y + 4.0), 12, Anchor::End, &label);
        }
        svg.line((inner.left, inner.top), (inner.left, inner.bottom()), "#000000", 1.0);
        svg.line((inner.left, inner.bottom()), (inner.right(), inner.bottom()), "#000000", 1.0);
        let middle = inner.left + inner.width / 2.0;
        svg.sized_text((middle, inner.bottom() + 37.0), 13, Anchor::Middle, &self.horizontal.title);
        svg.vertical_text((inner.left - 60.0, inner.top + inner.height / 2.0), 13, &self.vertical.title);
        if let Some(level) = self.level {
            let y = self.vertical.above(inner, level);
            svg.line((inner.left, y), (inner.right(), y), "#808080", 1.5);
        }
    }
}

impl Axis {
    fn share(&self, value: f64) -> f64 {
        if self.to > self.from { (value - self.from) / (self.to - self.from) } else { 0.0 }
    }

    fn right_of(&self, inner: Area, value: f64) -> f64 {
        inner.left + inner.width * self.share(value)
    }

    fn above(&self, inner: Area, value: f64) -> f64 {
        inner.bottom() - inner.height * self.share(value)
    }

    /// Round numbers, with as many decimals as distinguish them.
    fn labels(&self) -> Vec<(f64, String)> {
        let mut numbers = ticks(self.from, self.to);
        numbers.retain(|number| !self.whole || (number - number.round()).abs() < 1e-9);
        let step = numbers.get(1).map_or(1.0, |second| second - numbers[0]);
        let decimals = (-step.log10() - 1e-9).ceil().max(0.0) as usize;
        numbers.into_iter().map(|number| (number, decimal(number, decimals))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(from: f64, to: f64, whole: bool) -> Axis {
        Axis { title: "time (s)".into(), from, to, whole }
    }

    fn chart() -> Chart {
        Chart {
            caption: "a & b".into(),
            horizontal: axis(0.0, 10.0, true),
            vertical: axis(0.0, 2.0, false),
            bands: vec![Band { label: "neighbour".into(), from: 2.0, to: 4.0 }],
            level: Some(1.0),
            series: vec![Series {
                name: "none".into(),
                dots: vec![(1.0, 0.5), (2.0, 1.5), (3.0, 99.0)],
                radius: 2.0,
                opacity: 0.5,
                line: vec![(0.0, 1.0), (10.0, 1.0)],
            }],
        }
    }

    #[test]
    fn ticks_are_labelled_so_that_they_differ() {
        let labels = |axis: &Axis| axis.labels().into_iter().map(|(_, label)| label).collect::<Vec<_>>();
        assert_eq!(labels(&axis(0.0, 1.0, false)), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(
            labels(&axis(0.0, 0.03, false)),
            ["0.000", "0.005", "0.010", "0.015", "0.020", "0.025", "0.030"]
        );
        assert_eq!(labels(&axis(0.0, 3e4, false))[1], "5000");
        assert_eq!(labels(&axis(-0.5, 1.5, true)), ["0", "1"]);
    }

    #[test]
    fn all_that_is_said_is_in_the_picture_and_dots_above_it_are_not() {
        let mut svg = Svg::new(400.0, 300.0, "test");
        chart().draw(&mut svg, Area::at((0.0, 0.0), (400.0, 300.0)));
        let text = svg.finish();
        for words in ["a &amp; b", ">none<", ">neighbour<", ">time (s)<", ">10<"] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert_eq!(text.matches("<circle").count(), 2);
    }

    #[test]
    fn nothing_to_plot_is_a_picture_all_the_same() {
        let empty = Chart { horizontal: axis(0.0, 0.0, true), series: Vec::new(), ..chart() };
        let mut svg = Svg::new(400.0, 300.0, "test");
        empty.draw(&mut svg, Area::at((0.0, 0.0), (400.0, 300.0)));
        let text = svg.finish();
        assert!(text.ends_with("</svg>\n") && !text.contains("NaN"), "{text}");
    }
}
