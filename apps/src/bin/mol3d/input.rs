//! Reads particles from a structure file. A file without a box gets one around its particles.

use std::io::Read;
use std::path::Path;

use caribou_apps::structure::{Format, Structure, parse};
use harness::Error;
use harness::output::open_input;

use super::grid::Vector;

/// Maximum size of a file, bytes. Devices without an end are refused by it, too.
const BYTES_MAX: u64 = 1 << 30;

/// The contents of a file.
#[derive(Debug, PartialEq)]
pub(crate) struct Input {
    pub(crate) places: Vec<Vector>,
    pub(crate) sides: Vector,
    /// Notes for the user on what was left out.
    pub(crate) notes: Vec<String>,
}

/// The atoms of a frame. Frames count from 1; without a number the first one is read.
///
/// # Errors
/// [`Error::Usage`], naming the file, its line, what was expected there and what was found.
pub(crate) fn read(path: &Path, frame: Option<usize>, cutoff: f64) -> Result<Input, Error> {
    let about = |what: &dyn std::fmt::Display| format!("--input {}: {what}", path.display());
    let refused = |why: &dyn std::fmt::Display| Error::Usage(about(why));
    let format =
        Format::of(path).ok_or_else(|| refused(&"expected a name that ends in .xyz, .pdb or .ent"))?;
    let mut bytes = Vec::new();
    let file = open_input(path).map_err(|error| refused(&error))?;
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| refused(&error))?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(refused(&"expected a file of at most 1 GiB"));
    }
    let structure = parse(format, &bytes, frame.unwrap_or(1)).map_err(|fault| refused(&fault))?;
    let notes = structure.notes.iter().cloned().chain(unread(&structure, frame));
    let notes = notes.map(|note| about(&note)).collect();
    let sides = structure.sides.unwrap_or_else(|| around(&structure.positions, cutoff));
    Ok(Input { places: structure.positions, sides, notes })
}

/// A note on further frames, unless a frame was named.
fn unread(structure: &Structure, frame: Option<usize>) -> Option<String> {
    let frames = structure.frames;
    let is_silent = frame.is_none() && frames > 1;
    is_silent.then(|| format!("the first of {frames} frames is read; --frame N reads another"))
}

/// A box with a margin of one cut-off around all positions, so that no particle acts on its own image.
fn around(places: &[Vector], cutoff: f64) -> Vector {
    [0, 1, 2].map(|axis| {
        let along = || places.iter().map(|place| place[axis]);
        let width = along().fold(f64::NEG_INFINITY, f64::max) - along().fold(f64::INFINITY, f64::min);
        width + 2.0 * cutoff
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a file with these contents. Each test uses another name.
    fn read_text(name: &str, text: &str, frame: Option<usize>) -> Result<Input, Error> {
        let path = std::env::temp_dir().join(format!("caribou-input-{}-{name}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        let input = read(&path, frame, 2.5);
        std::fs::remove_file(&path).unwrap();
        input
    }

    #[test]
    fn without_a_box_there_is_a_cut_off_of_room_on_each_side() {
        let input = read_text("room.xyz", "2\n\nC 0 0 0\nC 1 0 0\n", None).unwrap();
        assert_eq!((input.sides, input.notes), ([6.0, 5.0, 5.0], Vec::new()));
    }

    #[test]
    fn frames_that_are_not_read_are_told_unless_one_was_named() {
        let text = "1\n\nC 0 0 0\n1\nLattice=\"9 9 9\"\nC 1 0 0\n";
        let first = read_text("first.xyz", text, None).unwrap();
        assert!(
            first.notes[0].ends_with("the first of 2 frames is read; --frame N reads another"),
            "{first:?}"
        );
        let second = read_text("second.XYZ", text, Some(2)).unwrap();
        assert_eq!(
            (second.places, second.sides, second.notes),
            (vec![[1.0, 0.0, 0.0]], [9.0; 3], Vec::new())
        );
        let error = read_text("third.xyz", text, Some(3)).unwrap_err().to_string();
        assert!(
            error.ends_with("third.xyz: line 7: expected frame 3, found the end of the file after 2 frames"),
            "{error}"
        );
    }

    #[test]
    fn a_file_of_another_format_is_refused() {
        let error = read_text("box.gro", "", None).unwrap_err().to_string();
        assert!(error.ends_with("box.gro: expected a name that ends in .xyz, .pdb or .ent"), "{error}");
    }
}
