//! Writes pictures as SVG text: rectangles, lines, dots and text with hints, axes, and a legend. The caller positions
//! each item in pixels from the upper left corner. The viewer chooses the fonts.

use std::fmt::{Arguments, Write};

/// An SVG picture while it is drawn.
#[derive(Clone, Debug)]
pub struct Svg {
    text: String,
}

/// How text is aligned to its position.
#[derive(Clone, Copy, Debug)]
pub enum Anchor {
    /// Text begins at the position.
    Start,
    /// The middle of the text is at the position.
    Middle,
    /// Text ends at the position.
    End,
}

/// The shape of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A circle.
    Dot,
    /// A square.
    Square,
    /// A triangle that points upwards.
    Triangle,
    /// A square on its corner.
    Diamond,
}

/// A rectangle of the picture, in pixels.
#[derive(Clone, Copy, Debug)]
pub struct Area {
    /// Left edge.
    pub left: f64,
    /// Upper edge.
    pub top: f64,
    /// Width.
    pub width: f64,
    /// Height.
    pub height: f64,
}

impl Svg {
    /// An empty white picture. The title is not drawn; it is for screen readers and hovering.
    #[must_use]
    pub fn new(width: f64, height: f64, title: &str) -> Svg {
        let mut svg = Svg { text: String::new() };
        svg.put(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
             height=\"{height:.0}\" font-family=\"sans-serif\" role=\"img\"><title>{}</title>\n",
            escape(title)
        ));
        svg.rect(Area { left: 0.0, top: 0.0, width, height }, "#ffffff", None);
        svg
    }

    /// Defines a fill of slanted lines, `url(#name)`. The angle is in degrees.
    pub fn hatch(&mut self, name: &str, colour: &str, angle: i32) {
        self.put(format_args!(
            "<pattern id=\"{name}\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" \
             patternTransform=\"rotate({angle})\"><rect width=\"5\" height=\"5\" fill=\"#ffffff\"/>\
             <rect width=\"3\" height=\"5\" fill=\"{colour}\"/></pattern>\n"
        ));
    }

    fn put(&mut self, text: Arguments<'_>) {
        self.text.write_fmt(text).expect("a String takes all that is written to it");
    }

    /// Draws a rectangle. Hovering over it shows the text `says`. A rectangle without area is not drawn.
    pub fn rect(&mut self, area: Area, fill: &str, says: Option<&str>) {
        let Area { left, top, width, height } = area;
        if !(width > 0.0 && height > 0.0) {
            return;
        }
        self.put(format_args!(
            "<rect x=\"{left:.2}\" y=\"{top:.2}\" width=\"{width:.2}\" height=\"{height:.2}\" fill=\"{fill}\" \
             shape-rendering=\"crispEdges\""
        ));
        self.hint("rect", says);
    }

    /// Draws a line.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), colour: &str, width: f64) {
        self.line_as(from, to, &format!("stroke=\"{colour}\" stroke-width=\"{width}\""), None);
    }

    /// Draws a line with the SVG attributes `style`.
    pub fn line_as(&mut self, from: (f64, f64), to: (f64, f64), style: &str, says: Option<&str>) {
        let ((x1, y1), (x2, y2)) = (from, to);
        self.put(format_args!("<line x1=\"{x1:.2}\" y1=\"{y1:.2}\" x2=\"{x2:.2}\" y2=\"{y2:.2}\" {style}"));
        self.hint("line", says);
    }

    /// Draws a line through all points.
    pub fn path(&mut self, points: impl IntoIterator<Item = (f64, f64)>, colour: &str, width: f64) {
        self.dashed_path(points, colour, width, 0);
    }

    /// Draws a line of dashes of this length in pixels through all points. A length of 0 is no dashes.
    pub fn dashed_path(
        &mut self,
        points: impl IntoIterator<Item = (f64, f64)>,
        colour: &str,
        width: f64,
        dash: u32,
    ) {
        let mut path = String::new();
        for (x, y) in points {
            let command = if path.is_empty() { 'M' } else { 'L' };
            // Writing to a string cannot fail.
            let _ = write!(path, "{command}{x:.1} {y:.1}");
        }
        let dashes = if dash > 0 { format!(" stroke-dasharray=\"{dash} 3\"") } else { String::new() };
        self.put(format_args!(
            "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\"{dashes} \
             stroke-linejoin=\"round\"/>\n"
        ));
    }

    /// Draws marks of one colour. A low opacity makes their density visible.
    pub fn marks(
        &mut self,
        mark: Mark,
        centres: impl IntoIterator<Item = (f64, f64)>,
        radius: f64,
        colour: &str,
        opacity: f64,
    ) {
        self.put(format_args!("<g fill=\"{colour}\" fill-opacity=\"{opacity}\">"));
        centres.into_iter().for_each(|centre| self.mark(mark, centre, radius));
        self.put(format_args!("</g>\n"));
    }

    /// Draws the outline of a mark.
    pub fn outline(&mut self, mark: Mark, centre: (f64, f64), radius: f64, colour: &str) {
        self.put(format_args!("<g fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\">"));
        self.mark(mark, centre, radius);
        self.put(format_args!("</g>\n"));
    }

    fn mark(&mut self, mark: Mark, (x, y): (f64, f64), r: f64) {
        let corners = match mark {
            Mark::Dot => {
                return self.put(format_args!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{r}\"/>"));
            }
            Mark::Square => vec![(x - r, y - r), (x + r, y - r), (x + r, y + r), (x - r, y + r)],
            Mark::Triangle => vec![(x, y - 1.2 * r), (x + 1.2 * r, y + r), (x - 1.2 * r, y + r)],
            Mark::Diamond => vec![(x, y - 1.4 * r), (x + 1.4 * r, y), (x, y + 1.4 * r), (x - 1.4 * r, y)],
        };
        let corners: Vec<String> = corners.into_iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        self.put(format_args!("<polygon points=\"{}\"/>", corners.join(" ")));
    }

    /// Ends a shape, with or without a hint.
    fn hint(&mut self, shape: &str, says: Option<&str>) {
        match says {
            Some(says) => self.put(format_args!("><title>{}</title></{shape}>\n", escape(says))),
            None => self.put(format_args!("/>\n")),
        }
    }

    /// Draws text of the usual size.
    pub fn text(&mut self, at: (f64, f64), anchor: Anchor, words: &str) {
        self.sized_text(at, 11, anchor, words);
    }

    /// Draws text of any size.
    pub fn sized_text(&mut self, (x, y): (f64, f64), size: u32, anchor: Anchor, words: &str) {
        let anchor = anchor.name();
        self.put(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" text-anchor=\"{anchor}\">{}</text>\n",
            escape(words)
        ));
    }

    /// Draws text upwards, centred at its position.
    pub(crate) fn vertical_text(&mut self, (x, y): (f64, f64), size: u32, words: &str) {
        self.put(format_args!(
            "<text transform=\"translate({x:.1} {y:.1}) rotate(-90)\" font-size=\"{size}\" \
             text-anchor=\"middle\">{}</text>\n",
            escape(words)
        ));
    }

    /// Draws names beside their colours, in lines as wide as the area. Returns the height of the legend.
    pub fn legend(&mut self, area: Area, entries: &[(String, impl AsRef<str>)]) -> f64 {
        let names = entries.iter().map(|(name, _)| name.as_str());
        self.legend_of(area, names, |svg, place, square| svg.rect(square, entries[place].1.as_ref(), None))
    }

    /// The same with symbols that `draw` draws: it gets the place of a name and the square beside it.
    pub(crate) fn legend_of<'n>(
        &mut self,
        area: Area,
        names: impl Iterator<Item = &'n str>,
        draw: impl Fn(&mut Svg, usize, Area),
    ) -> f64 {
        let (mut x, mut y) = (area.left, area.top);
        for (place, name) in names.enumerate() {
            let width = 24.0 + 6.6 * name.chars().count() as f64;
            if x + width > area.left + area.width && x > area.left {
                (x, y) = (area.left, y + 18.0);
            }
            draw(self, place, Area { left: x, top: y, width: 12.0, height: 12.0 });
            self.sized_text((x + 16.0, y + 10.0), 11, Anchor::Start, name);
            x += width + 10.0;
        }
        y + 18.0 - area.top
    }

    /// Draws lines and numbers to the left of an area with 0 at its lower edge and `most` at its upper edge.
    pub fn left_axis(&mut self, area: Area, most: f64, label: impl Fn(f64) -> String) {
        for value in ticks(0.0, most) {
            let y = area.bottom() - area.height * value / most;
            self.line((area.left, y), (area.right(), y), "#cccccc", 0.5);
            self.sized_text((area.left - 6.0, y + 4.0), 11, Anchor::End, &label(value));
        }
    }

    /// Draws numbers below an area, from `from` at its left edge to `to` at its right edge. Empty labels are left out.
    pub fn bottom_axis(&mut self, area: Area, from: f64, to: f64, label: impl Fn(f64) -> String) {
        for value in ticks(from, to) {
            let label = label(value);
            if label.is_empty() {
                continue;
            }
            let x = area.left + area.width * (value - from) / (to - from);
            self.line((x, area.bottom()), (x, area.bottom() + 4.0), "#000000", 1.0);
            self.sized_text((x, area.bottom() + 16.0), 11, Anchor::Middle, &label);
        }
    }

    /// Returns the text of the SVG file.
    #[must_use]
    pub fn finish(mut self) -> String {
        self.text += "</svg>\n";
        self.text
    }
}

impl Anchor {
    fn name(self) -> &'static str {
        match self {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        }
    }
}

impl Area {
    /// An area with this upper left corner, width and height.
    #[must_use]
    pub fn at((left, top): (f64, f64), (width, height): (f64, f64)) -> Area {
        Area { left, top, width, height }
    }

    /// Right edge.
    #[must_use]
    pub fn right(&self) -> f64 {
        self.left + self.width
    }

    /// Lower edge.
    #[must_use]
    pub fn bottom(&self) -> f64 {
        self.top + self.height
    }
}

/// About four to ten round numbers between `from` and `to`.
#[must_use]
pub fn ticks(from: f64, to: f64) -> Vec<f64> {
    let range = to - from;
    if !(range.is_finite() && range > 0.0) {
        return vec![from];
    }
    let power = 10f64.powf((range / 5.0).log10().floor());
    let step = [5.0, 2.0, 1.0].map(|times| times * power).into_iter().find(|step| range / step >= 4.0);
    let step = step.unwrap_or(power);
    let first = (from / step - 1e-6).ceil();
    let values = (0..=20).map(|number| (first + f64::from(number)) * step);
    values.take_while(|&value| value <= to + range * 1e-6).collect()
}

/// Escapes markup characters, and replaces characters that XML does not allow.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            control if control.is_control() && !matches!(control, '\n' | '\t') => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_cannot_become_markup() {
        let mut svg = Svg::new(10.0, 10.0, "<script>");
        svg.sized_text((0.0, 0.0), 9, Anchor::Start, "a<b & \"c\"\u{1}");
        svg.line_as((0.0, 0.0), (1.0, 1.0), "", Some("</title><script>"));
        let text = svg.finish();
        assert!(text.contains("&lt;script&gt;") && text.contains("a&lt;b &amp; &quot;c&quot;\u{fffd}<"));
        assert!(!text.contains("<script"));
    }

    #[test]
    fn ticks_are_round_few_and_within() {
        for (most, expected) in [(1.0, 0.2), (7.0, 1.0), (0.034, 0.005), (100.0, 20.0), (21.0, 5.0)] {
            let ticks = ticks(0.0, most);
            assert!((ticks[1] - expected).abs() < 1e-9, "{most}: {ticks:?}");
            assert!((5..=11).contains(&ticks.len()) && ticks[ticks.len() - 1] <= most * 1.001);
        }
        assert_eq!(ticks(1_000.0, 1_010.0), [1_000.0, 1_002.0, 1_004.0, 1_006.0, 1_008.0, 1_010.0]);
        assert_eq!(ticks(0.0, f64::NAN), ticks(0.0, -1.0));
    }
}
