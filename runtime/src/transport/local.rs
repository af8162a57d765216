//! Ranks as threads of one process: a bounded ring between every two of them.
//!
//! A packet is moved, not encoded; a migrating chunk is a pointer. When a ring is full its packets wait at the sender, in
//! order, and follow at the next `poll` or `idle`, so nothing blocks and nothing is lost. A send wakes the receiver if it
//! is parked.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use rtrb::{Consumer, Producer, PushError, RingBuffer};

use super::Transport;
use crate::error::Error;
use crate::ids::Rank;

/// Packets that all rings into one rank hold together, at most and at least per ring.
const PACKETS_PER_RANK: usize = 8192;
const RING_MIN: usize = 64;
const RING_MAX: usize = 1024;
/// With more packets than this waiting for a receiver whose ring is full, the sender pauses.
const WAITING_MAX: usize = 64 * 1024;

/// Wakes the worker that drives a rank's transport, if it is parked.
pub(crate) type Wake = Arc<dyn Fn() + Send + Sync>;

struct Outgoing<P> {
    ring: Producer<P>,
    waiting: VecDeque<P>,
    wake: Wake,
}

/// One rank's ends of its rings.
pub(crate) struct Local<P> {
    outgoing: Vec<Option<Outgoing<P>>>,
    incoming: Vec<(Rank, Consumer<P>)>,
    /// The ring to look at first.
    next: usize,
    /// Some ring was full: packets wait here.
    waiting: bool,
}

impl<P> Local<P> {
    /// The transports of all ranks; `wakes[r]` is called when something arrives for rank r.
    pub(crate) fn connect(wakes: &[Wake]) -> Vec<Local<P>> {
        let ranks = wakes.len();
        let capacity = (PACKETS_PER_RANK / ranks).clamp(RING_MIN, RING_MAX);
        let unconnected = |_| Local { outgoing: Vec::new(), incoming: Vec::new(), next: 0, waiting: false };
        let mut transports: Vec<Local<P>> = (0..ranks).map(unconnected).collect();
        for from in 0..ranks {
            for (to, wake) in wakes.iter().enumerate() {
                if from == to {
                    transports[from].outgoing.push(None);
                    continue;
                }
                let (ring, consumer) = RingBuffer::new(capacity);
                let outgoing = Outgoing { ring, waiting: VecDeque::new(), wake: wake.clone() };
                transports[from].outgoing.push(Some(outgoing));
                transports[to].incoming.push((Rank(from as u32), consumer));
            }
        }
        transports
    }

    fn flush(&mut self) -> bool {
        let waiting =
            self.outgoing.iter_mut().flatten().filter_map(|outgoing| (!outgoing.flush()).then_some(()));
        waiting.count() == 0
    }
}

impl<P> Outgoing<P> {
    /// Sends what waits, in order; true if nothing waits any more. A receiver that is gone needs nothing.
    fn flush(&mut self) -> bool {
        if self.ring.is_abandoned() {
            self.waiting.clear();
        }
        while let Some(packet) = self.waiting.pop_front() {
            if let Err(PushError::Full(packet)) = self.ring.push(packet) {
                self.waiting.push_front(packet);
                break;
            }
            (self.wake)();
        }
        self.waiting.is_empty()
    }
}

impl<P> Transport<P> for Local<P> {
    #[inline]
    fn send(&mut self, to: Rank, packet: P) -> Result<(), Error> {
        let outgoing = self.outgoing[to.0 as usize].as_mut().expect("a rank sends to other ranks only");
        if !outgoing.waiting.is_empty() && !outgoing.flush() {
            outgoing.waiting.push_back(packet);
            return Ok(());
        }
        match outgoing.ring.push(packet) {
            Ok(()) => (outgoing.wake)(),
            Err(PushError::Full(packet)) => {
                outgoing.waiting.push_back(packet);
                self.waiting = true;
            }
        }
        Ok(())
    }

    #[inline]
    fn poll(&mut self) -> Option<Result<(Rank, P), Error>> {
        if self.waiting {
            self.waiting = !self.flush();
        }
        for _ in 0..self.incoming.len() {
            let place = self.next;
            // Everybody in turn: who sends much must not keep the others from being heard.
            self.next = if place + 1 == self.incoming.len() { 0 } else { place + 1 };
            let (from, ring) = &mut self.incoming[place];
            if let Ok(packet) = ring.pop() {
                return Some(Ok((*from, packet)));
            }
        }
        None
    }

    fn idle(&mut self) -> bool {
        self.waiting = !self.flush();
        !self.waiting
    }

    fn ready(&mut self) -> bool {
        self.incoming.iter().any(|(_, ring)| !ring.is_empty())
    }

    /// Once everything lies in the rings there is nothing to wait for: they outlive their senders. What still comes in has
    /// no meaning any more, but is taken, or two ranks that end would wait for each other.
    fn close(&mut self, _lost: &dyn Fn() -> bool) {
        while !self.idle() {
            while self.poll().is_some() {}
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Packets waiting for one receiver.
    fn congested(&self) -> bool {
        self.waiting && self.outgoing.iter().flatten().any(|outgoing| outgoing.waiting.len() > WAITING_MAX)
    }
}
