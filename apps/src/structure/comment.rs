//! Reads the comment of extended XYZ: `key = value` pairs, of which only the box and the columns are used.
//!
//! A value is in double quotes, single quotes, brackets or nothing. Blanks around `=` and the case of a key do not
//! matter. A comment with neither box nor columns is text. A comment that seems to have one of both but cannot be read
//! is refused, because a box that goes unnoticed gives a wrong result.
//!
//! The crates extxyz 0.2 and extxyz-ng 0.0.2 were tried. The first refuses single quotes and plain comments. Both
//! silently take `lattice` for no box. The second panics on whole numbers in a column of reals. This reader stays
//! because it refuses what looks like a box and is none, and because it adds no crate (extxyz adds 40).

use super::{COORDINATE_MAX, Position};
use crate::decimal::parse_decimal;

/// Largest number off the diagonal, over the longest side, that counts as rounding by the program that wrote the file.
const ROUNDING: f64 = 1e-9;

/// Names that programs use for a box.
const BOXES: [&str; 8] =
    ["lattice", "box", "cell", "unitcell", "unit_cell", "box_size", "boxsize", "cell_vectors"];

/// Maximum number of unread names in a note.
const NAMES_MAX: usize = 5;

const BOX_EXPECTED: &str = "a box with right angles, as in Lattice=\"20 0 0 0 20 0 0 0 20\"";
const SIDES_EXPECTED: &str = "a box with sides above 0 and up to 1e6, as in Lattice=\"20 0 0 0 20 0 0 0 20\"";
const COLUMNS_EXPECTED: &str = "columns with one position, as in Properties=species:S:1:pos:R:3";

/// The contents of a comment.
#[derive(Debug, PartialEq)]
pub(super) struct Comment {
    pub(super) sides: Option<Position>,
    pub(super) columns: Option<Columns>,
    pub(super) notes: Vec<String>,
}

/// The columns of an atom's line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Columns {
    /// The first of the three columns of the position, from 0.
    pub(super) position: usize,
    pub(super) count: usize,
}

/// Reads a comment; an error names what was expected.
pub(super) fn parse(line: &[u8]) -> Result<Comment, &'static str> {
    let text = String::from_utf8_lossy(line);
    let pairs = pairs(&text);
    let sides = single(&text, &pairs, "lattice").map_err(|()| BOX_EXPECTED)?;
    let sides = sides.map(sides_of).transpose()?;
    let properties = single(&text, &pairs, "properties").map_err(|()| COLUMNS_EXPECTED)?;
    let columns = properties.map(|value| columns_of(value).ok_or(COLUMNS_EXPECTED)).transpose()?;
    if sides.is_none() && names_a_box(&text) {
        return Err(BOX_EXPECTED);
    }
    if columns.is_none() && text.to_ascii_lowercase().contains("pos:r:3") {
        return Err(COLUMNS_EXPECTED);
    }
    let mut notes = Vec::new();
    let columns_not_read = unread_columns(properties.unwrap_or_default());
    notes.extend(listed("columns that Properties names and that are not read", &columns_not_read));
    let keys_not_read = unread_keys(&pairs, sides.is_some());
    notes.extend(listed("keys of the comment that are not read", &keys_not_read));
    if sides.is_some() && pairs.iter().any(|(key, value)| key.eq_ignore_ascii_case("pbc") && is_open(value)) {
        notes.push("pbc names an axis that is not periodic; the box is periodic along all three".to_owned());
    }
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    if matches!(words.len(), 3 | 6 | 9) && words.iter().all(|word| parse_decimal(word).is_some()) {
        notes.push(
            "the comment has numbers, which are not read as a box; Lattice=\"...\" gives one".to_owned(),
        );
    }
    Ok(Comment { sides, columns, notes })
}

/// The value of a key that is there once. An error if it is there more than once, or not as a pair.
fn single<'t>(text: &str, pairs: &[(&str, &'t str)], name: &str) -> Result<Option<&'t str>, ()> {
    let mut values = pairs.iter().filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|&(_, value)| value);
    let value = values.next();
    // The key is inside another value, or after a quote that is not closed.
    let is_hidden = assignments(text, name) != usize::from(value.is_some());
    if values.next().is_some() || is_hidden { Err(()) } else { Ok(value) }
}

/// How often `name` is followed by `=`, as a word, anywhere in the text.
fn assignments(text: &str, name: &str) -> usize {
    let lower = text.to_ascii_lowercase();
    let is_assigned = |(at, _): &(usize, &str)| {
        let before = lower[..*at].chars().next_back();
        let is_word = !before.is_some_and(|letter| letter.is_alphanumeric() || letter == '_');
        let after = lower[at + name.len()..].trim_start_matches(['"', '\'']);
        is_word && after.trim_start().starts_with('=')
    };
    lower.match_indices(name).filter(is_assigned).count()
}

/// The keys of a comment with their values. Words without a value are skipped; an open quote is an ordinary character.
fn pairs(text: &str) -> Vec<(&str, &str)> {
    let (mut pairs, mut rest) = (Vec::new(), text.trim_start());
    while !rest.is_empty() {
        let (key, after) = key(rest);
        let Some(assigned) = after.trim_start().strip_prefix('=') else {
            rest = after.trim_start();
            continue;
        };
        let (value, after) = value(assigned.trim_start());
        pairs.push((key, value));
        rest = after.trim_start();
    }
    pairs
}

/// A key, and the text after it. A key has at least one character, even if that is a `=`.
fn key(text: &str) -> (&str, &str) {
    if let Some(quoted) = quoted(text) {
        return quoted;
    }
    let end = text.find(|letter: char| letter.is_whitespace() || letter == '=').unwrap_or(text.len());
    let first = text.chars().next().map_or(0, char::len_utf8);
    text.split_at(end.max(first))
}

/// A value without its quotes or brackets, and the text after it.
fn value(text: &str) -> (&str, &str) {
    let end = || text.find(char::is_whitespace).unwrap_or(text.len());
    quoted(text).or_else(|| bracketed(text)).unwrap_or_else(|| text.split_at(end()))
}

/// The text in quotes, and the text after them. A backslash escapes the next character.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|letter| matches!(letter, '"' | '\''))?;
    let mut is_escaped = false;
    let end = text[1..].find(|letter| {
        let ends = letter == quote && !is_escaped;
        is_escaped = letter == '\\' && !is_escaped;
        ends
    })?;
    Some((&text[1..=end], &text[end + 2..]))
}

/// The text in brackets, which may contain other brackets, and the text after them.
fn bracketed(text: &str) -> Option<(&str, &str)> {
    let mut open = 0_usize;
    for (at, letter) in text.char_indices() {
        match letter {
            '[' | '{' | '(' => open += 1,
            ']' | '}' | ')' => open = open.checked_sub(1)?,
            _ => {}
        }
        if open == 0 {
            return (at > 0).then(|| (&text[1..at], &text[at + 1..]));
        }
    }
    None
}

/// A note on names of keys or columns that are not read, if there are any.
fn listed(what: &str, names: &[&str]) -> Option<String> {
    let shown: Vec<String> =
        names.iter().take(NAMES_MAX).map(|name| crate::quoted::quoted(name.as_bytes())).collect();
    let more = names.len().saturating_sub(NAMES_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!names.is_empty()).then(|| format!("{what}: {}{more}", shown.join(", ")))
}

/// The keys that are not read: all but the columns, the box, and beside a box its `pbc`. A key begins with a letter.
fn unread_keys<'t>(pairs: &[(&'t str, &str)], has_box: bool) -> Vec<&'t str> {
    let is_read = |key: &str| {
        let is = |name| key.eq_ignore_ascii_case(name);
        is("lattice") || is("properties") || has_box && is("pbc")
    };
    let keys = pairs.iter().map(|&(key, _)| key);
    keys.filter(|key| key.starts_with(char::is_alphabetic) && !is_read(key)).collect()
}

/// The columns of `Properties` besides the position and the element, which all files have and no force depends on.
fn unread_columns(properties: &str) -> Vec<&str> {
    let names = properties.split(':').step_by(3).map(str::trim);
    let is_read = |name: &&str| ["", "pos", "species"].iter().any(|read| name.eq_ignore_ascii_case(read));
    names.filter(|name| !is_read(name)).collect()
}

/// The sides of a box of nine numbers, or of the three on their diagonal; an error names what was expected.
fn sides_of(value: &str) -> Result<Position, &'static str> {
    let words = value.split(|letter: char| letter.is_whitespace() || "[](){},\"'".contains(letter));
    let numbers = words.filter(|word| !word.is_empty()).map(parse_decimal);
    let numbers = numbers.collect::<Option<Vec<f64>>>().ok_or(BOX_EXPECTED)?;
    let (sides, others) = match numbers[..] {
        [a, b, c] => ([a, b, c], [0.0; 6]),
        [a, xy, xz, yx, b, yz, zx, zy, c] => ([a, b, c], [xy, xz, yx, yz, zx, zy]),
        _ => return Err(BOX_EXPECTED),
    };
    let longest = sides.into_iter().fold(0.0, f64::max);
    match others.into_iter().all(|other| other.abs() <= ROUNDING * longest) {
        true if sides.into_iter().all(|side| side > 0.0 && side <= COORDINATE_MAX) => Ok(sides),
        true => Err(SIDES_EXPECTED),
        false => Err(BOX_EXPECTED),
    }
}

/// The columns that `name:type:count` and so on name.
fn columns_of(value: &str) -> Option<Columns> {
    let words: Vec<&str> = value.trim().split(':').map(str::trim).collect();
    let (mut position, mut count) = (None, 0_usize);
    for column in words.chunks(3) {
        let [name, kind, width] = column else { return None };
        let width = width.parse().ok().filter(|width: &usize| (1..=1000).contains(width))?;
        let is_kind = ["S", "R", "I", "L"].iter().any(|known| kind.eq_ignore_ascii_case(known));
        if name.is_empty() || !is_kind {
            return None;
        }
        if name.eq_ignore_ascii_case("pos") {
            let is_position = kind.eq_ignore_ascii_case("R") && width == 3 && position.is_none();
            position = Some(is_position.then_some(count)?);
        }
        count += width;
    }
    Some(Columns { position: position?, count })
}

/// True if the name of a box is followed by three numbers, with one word between at most.
fn names_a_box(text: &str) -> bool {
    let words = text.split(|letter: char| letter.is_whitespace() || "=:;,[](){}\"'".contains(letter));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let are_numbers = |from: usize| {
        words.get(from..from + 3).is_some_and(|three| three.iter().all(|word| parse_decimal(word).is_some()))
    };
    words.iter().enumerate().any(|(at, word)| {
        let word = word.trim_start_matches('#');
        BOXES.iter().any(|name| word.eq_ignore_ascii_case(name))
            && (are_numbers(at + 1) || are_numbers(at + 2))
    })
}

/// True if a value of `pbc` has an axis that is not periodic.
fn is_open(value: &str) -> bool {
    value
        .split(|letter: char| !letter.is_alphanumeric())
        .any(|word| ["f", "false", "0"].iter().any(|no| word.eq_ignore_ascii_case(no)))
}
