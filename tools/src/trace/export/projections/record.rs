//! Defines the records of a Projections log (VERSION 7.0), each a line of numbers. Times are us since the start of the
//! export. The module [`log`](super::log) is responsible for the order of records.

use std::io::{self, Write};

/// Message type of all messages: `ForArrayElt`. Only one old view of the viewer uses the type.
const MESSAGE: u32 = 21;
/// Largest number that the viewer reads without truncation.
pub(super) const NUMBER_MAX: u32 = i32::MAX as u32;

/// The message that an entry handles. The sending row numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Source {
    pub(super) row: u32,
    pub(super) event: u32,
    pub(super) bytes: u64,
}

/// One line of a log.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Record {
    /// A message leaves this row.
    Creation {
        entry: u32,
        event: u32,
        row: u32,
        bytes: u64,
    },
    BeginEntry {
        entry: u32,
        source: Source,
        ids: [i32; 4],
        cpu_us: u64,
    },
    EndEntry {
        entry: u32,
        source: Source,
        cpu_us: u64,
    },
    BeginComputation,
    EndComputation,
    UserEvent {
        name: u32,
        event: u32,
        row: u32,
    },
    BeginIdle {
        row: u32,
    },
    EndIdle {
        row: u32,
    },
    BeginSpan {
        name: u32,
        event: u32,
        row: u32,
        depth: u32,
    },
    EndSpan {
        name: u32,
        event: u32,
        row: u32,
        depth: u32,
    },
    Note {
        text: String,
    },
    BracketedNote {
        end_us: u64,
        name: u32,
        text: String,
    },
    Statistic {
        phase: i64,
        value: f64,
        row: u32,
        name: u32,
    },
}

impl Record {
    /// Appends the line of this record with the time `at_us`.
    pub(super) fn write(&self, at_us: u64, out: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Record::Creation { entry, event, row, bytes } => {
                writeln!(out, "1 {MESSAGE} {entry} {at_us} {event} {row} {} 0", length(*bytes))
            }
            Record::BeginEntry { entry, source: Source { row, event, bytes }, ids: [i, j, k, l], cpu_us } => {
                let length = length(*bytes);
                writeln!(
                    out,
                    "2 {MESSAGE} {entry} {at_us} {event} {row} {length} -1 {i} {j} {k} {l} {cpu_us}"
                )
            }
            Record::EndEntry { entry, source: Source { row, event, bytes }, cpu_us } => {
                writeln!(out, "3 {MESSAGE} {entry} {at_us} {event} {row} {} {cpu_us}", length(*bytes))
            }
            Record::BeginComputation => writeln!(out, "6 {at_us}"),
            Record::EndComputation => writeln!(out, "7 {at_us}"),
            Record::UserEvent { name, event, row } => writeln!(out, "13 {name} {at_us} {event} {row}"),
            Record::BeginIdle { row } => writeln!(out, "14 {at_us} {row}"),
            Record::EndIdle { row } => writeln!(out, "15 {at_us} {row}"),
            Record::BeginSpan { name, event, row, depth } => {
                writeln!(out, "98 {name} {at_us} {event} {row} {depth}")
            }
            Record::EndSpan { name, event, row, depth } => {
                writeln!(out, "99 {name} {at_us} {event} {row} {depth}")
            }
            Record::Note { text } => writeln!(out, "28 {at_us} {} {text}", text.len()),
            Record::BracketedNote { end_us, name, text } => {
                writeln!(out, "29 {at_us} {end_us} {name} {} {text}", text.len())
            }
            // The viewer reads neither exponents nor infinite values nor NaN.
            Record::Statistic { phase, value, row, name } if value.is_finite() && value.abs() < 1e15 => {
                writeln!(out, "32 {at_us} {phase} {value:.6} {row} {name}")
            }
            Record::Statistic { .. } => Ok(()),
        }
    }
}

fn length(bytes: u64) -> u32 {
    bytes.min(u64::from(NUMBER_MAX)) as u32
}

/// Converts a text so that all readers of these files read the same: ASCII, one line, no double blanks, not empty.
pub(super) fn plain(text: &str) -> String {
    let ascii = text.chars().map(|letter| match letter {
        letter if letter.is_whitespace() || letter.is_control() => ' ',
        letter if letter.is_ascii() => letter,
        _ => '?',
    });
    let words =
        ascii.collect::<String>().split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    if words.is_empty() { "unnamed".into() } else { words }
}

/// Like [`plain`], for use between quotes. If parentheses are not balanced, they become brackets.
pub(in crate::trace::export) fn quoted(text: &str) -> String {
    let text = plain(&text.replace('"', "'"));
    let mut open = 0i32;
    let in_order = text.chars().all(|letter| {
        open += i32::from(letter == '(') - i32::from(letter == ')');
        open >= 0
    });
    if in_order && open == 0 { text } else { text.replace('(', "[").replace(')', "]") }
}
