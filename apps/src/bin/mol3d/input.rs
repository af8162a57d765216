//! Places of particles out of files: XYZ and PDB.
//!
//! Every record that counts is checked; what is wrong with one is a line with the file, the line and what was expected.
//! Of PDB, `ATOM` and `HETATM` count up to the end of the first model, and `CRYST1`; of several places of one atom the
//! first.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;

use harness::Error;
use harness::output::open_input;

use super::grid::Vector;

/// Bytes of a file: a device that has no end is refused, too.
const BYTES_MAX: u64 = 1 << 30;

/// The places of a file, and the sides of its box.
///
/// # Errors
/// [`Error::Usage`], naming the file, its line, and what was expected there.
pub(crate) fn read(path: &Path, cutoff: f64) -> Result<(Vec<Vector>, Vector), Error> {
    let refused = |why: String| Error::Usage(format!("--input {}: {why}", path.display()));
    let parse = match path.extension().and_then(|extension| extension.to_str()) {
        Some("xyz") => xyz,
        Some("pdb" | "ent") => pdb,
        _ => return Err(refused("expected a name that ends in .xyz, .pdb or .ent".to_owned())),
    };
    let mut text = String::new();
    let file = open_input(path).map_err(|error| refused(error.to_string()))?;
    let bytes =
        file.take(BYTES_MAX + 1).read_to_string(&mut text).map_err(|error| refused(error.to_string()))?;
    if bytes as u64 > BYTES_MAX {
        return Err(refused("expected a file of at most 1 GiB".to_owned()));
    }
    let (places, sides) =
        parse(&text).map_err(|(line, expected)| refused(format!("line {line}: expected {expected}")))?;
    let sides = sides.unwrap_or_else(|| around(&places, cutoff));
    Ok((places, sides))
}

/// Places, and the sides of the box if there are some; or a line, and what was expected in it.
type Parsed = Result<(Vec<Vector>, Option<Vector>), (usize, String)>;

/// A box with a cut-off of room around all places, so that nothing feels its own image.
fn around(places: &[Vector], cutoff: f64) -> Vector {
    [0, 1, 2].map(|axis| {
        let along = || places.iter().map(|place| place[axis]);
        let width = along().fold(f64::NEG_INFINITY, f64::max) - along().fold(f64::INFINITY, f64::min);
        width + 2.0 * cutoff
    })
}

/// A number that places have.
fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|number: &f64| number.abs() <= 1e6)
}

/// Three numbers.
fn vector<'t>(texts: impl Iterator<Item = &'t str>) -> Option<Vector> {
    texts.map(number).collect::<Option<Vec<_>>>()?.try_into().ok()
}

/// A count, a comment that may have `Lattice="..."` as in extended XYZ, and as many lines of an element and a place.
fn xyz(text: &str) -> Parsed {
    let mut lines = text.lines().zip(1..);
    let at = |line: usize, expected: &str| (line, expected.to_owned());
    let count =
        lines.next().and_then(|(line, _)| line.trim().parse().ok()).filter(|&count: &usize| count > 0);
    let count = count.ok_or_else(|| at(1, "the number of atoms, 1 or more"))?;
    let (comment, _) = lines.next().ok_or_else(|| at(2, "a comment"))?;
    let sides = lattice(comment).map_err(|expected| at(2, expected))?;
    if comment
        .split_once("Properties=")
        .is_some_and(|(_, columns)| !columns.starts_with("species:S:1:pos:R:3"))
    {
        return Err(at(2, "an element and a place first on each line: Properties=species:S:1:pos:R:3"));
    }
    let mut places = Vec::new();
    for (line, number) in lines.by_ref().take(count) {
        let place = vector(line.split_whitespace().skip(1).take(3));
        places.push(place.ok_or_else(|| at(number, "an element and three coordinates up to 1e6"))?);
    }
    if places.len() < count {
        return Err((
            places.len() + 3,
            format!("{count} atoms, not the end of the file after {}", places.len()),
        ));
    }
    match lines.find(|(line, _)| !line.trim().is_empty()) {
        Some((_, number)) => Err((number, format!("the end of the file after {count} atoms"))),
        None => Ok((places, sides)),
    }
}

/// The sides that the comment of extended XYZ names, if any.
fn lattice(comment: &str) -> Result<Option<Vector>, &'static str> {
    let Some((_, rest)) = comment.split_once("Lattice=\"") else { return Ok(None) };
    let vectors: Option<Vec<f64>> =
        rest.split('"').next().unwrap_or_default().split_whitespace().map(number).collect();
    match vectors.as_deref() {
        Some(&[a, 0.0, 0.0, 0.0, b, 0.0, 0.0, 0.0, c]) if a.min(b).min(c) > 0.0 => Ok(Some([a, b, c])),
        _ => Err("a box with right angles, as in Lattice=\"20 0 0 0 20 0 0 0 20\""),
    }
}

/// Records in fixed columns.
fn pdb(text: &str) -> Parsed {
    let (mut places, mut sides) = (Vec::new(), None);
    let mut alternatives = BTreeSet::new();
    for (line, number) in text.lines().zip(1..) {
        let three = |columns: [std::ops::Range<usize>; 3]| {
            let texts: Option<Vec<&str>> = columns.into_iter().map(|columns| line.get(columns)).collect();
            vector(texts?.into_iter())
        };
        let at = |expected: &str| (number, expected.to_owned());
        match line.get(..6).unwrap_or(line).trim_end() {
            "ATOM" | "HETATM" => {
                let place = three([30..38, 38..46, 46..54]);
                let place = place.ok_or_else(|| at("three coordinates up to 1e6 in columns 31 to 54"))?;
                // Of alternatives of an atom the first: the same name in the same residue.
                let is_first =
                    line.as_bytes()[16] == b' ' || alternatives.insert((line.get(12..16), line.get(17..27)));
                places.extend(is_first.then_some(place));
            }
            "CRYST1" => {
                let given =
                    three([6..15, 15..24, 24..33]).filter(|sides| sides.iter().all(|&side| side > 0.0));
                let given = given.ok_or_else(|| at("the sides of the box in columns 7 to 33"))?;
                // A cube of side 1, as where there is no crystal, has no room for anything.
                sides = given.iter().any(|&side| side > 1.0).then_some(given);
                if three([33..40, 40..47, 47..54]) != Some([90.0; 3]) {
                    return Err(at("right angles, 90.00 each, in columns 34 to 54"));
                }
            }
            "END" | "ENDMDL" => break,
            _ => {}
        }
    }
    if places.is_empty() {
        return Err((text.lines().count() + 1, "an ATOM or HETATM record before the end".to_owned()));
    }
    Ok((places, sides))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PDB: &str = "\
HEADER    WATER
CRYST1   20.000   21.500   22.000  90.00  90.00  90.00 P 1           1
ATOM      1  OH2 TIP3W   1      -1.500   2.250  10.000  1.00  0.00      WT1
ATOM      2  H1 ATIP3W   1      -0.543   2.250  10.000  1.00  0.00      WT1
ATOM      3  H1 BTIP3W   1      -0.500   2.250  10.000  1.00  0.00      WT1
ATOM      3  H1 CTIP3W   1      -0.400   2.250  10.000  1.00  0.00      WT1
TER
HETATM    4  H2  TIP3W   1    -100.740-103.177  10.000
ENDMDL
ATOM      1  nonsense of the second model
";

    const XYZ: &str = "2\nLattice=\"9 0 0 0 9.5 0 0 0 1e1\" by hand\nAr 1 2 3\n Ar  -1.5 2e-1 3 0.5\n\n";

    #[test]
    fn a_file_has_places_and_perhaps_a_box() {
        let (places, sides) = pdb(PDB).unwrap();
        assert_eq!(places, [[-1.5, 2.25, 10.0], [-0.543, 2.25, 10.0], [-100.74, -103.177, 10.0]]);
        assert_eq!(sides, Some([20.0, 21.5, 22.0]));
        assert_eq!(xyz(XYZ), Ok((vec![[1.0, 2.0, 3.0], [-1.5, 0.2, 3.0]], Some([9.0, 9.5, 10.0]))));
        let none = "CRYST1    1.000    1.000    1.000  90.00  90.00  90.00 P 1           1";
        let (_, sides) = pdb(&PDB.replacen(PDB.lines().nth(1).unwrap(), none, 1)).unwrap();
        assert_eq!(sides, None, "there is no crystal");
        let (places, sides) = xyz("1\n\nC 0 0 0").unwrap();
        assert_eq!((around(&places, 2.5), sides), ([5.0; 3], None));
    }

    #[test]
    fn a_record_that_is_wrong_is_named_by_its_line() {
        let refused = |parse: fn(&str) -> Parsed, text: &str, from: &str, to: &str| {
            assert!(text.contains(from));
            parse(&text.replacen(from, to, 1)).unwrap_err()
        };
        for (from, to, line, words) in [
            ("2\n", "two\n", 1, "number of atoms"),
            ("2\n", "0\n", 1, "1 or more"),
            ("2\n", "3\n", 5, "an element and"),
            ("\n Ar  -1.5 2e-1 3 0.5\n\n", "", 4, "2 atoms, not the end of the file after 1"),
            ("2\n", "1\n", 4, "the end of the file after 1 atoms"),
            ("0 9.5", "1 9.5", 2, "right angles"),
            ("9.5", "-9.5", 2, "right angles"),
            ("1e1\"", "\"", 2, "Lattice"),
            ("by hand", "Properties=species:S:1:id:I:1:pos:R:3", 2, "place first"),
            ("Ar 1 2 3", "Ar 1 2", 3, "three coordinates"),
            ("-1.5", "1e7", 4, "up to 1e6"),
            ("-1.5", "NaN", 4, "up to 1e6"),
        ] {
            let (at, expected) = refused(xyz, XYZ, from, to);
            assert!(at == line && expected.contains(words), "{to}: {at}: {expected}");
        }
        for (from, to, line, words) in [
            ("-1.500", "-1,500", 3, "columns 31 to 54"),
            ("-103.177  10.000", "-103", 8, "columns 31 to 54"),
            ("H1 A", "Hé A", 4, "columns 31 to 54"),
            ("  20.000", "   0.000", 2, "sides of the box"),
            ("  90.00 P", "  60.00 P", 2, "right angles"),
            ("CRYST1", "END   ", 11, "an ATOM"),
        ] {
            let (at, expected) = refused(pdb, PDB, from, to);
            assert!(at == line && expected.contains(words), "{to}: {at}: {expected}");
        }
    }
}
