//! Encodes events as bytes, the content of [`Block`](super::block::Block)s of events.
//!
//! An event is a tag byte and variable-length integers (LEB128; zigzag if signed). Each event is stored as the
//! difference from the event before it: times from the end of the last event, chunks from the last chunk, message
//! numbers from the last number. A handler and the message that it sends take about 15 bytes. The first event of a
//! block differs from zero, so each block can be decoded alone.
//!
//! | bits of the tag | mean |
//! |---|---|
//! | 0-4 | the kind of event |
//! | 5 | the event has the chunk of the last event |
//! | 6 | the event takes no time |
//! | 7 | the event begins when the last one ended |

use super::event::{ArrayId, ChunkId, Event, NameId, Part, RUNTIME, What};

const SAME_CHUNK: u8 = 1 << 5;
const POINT: u8 = 1 << 6;
const NEXT: u8 = 1 << 7;
const WHICH: u8 = SAME_CHUNK - 1;

mod tag {
    pub(super) const HANDLER: u8 = 0;
    pub(super) const SEND: u8 = 1;
    pub(super) const IDLE: u8 = 2;
    pub(super) const RUNTIME: u8 = 3;
    pub(super) const DEPART: u8 = 4;
    pub(super) const ARRIVE: u8 = 5;
    pub(super) const CONTRIBUTE: u8 = 6;
    pub(super) const LOAD: u8 = 7;
    pub(super) const MARK: u8 = 8;
    pub(super) const SPAN: u8 = 9;
    pub(super) const COUNTER: u8 = 10;
    pub(super) const RANGE: u8 = 11;
    pub(super) const POOL_SEND: u8 = 12;
    pub(super) const DROPPED: u8 = 13;
}

/// The encoding of a chunk in relation to another chunk.
mod other {
    pub(super) const RUNTIME: u64 = 0;
    pub(super) const SAME_ARRAY: u64 = 1;
    pub(super) const ANY: u64 = 2;
    /// Number of low bits with one of these values; the other bits are a number.
    pub(super) const BITS: u32 = 2;
}

/// The values of the last event, from which the next event is stored as a difference.
#[derive(Clone, Copy)]
struct Last {
    end_ns: u64,
    chunk: ChunkId,
    number: u32,
    sent: u32,
}

impl Default for Last {
    fn default() -> Last {
        Last { end_ns: 0, chunk: ChunkId { array: ArrayId(0), key: 0 }, number: 0, sent: 0 }
    }
}

/// Appends events to the bytes of one block.
#[derive(Default)]
pub struct Encoder {
    last: Last,
}

impl Encoder {
    /// Appends one event.
    pub fn encode(&mut self, event: &Event, out: &mut Vec<u8>) {
        let (which, chunk) = match event.what {
            What::Handler { chunk, .. } => (tag::HANDLER, Some(chunk)),
            What::Send { chunk, .. } => (tag::SEND, Some(chunk)),
            What::Idle => (tag::IDLE, None),
            What::Runtime { .. } => (tag::RUNTIME, None),
            What::Depart { chunk, .. } => (tag::DEPART, Some(chunk)),
            What::Arrive { chunk, .. } => (tag::ARRIVE, Some(chunk)),
            What::Contribute { chunk, .. } => (tag::CONTRIBUTE, Some(chunk)),
            What::Load { chunk, .. } => (tag::LOAD, Some(chunk)),
            What::Mark { chunk, .. } => (tag::MARK, Some(chunk)),
            What::Span { chunk, .. } => (tag::SPAN, Some(chunk)),
            What::Counter { chunk, .. } => (tag::COUNTER, Some(chunk)),
            What::Range { .. } => (tag::RANGE, None),
            What::PoolSend { .. } => (tag::POOL_SEND, None),
            What::Dropped { .. } => (tag::DROPPED, None),
        };
        let next = event.begin_ns == self.last.end_ns;
        let point = event.begin_ns == event.end_ns;
        let same = chunk.is_none_or(|chunk| chunk == self.last.chunk);
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        out.push(which | flag(same, SAME_CHUNK) | flag(point, POINT) | flag(next, NEXT));
        if !next {
            signed(event.begin_ns.wrapping_sub(self.last.end_ns), out);
        }
        if !point {
            unsigned(event.end_ns.wrapping_sub(event.begin_ns), out);
        }
        self.last.end_ns = event.end_ns;
        if let Some(chunk) = chunk.filter(|_| !same) {
            unsigned(u64::from(chunk.array.0), out);
            signed(chunk.key.wrapping_sub(self.last.chunk.key), out);
            self.last.chunk = chunk;
        }
        self.encode_rest(event, out);
    }

    fn encode_rest(&mut self, event: &Event, out: &mut Vec<u8>) {
        match event.what {
            What::Handler { chunk, kind, from, number, lost_ns } => {
                chunk_with(u64::from(kind.0), from, chunk, out);
                signed32(number.wrapping_sub(self.last.number), out);
                self.last.number = number;
                unsigned(lost_ns, out);
            }
            What::Send { chunk, to, rank, number, bytes } => {
                chunk_with(u64::from(rank), to, chunk, out);
                signed32(number.wrapping_sub(self.last.sent), out);
                self.last.sent = number;
                unsigned(bytes, out);
            }
            What::Idle => {}
            What::Runtime { part, sync } => {
                out.push(part as u8);
                unsigned(sync, out);
            }
            What::Depart { rank, bytes, .. } => {
                unsigned(u64::from(rank), out);
                unsigned(bytes, out);
            }
            What::Arrive { bytes, .. } => unsigned(bytes, out),
            What::Contribute { number, .. } => unsigned(number, out),
            What::Load { sync, load_ns, bytes, .. } => {
                unsigned(sync, out);
                unsigned(load_ns, out);
                unsigned(bytes, out);
            }
            What::Mark { name, .. } | What::Span { name, .. } => unsigned(u64::from(name.0), out),
            What::Counter { name, value, .. } => {
                unsigned(u64::from(name.0), out);
                out.extend_from_slice(&value.to_le_bytes());
            }
            What::Range { first, count, lost_ns } => {
                unsigned(first, out);
                unsigned(count, out);
                unsigned(lost_ns, out);
            }
            What::PoolSend { rank } => unsigned(u64::from(rank), out),
            What::Dropped { events } => unsigned(events, out),
        }
    }
}

/// Appends a number, and a chunk in relation to `base`.
fn chunk_with(number: u64, chunk: ChunkId, base: ChunkId, out: &mut Vec<u8>) {
    let how = match chunk {
        RUNTIME => other::RUNTIME,
        _ if chunk.array == base.array => other::SAME_ARRAY,
        _ => other::ANY,
    };
    unsigned(number << other::BITS | how, out);
    if how == other::ANY {
        unsigned(u64::from(chunk.array.0), out);
    }
    if how != other::RUNTIME {
        signed(chunk.key.wrapping_sub(base.key), out);
    }
}

#[inline]
fn unsigned(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a signed difference.
#[inline]
fn signed(difference: u64, out: &mut Vec<u8>) {
    let value = difference as i64;
    unsigned((value << 1 ^ value >> 63) as u64, out);
}

#[inline]
fn signed32(difference: u32, out: &mut Vec<u8>) {
    signed(i64::from(difference as i32) as u64, out);
}

/// Decodes the events of one block.
pub struct Decoder<'b> {
    bytes: &'b [u8],
    at: usize,
    last: Last,
}

/// Bytes that are no event.
#[derive(Debug, PartialEq, Eq)]
pub struct Undecodable {
    /// The position in the block.
    pub at: usize,
    /// The fault, in a few words.
    pub why: &'static str,
}

impl<'b> Decoder<'b> {
    /// A decoder of the bytes of one block.
    #[must_use]
    pub fn new(bytes: &'b [u8]) -> Decoder<'b> {
        Decoder { bytes, at: 0, last: Last::default() }
    }

    /// Decodes the next event; none at the end of the bytes.
    ///
    /// # Errors
    /// [`Undecodable`] if the bytes are no event.
    #[inline]
    pub fn decode(&mut self) -> Result<Option<Event>, Undecodable> {
        if self.at == self.bytes.len() {
            return Ok(None);
        }
        let head = self.byte()?;
        let begin_ns =
            if head & NEXT == 0 { self.last.end_ns.wrapping_add(self.signed()?) } else { self.last.end_ns };
        let duration_ns = if head & POINT == 0 { self.unsigned()? } else { 0 };
        let end_ns = begin_ns.checked_add(duration_ns).ok_or_else(|| self.wrong("a time beyond 2^64 ns"))?;
        self.last.end_ns = end_ns;
        if head & SAME_CHUNK == 0 {
            let array = ArrayId(self.small()?);
            let key = self.last.chunk.key.wrapping_add(self.signed()?);
            self.last.chunk = ChunkId { array, key };
        }
        let what = self.rest(head & WHICH)?;
        Ok(Some(Event { begin_ns, end_ns, what }))
    }

    fn rest(&mut self, which: u8) -> Result<What, Undecodable> {
        let chunk = self.last.chunk;
        Ok(match which {
            tag::HANDLER => {
                let (kind, from) = self.chunk_with(chunk)?;
                let number = self.last.number.wrapping_add(self.signed()? as u32);
                self.last.number = number;
                What::Handler { chunk, kind: NameId(kind), from, number, lost_ns: self.unsigned()? }
            }
            tag::SEND => {
                let (rank, to) = self.chunk_with(chunk)?;
                let number = self.last.sent.wrapping_add(self.signed()? as u32);
                self.last.sent = number;
                What::Send { chunk, to, rank, number, bytes: self.unsigned()? }
            }
            tag::IDLE => What::Idle,
            tag::RUNTIME => {
                let part = self.byte()?;
                let part = *Part::ALL.get(usize::from(part)).ok_or_else(|| self.wrong("an unknown part"))?;
                What::Runtime { part, sync: self.unsigned()? }
            }
            tag::DEPART => What::Depart { chunk, rank: self.small()?, bytes: self.unsigned()? },
            tag::ARRIVE => What::Arrive { chunk, bytes: self.unsigned()? },
            tag::CONTRIBUTE => What::Contribute { chunk, number: self.unsigned()? },
            tag::LOAD => What::Load {
                chunk,
                sync: self.unsigned()?,
                load_ns: self.unsigned()?,
                bytes: self.unsigned()?,
            },
            tag::MARK => What::Mark { chunk, name: NameId(self.small()?) },
            tag::SPAN => What::Span { chunk, name: NameId(self.small()?) },
            tag::COUNTER => What::Counter { chunk, name: NameId(self.small()?), value: self.float()? },
            tag::RANGE => {
                What::Range { first: self.unsigned()?, count: self.unsigned()?, lost_ns: self.unsigned()? }
            }
            tag::POOL_SEND => What::PoolSend { rank: self.small()? },
            tag::DROPPED => What::Dropped { events: self.unsigned()? },
            _ => return Err(self.wrong("an unknown kind of event")),
        })
    }

    #[inline]
    fn chunk_with(&mut self, base: ChunkId) -> Result<(u32, ChunkId), Undecodable> {
        let both = self.unsigned()?;
        let number = u32::try_from(both >> other::BITS).map_err(|_| self.wrong("a number beyond 2^32"))?;
        let array = match both & ((1 << other::BITS) - 1) {
            other::RUNTIME => return Ok((number, RUNTIME)),
            other::SAME_ARRAY => base.array,
            other::ANY => ArrayId(self.small()?),
            _ => return Err(self.wrong("a chunk encoded in an unknown way")),
        };
        Ok((number, ChunkId { array, key: base.key.wrapping_add(self.signed()?) }))
    }

    fn wrong(&self, why: &'static str) -> Undecodable {
        Undecodable { at: self.at, why }
    }

    #[inline]
    fn byte(&mut self) -> Result<u8, Undecodable> {
        let byte =
            *self.bytes.get(self.at).ok_or_else(|| self.wrong("the end of the block within an event"))?;
        self.at += 1;
        Ok(byte)
    }

    #[inline]
    fn unsigned(&mut self) -> Result<u64, Undecodable> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.wrong("a number of more than ten bytes"))
    }

    #[inline]
    fn signed(&mut self) -> Result<u64, Undecodable> {
        let value = self.unsigned()?;
        Ok(value >> 1 ^ (value & 1).wrapping_neg())
    }

    #[inline]
    fn small(&mut self) -> Result<u32, Undecodable> {
        let value = self.unsigned()?;
        u32::try_from(value).map_err(|_| self.wrong("a number beyond 2^32"))
    }

    fn float(&mut self) -> Result<f64, Undecodable> {
        let bytes = self
            .bytes
            .get(self.at..self.at + 8)
            .ok_or_else(|| self.wrong("the end of the block within an event"))?;
        self.at += 8;
        Ok(f64::from_le_bytes(bytes.try_into().expect("eight bytes were taken")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn chunk() -> impl Strategy<Value = ChunkId> {
        prop_oneof![
            (0u32..3, 0u64..100).prop_map(|(array, key)| ChunkId { array: ArrayId(array), key }),
            (any::<u32>(), any::<u64>()).prop_map(|(array, key)| ChunkId { array: ArrayId(array), key }),
            Just(RUNTIME),
        ]
    }

    fn what() -> impl Strategy<Value = What> {
        let name = || any::<u32>().prop_map(NameId);
        prop_oneof![
            (chunk(), name(), chunk(), any::<u32>(), any::<u64>()).prop_map(
                |(chunk, kind, from, number, lost_ns)| What::Handler { chunk, kind, from, number, lost_ns }
            ),
            (chunk(), chunk(), any::<u32>(), any::<u32>(), any::<u64>())
                .prop_map(|(chunk, to, rank, number, bytes)| What::Send { chunk, to, rank, number, bytes }),
            Just(What::Idle),
            (0..Part::ALL.len(), any::<u64>())
                .prop_map(|(part, sync)| What::Runtime { part: Part::ALL[part], sync }),
            (chunk(), any::<u32>(), any::<u64>()).prop_map(|(chunk, rank, bytes)| What::Depart {
                chunk,
                rank,
                bytes
            }),
            (chunk(), any::<u64>()).prop_map(|(chunk, bytes)| What::Arrive { chunk, bytes }),
            (chunk(), any::<u64>()).prop_map(|(chunk, number)| What::Contribute { chunk, number }),
            (chunk(), any::<u64>(), any::<u64>(), any::<u64>())
                .prop_map(|(chunk, sync, load_ns, bytes)| What::Load { chunk, sync, load_ns, bytes }),
            (chunk(), name()).prop_map(|(chunk, name)| What::Mark { chunk, name }),
            (chunk(), name()).prop_map(|(chunk, name)| What::Span { chunk, name }),
            (chunk(), name(), -1e9f64..1e9).prop_map(|(chunk, name, value)| What::Counter {
                chunk,
                name,
                value
            }),
            (any::<u64>(), any::<u64>(), any::<u64>()).prop_map(|(first, count, lost_ns)| What::Range {
                first,
                count,
                lost_ns
            }),
            any::<u32>().prop_map(|rank| What::PoolSend { rank }),
            any::<u64>().prop_map(|events| What::Dropped { events }),
        ]
    }

    fn event() -> impl Strategy<Value = Event> {
        (any::<u64>(), prop_oneof![Just(0), 0u64..1_000_000, any::<u64>()], what()).prop_map(
            |(begin_ns, duration_ns, what)| Event {
                begin_ns,
                end_ns: begin_ns.saturating_add(duration_ns),
                what,
            },
        )
    }

    fn decoded(bytes: &[u8]) -> Result<Vec<Event>, Undecodable> {
        let mut decoder = Decoder::new(bytes);
        std::iter::from_fn(|| decoder.decode().transpose()).collect()
    }

    proptest! {
        #[test]
        fn what_was_encoded_is_decoded(events in prop::collection::vec(event(), 0..40)) {
            let (mut encoder, mut bytes) = (Encoder::default(), Vec::new());
            events.iter().for_each(|event| encoder.encode(event, &mut bytes));
            prop_assert_eq!(decoded(&bytes), Ok(events));
        }

        #[test]
        fn any_bytes_are_events_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let events = decoded(&bytes).map_or(0, |events| events.len());
            prop_assert!(events <= bytes.len());
        }
    }

    #[test]
    fn a_handler_and_what_it_sends_take_about_fifteen_bytes() {
        let chunk = |key| ChunkId { array: ArrayId(0), key };
        let (mut encoder, mut bytes) = (Encoder::default(), Vec::new());
        for turn in 0..100u64 {
            let (begin_ns, me) = (turn * 1000, chunk(turn % 64));
            let from = chunk((turn + 1) % 64);
            let what = What::Handler { chunk: me, kind: NameId(3), from, number: turn as u32, lost_ns: 0 };
            encoder.encode(&Event { begin_ns, end_ns: begin_ns + 1000, what }, &mut bytes);
            let what = What::Send { chunk: me, to: from, rank: 1, number: turn as u32, bytes: 2048 };
            encoder.encode(&Event::point(begin_ns + 1000, what), &mut bytes);
        }
        assert!(bytes.len() < 100 * 17, "{}", bytes.len());
    }
}
