//! The values of a file in TOML, with their places.

use std::collections::BTreeMap;
use std::sync::Arc;

use toml::de::{DeInteger, DeTable, DeValue};

/// Where a value was written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Place {
    /// In this line of the file, counted from 1.
    Line(usize),
    /// In an option, which is written out.
    Option(Arc<str>),
}

impl Place {
    /// The line; none for an option.
    pub(crate) fn line(&self) -> Option<usize> {
        match self {
            Self::Line(line) => Some(*line),
            Self::Option(_) => None,
        }
    }
}

/// A value with its place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) place: Place,
    pub(crate) value: Value,
}

/// A value of TOML. Numbers are kept as they were written, so that none is rounded.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Number(String),
    Text(String),
    Flag(bool),
    /// A date or time.
    Date(String),
    List(Vec<Node>),
    Fields(BTreeMap<String, Node>),
}

/// A step of the path to a value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Key {
    Field(String),
    /// The number of an element of a list, counted from 0.
    Element(usize),
}

/// The lines of a text.
pub(super) struct Lines {
    /// The positions after the ends of lines, ascending.
    begins: Vec<usize>,
}

impl Lines {
    pub(super) fn of(text: &str) -> Self {
        Self { begins: text.match_indices('\n').map(|(end, _)| end + 1).collect() }
    }

    /// The line of a position in the text, counted from 1.
    pub(super) fn at(&self, byte: usize) -> usize {
        1 + self.begins.partition_point(|&begin| begin <= byte)
    }
}

/// An integer as decimal text; hexadecimal, octal and binary ones are converted. Larger ones stay as they were written.
fn integer(value: &DeInteger<'_>) -> String {
    match i128::from_str_radix(value.as_str(), value.radix()) {
        Ok(number) if value.radix() != 10 => number.to_string(),
        _ => value.to_string(),
    }
}

/// Largest number of steps of a path, because each is a call.
const STEPS_MOST: usize = 32;

/// The path in a text such as `hosts[0].speed`.
pub(super) fn keys(field: &str) -> Result<Vec<Key>, String> {
    let mut keys = Vec::new();
    if field.split('.').count() > STEPS_MOST {
        return Err(format!("a field with more than {STEPS_MOST} steps, expected one as in program.chunks"));
    }
    for part in field.split('.').filter(|_| !field.is_empty()) {
        let (name, elements) = part.split_once('[').map_or((part, None), |(name, rest)| (name, Some(rest)));
        if name.trim().is_empty() {
            return Err(format!("{field:?} is not a field, expected a name as in program.chunks"));
        }
        keys.push(Key::Field(name.trim().to_owned()));
        if let Some(rest) = elements {
            let number = rest.strip_suffix(']').and_then(|number| number.parse().ok());
            let wrong =
                || format!("{field:?} is not a field, expected a number in brackets as in hosts[0].speed");
            keys.push(Key::Element(number.ok_or_else(wrong)?));
        }
    }
    Ok(keys)
}

impl Value {
    /// A table of a text with these lines.
    pub(super) fn of_table(lines: &Lines, table: &DeTable<'_>) -> Self {
        let field = |(key, value): (&toml::Spanned<_>, &toml::Spanned<DeValue<'_>>)| {
            let key: &toml::Spanned<std::borrow::Cow<'_, str>> = key;
            let place = Place::Line(lines.at(key.span().start));
            (key.get_ref().to_string(), Node::of(lines, place, value.get_ref()))
        };
        Self::Fields(table.iter().map(field).collect())
    }

    /// The name of this kind of value, for error lines.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Number(_) => "a number",
            Self::Text(_) => "a text",
            Self::Flag(_) => "true or false",
            Self::Date(_) => "a date",
            Self::List(_) => "a list",
            Self::Fields(_) => "a table",
        }
    }

    /// The value as an error line shows it: a text in quotes, and the kind of what is long.
    pub(crate) fn found(&self) -> String {
        match self {
            Self::Text(text) => format!("{text:?}"),
            Self::Number(_) | Self::Flag(_) | Self::Date(_) => self.words(),
            Self::List(_) | Self::Fields(_) => self.kind().to_owned(),
        }
    }

    /// The value as text, without quotes. A list has brackets.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Number(text) | Self::Text(text) | Self::Date(text) => text.clone(),
            Self::Flag(flag) => flag.to_string(),
            Self::List(list) => {
                let words: Vec<String> = list.iter().map(|node| node.value.words()).collect();
                format!("[{}]", words.join(", "))
            }
            Self::Fields(fields) => {
                let words = fields.iter().map(|(key, node)| format!("{key} = {}", node.value.words()));
                format!("{{ {} }}", words.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

impl Node {
    /// A value of a text with these lines, at `place`.
    pub(super) fn of(lines: &Lines, place: Place, value: &DeValue<'_>) -> Self {
        let value = match value {
            DeValue::String(value) => Value::Text(value.to_string()),
            DeValue::Integer(value) => Value::Number(integer(value)),
            DeValue::Float(value) => Value::Number(value.to_string()),
            DeValue::Boolean(value) => Value::Flag(*value),
            DeValue::Datetime(value) => Value::Date(value.to_string()),
            DeValue::Array(list) => {
                let element = |value: &toml::Spanned<DeValue<'_>>| {
                    let place = Place::Line(lines.at(value.span().start));
                    Self::of(lines, place, value.get_ref())
                };
                Value::List(list.iter().map(element).collect())
            }
            DeValue::Table(table) => Value::of_table(lines, table),
        };
        Self { place, value }
    }

    /// The same value, all of which was written at `place`.
    pub(super) fn placed(self, place: &Place) -> Self {
        let value = match self.value {
            Value::List(list) => Value::List(list.into_iter().map(|node| node.placed(place)).collect()),
            Value::Fields(fields) => {
                Value::Fields(fields.into_iter().map(|(key, node)| (key, node.placed(place))).collect())
            }
            value => value,
        };
        Self { place: place.clone(), value }
    }

    /// The place of the value with this path, or of the last value on the path, and whether the whole path exists.
    pub(super) fn place_of(&self, keys: &[Key]) -> (&Place, bool) {
        let Some((first, rest)) = keys.split_first() else { return (&self.place, true) };
        let next = match (&self.value, first) {
            (Value::Fields(fields), Key::Field(name)) => fields.get(name),
            (Value::List(list), Key::Element(number)) => list.get(*number),
            _ => None,
        };
        next.map_or((&self.place, false), |node| node.place_of(rest))
    }

    /// Sets the value with this path, and creates the tables on the way.
    pub(super) fn set(&mut self, keys: &[Key], to: Self) -> Result<(), String> {
        let Some((first, rest)) = keys.split_first() else {
            *self = to;
            return Ok(());
        };
        match (&mut self.value, first) {
            (Value::Fields(fields), Key::Field(name)) => {
                let missing = || Self { place: to.place.clone(), value: Value::Fields(BTreeMap::new()) };
                fields.entry(name.clone()).or_insert_with(missing).set(rest, to)
            }
            (Value::List(list), Key::Element(number)) => {
                let elements = list.len();
                let wrong = || format!("[{number}]: there are {elements}, counted from [0]");
                list.get_mut(*number).ok_or_else(wrong)?.set(rest, to)
            }
            // `hosts.speed` means the only element.
            (Value::List(list), Key::Field(_)) if list.len() == 1 => list[0].set(keys, to),
            (Value::List(list), Key::Field(name)) => Err(format!(
                "{name}: there are {} tables, expected the number of one as in [0].{name}",
                list.len()
            )),
            (value, Key::Field(name)) => Err(format!("{name}: expected no field of {}", value.kind())),
            (value, Key::Element(number)) => {
                Err(format!("[{number}]: expected no element of {}", value.kind()))
            }
        }
    }
}
