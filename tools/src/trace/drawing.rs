//! Pictures: SVG put together from rectangles, lines and words, and the colours that mean the same in all of them.
//!
//! Colours can be told apart by people who see few of them (Okabe and Ito), and what they mean can also be read from a
//! pattern, a label or the hint of a shape. It knows nothing about what is drawn.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use crate::Error;

/// The runtime at work.
pub(crate) const RUNTIME: &str = "#404040";
/// Nothing to do.
pub(crate) const IDLE: &str = "#eeeeee";
/// Time that was not ours; hatched.
pub(crate) const LOST: &str = "url(#lost)";
/// Everything that has a colour by its name. Yellow, which is pale, and shades come last.
const NAMED: [&str; 12] = [
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#00446b", "#f0e442", "#8a5f00", "#005f45",
    "#7a4964", "#a9d9f4", "#908829",
];

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
        let ((x, y), words) = (at, escaped(words));
        let _ = writeln!(self.body, r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{words}</text>"#);
    }

    fn shape(&mut self, shape: &str, name: &str, hint: Option<&str>) {
        let written = match hint {
            Some(hint) => writeln!(self.body, "{shape}><title>{}</title></{name}>", escaped(hint)),
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
        std::fs::write(file, self.svg()).map_err(|source| Error::Unwritable { file: file.to_owned(), source })
    }
}

/// A colour for each name: from its letters, so that it is the same in another run; names that would get the same take
/// the next that is free.
pub(crate) fn colours<'n>(names: impl IntoIterator<Item = &'n str>) -> BTreeMap<String, &'static str> {
    let mut sorted: Vec<&str> = names.into_iter().collect();
    sorted.sort_unstable();
    sorted.dedup();
    let mut taken = [false; NAMED.len()];
    let mut colours = BTreeMap::new();
    for name in sorted {
        let wanted = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let wanted = (wanted >> 32) as usize % (NAMED.len() / 2);
        let free = (0..NAMED.len()).map(|step| (wanted + step) % NAMED.len()).find(|&slot| !taken[slot]);
        let slot = free.unwrap_or(wanted);
        taken[slot] = true;
        colours.insert(name.to_owned(), NAMED[slot]);
    }
    colours
}

/// The colour of the number of something that has no name, such as a rank.
pub(crate) fn numbered(number: u64) -> &'static str {
    NAMED[(number % NAMED.len() as u64) as usize]
}

/// From white (0) over blue to nearly black (1).
pub(crate) fn shade(part: f64) -> String {
    let part = if part.is_finite() { part.clamp(0.0, 1.0) } else { 0.0 };
    let stops = [(247.0, 251.0, 255.0), (107.0, 174.0, 214.0), (8.0, 48.0, 107.0)];
    let (from, to, along) =
        if part < 0.5 { (stops[0], stops[1], 2.0 * part) } else { (stops[1], stops[2], 2.0 * part - 1.0) };
    let mix = |from: f64, to: f64| (from + (to - from) * along).round() as u8;
    format!("#{:02x}{:02x}{:02x}", mix(from.0, to.0), mix(from.1, to.1), mix(from.2, to.2))
}

/// Words as XML takes them: no markup, no control characters.
fn escaped(words: &str) -> String {
    let mut text = String::with_capacity(words.len());
    for letter in words.chars() {
        match letter {
            '<' => text += "&lt;",
            '>' => text += "&gt;",
            '&' => text += "&amp;",
            '"' => text += "&quot;",
            '\n' => text.push('\n'),
            other if other.is_control() || matches!(other, '\u{fffe}' | '\u{ffff}') => text.push('\u{fffd}'),
            other => text.push(other),
        }
    }
    text
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn different_names_have_different_colours_as_long_as_there_are_any() {
        let names: Vec<String> = (0..12).map(|number| format!("Block::Kind{number}")).collect();
        let colours = colours(names.iter().map(String::as_str));
        let different: std::collections::BTreeSet<_> = colours.values().collect();
        assert_eq!((colours.len(), different.len()), (12, 12));
    }
}
