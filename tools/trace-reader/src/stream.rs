//! The events of one worker, a block at a time, checked before they are returned.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use caribou::trace::block::Header;
use caribou::trace::encoding::Decoder;
use caribou::trace::{Event, NameId, What};

use super::Problem;
use super::blocks::read_block;

/// Events of one worker, block by block or one by one.
#[derive(Debug)]
pub struct Stream {
    path: PathBuf,
    blocks: std::vec::IntoIter<(u64, Header)>,
    names: Arc<[NameId]>,
    stored: Vec<u8>,
    raw: Vec<u8>,
    events: Vec<Event>,
    next: usize,
    last: Last,
    problems: Vec<Problem>,
}

impl Stream {
    pub(super) fn new(path: PathBuf, blocks: Vec<(u64, Header)>, names: Arc<[NameId]>) -> Stream {
        Stream {
            path,
            blocks: blocks.into_iter(),
            names,
            stored: Vec::new(),
            raw: Vec::new(),
            events: Vec::new(),
            next: 0,
            last: Last::default(),
            problems: Vec::new(),
        }
    }

    /// The next block of events, or its fault; the block after it can be read all the same.
    pub fn next_block(&mut self) -> Option<Result<&[Event], Problem>> {
        let (at, header) = self.blocks.next()?;
        self.next = 0;
        self.events.clear();
        match self.read(at, &header) {
            Ok(()) => Some(Ok(&self.events)),
            Err(what) => {
                self.events.clear();
                Some(Err(Problem { file: self.path.clone(), at, what }))
            }
        }
    }

    /// Events that there is memory for.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.events.capacity()
    }

    /// The problems so far, met by the iterator.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    fn read(&mut self, at: u64, header: &Header) -> Result<(), String> {
        // Not kept open: a merge of the workers of a thousand ranks would run out of file descriptors.
        let mut file = File::open(&self.path).map_err(|error| format!("cannot be read: {error}"))?;
        read_block(&mut file, at, header, &mut self.stored, &mut self.raw)?;
        let (mut decoder, mut last) = (Decoder::new(&self.raw), self.last);
        let wrong = |at: usize, why: &str| format!("{why}, at byte {at} of the block's events");
        while let Some(mut event) = decoder.decode().map_err(|error| wrong(error.at, error.why))? {
            if self.events.len() == header.items as usize {
                return Err(format!("more than the {} events that should be there", header.items));
            }
            last = last.then(&event, header)?;
            self.rename(&mut event.what);
            self.events.push(event);
        }
        if self.events.len() != header.items as usize {
            return Err(format!("{} events where {} should be", self.events.len(), header.items));
        }
        self.last = last;
        Ok(())
    }

    fn rename(&self, what: &mut What) {
        if let What::Handler { kind: name, .. }
        | What::Mark { name, .. }
        | What::Span { name, .. }
        | What::Counter { name, .. } = what
        {
            *name = self.names.get(name.0 as usize).copied().unwrap_or(NameId(u32::MAX));
        }
    }
}

/// Skips blocks that cannot be read; they are in [`Stream::problems`].
impl Iterator for Stream {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        while self.next == self.events.len() {
            if let Err(problem) = self.next_block()? {
                self.problems.push(problem);
            }
        }
        self.next += 1;
        Some(self.events[self.next - 1])
    }
}

/// The times that the next event must not contradict.
#[derive(Clone, Copy, Debug, Default)]
struct Last {
    /// The end of the last event that was no span.
    end_ns: u64,
    /// The end of the last of these that took time.
    slice_ns: u64,
}

impl Last {
    /// Checks that an event may follow; returns the times for the one after it.
    ///
    /// Points may lie inside the handler that comes after them, and sends inside the one before: events are in the order of
    /// their ends.
    fn then(self, event: &Event, header: &Header) -> Result<Last, String> {
        let Event { begin_ns, end_ns, .. } = *event;
        if begin_ns < header.first_ns || end_ns > header.last_ns {
            return Err(format!("an event at {begin_ns} ns lies outside of its block's time"));
        }
        if let What::Handler { lost_ns, .. } | What::Range { lost_ns, .. } = event.what
            && lost_ns > event.duration_ns()
        {
            return Err(format!("a handler at {begin_ns} ns lost more than it took"));
        }
        if matches!(event.what, What::Span { .. }) {
            return Ok(self);
        }
        if end_ns < self.end_ns {
            return Err(format!("an event at {begin_ns} ns ends before the one before it"));
        }
        if matches!(event.what, What::Send { .. }) {
            return Ok(Last { end_ns, ..self });
        }
        if begin_ns < self.slice_ns {
            return Err(format!("an event at {begin_ns} ns begins before the last one ended"));
        }
        Ok(Last { end_ns, slice_ns: if end_ns > begin_ns { end_ns } else { self.slice_ns } })
    }
}
