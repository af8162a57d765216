//! Draws a bar chart: groups of bars with names, a bar per series in each group.

use crate::chart::COLOURS;
use crate::format::decimal;
use crate::svg::{Anchor, Area, Svg, ticks};

/// A bar chart.
///
/// ```
/// use presentation::bars::Bars;
/// use presentation::svg::{Area, Svg};
/// let mut svg = Svg::new(400.0, 300.0, "speedups");
/// let bars = Bars::new("speedups", "speedup", ["2 nodes", "4 nodes"]).series("copies", [1.5, 2.5]);
/// bars.draw(&mut svg, Area::at((0.0, 0.0), (400.0, 300.0)));
/// assert!(svg.finish().contains("copies, 4 nodes: 2.5"));
/// ```
#[derive(Clone, Debug)]
pub struct Bars {
    /// Text above the chart.
    pub caption: String,
    /// What the numbers mean, with their unit.
    pub title: String,
    /// Names of the groups, from left to right.
    pub groups: Vec<String>,
    /// The series: a name, and a value for each group. A value that is not a number has no bar.
    pub series: Vec<(String, Vec<f64>)>,
    /// For each series, the ends of a line over each bar, such as of the middle 90 % of the values behind a mean. Empty
    /// for a series without such lines.
    pub ranges: Vec<Vec<[f64; 2]>>,
    /// A horizontal line for comparison.
    pub level: Option<f64>,
    /// Whether the vertical axis is logarithmic, from a power of ten below the least value.
    pub decades: bool,
}

/// Space around the bars, in pixels.
const LEFT: f64 = 70.0;
const RIGHT: f64 = 14.0;
const BELOW: f64 = 30.0;
/// Part of the width of a group that its bars take.
const FILLED: f64 = 0.8;
const GRID: &str = "#dddddd";
/// Colour of the lines over bars.
const RANGE: &str = "#333333";

impl Bars {
    /// A chart without series.
    #[must_use]
    pub fn new<S: Into<String>>(
        caption: impl Into<String>,
        title: impl Into<String>,
        groups: impl IntoIterator<Item = S>,
    ) -> Self {
        Self {
            caption: caption.into(),
            title: title.into(),
            groups: groups.into_iter().map(Into::into).collect(),
            series: Vec::new(),
            ranges: Vec::new(),
            level: None,
            decades: false,
        }
    }

    /// Adds a series, with a value for each group.
    #[must_use]
    pub fn series(mut self, name: impl Into<String>, values: impl IntoIterator<Item = f64>) -> Self {
        self.series.push((name.into(), values.into_iter().collect()));
        self.ranges.push(Vec::new());
        self
    }

    /// Adds a line over each bar of the last series, between two values. Without a series it has no effect.
    ///
    /// ```
    /// use presentation::bars::Bars;
    /// let bars = Bars::new("", "speedup", ["2 nodes"]).series("copies", [1.5]).ranges([[1.2, 1.9]]);
    /// assert_eq!(bars.ranges, [[[1.2, 1.9]]]);
    /// ```
    #[must_use]
    pub fn ranges(mut self, ranges: impl IntoIterator<Item = [f64; 2]>) -> Self {
        if let Some(last) = self.ranges.last_mut() {
            *last = ranges.into_iter().collect();
        }
        self
    }

    /// Adds a horizontal line.
    #[must_use]
    pub fn level(self, level: f64) -> Self {
        Self { level: Some(level), ..self }
    }

    /// Makes the vertical axis logarithmic.
    #[must_use]
    pub fn decades(self) -> Self {
        Self { decades: true, ..self }
    }

    /// Draws the chart and its text into an area.
    pub fn draw(&self, svg: &mut Svg, area: Area) {
        let middle = area.left + (LEFT + area.width - RIGHT) / 2.0;
        let fits = (area.width - LEFT - RIGHT) / (0.55 * self.caption.chars().count().max(1) as f64);
        let size = fits.clamp(9.0, 16.0) as u32;
        svg.sized_text((middle, area.top + 24.0), size, Anchor::Middle, &self.caption);
        let legend = Area::at((area.left + LEFT, area.top + 36.0), (area.width - LEFT - RIGHT, 0.0));
        let names: Vec<(String, &str)> = (self.series.iter().enumerate())
            .map(|(place, (name, _))| (name.clone(), colour(place)))
            .collect();
        let top = legend.top + svg.legend(legend, &names) + 6.0;
        let inner = Area::at((legend.left, top), (legend.width, area.bottom() - BELOW - top));
        let scale = self.scale();
        self.draw_axes(svg, inner, &scale);
        let group_width = inner.width / self.groups.len().max(1) as f64;
        let bar_width = FILLED * group_width / self.series.len().max(1) as f64;
        for (place, (name, values)) in self.series.iter().enumerate() {
            for ((group, &value), group_name) in values.iter().enumerate().zip(&self.groups) {
                if !value.is_finite() {
                    continue;
                }
                let begin = (group as f64 + (1.0 - FILLED) / 2.0) * group_width;
                let left = inner.left + begin + place as f64 * bar_width;
                let height = inner.height * scale.part(value);
                let bar = Area::at((left, inner.bottom() - height), (0.92 * bar_width, height));
                let range = self.ranges.get(place).and_then(|of| of.get(group)).copied();
                let between = range.map(|[low, high]| format!(" ({} to {})", short(low), short(high)));
                let says = format!("{name}, {group_name}: {}{}", short(value), between.unwrap_or_default());
                svg.rect(bar, colour(place), Some(&says));
                if let Some(range) = range {
                    let ends = range.map(|value| inner.bottom() - inner.height * scale.part(value));
                    draw_range(svg, left + 0.46 * bar_width, 0.2 * bar_width, ends);
                }
            }
        }
        if let Some(level) = self.level {
            let y = inner.bottom() - inner.height * scale.part(level);
            svg.line((inner.left, y), (inner.right(), y), "#808080", 1.5);
        }
    }

    fn draw_axes(&self, svg: &mut Svg, inner: Area, scale: &Scale) {
        for value in scale.ticks() {
            let y = inner.bottom() - inner.height * scale.part(value);
            svg.line((inner.left - 4.0, y), (inner.right(), y), GRID, 1.0);
            svg.sized_text((inner.left - 7.0, y + 4.0), 12, Anchor::End, &short(value));
        }
        svg.line((inner.left, inner.top), (inner.left, inner.bottom()), "#000000", 1.0);
        svg.line((inner.left, inner.bottom()), (inner.right(), inner.bottom()), "#000000", 1.0);
        let group_width = inner.width / self.groups.len().max(1) as f64;
        for (group, name) in self.groups.iter().enumerate() {
            let x = inner.left + (group as f64 + 0.5) * group_width;
            svg.sized_text((x, inner.bottom() + 17.0), 12, Anchor::Middle, name);
        }
        svg.vertical_text((inner.left - 54.0, inner.top + inner.height / 2.0), 13, &self.title);
    }

    fn scale(&self) -> Scale {
        let ends = || self.ranges.iter().flatten().flatten();
        let bars = || self.series.iter().flat_map(|(_, values)| values);
        let values = || bars().chain(ends()).copied().filter(|value| value.is_finite());
        let most = values().chain(self.level).fold(f64::MIN_POSITIVE, f64::max);
        if !self.decades {
            return Scale { from: 0.0, to: 1.06 * most, decades: false };
        }
        let least = values().filter(|&value| value > 0.0).fold(most, f64::min);
        let (from, to) = (10f64.powf(least.log10().floor()), 10f64.powf(most.log10().ceil()));
        Scale { from, to: to.max(10.0 * from), decades: true }
    }
}

/// The vertical axis.
struct Scale {
    from: f64,
    to: f64,
    decades: bool,
}

impl Scale {
    /// The height of a value, as a part of the height of the chart.
    fn part(&self, value: f64) -> f64 {
        let part = match self.decades {
            true => (value / self.from).max(1.0).log10() / (self.to / self.from).log10(),
            false => (value - self.from) / (self.to - self.from),
        };
        part.clamp(0.0, 1.0)
    }

    fn ticks(&self) -> Vec<f64> {
        if !self.decades {
            return ticks(self.from, self.to);
        }
        let powers = (self.to / self.from).log10().round() as i32;
        (0..=powers).map(|power| self.from * 10f64.powi(power)).collect()
    }
}

/// Draws a vertical line at `x` between two heights, with a short line of twice `half` at each end.
fn draw_range(svg: &mut Svg, x: f64, half: f64, ends: [f64; 2]) {
    svg.line((x, ends[0]), (x, ends[1]), RANGE, 1.0);
    for y in ends {
        svg.line((x - half, y), (x + half, y), RANGE, 1.0);
    }
}

fn colour(place: usize) -> &'static str {
    COLOURS[place % COLOURS.len()]
}

/// A number with at most three significant digits, and no zeros at its end.
fn short(value: f64) -> String {
    let digits = if value == 0.0 { 0.0 } else { 2.0 - value.abs().log10().floor() };
    let text = decimal(value, digits.clamp(0.0, 6.0) as usize);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(bars: &Bars) -> String {
        let mut svg = Svg::new(400.0, 300.0, "test");
        bars.draw(&mut svg, Area::at((0.0, 0.0), (400.0, 300.0)));
        svg.finish()
    }

    #[test]
    fn each_value_has_a_bar_with_its_number_and_none_has_none() {
        let bars =
            Bars::new("a & b", "s", ["x", "y"]).series("one", [1.0, f64::NAN]).series("two", [2.5, 0.004]);
        let text = drawn(&bars);
        for words in ["one, x: 1<", "two, x: 2.5<", "two, y: 0.004<", "a &amp; b"] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(!text.contains("one, y") && !text.contains("NaN"), "{text}");
    }

    #[test]
    fn a_range_is_a_line_over_its_bar_and_fits_into_the_chart() {
        let bars = Bars::new("", "s", ["x"]).series("one", [1.0]).ranges([[0.5, 4.0]]).series("two", [2.0]);
        assert!(bars.scale().part(4.0) < 1.0, "the axis ends above all ranges");
        let text = drawn(&bars);
        assert!(text.contains("one, x: 1 (0.5 to 4)<") && text.contains("two, x: 2<"), "{text}");
        assert_eq!(text.matches(RANGE).count(), 3, "a line and its two ends: {text}");
    }

    #[test]
    fn a_logarithmic_axis_has_powers_of_ten_and_an_empty_chart_is_a_picture() {
        let bars = Bars::new("", "s", ["x"]).series("one", [3.0]).series("two", [250.0]).decades();
        assert_eq!(bars.scale().ticks(), [1.0, 10.0, 100.0, 1000.0]);
        assert!((bars.scale().part(10.0) - 1.0 / 3.0).abs() < 1e-12);
        assert!(drawn(&Bars::new("", "", [""; 0])).ends_with("</svg>\n"));
    }
}
