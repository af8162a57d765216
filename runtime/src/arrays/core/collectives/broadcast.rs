//! Broadcasts: once to every chunk of an array, in one order everywhere, also while chunks migrate.
//!
//! Rank 0 numbers the broadcasts of each array and sends them to all ranks, which apply them in that order. A migrating
//! chunk carries the number that its old rank would have applied next; on arrival it is given what its new rank has
//! applied since, from the log.
//!
//! Why a short log suffices: a donor applies everything rank 0 numbered before the assignment that moves the chunk
//! before it learns of that assignment, so only broadcasts numbered after it can be missing. A rank therefore logs from
//! the assignment until its arrivals have landed, and keeps nothing otherwise. Why nothing comes twice: rank 0 allows the
//! landing after it numbered whatever the donor applied, so the new rank is never behind the old one.
//!
//! A chunk inserted by a handler is given the broadcasts that reach its rank after it did.

use crate::arrays::core::routing::envelope::{Delivery, Payload};
use crate::ids::ArrayId;

#[derive(Debug, Default)]
struct Stream {
    /// Rank 0: the number of the next broadcast.
    numbered: u64,
    /// The number that this rank applies next.
    next: u64,
    log: Vec<(u64, Delivery)>,
}

/// One rank's broadcast streams, one an array.
#[derive(Debug)]
pub(crate) struct Broadcasts {
    streams: Vec<Stream>,
    logging: bool,
}

impl Broadcasts {
    pub(crate) fn new(arrays: usize) -> Broadcasts {
        Broadcasts { streams: (0..arrays).map(|_| Stream::default()).collect(), logging: false }
    }

    /// Rank 0 gives a broadcast its number.
    pub(crate) fn number(&mut self, array: ArrayId) -> u64 {
        let stream = &mut self.streams[array.index()];
        stream.numbered += 1;
        stream.numbered - 1
    }

    /// Notes that this rank applies a broadcast now.
    pub(crate) fn apply(&mut self, array: ArrayId, number: u64, delivery: &Delivery) {
        let stream = &mut self.streams[array.index()];
        assert_eq!(stream.next, number, "rank 0's packets arrive in order");
        stream.next += 1;
        if self.logging {
            stream.log.push((number, duplicate(delivery)));
        }
    }

    /// The number that this rank applies next.
    pub(crate) fn next(&self, array: ArrayId) -> u64 {
        self.streams[array.index()].next
    }

    /// An assignment is known: keep what follows for those who arrive.
    pub(crate) fn start_log(&mut self) {
        self.logging = true;
    }

    /// Tells whether what comes now is kept too.
    pub(crate) fn are_logged(&self) -> bool {
        self.logging
    }

    /// Everybody has arrived.
    pub(crate) fn end_log(&mut self) {
        self.logging = false;
        for stream in &mut self.streams {
            stream.log = Vec::new();
        }
    }

    /// The broadcasts that a chunk missed, which comes with `broadcasts` as its next number.
    pub(crate) fn missed(&self, array: ArrayId, broadcasts: u64) -> impl Iterator<Item = Delivery> {
        let log = &self.streams[array.index()].log;
        log.iter().filter(move |&&(number, _)| number >= broadcasts).map(|(_, delivery)| duplicate(delivery))
    }
}

/// The same delivery once more. Only broadcasts are repeated, and they are never typed values.
pub(crate) fn duplicate(delivery: &Delivery) -> Delivery {
    let payload = match &delivery.payload {
        Payload::Encoded(bytes) => Payload::Encoded(bytes.clone()),
        Payload::Shared(shared) => Payload::Shared(shared.clone()),
        Payload::Reduced { tag, values, number } => {
            Payload::Reduced { tag: *tag, values: values.clone(), number: *number }
        }
        Payload::Start => Payload::Start,
        Payload::Resume => Payload::Resume,
        Payload::Deferred => Payload::Deferred,
        Payload::Value(_) => unreachable!("broadcasts are encoded when they are sent"),
        Payload::Insertion { .. } | Payload::EncodedInsertion { .. } => {
            unreachable!("a chunk is inserted once")
        }
    };
    Delivery { from: delivery.from, bytes: delivery.bytes, payload }
}
