//! Any bytes are frames of atoms or a line that says why not, and each line of a file belongs to a frame.
#![no_main]

mod line;

use std::fmt::Write;

use caribou_apps::structure::{Format, Structure, parse};
use libfuzzer_sys::fuzz_target;
use line::assert_line;

fuzz_target!(|bytes: &[u8]| {
    let lines = bytes.split(|&byte| byte == b'\n').count();
    let first = match parse(Format::Xyz, bytes, 1) {
        Ok(structure) => structure,
        Err(fault) => {
            assert!((1..=lines + 1).contains(&fault.line), "{fault}");
            return assert_line(&fault.to_string());
        }
    };
    let filled = bytes.split(|&byte| byte == b'\n').filter(|line| !line.trim_ascii().is_empty()).count();
    let Structure { positions, elsewhere, frames, notes, .. } = &first;
    let belong = positions.len() + elsewhere + 2 * frames;
    // A comment may be blank.
    assert!(
        (filled..=filled + frames).contains(&belong) && belong <= lines,
        "{filled} of {lines}: {first:?}"
    );
    notes.iter().for_each(|note| assert_line(note));
    if let Ok(last) = parse(Format::Xyz, bytes, *frames) {
        assert_eq!(last.positions.len() + last.elsewhere, positions.len() + elsewhere);
    }
    assert!(parse(Format::Xyz, bytes, frames + 1).is_err());
    assert_same(&first);
});

/// What was read can be written, and is read as the same.
fn assert_same(structure: &Structure) {
    let mut text = format!("{}\n", structure.positions.len());
    match structure.sides {
        Some([a, b, c]) => writeln!(text, "Lattice=\"{a} 0 0 0 {b} 0 0 0 {c}\""),
        None => writeln!(text),
    }
    .expect("a text takes all");
    for [x, y, z] in &structure.positions {
        writeln!(text, "X {x} {y} {z}").expect("a text takes all");
    }
    let again = parse(Format::Xyz, text.as_bytes(), 1).unwrap_or_else(|fault| panic!("{fault}: {text}"));
    assert_eq!((&again.positions, again.sides), (&structure.positions, structure.sides));
}
