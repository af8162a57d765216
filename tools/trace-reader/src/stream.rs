//! Reads the events of one worker block by block, and checks them. Each process has its own numbers of names, so the
//! reader replaces the name of an event by its number in the whole trace.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use caribou::trace::block::Header;
use caribou::trace::encoding::Decoder;
use caribou::trace::{Event, NameId, What};

use super::Problem;
use super::blocks::read_block;

/// The events of one worker, as blocks or one by one.
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

    /// The next block of events, or its fault. Later blocks can still be read.
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

    /// Number of events for which memory is allocated.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.events.capacity()
    }

    /// Problems that the iterator has met so far.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    fn read(&mut self, at: u64, header: &Header) -> Result<(), String> {
        // Opened for each block, because a merge of a thousand ranks would need too many file descriptors.
        let mut file = File::open(&self.path).map_err(|error| format!("cannot be read: {error}"))?;
        read_block(&mut file, at, header, &mut self.stored, &mut self.raw)?;
        let (mut decoder, mut last) = (Decoder::new(&self.raw), self.last);
        let wrong = |at: usize, why: &str| format!("{why}, at byte {at} of the block's events");
        while let Some(mut event) = decoder.decode().map_err(|error| wrong(error.at, error.why))? {
            if self.events.len() == header.items as usize {
                return Err(format!("more than the {} events that should be there", header.items));
            }
            last = last.then(&event, header)?;
            if let Some(name) = event.what.name_mut() {
                *name = self.names.get(name.0 as usize).copied().unwrap_or(NameId(u32::MAX));
            }
            self.events.push(event);
        }
        if self.events.len() != header.items as usize {
            return Err(format!("{} events where {} should be", self.events.len(), header.items));
        }
        self.last = last;
        Ok(())
    }
}

/// Skips blocks that cannot be read and adds them to [`Stream::problems`].
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

/// Lower limits for the times of the next event.
#[derive(Clone, Copy, Debug, Default)]
struct Last {
    /// End of the last event other than a span.
    end_ns: u64,
    /// End of the last such event that was not a send and took time.
    slice_ns: u64,
}

impl Last {
    /// Checks an event. Returns the limits for the next one.
    ///
    /// Events are in order of their ends. Points may lie inside the next handler, and sends inside the previous one.
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
