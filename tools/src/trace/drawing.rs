//! Pictures put together from rectangles, lines and words, with hints.
//!
//! It knows nothing about what is drawn.

use std::fmt::Write as _;
use std::path::Path;

use super::palette::{self, escape};
use crate::Error;

/// A picture while it is made. Lengths are pixels, from the left upper corner.
pub(crate) struct Drawing {
    width: f64,
    height: f64,
    body: String,
}

/// Where words are.
#[derive(Clone, Copy)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

impl Drawing {
    pub(crate) fn new(width: f64, height: f64) -> Drawing {
        Drawing { width, height, body: String::new() }
    }

    /// A filled rectangle; the hint shows when one points at it.
    pub(crate) fn rect(&mut self, at: (f64, f64), size: (f64, f64), fill: &str, hint: Option<&str>) {
        let ((x, y), (width, height)) = (at, size);
        let shape =
            format!(r#"<rect x="{x:.2}" y="{y:.2}" width="{width:.2}" height="{height:.2}" fill="{fill}""#);
        self.shape(&shape, "rect", hint);
    }

    /// A line; `style` has more attributes, such as `stroke="red"`.
    pub(crate) fn line(&mut self, from: (f64, f64), to: (f64, f64), style: &str, hint: Option<&str>) {
        let ((x1, y1), (x2, y2)) = (from, to);
        let shape = format!(r#"<line x1="{x1:.2}" y1="{y1:.2}" x2="{x2:.2}" y2="{y2:.2}" {style}"#);
        self.shape(&shape, "line", hint);
    }

    /// Words on one line.
    pub(crate) fn text(&mut self, at: (f64, f64), anchor: Anchor, words: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let ((x, y), words) = (at, escape(words));
        let _ = writeln!(self.body, r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{words}</text>"#);
    }

    fn shape(&mut self, shape: &str, name: &str, hint: Option<&str>) {
        let written = match hint {
            Some(hint) => writeln!(self.body, "{shape}><title>{}</title></{name}>", escape(hint)),
            None => writeln!(self.body, "{shape}/>"),
        };
        written.expect("a string takes any text");
    }

    /// Boxes with names, line by line from `at`. Returns where the last line is.
    pub(crate) fn legend(&mut self, at: (f64, f64), entries: &[(String, &str)]) -> f64 {
        let (left, mut y) = at;
        let mut x = left;
        for (name, colour) in entries {
            let long = 24.0 + 7.0 * name.chars().count() as f64;
            if x > left && x + long > self.width {
                (x, y) = (left, y + 18.0);
            }
            self.rect((x, y - 9.0), (12.0, 10.0), colour, None);
            self.text((x + 16.0, y), Anchor::Start, name);
            x += long + 10.0;
        }
        y
    }

    /// The picture as SVG.
    pub(crate) fn svg(&self) -> String {
        let (width, height) = (self.width, self.height);
        format!(
            r##"<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0}" height="{height:.0}" viewBox="0 0 {width:.0} {height:.0}" font-family="sans-serif" font-size="11">
<defs><pattern id="lost" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="5" height="5" fill="#ffffff"/><rect width="2" height="5" fill="#b00020"/></pattern></defs>
<rect width="100%" height="100%" fill="#ffffff"/>
{}</svg>
"##,
            self.body
        )
    }

    /// Writes it to a file.
    pub(crate) fn save(&self, file: &Path) -> Result<(), Error> {
        palette::save(file, &self.svg())
    }
}

#[cfg(test)]
mod tests {
    use super::super::palette::IDLE;
    use super::*;

    #[test]
    fn names_are_words_and_never_markup() {
        let mut drawing = Drawing::new(10.0, 10.0);
        drawing.text((0.0, 0.0), Anchor::Start, "<script>\u{1}&");
        drawing.rect((0.0, 0.0), (1.0, 1.0), IDLE, Some("a<b"));
        let svg = drawing.svg();
        assert!(svg.contains("&lt;script&gt;\u{fffd}&amp;</text>"), "{svg}");
        assert!(svg.contains("<title>a&lt;b</title>"), "{svg}");
    }
}
