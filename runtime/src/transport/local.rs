//! Moves packets between ranks that are threads of one process, by a bounded ring per sender and receiver.
//!
//! Packets are moved, not encoded; a migrating chunk is a pointer. If a ring is full, packets wait in a queue of the
//! sender, in order, and follow at the next `poll` or `idle`. So no call blocks and no packet is lost. A send wakes the
//! receiver if it is parked. Most programs use few of all possible rings, so the first packet to a rank creates the
//! ring. The sender puts the other end into the receiver's *accept queue*, which the receiver checks at each poll.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rtrb::{Consumer, Producer, PushError, RingBuffer};

use super::fair_poller::FairPoller;
use super::{OpenRanks, PacketHandler, Transport};
use crate::error::Error;
use crate::ids::Rank;

/// Packets that all rings to one rank hold together, and the minimum and maximum of a single ring.
const PACKETS_PER_RANK: usize = 8192;
const RING_MIN: usize = 64;
const RING_MAX: usize = 1024;
/// The sender is congested if more than this number of packets wait for one receiver. The number exceeds the messages
/// in a default flow-control window of the sending chunks, so that flow control stops the chunks first.
const QUEUED_MAX: usize = 256 * 1024;

/// Wakes the worker that drives a rank's transport, if it is parked.
pub(crate) type Wake = Arc<dyn Fn() + Send + Sync>;

/// New rings to a rank, and the function that wakes the rank.
struct AcceptQueue<P> {
    rings: Mutex<Rings<P>>,
    /// There is a new ring.
    new: AtomicBool,
    wake: Wake,
}

/// Rings with their sending ranks; none after the receiver has been dropped.
type Rings<P> = Option<Vec<(Rank, Consumer<PaddedPacket<P>>)>>;

/// A packet in a ring, alone on its cache lines, so that as few lines as possible move between vCPUs. The cell makes
/// the compiler move the packet whole, instead of moving a niche of its type separately.
#[repr(align(64))]
struct PaddedPacket<P>(Cell<P>);

impl<P> AcceptQueue<P> {
    fn rings(&self) -> MutexGuard<'_, Rings<P>> {
        self.rings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the receiving end of a ring, or drops it if the receiver has been dropped.
    fn leave(&self, from: Rank, ring: Consumer<PaddedPacket<P>>) {
        if let Some(rings) = &mut *self.rings() {
            rings.push((from, ring));
            self.new.store(true, Ordering::Release);
        }
    }
}

struct SendQueue<P> {
    ring: Producer<PaddedPacket<P>>,
    waiting: VecDeque<P>,
}

/// The ends of all rings of one rank.
pub(crate) struct Local<P> {
    me: Rank,
    /// The accept queues of all ranks.
    accept_queues: Arc<[AcceptQueue<P>]>,
    /// None for ranks to which nothing was sent; boxed, so that such a rank takes one word.
    outgoing: Vec<Option<Box<SendQueue<P>>>>,
    incoming: Vec<(Rank, Consumer<PaddedPacket<P>>)>,
    /// Chooses the ring to poll.
    turn: FairPoller,
    /// A ring was full: packets wait in a queue.
    waiting: bool,
}

impl<P> Local<P> {
    /// The transports of all ranks. The wake of rank r is called when a packet for it is put into a ring.
    pub(crate) fn connect(wakes: Vec<Wake>) -> Vec<Local<P>> {
        let door =
            |wake| AcceptQueue { rings: Mutex::new(Some(Vec::new())), new: AtomicBool::new(false), wake };
        let doors: Arc<[AcceptQueue<P>]> = wakes.into_iter().map(door).collect();
        let transport = |me| Local {
            me: Rank(me),
            accept_queues: doors.clone(),
            outgoing: doors.iter().map(|_| None).collect(),
            incoming: Vec::new(),
            turn: FairPoller::default(),
            waiting: false,
        };
        (0..doors.len() as u32).map(transport).collect()
    }

    #[cold]
    fn open(&self, to: Rank) -> Box<SendQueue<P>> {
        let capacity = (PACKETS_PER_RANK / self.accept_queues.len()).clamp(RING_MIN, RING_MAX);
        let (ring, end) = RingBuffer::new(capacity);
        self.accept_queues[to.index()].leave(self.me, end);
        Box::new(SendQueue { ring, waiting: VecDeque::new() })
    }

    /// Takes the new rings from the accept queue.
    #[cold]
    fn accept_rings(&mut self) {
        let door = &self.accept_queues[self.me.index()];
        let mut rings = door.rings();
        door.new.store(false, Ordering::Relaxed);
        for ring in rings.iter_mut().flat_map(|rings| rings.drain(..)) {
            self.incoming.push(ring);
            self.turn.add();
        }
    }

    /// Tells whether the accept queue has a new ring.
    #[inline]
    fn has_new_rings(&self) -> bool {
        self.accept_queues[self.me.index()].new.load(Ordering::Acquire)
    }

    fn flush(&mut self) -> bool {
        let ends = self.accept_queues.iter().zip(&mut self.outgoing);
        let open = ends.filter_map(|(door, outgoing)| outgoing.as_mut().map(|outgoing| (door, outgoing)));
        open.filter_map(|(door, outgoing)| (!outgoing.flush(&door.wake)).then_some(())).count() == 0
    }

    /// As [`send`](Transport::send), but `packet` creates the packet in place, in the ring or in the queue. `packet` is
    /// called exactly once.
    #[inline(always)]
    pub(crate) fn send_with(&mut self, to: Rank, packet: impl FnOnce() -> P) {
        debug_assert_ne!(to, self.me, "a rank sends to other ranks only");
        if self.outgoing[to.index()].is_none() {
            self.outgoing[to.index()] = Some(self.open(to));
        }
        let wake = &self.accept_queues[to.index()].wake;
        let outgoing = self.outgoing[to.index()].as_mut().expect("it is open");
        if !outgoing.waiting.is_empty() && !outgoing.flush(wake) {
            outgoing.waiting.push_back(packet());
            return;
        }
        match outgoing.ring.push(PaddedPacket(Cell::new(packet()))) {
            Ok(()) => wake(),
            Err(PushError::Full(PaddedPacket(packet))) => {
                outgoing.waiting.push_back(packet.into_inner());
                self.waiting = true;
            }
        }
    }

    /// As [`poll_each`](Transport::poll_each), with a `take` that the compiler can inline.
    #[inline(always)]
    pub(crate) fn take_each(&mut self, mut take: impl FnMut(Rank, P) -> bool) {
        if self.waiting {
            self.waiting = !self.flush();
        }
        if self.has_new_rings() {
            self.accept_rings();
        }
        let (asked, mut empty) = (self.turn.begin(), 0);
        while empty < asked {
            let (from, ring) = &mut self.incoming[self.turn.place()];
            let there = ring.slots().min(self.turn.quantum_left() as usize);
            if there == 0 {
                empty += 1;
                self.turn.advance(asked);
                continue;
            }
            empty = 0;
            let (mut taken, mut more) = (0, true);
            for PaddedPacket(packet) in ring.read_chunk(there).expect("they are there") {
                taken += 1;
                more = take(*from, packet.into_inner());
                if !more {
                    break;
                }
            }
            self.turn.packets_taken(taken, asked);
            if !more {
                return;
            }
        }
    }
}

impl<P> Drop for Local<P> {
    /// Lets senders drop further packets to this rank.
    fn drop(&mut self) {
        *self.accept_queues[self.me.index()].rings() = None;
    }
}

impl<P> SendQueue<P> {
    /// Sends the queued packets, in order; true if none is left. Drops them if the receiver has been dropped.
    fn flush(&mut self, wake: &Wake) -> bool {
        if self.ring.is_abandoned() {
            self.waiting.clear();
        }
        while let Some(packet) = self.waiting.pop_front() {
            if let Err(PushError::Full(PaddedPacket(packet))) =
                self.ring.push(PaddedPacket(Cell::new(packet)))
            {
                self.waiting.push_front(packet.into_inner());
                break;
            }
            wake();
        }
        self.waiting.is_empty()
    }
}

impl<P> Transport<P> for Local<P> {
    fn send(&mut self, to: Rank, packet: P) -> Result<(), Error> {
        self.send_with(to, || packet);
        Ok(())
    }

    fn poll_each(&mut self, receiver: &mut dyn PacketHandler<P>) -> Result<(), Error> {
        self.take_each(|from, packet| receiver.take(from, packet));
        Ok(())
    }

    fn set_frequent_polls(&mut self, often: bool) {
        self.turn.set_partial(often);
    }

    fn idle(&mut self) -> bool {
        self.waiting = !self.flush();
        !self.waiting
    }

    fn ready(&mut self) -> bool {
        self.has_new_rings() || self.incoming.iter().any(|(_, ring)| !ring.is_empty())
    }

    /// Returns when all packets are in the rings, because rings outlive their senders. Packets that still arrive are
    /// dropped, but must be taken: otherwise two ranks that close could wait for each other.
    fn close(&mut self, _lost: &dyn Fn(OpenRanks<'_>) -> bool) {
        self.set_frequent_polls(false);
        while !self.idle() {
            while self.poll().is_some() {}
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Compares the number of packets that wait for one receiver with the limit.
    fn congested(&self) -> bool {
        self.waiting && self.outgoing.iter().flatten().any(|outgoing| outgoing.waiting.len() > QUEUED_MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::transport::fair_poller::PACKETS_IN_A_ROW;

    fn connect(ranks: usize) -> Vec<Local<u32>> {
        Local::connect((0..ranks).map(|_| Arc::new(|| {}) as Wake).collect())
    }

    #[test]
    fn rings_are_made_where_something_is_sent() {
        let mut transports = connect(100);
        transports[3].send(Rank(7), 1).expect("it takes all");
        assert!(transports[7].ready() && !transports[3].ready());
        assert!(matches!(transports[7].poll(), Some(Ok((Rank(3), 1)))));
        let rings = |local: &Local<u32>| (local.outgoing.iter().flatten().count(), local.incoming.len());
        let made: Vec<_> = transports.iter().map(rings).collect();
        assert_eq!((made[3], made[7]), ((1, 0), (0, 1)));
        assert!(made.iter().map(|&(to, from)| to + from).sum::<usize>() == 2, "{made:?}");
    }

    #[test]
    fn a_busy_sender_starves_no_other() {
        let mut transports = connect(3);
        for from in [0, 1] {
            for packet in 0..2 * PACKETS_IN_A_ROW {
                transports[from].send(Rank(2), packet).expect("it takes all");
            }
        }
        let mut next = || transports[2].poll().expect("more has come").expect("it is not encoded").0;
        let heard: Vec<Rank> = (0..4 * PACKETS_IN_A_ROW).map(|_| next()).collect();
        let rows: Vec<_> =
            heard.chunk_by(|one, other| one == other).map(|row| (row[0].0, row.len())).collect();
        let row = PACKETS_IN_A_ROW as usize;
        assert_eq!(rows, [(0, row), (1, row), (0, row), (1, row)]);
    }

    #[test]
    fn partial_polls_reach_all_senders_in_time_and_recent_ones_at_once() {
        let mut transports = connect(100);
        transports[0].set_frequent_polls(true);
        for round in 0..3 {
            for transport in &mut transports[1..] {
                transport.send(Rank(0), round).expect("it takes all");
            }
            let polls = (0..200).filter_map(|_| transports[0].poll());
            let heard: BTreeSet<Rank> = polls.map(|come| come.expect("it is not encoded").0).collect();
            assert_eq!(heard, (1..100).map(Rank).collect());
        }
        for word in 0..10 {
            transports[99].send(Rank(0), word).expect("it takes all");
            while transports[0].poll().is_none() {
                assert_eq!(word, 0, "it is asked each time");
            }
        }
    }

    #[test]
    fn packets_to_a_dropped_rank_are_dropped() {
        for was_open in [false, true] {
            let mut transports = connect(2);
            let mut gone = transports.pop().expect("there are two");
            if was_open {
                transports[0].send(Rank(1), 0).expect("it takes all");
                assert!(gone.poll().is_some());
            }
            drop(gone);
            for packet in 0..10 * RING_MAX as u32 {
                transports[0].send(Rank(1), packet).expect("it takes all");
            }
            assert!(transports[0].idle(), "all are dropped");
        }
    }
}
