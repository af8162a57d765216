//! Any bytes are a matrix or a line that says why not, and each line of data is an entry of it.
#![no_main]

mod line;

use caribou_apps::matrix_market::{Matrix, parse};
use libfuzzer_sys::fuzz_target;
use line::assert_line;

/// Cells of a matrix that is read.
const CELLS_MAX: u64 = 1 << 16;

fuzz_target!(|bytes: &[u8]| {
    let admit = |rows: u64, columns: u64| match rows.checked_mul(columns) {
        Some(..=CELLS_MAX) => Ok(()),
        _ => Err("too large".to_owned()),
    };
    match parse(bytes, admit) {
        Ok(matrix) => assert_whole(bytes, &matrix),
        Err((line, why)) => {
            assert!(line > 0);
            assert_line(&why);
        }
    }
});

fn assert_whole(bytes: &[u8], matrix: &Matrix) {
    let Matrix { rows, columns, values } = matrix;
    assert!(values.len() == rows * columns && values.iter().all(|value| value.is_finite()));
    let mut lines = bytes.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    let header = String::from_utf8_lossy(lines.next().unwrap_or_default()).to_ascii_lowercase();
    let mut data = lines.filter(|line| !line.is_empty() && !line.starts_with(b"%"));
    let sizes = String::from_utf8_lossy(data.next().unwrap_or_default()).into_owned();
    let (is_symmetric, entries) = (header.ends_with("symmetric"), data.count());
    if is_symmetric {
        let is_same = |cell: usize| {
            values[cell].to_bits() == values[cell % columns * columns + cell / columns].to_bits()
        };
        assert!((0..values.len()).all(is_same), "{matrix:?}");
    }
    let expected = match sizes.split_ascii_whitespace().nth(2) {
        Some(entries) => entries.parse().expect("it was read as a number"),
        None if is_symmetric => rows * (rows + 1) / 2,
        None => rows * columns,
    };
    assert_eq!(entries, expected, "{matrix:?}");
    let written = values.iter().filter(|value| **value != 0.0).count();
    assert!(written <= entries * (1 + usize::from(is_symmetric)), "{matrix:?}");
}
