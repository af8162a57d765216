//! Deserializes the values of a file. The faults name the field and the nearest known name.

use std::fmt::{self, Display};

use lb_strategies::Choice;
use serde::Deserializer;
use serde::de::{self, DeserializeSeed, IntoDeserializer, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::forward_to_deserialize_any;

use super::{Node, Value};

/// A fault of a field.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fault {
    /// The path of the field, the last step first.
    path: Vec<String>,
    /// What is wrong, and what was expected.
    pub(crate) what: String,
}

impl Fault {
    fn new(what: String) -> Self {
        Self { path: Vec::new(), what }
    }

    fn under(mut self, step: String) -> Self {
        self.path.push(step);
        self
    }

    /// The path of the field, as in `hosts[0].speed`.
    pub(crate) fn field(&self) -> String {
        let mut field = String::new();
        for step in self.path.iter().rev() {
            if !field.is_empty() && !step.starts_with('[') {
                field.push('.');
            }
            field += step;
        }
        field
    }
}

/// What serde expected, in words of TOML instead of Rust.
fn in_toml(expected: &str) -> String {
    let whole = |most: u64| format!("a whole number from 0 to {most}");
    match expected {
        "a string" => "a text in quotes".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a map" => "a table".to_owned(),
        // A list, or tables with a head in double brackets.
        "a sequence" => "a list or [[tables]]".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        "u8" => whole(u8::MAX.into()),
        "u16" => whole(u16::MAX.into()),
        "u32" => whole(u32::MAX.into()),
        "u64" | "usize" => whole(u64::MAX),
        other => other.to_owned(),
    }
}

impl Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field(), self.what)
    }
}

impl std::error::Error for Fault {}

impl de::Error for Fault {
    fn custom<T: Display>(what: T) -> Self {
        Self::new(what.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        let found = match found {
            Unexpected::Str(text) => format!("{text:?}"),
            Unexpected::Seq => "a list".to_owned(),
            Unexpected::Map => "a table".to_owned(),
            Unexpected::Bool(flag) => flag.to_string(),
            Unexpected::Signed(number) => number.to_string(),
            Unexpected::Unsigned(number) => number.to_string(),
            Unexpected::Float(number) => number.to_string(),
            found => found.to_string(),
        };
        Self::new(format!("{found}, expected {}", in_toml(&expected.to_string())))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::invalid_type(found, expected)
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Self::new(format!("unknown value {}", Choice::new(variant, expected.iter().copied())))
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let choice = Choice::new(field, expected.iter().copied());
        let what = match choice.nearest {
            Some(nearest) => format!("unknown field, did you mean {nearest}?"),
            None => format!("unknown field; known: {}", expected.join(", ")),
        };
        Self::new(what).under(field.to_owned())
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new("it is missing".to_owned()).under(field.to_owned())
    }
}

impl<'de> Deserializer<'de> for &'de Node {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.value {
            Value::Number(text) => match (text.parse::<i64>(), text.parse::<f64>()) {
                (Ok(number), _) => visitor.visit_i64(number),
                (_, Ok(number)) => visitor.visit_f64(number),
                _ => visitor.visit_borrowed_str(text),
            },
            Value::Text(text) | Value::Date(text) => visitor.visit_borrowed_str(text),
            Value::Flag(flag) => visitor.visit_bool(*flag),
            Value::List(list) => visitor.visit_seq(Elements { list, next: 0 }),
            Value::Fields(fields) => visitor.visit_map(Fields { fields: fields.iter(), value: None }),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    /// Only enumerations of names are read.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match &self.value {
            Value::Text(text) => visitor.visit_enum(text.as_str().into_deserializer()),
            value => Err(Fault::new(format!("{}, expected one of {}", value.found(), names.join(", ")))),
        }
    }

    /// Serde would also read a list, with an element for each field.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let is_table = |node: &Node| matches!(node.value, Value::Fields(_));
        match &self.value {
            Value::Fields(_) => self.deserialize_any(visitor),
            Value::List(list) if list.iter().all(is_table) => Err(Fault::new(
                "a list of tables, expected one table, with its name in single brackets".to_owned(),
            )),
            value => Err(Fault::new(format!("{}, expected a table", value.found()))),
        }
    }

    /// A number, or true, is text as it was written, for fields that parse it themselves.
    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.value {
            Value::Number(text) => visitor.visit_borrowed_str(text),
            Value::Flag(flag) => visitor.visit_borrowed_str(if *flag { "true" } else { "false" }),
            _ => self.deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier ignored_any
    }
}

/// Reads the elements of a list.
struct Elements<'de> {
    list: &'de [Node],
    next: usize,
}

impl<'de> SeqAccess<'de> for Elements<'de> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        let Some(node) = self.list.get(self.next) else { return Ok(None) };
        let step = format!("[{}]", self.next);
        self.next += 1;
        seed.deserialize(node).map(Some).map_err(|fault| fault.under(step))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.list.len() - self.next)
    }
}

/// Reads the fields of a table.
struct Fields<'de> {
    fields: std::collections::btree_map::Iter<'de, String, Node>,
    value: Option<(&'de String, &'de Node)>,
}

impl<'de> MapAccess<'de> for Fields<'de> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        let Some(field) = self.fields.next() else { return Ok(None) };
        self.value = Some(field);
        seed.deserialize(field.0.as_str().into_deserializer()).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let (key, node) = self.value.take().expect("a value follows its key");
        seed.deserialize(node).map_err(|fault| fault.under(key.clone()))
    }
}
