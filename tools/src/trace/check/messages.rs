//! Checks that no message was handled before its send. If all sends are recorded, each handled message must have one.
//!
//! A message leaves the sender after the begin of its send, and the receiver finds it before the end of its handler. So
//! on one clock the send never begins after the end of the handler. On two hosts it may, within the error of their
//! clocks.

use std::path::Path;

use caribou::trace::{ChunkId, Event, What};
use rustc_hash::FxHashSet;
use trace_reader::Trace;

use super::finding::{FindingLocation, Findings, Severity};
use super::sound::Clocks;
use crate::trace::analysis::events;
use crate::trace::analysis::messages::{MatchResult, Matcher, Message, Name, Received, Sent};
use crate::trace::page::plural;

const BACKWARDS: (Severity, &str) = (Severity::Wrong, "handled before it was sent");
const UNSENT: (Severity, &str) = (Severity::Wrong, "handled, but never sent");
const ASTRAY: (Severity, &str) = (Severity::Wrong, "handled by another chunk");
const TWICE: (Severity, &str) = (Severity::Wrong, "two messages with one number");
/// If a chunk is removed and inserted again under its index, its message numbers restart.
const REUSED: (Severity, &str) = (Severity::Note, "sent again under a number");

/// Messages in flight.
pub(crate) struct Messages<'t> {
    trace: &'t Trace,
    clocks: &'t Clocks,
    matcher: Matcher<Sent, Received>,
    /// Names that two messages in flight shared, so that they cannot be distinguished.
    reused: FxHashSet<Name>,
    arrows: u64,
    /// Number of messages handled before they were sent, but within the error of clocks; and the largest difference.
    early: (u64, u64),
}

impl<'t> Messages<'t> {
    /// Keeps at most `most` sends and `most` handlers.
    pub(crate) fn new(trace: &'t Trace, clocks: &'t Clocks, most: usize) -> Messages<'t> {
        // If not all sends are recorded, a handler without its send need not be kept.
        let matcher = Matcher::new(most, if trace.run.arrows == 1 { most } else { 0 });
        Messages { trace, clocks, matcher, reused: FxHashSet::default(), arrows: 0, early: (0, 0) }
    }

    pub(crate) fn event(&mut self, place: events::WorkerRef<'t>, event: &Event, findings: &mut Findings) {
        match self.matcher.see(place, event) {
            MatchResult::Matched(message) => self.arrow(&message, findings),
            MatchResult::Duplicate => self.twice(place, event, findings),
            MatchResult::Pending | MatchResult::Unnamed => {}
        }
    }

    fn twice(
        &mut self,
        events::WorkerRef { rank, worker }: events::WorkerRef<'t>,
        event: &Event,
        findings: &mut Findings,
    ) {
        let mut found = |kind, ns, what: String| {
            findings.add(kind, &rank.path, FindingLocation::Time { worker, ns }, || what);
        };
        match event.what {
            What::Send { chunk, number, to, .. } => {
                let text = self.text((chunk, number), to);
                let what =
                    format!("{text}, while another is under way: was its sender removed and inserted again?");
                found(REUSED, event.begin_ns, what);
                self.reused.insert((chunk, number));
            }
            What::Handler { chunk, from, number, .. } if !self.reused.contains(&(from, number)) => {
                let text = self.text((from, number), chunk);
                found(
                    TWICE,
                    event.end_ns,
                    format!("{text} was handled before, and its send is not recorded"),
                );
            }
            _ => {}
        }
    }

    fn arrow(&mut self, message: &Message, findings: &mut Findings) {
        let Message { sent, begun } = message;
        self.arrows += 1;
        let text = || self.text((sent.from, sent.number), sent.to);
        if sent.to != begun.by && !self.reused.contains(&(sent.from, sent.number)) {
            let what = || format!("{} is handled by {}", text(), self.trace.chunk_name(begun.by));
            findings.add(ASTRAY, self.file(begun), place(begun), what);
        }
        let early_ns = message.early_ns();
        let error_ns = self.clocks.error_ns(sent.worker.rank, begun.worker.rank);
        if early_ns > error_ns {
            let what = || {
                format!(
                    "{} is handled {early_ns} ns before rank {} sent it; clocks explain {error_ns} ns",
                    text(),
                    sent.worker.rank
                )
            };
            findings.add(BACKWARDS, self.file(begun), place(begun), what);
        } else if early_ns > 0 {
            self.early = (self.early.0 + 1, self.early.1.max(early_ns));
        }
    }

    /// Reports the unmatched messages. The last messages need not be handled, because a run may end first.
    pub(crate) fn finish(self, complete: bool, findings: &mut Findings) {
        let path = &self.trace.path;
        let mut note =
            |kind, what: String| findings.add((Severity::Note, kind), path, FindingLocation::Whole, || what);
        if let (early @ 1.., furthest_ns) = self.early {
            let of = self.arrows;
            let what = format!(
                "{early} of {of} messages are handled before they were sent, by at most {furthest_ns} ns: no \
                 more than the error of the clocks"
            );
            note("clock error", what);
        }
        let (sends, handlers) = self.matcher.evicted();
        // A message of which both halves were dropped counts once.
        let given_up = sends.max(handlers);
        if given_up > 0 {
            let what = format!("{} not compared, --messages-max is too low", plural(given_up, "message"));
            note("messages not compared", what);
            return;
        }
        if self.trace.run.arrows != 1 {
            note(
                "arrows",
                "not every send is recorded, so those that are missing were not looked for".into(),
            );
            return;
        }
        let unhandled = self.matcher.unhandled();
        if unhandled > 0 {
            note("sent, never handled", format!("{} sent and never handled", plural(unhandled, "message")));
        }
        let reused = &self.reused;
        let mut unsent: Vec<(&Name, &Received)> =
            self.matcher.unsent().filter(|(name, _)| !reused.contains(name)).collect();
        unsent.sort_unstable_by_key(|(name, _)| **name);
        if !complete && !unsent.is_empty() {
            let what =
                format!("{} handled whose sends are not in the trace", plural(unsent.len(), "message"));
            note("sends not in the trace", what);
            return;
        }
        for (&name, handler) in unsent {
            let what =
                || format!("{} was handled, but never sent or handled before", self.text(name, handler.by));
            findings.add(UNSENT, self.file(handler), place(handler), what);
        }
    }

    fn text(&self, (from, number): Name, to: ChunkId) -> String {
        format!("message {number} of {} to {}", self.trace.chunk_name(from), self.trace.chunk_name(to))
    }

    fn file(&self, handler: &Received) -> &Path {
        let rank = self.trace.ranks.iter().find(|rank| rank.rank == handler.worker.rank);
        rank.map_or(&self.trace.path, |rank| &rank.path)
    }
}

/// End of a handler. Its begin is where the last handler ended, because looking for the message is part of it.
fn place(handler: &Received) -> FindingLocation {
    FindingLocation::Time { worker: handler.worker.worker, ns: handler.end_ns }
}
