//! Draws a chart: lines and dots between two axes, with a legend and shaded bands.

use crate::format::decimal;
use crate::svg::{Anchor, Area, Mark, Svg, ticks};

/// Colours that colour-blind people can distinguish (Okabe and Ito).
pub const COLOURS: [&str; 7] = ["#d55e00", "#0072b2", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000"];

/// Marks of the series: the first for as many series as there are colours, and so on.
const MARKS: [Mark; 4] = [Mark::Dot, Mark::Square, Mark::Triangle, Mark::Diamond];

/// Largest number of dots of a chart that shows which of them coincide. More dots are a cloud.
const DISTINCT_MAX: usize = 500;

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

/// Dots and a line of one colour. If there are more series than colours, further series have other marks and dashes.
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
        self.draw_labelled(svg, area, &self.horizontal.labels());
    }

    /// The same, with these labels at these numbers of the horizontal axis.
    pub fn draw_labelled(&self, svg: &mut Svg, area: Area, labels: &[(f64, String)]) {
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
        let names = self.series.iter().map(|series| series.name.as_str());
        let high = svg.legend_of(legend, names, |svg, place, square| self.draw_symbol(svg, place, square));
        let top = legend.top + high + 6.0;
        let inner = Area::at((legend.left, top), (legend.width, area.bottom() - BELOW - top));
        self.draw_bands(svg, inner);
        self.draw_axes(svg, inner, labels);
        for (place, series) in self.series.iter().enumerate() {
            let (colour, mark, dash) = look(place);
            let (alone, covered): (Vec<_>, Vec<_>) = self
                .visible(inner, series)
                .map(|dot| (dot, self.below(inner, place, dot)))
                .partition(|it| it.1 == 0);
            svg.marks(mark, alone.into_iter().map(|it| it.0), series.radius, colour, series.opacity);
            for (dot, below) in covered {
                svg.outline(mark, dot, series.radius + 3.0 * below as f64, colour);
            }
            svg.dashed_path(series.line.iter().map(|&point| self.at(inner, point)), colour, 2.0, dash);
        }
        self.name_bands(svg, inner);
    }

    fn at(&self, inner: Area, (x, y): (f64, f64)) -> (f64, f64) {
        (self.horizontal.right_of(inner, x), self.vertical.above(inner, y))
    }

    fn visible<'s>(&'s self, inner: Area, series: &'s Series) -> impl Iterator<Item = (f64, f64)> + 's {
        let visible = series.dots.iter().filter(|(_, y)| *y <= self.vertical.to);
        visible.map(move |&dot| self.at(inner, dot))
    }

    /// Number of earlier series with equally large dots that the dot of series `place` would cover. In a cloud none counts.
    fn below(&self, inner: Area, place: usize, dot: (f64, f64)) -> usize {
        if self.series.iter().map(|series| series.dots.len()).sum::<usize>() > DISTINCT_MAX {
            return 0;
        }
        let radius = self.series[place].radius;
        let covers = |other: (f64, f64)| (other.0 - dot.0).hypot(other.1 - dot.1) < radius;
        let earlier = self.series[..place].iter().filter(|series| series.radius <= radius);
        earlier.filter(|series| self.visible(inner, series).any(covers)).count()
    }

    /// Draws the mark of a series in the legend; the line of a series without dots.
    fn draw_symbol(&self, svg: &mut Svg, place: usize, square: Area) {
        let ((colour, mark, dash), series) = (look(place), &self.series[place]);
        let middle = square.top + square.height / 2.0;
        if series.dots.is_empty() {
            svg.dashed_path([(square.left, middle), (square.right(), middle)], colour, 4.0, dash);
        } else {
            let centre = (square.left + square.width / 2.0, middle);
            svg.marks(mark, [centre], 5.0, colour, 1.0);
        }
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

    fn draw_axes(&self, svg: &mut Svg, inner: Area, labels: &[(f64, String)]) {
        for (number, label) in labels {
            let x = self.horizontal.right_of(inner, *number);
            svg.line((x, inner.top), (x, inner.bottom() + 4.0), GRID, 1.0);
            svg.sized_text((x, inner.bottom() + 17.0), 12, Anchor::Middle, label);
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

/// Colour, mark and length of dashes of the series at `place`.
fn look(place: usize) -> (&'static str, Mark, u32) {
    let round = place / COLOURS.len();
    (COLOURS[place % COLOURS.len()], MARKS[round % MARKS.len()], 6 * (round % 3) as u32)
}

/// Most decimals of a number at an axis, all that tell two numbers of 64 bits apart.
const DECIMALS_MAX: f64 = 17.0;

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
        let decimals = (-step.log10() - 1e-9).ceil().clamp(0.0, DECIMALS_MAX) as usize;
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
        assert_eq!(text.matches("<circle").count(), 2 + 1, "one is in the legend");
    }

    fn drawn(series: Vec<Series>) -> String {
        let mut svg = Svg::new(400.0, 300.0, "test");
        Chart { series, ..chart() }.draw(&mut svg, Area::at((0.0, 0.0), (400.0, 300.0)));
        svg.finish()
    }

    #[test]
    fn series_beyond_the_colours_have_other_marks_and_dashes() {
        let mut looks: Vec<_> =
            (0..28).map(look).map(|(colour, mark, _)| format!("{colour} {mark:?}")).collect();
        looks.sort();
        looks.dedup();
        assert_eq!(looks.len(), 28);
        let dots = |number: usize| Series {
            dots: vec![(number as f64, 1.0)],
            line: Vec::new(),
            ..chart().series[0].clone()
        };
        let text = drawn((0..10).map(dots).collect());
        assert_eq!((text.matches("<circle").count(), text.matches("<polygon").count()), (14, 6), "{text}");
        let lines = vec![Series { dots: Vec::new(), ..chart().series[0].clone() }; 10];
        assert_eq!(
            drawn(lines).matches("stroke-dasharray").count(),
            6,
            "three lines, here and in the legend"
        );
    }

    #[test]
    fn dots_that_coincide_stay_visible_unless_they_are_a_cloud() {
        let series = |dots| Series { dots, line: Vec::new(), ..chart().series[0].clone() };
        let text = drawn(vec![
            series(vec![(1.0, 0.5)]),
            series(vec![(1.0, 0.5), (3.0, 1.0)]),
            series(vec![(1.0, 0.5)]),
        ]);
        for radius in ["r=\"5\"", "r=\"8\""] {
            assert!(
                text.contains(&format!("{radius}/></g>\n"))
                    && text.contains("fill=\"none\" stroke=\"#0072b2\""),
                "{text}"
            );
        }
        assert_eq!(text.matches("stroke-width=\"2\"><circle").count(), 2, "{text}");
        let cloud = vec![(1.0, 0.5); DISTINCT_MAX];
        assert!(!drawn(vec![series(cloud.clone()), series(cloud)]).contains("stroke-width=\"2\"><circle"));
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
