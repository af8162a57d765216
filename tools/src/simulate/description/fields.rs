//! Reads fields of a description: times and sizes with units, rates, and numbers in ranges. A fault says what was found
//! and what was expected. Options are read by the same parsers.

use std::fmt;
use std::path::PathBuf;

use lb_strategies::Period;
use lb_strategies::pool::Nanos;
use presentation::count_parser;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};

use super::super::cluster::RANKS_MOST;
use super::super::{overheads, values};
use super::{Decision, HostName, Speeds};

/// The elements of a field: its text, or each text of its list. Numbers are text as they were written.
struct Words;

/// The text of a field, or a list of texts.
enum Written {
    One(String),
    List(Vec<String>),
}

impl<'de> Visitor<'de> for Words {
    type Value = Written;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Written, E> {
        Ok(Written::One(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Written, A::Error> {
        let mut texts = Vec::new();
        while let Some(Word(text)) = list.next_element()? {
            texts.push(text);
        }
        Ok(Written::List(texts))
    }
}

/// The text of an element.
struct Word(String);

impl<'de> serde::Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match deserializer.deserialize_str(Words)? {
            Written::One(text) => Ok(Self(text)),
            Written::List(_) => Err(D::Error::custom("a list, expected a value")),
        }
    }
}

/// What was found and what was expected.
fn fault(text: &str, expected: &str) -> String {
    if !expected.starts_with("expected") {
        return expected.to_owned();
    }
    match text.parse::<f64>() {
        Ok(_) => format!("{text}, {expected}"),
        Err(_) => format!("{text:?}, {expected}"),
    }
}

/// The part of a line that says what was expected, because the value is before it already.
fn only_expected(line: &str) -> String {
    line.find("expected").map_or(line, |begin| &line[begin..]).to_owned()
}

/// Reads one value.
fn one<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, D::Error> {
    match deserializer.deserialize_str(Words)? {
        Written::One(text) => parse(&text).map(Some).map_err(|what| D::Error::custom(fault(&text, &what))),
        Written::List(_) => Err(D::Error::custom("a list, expected one value (a [sweep] takes lists)")),
    }
}

/// Reads a value, or a list of values.
fn each<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<Vec<T>>, D::Error> {
    let texts = match deserializer.deserialize_str(Words)? {
        Written::One(text) => vec![text],
        Written::List(list) if list.is_empty() => {
            return Err(D::Error::custom("an empty list, expected a value at least"));
        }
        Written::List(list) => list,
    };
    let read = |text: &String| parse(text).map_err(|what| D::Error::custom(fault(text, &what)));
    texts.iter().map(read).collect::<Result<_, _>>().map(Some)
}

/// Declares functions that read an optional value by a parser.
macro_rules! fields {
    ($($(#[$about:meta])* $name:ident: $type:ty = $parse:expr;)*) => {$(
        $(#[$about])*
        pub(super) fn $name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<$type>, D::Error> {
            one(deserializer, $parse)
        }
    )*};
}

fields! {
    /// A time with its unit, ns.
    time: Nanos = values::time;
    /// A time above 0, ns.
    step: Nanos = |text| match values::time(text)? {
        0 => Err("expected a time above 0s".to_owned()),
        step => Ok(step),
    };
    /// A time slice, ns.
    slice: Nanos = overheads::slice;
    /// A size, bytes.
    bytes: u64 = values::bytes;
    /// Bytes per second.
    rate: f64 = values::rate;
    /// A whole number, such as a seed.
    seed: u64 = |text| count_parser(0..=u64::MAX)(text);
    /// Iterations or steps.
    count: u64 = values::count;
    /// Ranks, hosts or the like.
    ranks: u32 = |text| count_parser(1..=RANKS_MOST)(text);
    /// Workers or vCPUs of a host.
    workers: u32 = |text| count_parser(1..=1024_u32)(text);
    /// The number of a vCPU.
    vcpu: u32 = |text| count_parser(0..=1023_u32)(text);
    /// Chunks of an array.
    chunks: u32 = |text| count_parser(1..=super::array::CHUNKS_MOST)(text);
    /// The K of a hot spot, or a radius.
    small: u32 = |text| count_parser(0..=1_000_000_u32)(text);
    /// A part from 0 to 1.
    part: f64 = overheads::part;
    /// The part of a vCPU that a process wants.
    duty: f64 = |text| super::super::neighbour::duty(text).map_err(|line: String| only_expected(&line));
    /// Units of work.
    work: f64 = values::work;
    /// A factor of loads.
    scale: f64 = values::scale;
    /// When chunks are balanced.
    period: Period = |text| text.parse().map_err(|line: String| only_expected(&line));
    /// The time of a decision.
    decision: Decision = overheads::decision;
}

/// Strategies: a text as `--compare` takes it, or a list of specifications.
pub(super) fn policies<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let specs = each(deserializer, |text| match text.trim() {
        "" => Err("an empty name, expected a strategy such as refine".to_owned()),
        text => Ok(text.to_owned()),
    })?;
    Ok(specs.map(|specs| specs.join("; ")))
}

/// A speed, or a list of speeds.
pub(super) fn speeds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Speeds>, D::Error> {
    match deserializer.deserialize_str(Words)? {
        Written::One(text) => values::speed(&text)
            .map(|speed| Some(Speeds::Same(speed)))
            .map_err(|what| D::Error::custom(fault(&text, &what))),
        Written::List(list) => {
            let read = |text: &String| {
                values::speed_or_0(text).map_err(|what| D::Error::custom(fault(text, &only_expected(&what))))
            };
            list.iter().map(read).collect::<Result<_, _>>().map(|speeds| Some(Speeds::Each(speeds)))
        }
    }
}

/// Hosts: a number, the name of a group, or a list of these.
pub(super) fn hosts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<HostName>>, D::Error> {
    each(deserializer, |text| {
        let name = || HostName::Group(text.to_owned());
        Ok(text.parse().map_or_else(|_| name(), HostName::Number))
    })
}

/// The name of a file.
fn path(text: &str) -> Result<PathBuf, String> {
    if text.is_empty() { Err("expected the name of a file".to_owned()) } else { Ok(PathBuf::from(text)) }
}

/// A file.
pub(super) fn file<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PathBuf>, D::Error> {
    one(deserializer, path)
}

/// A file, or a list of files.
pub(super) fn paths<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<PathBuf>>, D::Error> {
    each(deserializer, path)
}
