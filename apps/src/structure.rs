//! Reads structure files: positions of atoms and the sides of a periodic box, from XYZ, extended XYZ and PDB.
//!
//! | module | purpose |
//! |---|---|
//! | `xyz` | reads frames of atoms, one atom per line |
//! | `comment` | reads the second line of a frame: the box and the columns of extended XYZ |
//! | `pdb` | reads records in fixed columns |
//! | `residue` | chooses one of several positions of a PDB atom |
//!
//! Only descriptive records, blank lines and comments are skipped. A line that cannot be read is a [`Fault`] with its
//! number and contents. Lines that are left out on purpose are counted in [`Structure::notes`]. Text that is not data,
//! such as a comment, may have any bytes.

mod comment;
mod pdb;
mod residue;
mod xyz;

use std::fmt;
use std::path::Path;

use crate::decimal::parse_decimal;
use crate::quoted::quoted;

/// The position of an atom, or the sides of a box, in the unit of the file (usually angstrom).
pub type Position = [f64; 3];

/// The greatest coordinate.
const COORDINATE_MAX: f64 = 1e6;

/// The atoms of one frame.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Structure {
    /// One for each atom, in the order of the file.
    pub positions: Vec<Position>,
    /// The sides of the box, if the file names one.
    pub sides: Option<Position>,
    /// Frames of the file: consecutive frames of XYZ, models of PDB.
    pub frames: usize,
    /// Positions that were left out because another position of the same atom counts.
    pub alternatives: usize,
    /// Atoms of other frames.
    pub elsewhere: usize,
    /// Notes for the user on the reading, one line each.
    pub notes: Vec<String>,
}

/// A line of a file that cannot be read.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("line {line}: expected {expected}, found {found}")]
pub struct Fault {
    /// Counted from 1.
    pub line: usize,
    /// What the format requires there.
    pub expected: String,
    /// The contents of the line, in backquotes; or that the file ends.
    pub found: String,
}

impl Fault {
    fn new(line: usize, expected: impl Into<String>, bytes: &[u8]) -> Self {
        Self { line, expected: expected.into(), found: quoted(bytes) }
    }

    fn end(line: usize, expected: impl Into<String>) -> Self {
        Self { line, expected: expected.into(), found: "the end of the file".to_owned() }
    }
}

/// The format of a structure file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Format {
    /// XYZ, extended or not.
    Xyz,
    /// Protein Data Bank, version 3.3.
    Pdb,
}

impl Format {
    /// The format by the name of a file: `.xyz`, `.pdb` or `.ent`, in any case.
    ///
    /// ```
    /// use caribou_apps::structure::Format;
    ///
    /// assert_eq!(Format::of("water.PDB".as_ref()), Some(Format::Pdb));
    /// assert_eq!(Format::of("water.gro".as_ref()), None);
    /// ```
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "xyz" => Some(Self::Xyz),
            "pdb" | "ent" => Some(Self::Pdb),
            _ => None,
        }
    }
}

/// Reads the `frame`-th frame of a file, counted from 1. O(bytes).
///
/// # Errors
/// A [`Fault`] at the first line that cannot be read. Of other frames only the lines are counted.
///
/// ```
/// use caribou_apps::structure::{Format, parse};
///
/// let argon = b"1\nLattice='9 0 0 0 9 0 0 0 9'\nAr 1 2 3\n";
/// let structure = parse(Format::Xyz, argon, 1)?;
/// assert_eq!((structure.positions, structure.sides), (vec![[1.0, 2.0, 3.0]], Some([9.0; 3])));
/// # Ok::<(), caribou_apps::structure::Fault>(())
/// ```
pub fn parse(format: Format, bytes: &[u8], frame: usize) -> Result<Structure, Fault> {
    match format {
        Format::Xyz => xyz::parse(bytes, frame),
        Format::Pdb => pdb::parse(bytes, frame),
    }
}

/// The lines of a file with their numbers, without their ends and without a byte order mark before them.
fn lines(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let whole = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let lines = whole.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    // An empty file has no line.
    (1..).zip(lines).take(if bytes.is_empty() { 0 } else { usize::MAX })
}

/// A number that a coordinate may have.
fn coordinate(text: &str) -> Option<f64> {
    parse_decimal(text.trim()).filter(|number| number.abs() <= COORDINATE_MAX)
}

/// Lines of one kind that were left out.
#[derive(Debug, Default)]
struct SkippedLines {
    count: usize,
    first: usize,
}

impl SkippedLines {
    fn add(&mut self, line: usize) {
        if self.count == 0 {
            self.first = line;
        }
        self.count += 1;
    }

    /// The note on these lines, if there are some.
    fn note(&self, what: impl fmt::Display) -> Option<String> {
        let Self { count, first } = self;
        (*count > 0).then(|| format!("{what}: {count}, the first in line {first}"))
    }
}

#[cfg(test)]
mod tests;
