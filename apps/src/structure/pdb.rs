//! Reads PDB files, version 3.3: records in fixed columns, counted from 1 in messages and from 0 in this file.
//!
//! `ATOM`, `HETATM` and `CRYST1` are read; `TER`, `MODEL`, `ENDMDL` and `END` separate. Other records of the format
//! describe and are skipped. Records that it does not have are noted. Copies of atoms by symmetry are not made.
//!
//! The crate pdbtbx 0.12 was tried. Even at its strictest it silently drops an atom with a six-digit serial number,
//! keeps every alternative, and refuses lines that end before column 76, as many programs write them. This reader stays
//! because it counts every record of an atom, and names the line of one that it cannot read.

use std::ops::Range;

use super::residue::Residue;
use super::{Fault, Position, SkippedLines, Structure, coordinate, lines};

/// Records without positions.
const DESCRIPTIONS: [&str; 49] = [
    "HEADER", "OBSLTE", "TITLE", "SPLIT", "CAVEAT", "COMPND", "SOURCE", "KEYWDS", "EXPDTA", "NUMMDL",
    "MDLTYP", "AUTHOR", "REVDAT", "SPRSDE", "JRNL", "REMARK", "DBREF", "DBREF1", "DBREF2", "SEQADV",
    "SEQRES", "MODRES", "HET", "HETNAM", "HETSYN", "FORMUL", "HELIX", "SHEET", "TURN", "SSBOND", "LINK",
    "HYDBND", "SLTBRG", "CISPEP", "SITE", "ORIGX1", "ORIGX2", "ORIGX3", "SCALE1", "SCALE2", "SCALE3",
    "TVECT", "SIGATM", "ANISOU", "SIGUIJ", "CONECT", "MASTER", "FTNOTE", "USER",
];

/// Columns of a serial number end before this one.
const SERIAL_END: usize = 11;

pub(super) fn parse(bytes: &[u8], frame: usize) -> Result<Structure, Fault> {
    let mut reader = Reader { frame, at: 1, ..Reader::default() };
    let mut last = 0;
    for (number, line) in lines(bytes) {
        reader.record(number, line)?;
        last = number;
    }
    reader.end_frame();
    let frames = reader.at - 1;
    if frames == 0 {
        return Err(Fault::end(last + 1, "an ATOM or HETATM record before the end"));
    }
    if frames < frame {
        let found = format!("the end of the file after {frames} models");
        return Err(Fault { line: last + 1, expected: format!("model {frame}"), found });
    }
    Ok(reader.structure(frames))
}

#[derive(Default)]
struct Reader<'f> {
    /// The model to read, from 1.
    frame: usize,
    /// The present model, from 1.
    at: usize,
    /// True if the present model has an atom.
    has_atoms: bool,
    /// The box, and the model in which it was named.
    crystal: Option<(Option<Position>, usize)>,
    /// The line of a MODEL record that no ENDMDL has followed.
    model: Option<usize>,
    residue: Residue<'f>,
    positions: Vec<Position>,
    elsewhere: usize,
    left: LeftOut,
}

/// Lines that are not read, by reason.
#[derive(Default)]
struct LeftOut {
    alternatives: SkippedLines,
    copies: SkippedLines,
    unended: SkippedLines,
    unknown: SkippedLines,
}

impl<'f> Reader<'f> {
    fn record(&mut self, number: usize, line: &'f [u8]) -> Result<(), Fault> {
        let name = str::from_utf8(&line[..line.len().min(6)]).unwrap_or_default().trim_end();
        match name {
            _ if is_atom(line) => self.atom(number, line)?,
            "CRYST1" => self.crystal(number, line)?,
            "TER" => self.residue = Residue::default(),
            "MODEL" => {
                self.end_frame();
                self.model = Some(number);
            }
            "ENDMDL" => {
                self.model = None;
                self.end_frame();
            }
            "END" => self.end_frame(),
            // A copy that is not in the file has no 1 in column 60.
            "MTRIX1" if line.get(59) != Some(&b'1') => self.left.copies.add(number),
            "MTRIX1" | "MTRIX2" | "MTRIX3" => {}
            name if DESCRIPTIONS.contains(&name) || line.trim_ascii().is_empty() => {}
            _ if looks_like_an_atom(line) => {
                return Err(Fault::new(number, "ATOM or HETATM in columns 1 to 6", line));
            }
            _ => self.left.unknown.add(number),
        }
        Ok(())
    }

    fn atom(&mut self, number: usize, line: &'f [u8]) -> Result<(), Fault> {
        self.has_atoms = true;
        if self.at != self.frame {
            self.elsewhere += 1;
            return Ok(());
        }
        let atom = Atom::parse(line).map_err(|expected| Fault::new(number, expected, line))?;
        if self.residue.is_first(atom) {
            self.positions.push(atom.position);
        } else {
            self.left.alternatives.add(number);
        }
        Ok(())
    }

    fn crystal(&mut self, number: usize, line: &[u8]) -> Result<(), Fault> {
        if self.at > self.frame {
            return Ok(());
        }
        let sides = sides(line).map_err(|expected| Fault::new(number, expected, line))?;
        if self.crystal.is_some_and(|(before, at)| at == self.at && before != sides) {
            return Err(Fault::new(number, "one box for a model, not two", line));
        }
        self.crystal = Some((sides, self.at));
        Ok(())
    }

    fn end_frame(&mut self) {
        if self.has_atoms {
            self.at += 1;
        }
        if let Some(line) = self.model.take() {
            self.left.unended.add(line);
        }
        (self.has_atoms, self.residue) = (false, Residue::default());
    }

    fn structure(self, frames: usize) -> Structure {
        let LeftOut { alternatives, copies, unended, unknown } = &self.left;
        let notes = [
            alternatives.note("further positions of atoms that have several, of which the first counts"),
            copies.note("MTRIX records of copies by symmetry, which are not made"),
            unended.note("MODEL records without ENDMDL, so the file may be cut off"),
            unknown.note("records that PDB does not have, which are not read"),
        ];
        Structure {
            positions: self.positions,
            sides: self.crystal.and_then(|(sides, _)| sides),
            frames,
            alternatives: alternatives.count,
            elsewhere: self.elsewhere,
            notes: notes.into_iter().flatten().collect(),
        }
    }
}

/// One position of an atom.
#[derive(Clone, Copy)]
pub(super) struct Atom<'f> {
    pub(super) name: &'f [u8],
    /// The letter of an alternative, or a blank.
    pub(super) alternative: u8,
    pub(super) residue: &'f [u8],
    /// Chain, number with insertion code, and segment of the residue.
    pub(super) place: [&'f [u8]; 2],
    position: Position,
}

impl<'f> Atom<'f> {
    /// Reads an `ATOM` or `HETATM` record; an error names what was expected.
    fn parse(line: &'f [u8]) -> Result<Self, &'static str> {
        if !line.is_ascii() {
            return Err("ASCII in a record of an atom");
        }
        // From 100 000 on some programs write serial numbers with six digits, and all that follows one column later.
        let line = &line[extra_digits(line).min(line.len())..];
        let is_blank =
            |columns: Range<usize>| line.get(columns).is_some_and(|some| some.trim_ascii().is_empty());
        if !is_blank(SERIAL_END..SERIAL_END + 1) {
            return Err("a blank in column 12, after a serial number");
        }
        if !is_blank(28..30) {
            return Err("blanks in columns 29 and 30, before the coordinates");
        }
        let position = three(line, [30..38, 38..46, 46..54]);
        Ok(Self {
            name: &line[12..16],
            alternative: line[16],
            residue: &line[17..21],
            place: [&line[21..27], line.get(72..76).unwrap_or_default()],
            position: position.ok_or("three coordinates up to 1e6 in columns 31 to 54")?,
        })
    }
}

/// True if a record is of an atom. A serial number of six digits may begin within the name's columns.
fn is_atom(line: &[u8]) -> bool {
    let is_short = |rest: &[u8]| rest.iter().take(2).all(|byte| *byte == b' ' || byte.is_ascii_digit());
    line.starts_with(b"HETATM") || line.strip_prefix(b"ATOM").is_some_and(is_short)
}

fn looks_like_an_atom(line: &[u8]) -> bool {
    let name = line.trim_ascii_start().to_ascii_uppercase();
    name.starts_with(b"ATOM") || name.starts_with(b"HETA")
}

/// Digits of a serial number beyond its columns.
fn extra_digits(line: &[u8]) -> usize {
    let name = if line.starts_with(b"HETATM") { 6 } else { 4 };
    let begin = name + line[name..].iter().take_while(|&&byte| byte == b' ').count();
    let end = begin + line[begin..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    if begin < SERIAL_END { end.saturating_sub(SERIAL_END) } else { 0 }
}

/// The sides of a crystal's box; none if the sides are all 0 or all 1, which means that there is no crystal.
fn sides(line: &[u8]) -> Result<Option<Position>, &'static str> {
    let sides = three(line, [6..15, 15..24, 24..33]).ok_or("three sides up to 1e6 in columns 7 to 33")?;
    if matches!(sides, [0.0, 0.0, 0.0] | [1.0, 1.0, 1.0]) {
        return Ok(None);
    }
    if !sides.iter().all(|&side| side > 0.0) {
        return Err("sides of the box above 0 in columns 7 to 33");
    }
    if three(line, [33..40, 40..47, 47..54]) != Some([90.0; 3]) {
        return Err("right angles, 90.00 each, in columns 34 to 54");
    }
    Ok(Some(sides))
}

/// The numbers in three ranges of columns.
fn three(line: &[u8], columns: [Range<usize>; 3]) -> Option<Position> {
    let number = |columns| coordinate(str::from_utf8(line.get(columns)?).ok()?);
    columns.into_iter().map(number).collect::<Option<Vec<f64>>>()?.try_into().ok()
}
