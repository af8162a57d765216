//! Implements `caribou trace check`: reads every byte of a trace and reports faults with their places, without repair.
//!
//! 1. Files: magic lines, headers, checksums, the index, the format of records, the order of events.
//! 2. Content: messages, locations of chunks, totals, syncs and steps, which several parts of the trace record.
//!
//! Part 2 reads the events of all workers in order of time. Its memory is a block per worker, some words per chunk, and
//! the messages in flight.

mod chunk_locations;
mod finding;
mod messages;
mod sound;
mod steps;
mod totals;

use std::io::{self, Write};

use presentation::count_parser;
use serde_json::{Value, json};
use trace_reader::Trace;

use super::open::Input;
use super::page::{bytes, plural};
use crate::Error;
use finding::{Finding, Findings, Severity};

/// Findings of one kind that are printed.
const EXAMPLES: usize = 5;

/// Options of the command.
#[derive(clap::Args)]
#[command(after_help = "Exit code 0: the trace is sound; 1: it is not; 2: it cannot be read at all.")]
pub(crate) struct Options {
    #[command(flatten)]
    input: Input,
    /// One JSON object
    #[arg(long)]
    json: bool,
    /// Findings of each kind to list one by one
    #[arg(long, default_value_t = EXAMPLES, value_name = "N", value_parser = count_parser(0..=usize::MAX))]
    examples: usize,
    /// Messages under way to keep in memory, about 100 bytes each; further messages are not compared
    #[arg(long, default_value_t = 4_000_000, value_name = "N", value_parser = count_parser(1..=usize::MAX))]
    messages_max: usize,
}

pub(crate) fn run(options: &Options, out: &mut dyn Write) -> Result<(), Error> {
    let trace = Trace::open(&options.input.path)?;
    let mut findings = Findings::new(options.examples.max(1));
    sound::look(&trace, options.messages_max, &mut findings);
    let told = tell(&trace, &findings, options.json, out);
    match findings.count(Severity::Wrong) {
        0 => Ok(told?),
        // Also if the output is closed.
        wrong => Err(Error::Unsound { trace: options.input.path.clone(), wrong }),
    }
}

fn tell(trace: &Trace, findings: &Findings, json: bool, out: &mut dyn Write) -> io::Result<()> {
    let verdict = verdict(trace, findings);
    if json {
        serde_json::to_writer(&mut *out, &as_json(trace, findings, &verdict))?;
    } else {
        findings.lines().iter().try_for_each(|line| writeln!(out, "{line}"))?;
        write!(out, "{verdict}")?;
    }
    writeln!(out)
}

/// The findings in a trace, one line each.
pub(crate) fn lines(trace: &Trace, messages_max: usize) -> Vec<String> {
    let mut findings = Findings::new(EXAMPLES);
    sound::look(trace, messages_max, &mut findings);
    findings.lines()
}

fn verdict(trace: &Trace, findings: &Findings) -> String {
    let size = trace.ranks.iter().map(|rank| rank.bytes()).fold(0, u64::saturating_add);
    let read = format!("{} of {}, {} events", bytes(size), plural(trace.ranks.len(), "file"), trace.events());
    let notes = match findings.count(Severity::Note) {
        0 => String::new(),
        1 => ", 1 note".into(),
        notes => format!(", {notes} notes"),
    };
    match findings.count(Severity::Wrong) {
        0 => format!("sound: {read}{notes}"),
        wrong => format!("not sound: {wrong} wrong in {read}{notes}"),
    }
}

fn as_json(trace: &Trace, findings: &Findings, verdict: &str) -> Value {
    let one = |finding: &Finding| {
        json!({
            "severity": finding.severity.name(),
            "kind": finding.kind,
            "file": finding.file.to_string_lossy(),
            "place": finding.place.to_string(),
            "what": finding.what,
        })
    };
    let kinds = findings
        .kinds()
        .map(|(kind, severity, count)| json!({ "kind": kind, "severity": severity.name(), "count": count }));
    json!({
        "schema": "caribou.trace.check/1",
        "run_id": trace.run.run_id,
        "sound": findings.count(Severity::Wrong) == 0,
        "verdict": verdict,
        "files": trace.ranks.len(),
        "events": trace.events(),
        "kinds": kinds.collect::<Vec<_>>(),
        "findings": findings.told().map(one).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests;
