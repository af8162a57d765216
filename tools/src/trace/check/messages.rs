//! Every message that was handled was sent before, and where all sends are recorded, there is one.
//!
//! A message is sent after the moment that its send names, and found before its handler ends; between two workers with one
//! clock the first never comes after the second. Clocks of two hosts explain that it does, up to their error.
//!
//! Events come in the order of their ends, so a message is kept only from its send to its handler. A handler whose send
//! comes later waits for it.

use std::collections::BTreeMap;

use caribou::trace::{ChunkId, Event, RUNTIME, RankTrace, Trace, What};

use super::finding::{Findings, Place, Severity};
use super::sound::Clocks;
use crate::trace::analysis::events;

const BACKWARDS: (Severity, &str) = (Severity::Wrong, "handled before it was sent");
const UNSENT: (Severity, &str) = (Severity::Wrong, "handled, but never sent");
const TWICE: (Severity, &str) = (Severity::Wrong, "two messages with one number");

/// Sender, number, receiver.
type Message = (ChunkId, u32, ChunkId);

/// One end of an arrow.
#[derive(Clone, Copy)]
struct Ending<'t> {
    rank: &'t RankTrace,
    worker: u32,
    ns: u64,
}

/// Messages under way.
pub(crate) struct Messages<'t> {
    trace: &'t Trace,
    clocks: &'t Clocks,
    most: usize,
    sent: BTreeMap<Message, Ending<'t>>,
    handled: BTreeMap<Message, Ending<'t>>,
    arrows: u64,
    /// Not compared, for want of memory.
    skipped: u64,
    /// Arrows that run backwards within the error of the clocks, and the furthest.
    early: (u64, u64),
}

impl<'t> Messages<'t> {
    pub(crate) fn new(trace: &'t Trace, clocks: &'t Clocks, most: usize) -> Messages<'t> {
        let (sent, handled) = (BTreeMap::new(), BTreeMap::new());
        Messages { trace, clocks, most, sent, handled, arrows: 0, skipped: 0, early: (0, 0) }
    }

    pub(crate) fn event(&mut self, place: events::Place<'t>, event: &Event, findings: &mut Findings) {
        let events::Place { rank, worker } = place;
        match event.what {
            What::Send { chunk, to, number, .. } if number != 0 => {
                let send = Ending { rank, worker, ns: event.begin_ns };
                self.send((chunk, number, to), send, findings);
            }
            What::Handler { chunk, from, number, .. } => {
                if number == 0 || from == RUNTIME {
                    return;
                }
                // Its slice begins where the last one ended: looking for the message is part of it.
                let handler = Ending { rank, worker, ns: event.end_ns };
                self.handler((from, number, chunk), handler, findings);
            }
            _ => {}
        }
    }

    fn send(&mut self, message: Message, send: Ending<'t>, findings: &mut Findings) {
        if let Some(handler) = self.handled.remove(&message) {
            self.arrow(message, send, handler, findings);
        } else if self.sent.len() >= self.most {
            self.skipped += 1;
        } else if self.sent.insert(message, send).is_some() {
            let what = || format!("{} was sent before with the same number", self.text(message));
            findings.add(TWICE, &send.rank.path, send.place(), what);
        }
    }

    fn handler(&mut self, message: Message, handler: Ending<'t>, findings: &mut Findings) {
        if let Some(send) = self.sent.remove(&message) {
            self.arrow(message, send, handler, findings);
        } else if self.trace.run.arrows != 1 || self.skipped > 0 {
            // Its send need not be recorded.
        } else if self.handled.len() >= self.most {
            self.skipped += 1;
        } else if self.handled.insert(message, handler).is_some() {
            let what = || format!("{} was handled before, and its send is not recorded", self.text(message));
            findings.add(TWICE, &handler.rank.path, handler.place(), what);
        }
    }

    fn arrow(&mut self, message: Message, send: Ending<'t>, handler: Ending<'t>, findings: &mut Findings) {
        self.arrows += 1;
        let early_ns = send.ns.saturating_sub(handler.ns);
        let error_ns = self.clocks.error_ns(send.rank.rank, handler.rank.rank);
        if early_ns > error_ns {
            let what = || {
                format!(
                    "{} is handled {early_ns} ns before rank {} sent it; clocks explain {error_ns} ns",
                    self.text(message),
                    send.rank.rank
                )
            };
            findings.add(BACKWARDS, &handler.rank.path, handler.place(), what);
        } else if early_ns > 0 {
            self.early = (self.early.0 + 1, self.early.1.max(early_ns));
        }
    }

    /// Says what is left over. What was sent last need not be handled: a run may end before.
    pub(crate) fn finish(self, complete: bool, findings: &mut Findings) {
        let path = &self.trace.path;
        let mut note = |kind, what: String| findings.add((Severity::Note, kind), path, Place::Whole, || what);
        if let (early @ 1.., furthest_ns) = self.early {
            let of = self.arrows;
            let what = format!(
                "{early} of {of} messages are handled before they were sent, by at most {furthest_ns} ns: no \
                 more than the error of the clocks"
            );
            note("clock error", what);
        }
        if self.skipped > 0 {
            let what = format!("{} messages were not compared, --messages-max is too low", self.skipped);
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
        if !self.sent.is_empty() {
            let what = format!("{} messages were sent and never handled", self.sent.len());
            note("sent, never handled", what);
        }
        if !complete && !self.handled.is_empty() {
            let what =
                format!("{} messages were handled, their sends are not in the trace", self.handled.len());
            note("sends not in the trace", what);
            return;
        }
        for (message, handler) in &self.handled {
            let what = || format!("{} was handled, but never sent or handled before", self.text(*message));
            findings.add(UNSENT, &handler.rank.path, handler.place(), what);
        }
    }

    fn text(&self, (from, number, to): Message) -> String {
        format!("message {number} of {} to {}", self.trace.chunk_name(from), self.trace.chunk_name(to))
    }
}

impl Ending<'_> {
    fn place(&self) -> Place {
        Place::Time { worker: self.worker, ns: self.ns }
    }
}
