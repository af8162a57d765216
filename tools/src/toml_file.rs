//! Reads files in TOML. A fault is one line: the file, the line, the field, what was expected, and the nearest valid name.
//!
//! The crate `toml` parses a text into values that know their places. [`Document`] keeps them as a tree of [`Node`]s, of
//! which some can be replaced by options (`--set`) before serde reads them. The fault of a replaced field names the option.

mod node;
mod read;

use std::path::Path;

use serde::de::DeserializeOwned;
use toml::de::{DeTable, DeValue};

use self::node::Lines;
pub(crate) use self::node::{Node, Place, Value};
pub(crate) use self::read::Fault;
use crate::{Error, input};

/// A file in TOML.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    /// The name of the file, as in error lines.
    name: String,
    root: Node,
}

impl Document {
    /// Reads a file.
    ///
    /// # Errors
    /// The file cannot be read, or is not TOML; with the line.
    pub(crate) fn open(file: &Path) -> Result<Self, Error> {
        let name = file.display();
        let text = input::read_text(file)
            .map_err(|error| Error::File(format!("{name}: cannot be read: {error}")))?;
        Self::parse(&name.to_string(), &text)
    }

    /// Parses the text of the file `name`.
    ///
    /// # Errors
    /// The text is not TOML; with the line.
    pub(crate) fn parse(name: &str, text: &str) -> Result<Self, Error> {
        let lines = Lines::of(text);
        let table = DeTable::parse(text).map_err(|error| {
            let line = error.span().map_or(1, |span| lines.at(span.start));
            let what = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
            let key =
                error.span().and_then(|span| text.get(span)).map(str::trim).filter(|key| !key.is_empty());
            Error::File(one_line(&match (what.as_str(), key) {
                ("duplicate key", Some(key)) => format!("{name}:{line}: {key}: given twice, expected once"),
                // What the parser calls a literal string is a value without quotes, or none.
                (what, _) if what.starts_with("string values must be quoted") => {
                    let key = text.lines().nth(line - 1).and_then(|line| line.split_once('='));
                    let field = key.map_or_else(String::new, |(key, _)| format!("{}: ", key.trim()));
                    format!("{name}:{line}: {field}expected a value: a number, a text in quotes, or a list")
                }
                _ => format!("{name}:{line}: {what}"),
            }))
        })?;
        let root = Node { place: Place::Line(1), value: Value::of_table(&lines, table.get_ref()) };
        Ok(Self { name: name.to_owned(), root })
    }

    /// Deserializes the whole file.
    ///
    /// # Errors
    /// The first fault.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, Error> {
        T::deserialize(&self.root).map_err(|fault| self.error(&fault))
    }

    /// The line about a fault.
    pub(crate) fn error(&self, fault: &Fault) -> Error {
        self.wrong(&fault.field(), &fault.what)
    }

    /// The line about a fault of the field with this path, as in `hosts[0].speed`.
    pub(crate) fn wrong(&self, field: &str, what: &str) -> Error {
        Error::File(one_line(&format!("{}: {what}", self.place(field))))
    }

    /// The file, the line and the field, or the option that set the field.
    pub(crate) fn place(&self, field: &str) -> String {
        let Ok(keys) = node::keys(field) else { return format!("{}: {field}", self.name) };
        let (place, whole) = self.root.place_of(&keys);
        let name = &self.name;
        match place {
            Place::Option(option) if field.is_empty() => option.to_string(),
            Place::Option(option) => format!("{option}: {field}"),
            Place::Line(line) if whole && field.is_empty() => format!("{name}:{line}"),
            // A field that has its default is in no line.
            Place::Line(_) if keys.len() <= 1 && !whole => format!("{name}: {field}"),
            Place::Line(line) => format!("{name}:{line}: {field}"),
        }
    }

    /// Sets the field with this path; an element of a list must exist.
    ///
    /// # Errors
    /// The path is not one, or names no element of a list.
    pub(crate) fn set(&mut self, field: &str, to: Node) -> Result<(), String> {
        self.root.set(&node::keys(field)?, to)
    }

    /// Sets a field of a table of the first level. Its name may have dots, as one with quotes in TOML.
    ///
    /// # Errors
    /// There is something else than a table.
    pub(crate) fn set_in(&mut self, table: &str, name: &str, to: Node) -> Result<(), String> {
        self.root.set(&[node::Key::Field(table.to_owned()), node::Key::Field(name.to_owned())], to)
    }

    /// A field of the first level.
    pub(crate) fn field(&self, name: &str) -> Option<&Node> {
        match &self.root.value {
            Value::Fields(fields) => fields.get(name),
            _ => None,
        }
    }

    /// The line about a fault at this place.
    pub(crate) fn wrong_at(&self, place: &Place, field: &str, what: &str) -> Error {
        Error::File(one_line(&match place {
            Place::Line(line) => format!("{}:{line}: {field}: {what}", self.name),
            Place::Option(option) => format!("{option}: {field}: {what}"),
        }))
    }

    /// The name of the file.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

/// The text with escapes for line ends and other control characters, which keys and texts of TOML may have.
pub(crate) fn one_line(text: &str) -> String {
    let plain =
        |letter: char| if letter.is_control() { letter.escape_default().to_string() } else { letter.into() };
    text.chars().map(plain).collect()
}

/// The value in the text of an option: what TOML reads, or else the text itself, so that `refine` needs no quotes.
pub(crate) fn option_value(text: &str, place: &Place) -> Node {
    match DeValue::parse(text) {
        Ok(value) => Node::of(&Lines::of(text), place.clone(), value.get_ref()).placed(place),
        Err(_) => Node { place: place.clone(), value: Value::Text(text.to_owned()) },
    }
}

#[cfg(test)]
mod tests;
