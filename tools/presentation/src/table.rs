//! Formats text tables with aligned columns, for terminals.
//!
//! Numbers are aligned right and words left. Two spaces separate columns, and no line ends with spaces. Tables have no
//! rules and no colours, so that they can be read aloud, pasted into a message, and processed by `awk`.

use std::fmt::{self, Display};

/// Largest width to which columns are padded, because names in files may have any length.
const WIDTH_MAX: usize = 200;

/// A table. It displays as lines, each with a newline.
///
/// ```
/// let mut table = presentation::Table::new(["policy", "time s"]);
/// table.row(["static", "12.5"]);
/// table.row(["leases", "9.8"]);
/// assert_eq!(table.to_string(), "policy  time s\nstatic    12.5\nleases     9.8\n");
/// ```
#[derive(Clone, Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
    /// Whether each column has words instead of numbers.
    words: Vec<bool>,
}

impl Table {
    /// A table with these headings. The first column has words, the others have numbers.
    pub fn new<S: Into<String>>(heads: impl IntoIterator<Item = S>) -> Self {
        let mut table = Self { rows: Vec::new(), words: vec![true] };
        table.row(heads);
        table
    }

    /// Sets for each column, from the first on, whether it has words. The remaining columns have numbers.
    #[must_use]
    pub fn text_columns(self, words: impl IntoIterator<Item = bool>) -> Self {
        Self { words: words.into_iter().collect(), ..self }
    }

    /// Adds a row, which may have fewer cells than others.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(|cell| plain(&cell.into())).collect());
    }

    fn widths(&self) -> Vec<usize> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |row: &Vec<String>, column: usize| row.get(column).map_or(0, |cell| cell.chars().count());
        let widest = |column| self.rows.iter().map(|row| width(row, column)).max().unwrap_or(0);
        (0..columns).map(|column| widest(column).min(WIDTH_MAX)).collect()
    }
}

impl Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        for row in &self.rows {
            let mut line = String::new();
            for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
                let gap = if column > 0 { "  " } else { "" };
                line += &match self.words.get(column) {
                    Some(true) => format!("{gap}{cell:<width$}"),
                    _ => format!("{gap}{cell:>width$}"),
                };
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// Replaces control characters for a line of a terminal, because names in files must not move its cursor.
#[must_use]
pub fn plain(text: &str) -> String {
    let shown = |letter: char| match letter {
        '\n' => ' ',
        control if control.is_control() => '\u{fffd}',
        letter => letter,
    };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_begin_and_numbers_end_under_each_other() {
        let mut table = Table::new(["name", "count", "why"]).text_columns([true, false, true]);
        table.row(["a", "1", "none"]);
        table.row(["länger", "1000", ""]);
        table.row(["short row"]);
        assert_eq!(
            table.to_string(),
            "name       count  why\na              1  none\nlänger      1000\nshort row\n"
        );
    }

    #[test]
    fn a_long_name_does_not_move_the_other_rows() {
        let mut table = Table::new(["name", "n"]);
        table.row(["x".repeat(1000), "1".into()]);
        table.row(["y", "2"]);
        assert_eq!(table.to_string().lines().last().map(str::len), Some(WIDTH_MAX + 3));
    }

    #[test]
    fn a_name_cannot_command_the_terminal() {
        let mut table = Table::new(["name"]);
        table.row(["\u{1b}[2Jkind\r\n"]);
        let text = table.to_string();
        assert!(text.contains("[2Jkind") && !text.contains(['\u{1b}', '\r']), "{text:?}");
        assert_eq!(text.lines().count(), 2);
    }
}
