//! Reads XYZ files: for each frame the number of atoms, a comment, and a line per atom.
//!
//! Without `Properties` a line begins with an element and three coordinates. With it, the line has the columns it
//! names.

use super::comment::{self, Comment};
use super::{Fault, Position, SkippedLines, Structure, coordinate, lines};

pub(super) fn parse(bytes: &[u8], frame: usize) -> Result<Structure, Fault> {
    let mut lines = Lines { rest: lines(bytes), last: 0 };
    let mut structure = Structure::default();
    while let Some((number, count)) = lines.count(&structure)? {
        structure.frames += 1;
        if structure.frames == frame {
            let read = read(&mut lines, count)?;
            structure = Structure { frames: structure.frames, elsewhere: structure.elsewhere, ..read };
        } else {
            skip(&mut lines, number, count)?;
            structure.elsewhere += count;
        }
    }
    if structure.frames < frame {
        let found = format!("the end of the file after {} frames", structure.frames);
        return Err(Fault { line: lines.last + 1, expected: format!("frame {frame}"), found });
    }
    Ok(structure)
}

/// The lines of a file, and the number of the last one read.
struct Lines<'f, I: Iterator<Item = (usize, &'f [u8])>> {
    rest: I,
    last: usize,
}

impl<'f, I: Iterator<Item = (usize, &'f [u8])>> Lines<'f, I> {
    fn next(&mut self) -> Option<(usize, &'f [u8])> {
        let next = self.rest.next();
        self.last = next.map_or(self.last, |(number, _)| number);
        next
    }

    /// The number of the line on which a frame begins, and its number of atoms; none at the end. Lines between frames
    /// may be blank.
    fn count(&mut self, so_far: &Structure) -> Result<Option<(usize, usize)>, Fault> {
        let mut next = self.next();
        while so_far.frames > 0 && next.is_some_and(|(_, line)| line.trim_ascii().is_empty()) {
            next = self.next();
        }
        let expected = match so_far.frames {
            0 => "the number of atoms, 1 or more".to_owned(),
            frames => format!("the number of atoms of frame {}, or the end of the file", frames + 1),
        };
        match next {
            None if so_far.frames == 0 => Err(Fault::end(self.last + 1, expected)),
            None => Ok(None),
            Some((number, line)) => {
                let text = str::from_utf8(line.trim_ascii()).unwrap_or_default();
                let count = text.parse().ok().filter(|&count: &usize| count > 0);
                count.map(|count| Some((number, count))).ok_or_else(|| Fault::new(number, expected, line))
            }
        }
    }

    /// The next line of a frame.
    fn within(&mut self, expected: impl Fn() -> String) -> Result<(usize, &'f [u8]), Fault> {
        self.next().ok_or_else(|| Fault::end(self.last + 1, expected()))
    }
}

/// Reads the rest of a frame, after the number of atoms.
fn read<'f>(
    lines: &mut Lines<'f, impl Iterator<Item = (usize, &'f [u8])>>,
    count: usize,
) -> Result<Structure, Fault> {
    let (number, line) = lines.within(|| "a comment".to_owned())?;
    let comment = comment::parse(line).map_err(|expected| Fault::new(number, expected, line))?;
    let mut notes: Vec<String> = comment.notes.iter().map(|note| format!("line {number}: {note}")).collect();
    let (mut positions, mut more) = (Vec::new(), SkippedLines::default());
    while positions.len() < count {
        let expected = || format!("{count} atoms, of which there are {}", positions.len());
        let (number, line) = lines.within(expected)?;
        let (position, is_longer) =
            atom(line, &comment).map_err(|expected| Fault::new(number, expected, line))?;
        positions.push(position);
        if is_longer {
            more.add(number);
        }
    }
    notes.extend(
        more.note(
            "atoms with columns after the coordinates, which no Properties name and which are not read",
        ),
    );
    Ok(Structure { positions, sides: comment.sides, notes, ..Structure::default() })
}

/// The position on a line, and whether the line has columns without names.
fn atom(line: &[u8], comment: &Comment) -> Result<(Position, bool), String> {
    let words: Vec<&str> = match str::from_utf8(line) {
        Ok(text) if text.is_ascii() => text.split_ascii_whitespace().collect(),
        _ => return Err("an element and three coordinates, in ASCII".to_owned()),
    };
    let first = match comment.columns {
        Some(columns) if words.len() != columns.count => {
            return Err(format!("{} columns, as Properties says, not {}", columns.count, words.len()));
        }
        Some(columns) => columns.position,
        None => 1,
    };
    let coordinates = words.iter().skip(first).take(3).map(|word| coordinate(word));
    let position = coordinates.collect::<Option<Vec<f64>>>().and_then(|three| three.try_into().ok());
    let position = position.ok_or_else(|| match comment.columns {
        Some(_) => format!("three coordinates up to 1e6 in columns {} to {}", first + 1, first + 3),
        None => "an element and three coordinates up to 1e6".to_owned(),
    })?;
    Ok((position, comment.columns.is_none() && words.len() > 4))
}

/// Skips the lines of a frame that was not requested.
fn skip<'f>(
    lines: &mut Lines<'f, impl Iterator<Item = (usize, &'f [u8])>>,
    begin: usize,
    count: usize,
) -> Result<(), Fault> {
    let expected = || format!("a comment and {count} atoms after line {begin}");
    lines.within(expected)?;
    for _ in 0..count {
        let (number, line) = lines.within(expected)?;
        if line.trim_ascii().is_empty() {
            return Err(Fault::new(number, expected(), line));
        }
    }
    Ok(())
}
