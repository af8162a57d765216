//! Reads the lines of a CSV file with their line numbers, for error messages.

use csv::{ReaderBuilder, StringRecord, Trim};

/// Characters of a field that an error shows.
const FIELD_MAX: usize = 40;

/// A line number, counted from 1, and the fault of that line.
pub(crate) type LineError = (u64, String);

/// One line: its number and its fields.
pub(super) struct Record {
    pub(super) line: u64,
    pub(super) fields: StringRecord,
}

/// All lines that are not empty.
pub(super) fn records(text: &str) -> Vec<Record> {
    let mut reader =
        ReaderBuilder::new().has_headers(false).flexible(true).trim(Trim::All).from_reader(text.as_bytes());
    let (mut records, mut fields) = (Vec::new(), StringRecord::new());
    while reader.read_record(&mut fields).expect("it is text, and records may have any length") {
        // Counted from the end of the record, because the reader's number of its beginning skips empty lines before it.
        let end = reader.position();
        let newline = text.as_bytes()[end.byte() as usize - 1] == b'\n';
        if fields.len() > 1 || !fields[0].is_empty() {
            records.push(Record { line: end.line() - u64::from(newline), fields: fields.clone() });
        }
    }
    records
}

impl Record {
    pub(super) fn wrong<T>(&self, what: String) -> Result<T, LineError> {
        Err((self.line, what))
    }

    pub(super) fn number(&self, text: &str, most: f64) -> Result<f64, LineError> {
        match text.parse::<f64>().ok().filter(|number| (0.0..=most).contains(number)) {
            Some(number) => Ok(number),
            None => self.wrong(format!("{}, expected a number from 0 to {most}", quoted(text))),
        }
    }

    pub(super) fn fields<const N: usize>(&self) -> Result<[&str; N], LineError> {
        let fields: Vec<&str> = self.fields.iter().collect();
        let found = fields.len();
        let line = quoted(&fields.join(","));
        fields
            .try_into()
            .or_else(|_| self.wrong(format!("{line} has {found} fields, expected {N} separated by commas")))
    }
}

/// Text from a file in quotes, shortened: a field with an unclosed quote reaches to the end of the file.
pub(super) fn quoted(text: &str) -> String {
    match text.char_indices().nth(FIELD_MAX) {
        Some((end, _)) => format!("{:?}...", &text[..end]),
        None => format!("{text:?}"),
    }
}
