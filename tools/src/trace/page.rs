//! Formats the output of a command, sentences and tables, as text, JSON or CSV.

use std::io::{self, Write};
use std::time::{Duration, UNIX_EPOCH};

use humantime::format_rfc3339_seconds;
pub(crate) use presentation::format::{bytes, duration, plural};
use presentation::table::plain;
use serde_json::{Map, Value, json};
use trace_reader::Trace;

use crate::output::csv_error;

/// The format of a page.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub(crate) struct Format {
    /// One JSON object; times in ns, shares as fractions
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// The main table as comma-separated values, in the units of --json
    #[arg(long)]
    csv: bool,
}

/// A value in a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    Text(String),
    Count(u64),
    /// A time in ns.
    Ns(f64),
    /// A fraction of a whole: 0.01 is one percent.
    Share(f64),
    /// Any other number.
    Number(f64),
    Bytes(u64),
    /// Unknown, or without meaning here.
    Empty,
}

/// A column: its name in JSON and CSV, with the unit, and its head in text.
pub(crate) type Column = (&'static str, String);

/// Parses columns of the form `key: head | key: head`. A single word is both key and head.
pub(crate) fn columns(text: &'static str) -> Vec<(&'static str, &'static str)> {
    let column = |column: &'static str| column.split_once(':').unwrap_or((column, column));
    text.split('|').map(|text| column(text.trim())).map(|(key, head)| (key, head.trim())).collect()
}

/// Rows of cells below named columns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    /// Key of the table in JSON.
    name: &'static str,
    /// Line above the table in text; may be empty.
    title: String,
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
    /// Largest number of rows in text. JSON and CSV have all rows.
    rows_in_text_max: usize,
    /// Whether the table is left out of the text.
    data_only: bool,
    /// Whether `--csv` writes this table, although it is not the first.
    is_csv: bool,
    /// Key of the column that is left out of the text.
    data_column: Option<&'static str>,
}

impl Table {
    /// Each column is (name in JSON and CSV, head in text).
    pub(crate) fn new(
        name: &'static str,
        title: impl Into<String>,
        columns: &[(&'static str, &str)],
    ) -> Self {
        let columns = columns.iter().map(|&(key, head)| (key, head.to_owned())).collect();
        Self {
            name,
            title: title.into(),
            columns,
            rows: Vec::new(),
            rows_in_text_max: usize::MAX,
            data_only: false,
            is_csv: false,
            data_column: None,
        }
    }

    /// Makes `--csv` write this table of the page.
    pub(crate) fn csv(mut self) -> Self {
        self.is_csv = true;
        self
    }

    /// Limits the rows in text. The text then states the number of further rows.
    pub(crate) fn text_rows(mut self, most: usize) -> Self {
        self.rows_in_text_max = most;
        self
    }

    /// Leaves the table out of the text, which shows it as a picture instead.
    pub(crate) fn data_only(mut self) -> Self {
        self.data_only = true;
        self
    }

    /// Leaves a column out of the text. Keys are names in JSON and CSV.
    pub(crate) fn data_only_column(mut self, key: &'static str) -> Self {
        self.data_column = Some(key);
        self
    }

    /// Appends a row.
    ///
    /// # Panics
    /// If the number of cells differs from the number of columns.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        let cells: Vec<Cell> = cells.into_iter().collect();
        assert_eq!(cells.len(), self.columns.len(), "a cell a column in table {}", self.name);
        self.rows.push(cells);
    }

    /// Returns whether the table is in the text.
    pub(crate) fn is_shown(&self) -> bool {
        !self.data_only
    }

    pub(crate) fn title(&self) -> &str {
        &self.title
    }

    pub(crate) fn heads(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|(_, head)| head.as_str())
    }

    /// The index of a column, by its name in JSON and CSV.
    pub(crate) fn column(&self, key: &str) -> Option<usize> {
        self.columns.iter().position(|(other, _)| *other == key)
    }

    pub(crate) fn rows(&self) -> &[Vec<Cell>] {
        &self.rows
    }

    pub(crate) fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        if !self.title.is_empty() {
            writeln!(out, "{}", plain(&self.title))?;
        }
        let words =
            |column: usize| self.rows.iter().all(|row| matches!(row[column], Cell::Text(_) | Cell::Empty));
        let shown = |column: &usize| Some(self.columns[*column].0) != self.data_column;
        let shown: Vec<usize> = (0..self.columns.len()).filter(shown).collect();
        let heads = shown.iter().map(|&column| self.columns[column].1.as_str());
        let mut table = presentation::Table::new(heads).text_columns(shown.iter().copied().map(words));
        for row in self.rows.iter().take(self.rows_in_text_max) {
            table.row(shown.iter().map(|&column| row[column].text()));
        }
        write!(out, "{table}")?;
        let more = self.rows.len().saturating_sub(self.rows_in_text_max);
        if more > 0 {
            writeln!(out, "and {more} more")?;
        }
        Ok(())
    }

    fn json(&self) -> Value {
        let row = |cells: &Vec<Cell>| {
            let named =
                self.columns.iter().zip(cells).map(|((key, _), cell)| ((*key).to_owned(), cell.json()));
            Value::Object(named.collect::<Map<String, Value>>())
        };
        self.rows.iter().map(row).collect()
    }

    fn write_csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut csv = csv::Writer::from_writer(out);
        csv.write_record(self.columns.iter().map(|(key, _)| key)).map_err(csv_error)?;
        for row in &self.rows {
            csv.write_record(row.iter().map(Cell::value)).map_err(csv_error)?;
        }
        csv.flush()
    }
}

impl Cell {
    pub(crate) fn text_of(text: impl Into<String>) -> Cell {
        Cell::Text(text.into())
    }

    pub(crate) fn ns(ns: u64) -> Cell {
        Cell::Ns(ns as f64)
    }

    pub(crate) fn text(&self) -> String {
        match self {
            Cell::Text(text) => plain(text),
            Cell::Count(count) => count.to_string(),
            Cell::Ns(ns) => duration(*ns),
            Cell::Share(share) => format!("{:.1} %", 100.0 * share),
            Cell::Number(number) if *number != 0.0 && number.abs() < 0.001 => format!("{number:.2e}"),
            Cell::Number(number) => format!("{number:.3}"),
            Cell::Bytes(count) => bytes(*count),
            Cell::Empty => "-".into(),
        }
    }

    fn json(&self) -> Value {
        match self {
            Cell::Text(text) => json!(text),
            Cell::Count(count) | Cell::Bytes(count) => json!(count),
            // JSON cannot represent infinite values and NaN, which become null.
            Cell::Ns(ns) => json!(ns.round()),
            Cell::Share(number) | Cell::Number(number) => json!(number),
            Cell::Empty => Value::Null,
        }
    }

    /// The value for CSV.
    pub(crate) fn value(&self) -> String {
        match self {
            Cell::Text(text) => text.clone(),
            Cell::Empty => String::new(),
            other => other.json().to_string(),
        }
    }
}

/// The output of a command.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    /// Name of the command, for example `profile`.
    name: &'static str,
    run_id: String,
    /// Sentences before the tables.
    pub(crate) says: Vec<String>,
    pub(crate) tables: Vec<Table>,
    /// Notes after the tables: omissions and estimates.
    pub(crate) notes: Vec<String>,
}

impl Page {
    pub(crate) fn new(name: &'static str, trace: &Trace) -> Self {
        let notes = match trace.dropped() {
            0 => Vec::new(),
            events => {
                vec![format!("{events} events were not kept: figures that need all events are too low")]
            }
        };
        Self { notes, ..Self::of_runs(name, trace.run.run_id.clone()) }
    }

    /// A page about several runs. `run_id` has their ids, separated by commas.
    pub(crate) fn of_runs(name: &'static str, run_id: String) -> Self {
        Self { name, run_id, says: Vec::new(), tables: Vec::new(), notes: Vec::new() }
    }

    pub(crate) fn write(&self, format: Format, out: &mut dyn Write) -> io::Result<()> {
        if format.json {
            serde_json::to_writer(&mut *out, &self.json())?;
            return writeln!(out);
        }
        if format.csv {
            let main = self.tables.iter().find(|table| table.is_csv).or(self.tables.first());
            return main.map_or(Ok(()), |table| table.write_csv(out));
        }
        for line in &self.says {
            writeln!(out, "{}", plain(line))?;
        }
        for (number, table) in self.tables.iter().filter(|table| !table.data_only).enumerate() {
            if number > 0 || !self.says.is_empty() {
                writeln!(out)?;
            }
            table.write_text(out)?;
        }
        if !self.notes.is_empty() {
            writeln!(out)?;
        }
        self.notes.iter().try_for_each(|note| writeln!(out, "note: {}", plain(note)))
    }

    fn json(&self) -> Value {
        let tables = self.tables.iter().map(|table| (table.name.to_owned(), table.json()));
        json!({
            "schema": format!("caribou.trace.{}/1", self.name),
            "run_id": self.run_id,
            "says": self.says,
            "tables": tables.collect::<Map<String, Value>>(),
            "notes": self.notes,
        })
    }
}

/// Formats a Unix time in ns as a date.
pub(crate) fn moment(unix_ns: u64) -> String {
    let moment = format_rfc3339_seconds(UNIX_EPOCH + Duration::from_nanos(unix_ns));
    moment.to_string().replace('T', " ").replace('Z', " UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_command_the_terminal() {
        let mut table = Table::new("names", "", &[("name", "name")]);
        table.row([Cell::text_of("\u{1b}[2Jkind\r\n")]);
        let mut out = Vec::new();
        table.write_text(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("[2Jkind") && !text.contains(['\u{1b}', '\r']), "{text:?}");
        assert_eq!(text.lines().count(), 2);
        assert_eq!(table.json()[0]["name"], "\u{1b}[2Jkind\r\n", "programs get names as they are");
    }

    #[test]
    fn moments_are_written_as_dates() {
        assert_eq!(moment(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(moment(951_827_696_000_000_000), "2000-02-29 12:34:56 UTC");
        assert_eq!(moment(1_790_000_000_000_000_000), "2026-09-21 14:13:20 UTC");
        assert_eq!(moment(u64::MAX), "2554-07-21 23:34:33 UTC");
    }
}
