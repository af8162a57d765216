//! Formats numbers with units or nouns.

use std::fmt::Display;

/// A number with its noun, such as `1 rank` or `2 ranks`.
#[must_use]
pub fn plural(count: impl Display, noun: &str) -> String {
    let count = count.to_string();
    let ending = if count == "1" { "" } else { "s" };
    format!("{count} {noun}{ending}")
}

/// A number with `decimals` decimals. Zero has no minus sign.
#[must_use]
pub fn decimal(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    match text.strip_prefix('-') {
        Some(positive) if positive.bytes().all(|digit| matches!(digit, b'0' | b'.')) => positive.to_owned(),
        _ => text,
    }
}

/// A time in the unit that suits it.
#[must_use]
pub fn duration(ns: f64) -> String {
    match ns.abs() {
        size if size < 1e3 => format!("{ns:.0} ns"),
        size if size < 1e6 => format!("{:.2} us", ns / 1e3),
        size if size < 1e9 => format!("{:.2} ms", ns / 1e6),
        _ => format!("{:.3} s", ns / 1e9),
    }
}

/// A size in the unit that suits it.
#[must_use]
pub fn bytes(count: u64) -> String {
    match count as f64 {
        size if size < 1024.0 => format!("{count} B"),
        size if size < 1_048_576.0 => format!("{:.1} KiB", size / 1024.0),
        size if size < 1_073_741_824.0 => format!("{:.1} MiB", size / 1_048_576.0),
        size => format!("{:.2} GiB", size / 1_073_741_824.0),
    }
}

/// Escapes control characters except newline and tab, as `\u{1b}`, so that text from a file cannot command a terminal.
#[must_use]
pub fn escape_control(text: &str) -> String {
    let mut seen = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_control() && !matches!(letter, '\n' | '\t') {
            seen.extend(letter.escape_unicode());
        } else {
            seen.push(letter);
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_no_plural() {
        assert_eq!([0, 1, 2].map(|count| plural(count, "rank")), ["0 ranks", "1 rank", "2 ranks"]);
    }

    #[test]
    fn a_tiny_loss_is_not_minus_zero() {
        let texts = [-0.01, -0.04, 0.0, -0.06, -12.3].map(|value| decimal(value, 1));
        assert_eq!(texts, ["0.0", "0.0", "0.0", "-0.1", "-12.3"]);
        assert_eq!(decimal(-0.4, 0), "0");
    }

    #[test]
    fn nothing_commands_a_terminal() {
        assert_eq!(escape_control("a\u{1b}[31mb\r\u{9b}\nc\td"), "a\\u{1b}[31mb\\u{d}\\u{9b}\nc\td");
    }

    #[test]
    fn the_unit_suits_the_number() {
        assert_eq!([12.0, 1.5e3, 2e6, 3e9].map(duration), ["12 ns", "1.50 us", "2.00 ms", "3.000 s"]);
        assert_eq!([12, 1536, 3 << 20, 5 << 30].map(bytes), ["12 B", "1.5 KiB", "3.0 MiB", "5.00 GiB"]);
    }
}
