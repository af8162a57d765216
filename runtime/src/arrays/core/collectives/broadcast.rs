//! Broadcasts: delivers each broadcast to every chunk of an array once, in one order, also while chunks migrate.
//!
//! # Rules
//! 1. Rank 0 numbers the broadcasts of each array and sends them to all ranks, which apply them in that order.
//! 2. A migrating chunk carries the number of the broadcast that its old rank would apply next. When the chunk arrives,
//!    its new rank delivers the broadcasts of its log from that number on.
//! 3. A rank logs broadcasts from the moment it receives a `Decision` with moves until its incoming chunks are
//!    admitted, and at no other time.
//! 4. A chunk that a handler inserts receives the broadcasts that reach its rank after the chunk.
//!
//! # Proof that no chunk misses a broadcast
//! 1. The old rank of a chunk has applied all broadcasts numbered before the `Decision`, because they arrive first.
//! 2. So a moving chunk can only miss broadcasts numbered after the `Decision`. Its new rank logs these (rule 3).
//!
//! # Proof that no chunk receives a broadcast twice
//! 1. Rank 0 completes the migration after it has numbered every broadcast that the old rank has applied.
//! 2. So the new rank is never behind the old rank when it admits the chunk.

use crate::arrays::core::routing::envelope::{Delivery, Payload};
use crate::ids::ArrayId;

#[derive(Debug, Default)]
struct Stream {
    /// Rank 0: the number of the next broadcast to number.
    numbered: u64,
    /// The number of the broadcast that this rank applies next.
    next: u64,
    log: Vec<(u64, Delivery)>,
}

/// The broadcast streams of one rank, one per array.
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

    /// Records that this rank applies a broadcast now.
    pub(crate) fn apply(&mut self, array: ArrayId, number: u64, delivery: &Delivery) {
        let stream = &mut self.streams[array.index()];
        assert_eq!(stream.next, number, "rank 0's packets arrive in order");
        stream.next += 1;
        if self.logging {
            stream.log.push((number, duplicate(delivery)));
        }
    }

    /// Rank 0: by array, the number of the next broadcast.
    pub(crate) fn numbered(&self) -> Vec<u64> {
        self.streams.iter().map(|stream| stream.numbered).collect()
    }

    /// By array, the number that this rank applies next.
    pub(crate) fn next_of_all(&self) -> Vec<u64> {
        self.streams.iter().map(|stream| stream.next).collect()
    }

    /// The run restarts: these numbers come next.
    pub(crate) fn restore(&mut self, next: &[u64]) {
        for (stream, &next) in self.streams.iter_mut().zip(next) {
            (stream.numbered, stream.next) = (next, next);
        }
    }

    /// The number of the broadcast that this rank applies next.
    pub(crate) fn next(&self, array: ArrayId) -> u64 {
        self.streams[array.index()].next
    }

    /// A `Decision` with moves has come: logs broadcasts from now on, for incoming chunks.
    pub(crate) fn start_log(&mut self) {
        self.logging = true;
    }

    pub(crate) fn are_logged(&self) -> bool {
        self.logging
    }

    /// All incoming chunks have been admitted.
    pub(crate) fn end_log(&mut self) {
        self.logging = false;
        for stream in &mut self.streams {
            stream.log = Vec::new();
        }
    }

    /// The broadcasts that an incoming chunk has missed; `broadcasts` is the number of the first.
    pub(crate) fn missed(&self, array: ArrayId, broadcasts: u64) -> impl Iterator<Item = Delivery> {
        let log = &self.streams[array.index()].log;
        log.iter().filter(move |&&(number, _)| number >= broadcasts).map(|(_, delivery)| duplicate(delivery))
    }
}

/// A copy of a delivery to several chunks. Such a delivery is never a typed value.
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
