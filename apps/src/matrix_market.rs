//! Reads files in the Matrix Market exchange format (Boisvert, Pozo and Remington, NISTIR 5935) as dense matrices.
//!
//! Formats: array and coordinate, general and symmetric, real and integer. Every fault is one line with its place. No
//! file is trusted: sizes in the first lines are checked before memory is taken for them, and lines have a maximum
//! length.
//!
//! The crates nalgebra-sparse 0.11 and matrix-market-rs 0.1 were tried. Both refuse a comment in Latin-1 and `D`
//! exponents, and count a repeated entry as two. The second accepts a header of one percent sign. This reader reads the
//! former, refuses the others with their line, and checks that there is memory before it takes any.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use harness::output::open_input;

use crate::decimal::parse_decimal;
use crate::quoted::quoted;

/// Maximum bytes of a line; the format allows 1024.
const LINE_BYTES: u64 = 4096;

/// Some editors put this mark before text in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A dense matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub columns: usize,
    /// Row by row.
    pub values: Vec<f64>,
}

impl Matrix {
    /// A row, from 0.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn row(&self, row: usize) -> &[f64] {
        &self.values[row * self.columns..(row + 1) * self.columns]
    }
}

/// Reads the file at `path`. `admit` gets rows and columns before memory is taken for them, and may refuse.
///
/// # Errors
/// One line: the path, the number of the line, what was expected there and what was found.
pub fn read(path: &Path, admit: impl FnOnce(u64, u64) -> Result<(), String>) -> Result<Matrix, String> {
    let opened = open_input(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    parse(BufReader::new(opened), admit).map_err(|(line, why)| format!("{}:{line}: {why}", path.display()))
}

/// Reads a matrix; `admit` as for [`read`]. O(bytes + rows x columns).
///
/// # Errors
/// The number of a line, and its fault.
///
/// ```
/// use caribou_apps::matrix_market::parse;
///
/// let text = "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 4\n2 2 0.3D+01\n";
/// let matrix = parse(text.as_bytes(), |_, _| Ok(())).unwrap();
/// assert_eq!(matrix.values, [4.0, 0.0, 0.0, 3.0]);
/// ```
pub fn parse(
    input: impl BufRead,
    admit: impl FnOnce(u64, u64) -> Result<(), String>,
) -> Result<Matrix, (u64, String)> {
    let mut lines = Lines { input, line: 0, text: Vec::new() };
    matrix(&mut lines, admit).map_err(|why| (lines.line.max(1), why))
}

/// The lines of a file, counted.
struct Lines<R> {
    input: R,
    line: u64,
    text: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    /// The next line; none at the end. A byte order mark before the first line is left out.
    fn next(&mut self) -> Result<Option<&[u8]>, String> {
        self.text.clear();
        self.line += 1;
        let read = self.input.by_ref().take(LINE_BYTES).read_until(b'\n', &mut self.text);
        let bytes = read.map_err(|error| format!("cannot read the rest: {error}"))?;
        if bytes as u64 == LINE_BYTES && !self.text.ends_with(b"\n") {
            return Err(format!(
                "expected a line of less than {LINE_BYTES} bytes, found {}",
                quoted(&self.text)
            ));
        }
        let text = self.text.as_slice();
        let text = if self.line == 1 { text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text) } else { text };
        Ok((bytes > 0).then(|| text.trim_ascii()))
    }

    /// The words of the next line that is neither empty nor a comment; none at the end.
    fn words(&mut self) -> Result<Option<Vec<String>>, String> {
        while let Some(line) = self.next()? {
            // A comment may have any bytes.
            if !line.is_empty() && !line.starts_with(b"%") {
                let text = str::from_utf8(line).ok().filter(|text| text.is_ascii());
                let text = text.ok_or_else(|| format!("expected ASCII, found {}", quoted(line)))?;
                return Ok(Some(text.split_ascii_whitespace().map(str::to_owned).collect()));
            }
        }
        Ok(None)
    }
}

/// The contents of the first line.
#[derive(Clone, Copy)]
struct Header {
    coordinate: bool,
    symmetric: bool,
    integer: bool,
}

fn matrix<R: BufRead>(
    lines: &mut Lines<R>,
    admit: impl FnOnce(u64, u64) -> Result<(), String>,
) -> Result<Matrix, String> {
    let header = header(lines.next()?.unwrap_or_default())?;
    let (names, expected) = match header.coordinate {
        true => ("rows and columns, 1 or more each, and entries", 3),
        false => ("rows and columns, 1 or more each", 2),
    };
    let words = lines.words()?.ok_or_else(|| format!("expected {names}, found the end"))?;
    let sizes: Option<Vec<u64>> = words.iter().map(|word| word.parse().ok()).collect();
    let sizes = sizes
        .filter(|sizes| sizes.len() == expected && sizes[0] > 0 && sizes[1] > 0)
        .ok_or_else(|| format!("expected {names}, found {}", shown(&words)))?;
    let (rows, columns) = (sizes[0], sizes[1]);
    if header.symmetric && rows != columns {
        return Err(format!(
            "expected as many rows as columns of a symmetric matrix, found {rows} x {columns}"
        ));
    }
    let cells = rows.checked_mul(columns).and_then(|cells| usize::try_from(cells).ok());
    let cells = cells.filter(|cells| *cells <= isize::MAX as usize / size_of::<f64>());
    let cells = cells.ok_or_else(|| format!("expected a size that fits memory, found {rows} x {columns}"))?;
    admit(rows, columns)?;
    let mut matrix = Matrix { rows: rows as usize, columns: columns as usize, values: vec![0.0; cells] };
    match header.coordinate {
        true => coordinates(lines, header, sizes[2], &mut matrix)?,
        false => array(lines, header, &mut matrix)?,
    }
    match lines.words()? {
        None => Ok(matrix),
        Some(words) => Err(format!("expected the end, found {}", shown(&words))),
    }
}

fn header(line: &[u8]) -> Result<Header, String> {
    let text = String::from_utf8_lossy(line).to_ascii_lowercase();
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let ["%%matrixmarket", "matrix", format, field, symmetry] = words[..] else {
        let found = if line.is_empty() { "nothing".to_owned() } else { quoted(line) };
        return Err(format!("expected `%%MatrixMarket matrix FORMAT FIELD SYMMETRY`, found {found}"));
    };
    let one_of = |what: &str, word: &str, first: &str, second: &str| match word {
        word if word == first => Ok(false),
        word if word == second => Ok(true),
        other => Err(format!("expected {what} `{first}` or `{second}`, found {}", quoted(other.as_bytes()))),
    };
    Ok(Header {
        coordinate: one_of("the format", format, "array", "coordinate")?,
        integer: one_of("the field", field, "real", "integer")?,
        symmetric: one_of("the symmetry", symmetry, "general", "symmetric")?,
    })
}

/// Reads all cells, column by column; of a symmetric matrix the cells from the diagonal down.
fn array<R: BufRead>(lines: &mut Lines<R>, header: Header, matrix: &mut Matrix) -> Result<(), String> {
    for column in 0..matrix.columns {
        for row in if header.symmetric { column } else { 0 }..matrix.rows {
            let here = || format!("row {}, column {}", row + 1, column + 1);
            let words =
                lines.words()?.ok_or_else(|| format!("expected the number of {}, found the end", here()))?;
            let [word] = &words[..] else {
                return Err(format!("expected the number of {}, found {}", here(), shown(&words)));
            };
            put(matrix, row, column, number(word, header)?, header);
        }
    }
    Ok(())
}

/// Reads entries, each a row, a column and a number. A missing entry is 0.
fn coordinates<R: BufRead>(
    lines: &mut Lines<R>,
    header: Header,
    entries: u64,
    matrix: &mut Matrix,
) -> Result<(), String> {
    // A bit for each cell, because the number of an entry may be 0.
    let mut seen = vec![0_u64; matrix.values.len().div_ceil(64)];
    for entry in 1..=entries {
        let words = lines.words()?;
        let words = words.ok_or_else(|| format!("expected entry {entry} of {entries}, found the end"))?;
        let [row, column, word] = &words[..] else {
            return Err(format!("expected a row, a column and a number, found {}", shown(&words)));
        };
        let (row, column) = (place(row, "row", matrix.rows)?, place(column, "column", matrix.columns)?);
        if header.symmetric && column > row {
            let found = shown(&words);
            return Err(format!("expected no entry above the diagonal of a symmetric matrix, found {found}"));
        }
        let cell = row * matrix.columns + column;
        if seen[cell / 64] >> (cell % 64) & 1 == 1 {
            return Err(format!(
                "expected row {}, column {} once, found {} again",
                row + 1,
                column + 1,
                shown(&words)
            ));
        }
        seen[cell / 64] |= 1 << (cell % 64);
        put(matrix, row, column, number(word, header)?, header);
    }
    Ok(())
}

fn put(matrix: &mut Matrix, row: usize, column: usize, value: f64, header: Header) {
    matrix.values[row * matrix.columns + column] = value;
    if header.symmetric {
        matrix.values[column * matrix.columns + row] = value;
    }
}

/// The words of a line as an error shows them.
fn shown(words: &[String]) -> String {
    quoted(words.join(" ").as_bytes())
}

/// Converts a place from 1 on to a place from 0 on.
fn place(word: &str, what: &str, last: usize) -> Result<usize, String> {
    let place = word.parse::<usize>().ok().filter(|place| (1..=last).contains(place));
    place
        .map(|place| place - 1)
        .ok_or_else(|| format!("expected a {what} from 1 to {last}, found {}", quoted(word.as_bytes())))
}

fn number(word: &str, header: Header) -> Result<f64, String> {
    let value = match header.integer {
        true => word.parse::<i64>().ok().map(|whole| whole as f64),
        false => parse_decimal(word),
    };
    let kind = if header.integer { "a whole number" } else { "a finite number" };
    value.ok_or_else(|| format!("expected {kind}, found {}", quoted(word.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: impl AsRef<[u8]>) -> Result<Matrix, String> {
        let admit = |rows, _| if rows > 1000 { Err("too large".to_owned()) } else { Ok(()) };
        parse(text.as_ref(), admit).map_err(|(line, why)| format!("{line}: {why}"))
    }

    #[test]
    fn each_kind_of_file_gives_the_matrix_that_it_means() {
        let expected = Matrix { rows: 2, columns: 2, values: vec![4.0, 1.0, 1.0, 3.0] };
        for text in [
            "%%MatrixMarket matrix array real general\n% by hand\n\n2 2\n4.0\n1e0\n1\n3\n",
            "%%MatrixMarket matrix array integer symmetric\n2 2\n4\n1\n3",
            "%%matrixmarket MATRIX Coordinate Real General\r\n2 2 4\r\n2 2 3\r\n1 1 4\r\n1 2 1\r\n2 1 1\r\n",
            "%%MatrixMarket matrix coordinate integer symmetric\n2 2 3\n1 1 4\n2 1 1\n2 2 3\n\n% end\n",
            "\u{feff}%%MatrixMarket matrix array real symmetric\n2 2\n0.40D+01\n1.d0\n3.\n",
        ] {
            assert_eq!(parsed(text).as_ref(), Ok(&expected), "{text}");
        }
        // A comment in Latin-1.
        let text = b"%%MatrixMarket matrix array real general\n%J\xfcrg\n1 1\n%\xff\n7\n";
        assert_eq!(parsed(text).unwrap().values, [7.0]);
        let column_by_column =
            parsed("%%MatrixMarket matrix array real general\n2 3\n1\n2\n3\n4\n5\n6\n").unwrap();
        assert_eq!(column_by_column.row(0).to_vec(), vec![1.0, 3.0, 5.0]);
    }

    #[test]
    fn every_fault_is_told_with_its_line_and_what_was_expected() {
        let (array, entries) = (
            "%%MatrixMarket matrix array real general\n",
            "%%MatrixMarket matrix coordinate real symmetric\n",
        );
        for (text, said) in [
            (String::new(), "1: expected `%%MatrixMarket matrix FORMAT FIELD SYMMETRY`, found nothing"),
            ("2 2\n".to_owned(), "1: expected `%%MatrixMarket matrix FORMAT FIELD SYMMETRY`, found `2 2`"),
            (
                "%MatrixMarket matrix".to_owned(),
                "1: expected `%%MatrixMarket matrix FORMAT FIELD SYMMETRY`, found `%M",
            ),
            ("%%MatrixMarket matrix array complex general\n".to_owned(), "1: expected the field `real`"),
            ("%%MatrixMarket matrix array real hermitian\n".to_owned(), "1: expected the symmetry `general`"),
            (array.to_owned(), "2: expected rows and columns, 1 or more each, found the end"),
            (format!("{array}2\n"), "2: expected rows and columns, 1 or more each, found `2`"),
            (format!("{array}0 2\n"), "2: expected rows and columns, 1 or more each, found `0 2`"),
            (format!("{array}0 0\n"), "2: expected rows and columns, 1 or more each, found `0 0`"),
            (
                format!("{entries}0 0 0\n"),
                "2: expected rows and columns, 1 or more each, and entries, found `0 0 0`",
            ),
            (format!("{array}-2 2\n"), "2: expected rows and columns, 1 or more each, found `-2 2`"),
            (format!("{array}4294967296 4294967296\n"), "2: expected a size that fits memory"),
            (format!("{array}1001 1\n"), "2: too large"),
            (format!("{array}2 1\n1\n"), "4: expected the number of row 2, column 1, found the end"),
            (format!("{array}1 1\n1 2\n"), "3: expected the number of row 1, column 1, found `1 2`"),
            (format!("{array}1 1\nnan\n"), "3: expected a finite number, found `nan`"),
            (format!("{array}1 1\n1d2d3\n"), "3: expected a finite number, found `1d2d3`"),
            (format!("{array}1 1\n1e999\n"), "3: expected a finite number, found `1e999`"),
            (format!("{array}1 1\n1\n2\n"), "4: expected the end, found `2`"),
            (format!("{entries}2 3 1\n"), "2: expected as many rows as columns"),
            (format!("{entries}2 2 2\n1 1 1\n"), "4: expected entry 2 of 2, found the end"),
            (format!("{entries}2 2 1\n3 1 1\n"), "3: expected a row from 1 to 2, found `3`"),
            (format!("{entries}2 2 1\n1 0 1\n"), "3: expected a column from 1 to 2, found `0`"),
            (
                format!("{entries}2 2 1\n1 2 1\n"),
                "3: expected no entry above the diagonal of a symmetric matrix, found `1 2 1`",
            ),
            (
                format!("{entries}2 2 2\n1 1 0\n1 1 0\n"),
                "4: expected row 1, column 1 once, found `1 1 0` again",
            ),
            (
                format!("{array}1 1\n{}\n", "1".repeat(5000)),
                "3: expected a line of less than 4096 bytes, found `111",
            ),
        ] {
            let complaint = parsed(&text).unwrap_err();
            assert!(complaint.starts_with(said) && !complaint.contains('\n'), "{complaint} for {said}");
        }
        assert!(parsed([0x25, 0xff, 0x0a]).unwrap_err().ends_with("SYMMETRY`, found `%\u{fffd}`"));
        let data = b"%%MatrixMarket matrix array real general\n1 1\n\xff\n";
        assert_eq!(parsed(data).unwrap_err(), "3: expected ASCII, found `\u{fffd}`");
    }
}
