//! Any bytes are models of atoms or a line that says why not, and each record of an atom is counted.
#![no_main]

mod line;

use caribou_apps::structure::{Format, parse};
use libfuzzer_sys::fuzz_target;
use line::assert_line;

fuzz_target!(|bytes: &[u8]| {
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let lines = || text.split(|&byte| byte == b'\n');
    match parse(Format::Pdb, bytes, 1) {
        Ok(structure) => {
            let atoms = lines().filter(|line| line.starts_with(b"ATOM") || line.starts_with(b"HETA")).count();
            let counted = structure.positions.len() + structure.alternatives + structure.elsewhere;
            assert!(atoms == counted && !structure.positions.is_empty(), "{atoms}: {structure:?}");
            assert!(structure.sides.is_none_or(|sides| sides.iter().all(|&side| side > 0.0)));
            assert!(structure.positions.as_flattened().iter().all(|number| number.abs() <= 1e6));
            structure.notes.iter().for_each(|note| assert_line(note));
            if let Ok(last) = parse(Format::Pdb, bytes, structure.frames) {
                assert_eq!(last.positions.len() + last.alternatives + last.elsewhere, atoms);
            }
        }
        Err(fault) => {
            assert!((1..=lines().count() + 1).contains(&fault.line), "{fault}");
            assert_line(&fault.to_string());
        }
    }
});
