//! Transport between ranks that are processes of an MPI job.
//!
//! Processes of one host write frames into shared-memory rings and wake each other. Processes of different hosts
//! exchange batches of frames as MPI messages, limited by credit (the receiver grants bytes). In both cases long blocks
//! of numbers are separate MPI messages, sent from the sender's memory and received in their final place. See [`ring`],
//! [`batch`] and [`peer`].
//!
//! | what | cost |
//! |---|---|
//! | a small message, one host | a few stores; MPI is not called |
//! | a small message, two hosts | a part of the cost of its batch |
//! | a long block of numbers | one MPI message, and one copy unless the numbers are shared (`Arc<Vec<T>>`) |
//!
//! MPI is initialised for one thread, so all calls of MPI come from the thread that called `run` or `pool`.
//!
//! # The end of a run
//! Each process sends a *bye* to every other process after its last frame. It goes on receiving until it has all byes
//! and all its bytes have left. So a run leaves nothing on the links, which the next run uses.

mod batch;
mod blocks;
mod failure;
mod frame;
mod peer;
pub(crate) mod raw;
mod segments;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use self::batch::{InboundFrames, OutboundFrames, PostedReceives};
use self::failure::Failure;
use self::frame::Lane;
use self::peer::{Peer, Taken};
use self::raw::{Communicator, MpiError, SharedMemory, Words};
use super::fair_poller::FairPoller;
use super::ring::{self, Reader, Ring, Writer};
use super::{OpenRanks, PacketHandler, Transport};
use crate::error::Error;
use crate::ids::Rank;
use crate::threads::clock::Clock;
use crate::threads::sleep::{Fences, SharedSleepState, wake_at};
use crate::warn::warn;
use crate::wire::codec::{Codec, Encoded};

/// Lines of all rings into one process together, and the limits of a single ring: 8 MiB, 64 KiB and 512 KiB.
const LINES_PER_RANK: usize = 1 << 17;
const RING_LINES_MIN: usize = 1 << 10;
const RING_LINES_MAX: usize = 1 << 13;
/// Number of polls between two polls of freight, so that messages alone cannot delay freight forever.
const FREIGHT_EVERY: u32 = 32;
/// Number of polls after a message during which freight is received in pieces, because other messages may follow soon.
/// A piece takes about 30 us.
const MESSAGE_POLLS: u32 = 32;
/// Shortest and longest sleep of a process while packets can arrive that do not wake it.
const NAP_MIN: Duration = Duration::from_micros(20);
const NAP_MAX: Duration = Duration::from_millis(1);

/// All links of this process, which outlive a run.
pub(crate) struct Links {
    communicator: Communicator,
    rank: u32,
    peers: Vec<Option<Peer>>,
    /// The memory that the processes of this host share, and the index of each rank's segment.
    window: Option<(Arc<SharedMemory>, Vec<Option<u32>>)>,
    fences: Fences,
    /// Posted receives for batches from other hosts, if there are any.
    posted_receives: Option<PostedReceives>,
    /// No run is in progress, and the last one closed its transport properly.
    closed: bool,
}

impl Links {
    /// Connects all processes of `communicator`. Collective. `shared_memory` allows shared memory within a host.
    pub(crate) fn connect(communicator: Communicator, shared_memory: bool) -> Result<Links, MpiError> {
        let (rank, ranks) = (communicator.rank(), communicator.size());
        let host = communicator.host()?;
        let (part, parts) = (host.rank(), host.size() as usize);
        let said = host.allgather(&rank.to_le_bytes())?;
        let mut part_of = vec![None; ranks as usize];
        for (part, bytes) in (0..).zip(&said) {
            let bytes = bytes[..].try_into().expect("four bytes were sent");
            part_of[u32::from_le_bytes(bytes) as usize] = Some(part);
        }
        let wishes = communicator.allgather(&[u8::from(shared_memory)])?;
        let lines = 1 << (LINES_PER_RANK / parts).clamp(RING_LINES_MIN, RING_LINES_MAX).ilog2();
        let shared = if wishes.iter().all(|wish| wish[..] == [1]) && parts > 1 {
            segments::share(&host, SharedMemory::segment_bytes(parts * ring::footprint(lines)))?.map(Some)
        } else {
            Ok(None)
        };
        let whys = communicator.allgather(shared.as_ref().err().map_or(&[], |why| why.as_bytes()))?;
        warn_of_no_memory(rank, &whys);
        let window = shared.unwrap_or_default().map(SharedMemory::new);
        let registered = communicator.allgather(&[u8::from(Fences::register())])?;
        let fences =
            if registered.iter().all(|said| said[..] == [1]) { Fences::Sleeper } else { Fences::Both };
        // The ring from process `from` of this host is in its reader's segment, at the place of `from`.
        let ring = |window, from: u32, to| ring_of(window, to, from as usize * ring::footprint(lines), lines);
        let link = |other: u32| {
            if other == rank {
                return None;
            }
            let (departures, arrivals) = match (&window, part_of[other as usize]) {
                (Some(window), Some(its)) => (
                    OutboundFrames::by_ring(Writer::new(ring(window, part, its))),
                    InboundFrames::by_ring(Reader::new(ring(window, its, part))),
                ),
                _ => (OutboundFrames::by_mpi(), InboundFrames::by_mpi()),
            };
            Some(Peer::new(other, departures, arrivals))
        };
        let peers: Vec<Option<Peer>> = (0..ranks).map(link).collect();
        let far = peers.iter().flatten().any(|peer| peer.departures.ages());
        let batches = if far { Some(PostedReceives::start(&communicator)?) } else { None };
        let window = window.map(|window| (window, part_of));
        Ok(Links { communicator, rank, peers, window, fences, posted_receives: batches, closed: true })
    }

    /// The sleep state of the thread that drives the transport, so that processes of the same host can wake it.
    pub(crate) fn sleep_state(&self) -> Option<Box<dyn SharedSleepState>> {
        let (window, parts) = self.window.as_ref()?;
        let part = parts[self.rank as usize]?;
        Some(Box::new(ProcessSleepState { window: window.clone(), part, fences: self.fences }))
    }

    /// True if no run is in progress, and the last one closed its transport properly.
    pub(crate) fn are_closed(&self) -> bool {
        self.closed
    }

    pub(crate) fn communicator(&self) -> &Communicator {
        &self.communicator
    }

    /// Sends an invalid batch.
    #[cfg(test)]
    pub(super) fn send_noise(&self, to: u32) -> raw::Sending {
        let noise = Arc::new(vec![0xaau8; 64]);
        self.communicator.send(to, batch::BATCH, noise).unwrap_or_else(|why| panic!("{why}"))
    }

    fn wake(&self, rank: u32) {
        if let Some((window, parts)) = &self.window
            && let Some(part) = parts[rank as usize]
        {
            wake_at(window.sleep_state(part), self.fences);
        }
    }
}

/// The ring that begins at word `at` in the segment of process `part`, which reads it.
fn ring_of(window: &Arc<SharedMemory>, part: u32, at: usize, lines: usize) -> Ring<Words> {
    let own = at + ring::LINE_WORDS;
    Ring::new(window.words(part, at..own), window.words(part, own..at + ring::footprint(lines)))
}

/// Warns, on rank 0, of processes without shared memory, with the reason.
fn warn_of_no_memory(rank: u32, whys: &[Vec<u8>]) {
    let without = || (0u32..).zip(whys).filter(|(_, why)| !why.is_empty());
    if rank == 0
        && let Some((first, why)) = without().next()
    {
        let (count, why) = (without().count(), String::from_utf8_lossy(why));
        warn(&format!(
            "{count} processes cannot share memory, so their messages within a host go through MPI, which is slower: \
             free memory, or set CARIBOU_SHARED_MEMORY=off (rank {first}: {why})"
        ));
    }
}

struct ProcessSleepState {
    window: Arc<SharedMemory>,
    part: u32,
    fences: Fences,
}

impl SharedSleepState for ProcessSleepState {
    fn state(&self) -> &AtomicU32 {
        self.window.sleep_state(self.part)
    }

    fn fences(&self) -> Fences {
        self.fences
    }
}

/// The transport of one run.
pub(crate) struct Mpi<'l, C: Codec> {
    links: &'l mut Links,
    codec: C,
    clock: Clock,
    /// Freight that is not encoded yet, by peer, and its number of packets. Encoding late saves memory, and takes no
    /// time from messages. Freight that is left at the end of a run is dropped.
    freight: Vec<VecDeque<C::Packet>>,
    freight_waits: usize,
    /// Number of polls so far, at the last message, and at the last poll of freight.
    polls: u32,
    message_poll: u32,
    freight_poll: u32,
    /// Peers with frames that their readers cannot see yet.
    unseen: Vec<u32>,
    /// Time of the last flush of these frames, ns, if some go by MPI.
    flushed_ns: u64,
    /// Nothing was sent since the last poll.
    looked: bool,
    /// Chooses the peer to poll.
    turn: FairPoller,
    /// The peer whose freight is polled next.
    freights: usize,
    /// Some frames wait for room; some transfers are in flight.
    waiting: bool,
    transfers: bool,
    naps: u32,
}

impl<'l, C: Codec> Mpi<'l, C> {
    pub(crate) fn new(links: &'l mut Links, codec: C, clock: Clock) -> Mpi<'l, C> {
        links.peers.iter_mut().flatten().for_each(Peer::begin);
        links.closed = false;
        let peers = links.peers.len();
        let freight = (0..peers).map(|_| VecDeque::new()).collect();
        Mpi {
            links,
            codec,
            clock,
            freight,
            freight_waits: 0,
            polls: 0,
            message_poll: 0,
            freight_poll: 0,
            unseen: Vec::new(),
            flushed_ns: 0,
            looked: true,
            turn: FairPoller::among(peers),
            freights: 0,
            waiting: false,
            transfers: false,
            naps: 0,
        }
    }

    /// Calls `add`, which adds a frame to a peer's batch. Then ships the batch or notes that it has not left.
    #[inline]
    fn with_peer(
        &mut self,
        to: u32,
        add: impl FnOnce(&mut Peer, &C, u64, &Communicator) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let links = &mut *self.links;
        let peer = links.peers[to as usize].as_mut().expect("a rank sends to other ranks only");
        let now_ns = if peer.departures.ages() { self.clock.now_ns() } else { 0 };
        add(peer, &self.codec, now_ns, &links.communicator)?;
        self.transfers |= peer.has_transfers();
        self.waiting |= peer.has_queued();
        // The first frame after a poll leaves at once; later frames are batched.
        if peer.departures.is_full() || (self.looked && !peer.departures.ages()) {
            self.looked = false;
            self.ship(to)?;
        } else if self.unseen.last() != Some(&to) && !self.unseen.contains(&to) {
            self.unseen.push(to);
        }
        Ok(())
    }

    /// Sends a peer's batch if there is room for it, and wakes the peer.
    #[inline]
    fn ship(&mut self, to: u32) -> Result<(), MpiError> {
        let links = &mut *self.links;
        let Some(peer) = &mut links.peers[to as usize] else { return Ok(()) };
        let left = peer.ship(&links.communicator)?;
        self.waiting |= !left;
        self.transfers |= peer.departures.ages();
        links.wake(to);
        Ok(())
    }

    /// Ships the batches. Batches for MPI leave only if they are old or full, or if `all` is set. If polls are rare,
    /// all batches leave, because the next poll may come only after a long handler.
    #[inline]
    fn flush(&mut self, all: bool) -> Result<(), MpiError> {
        if self.unseen.is_empty() {
            return Ok(());
        }
        let now_ns = if self.links.posted_receives.is_some() { self.clock.now_ns() } else { 0 };
        let all = all || now_ns >= self.flushed_ns + batch::OLD_NS;
        self.flushed_ns = now_ns;
        let mut young = 0;
        while let Some(&to) = self.unseen.get(young) {
            let departures = self.links.peers[to as usize].as_ref().map(|peer| &peer.departures);
            let leaves = departures.is_none_or(|departures| {
                all || departures.is_full() || !departures.ages() || departures.is_old(now_ns)
            });
            if leaves {
                self.unseen.swap_remove(young);
                self.ship(to)?;
            } else {
                young += 1;
            }
        }
        Ok(())
    }

    /// The peer to which freight is sent next, if freight waits for a peer that has room.
    #[inline]
    fn next_to_load(&self) -> Option<usize> {
        if self.freight_waits == 0 { None } else { self.most_to_load() }
    }

    /// The peer with room for which most freight waits, so that no peer gets all of its freight at the end.
    #[inline(never)]
    fn most_to_load(&self) -> Option<usize> {
        let takes = |&to: &usize| self.links.peers[to].as_ref().is_some_and(Peer::takes_freight);
        let waits = |&to: &usize| !self.freight[to].is_empty();
        (0..self.freight.len()).filter(waits).filter(takes).max_by_key(|&to| self.freight[to].len())
    }

    /// Sends one packet of freight. Only one, because it may be long and messages may arrive meanwhile.
    #[inline]
    fn load_freight(&mut self) -> Result<(), Failure> {
        self.next_to_load().map_or(Ok(()), |to| self.load_for(to))
    }

    #[inline(never)]
    fn load_for(&mut self, to: usize) -> Result<(), Failure> {
        let mut packet = self.freight[to].pop_front().expect("some wait");
        self.freight_waits -= 1;
        self.with_peer(to as u32, |peer, codec, now_ns, communicator| {
            peer.send_freight(|bytes| codec.encode(&mut packet, bytes), now_ns, communicator)
        })
    }

    /// Tells whether there is work besides sending and receiving.
    #[inline]
    fn needs_progress(&self) -> bool {
        self.waiting || self.transfers || !self.unseen.is_empty()
    }

    /// Does the work besides sending and receiving: ships batches, retries queued frames, and releases the memory of
    /// complete sends. True if nothing is left to do.
    fn make_progress(&mut self, all: bool) -> Result<bool, MpiError> {
        self.flush(all)?;
        if !self.waiting && !self.transfers {
            return Ok(self.unseen.is_empty());
        }
        let now_ns = self.clock.now_ns();
        (self.waiting, self.transfers) = (false, false);
        for rank in 0..self.links.peers.len() as u32 {
            self.make_peer_progress(rank, now_ns)?;
        }
        if self.transfers {
            self.links.communicator.progress()?;
        }
        self.flush(all)?;
        Ok(!self.waiting && !self.transfers && self.unseen.is_empty())
    }

    /// Does the work of [`make_progress`](Self::make_progress) for one peer.
    fn make_peer_progress(&mut self, rank: u32, now_ns: u64) -> Result<(), MpiError> {
        let links = &mut *self.links;
        let Some(peer) = &mut links.peers[rank as usize] else { return Ok(()) };
        peer.reap()?;
        self.transfers |= !peer.departures.reap()? || peer.has_transfers();
        let mut any = false;
        // As long as batches find room, queued frames fill the next batch.
        while peer.has_queued() || peer.departures.is_full() {
            let shipped = peer.ship(&links.communicator)?;
            any |= shipped;
            let written = shipped && peer.retry(now_ns, &links.communicator)?;
            if !shipped || (!written && !peer.departures.is_full()) {
                self.waiting = true;
                break;
            }
        }
        if !peer.departures.is_empty() && !self.unseen.contains(&rank) {
            self.unseen.push(rank);
        }
        if any {
            links.wake(rank);
        }
        Ok(())
    }

    /// Receives batches, and applies the grants in them.
    fn take_batches(&mut self) -> Result<(), MpiError> {
        let links = &mut *self.links;
        let Some(waiting) = &mut links.posted_receives else { return Ok(()) };
        let peers = &mut links.peers;
        while let Some((from, grant)) = waiting.take(&links.communicator, |from| arrivals(peers, from))? {
            if let Some(peer) = &mut peers[from as usize] {
                peer.departures.grant(grant);
                if peer.arrivals.ready() {
                    self.turn.mark_recent(from);
                }
            }
        }
        Ok(())
    }

    /// Passes the next packets of one peer to the receiver. If there are none, or they are freight, sends a packet of
    /// freight, so that outgoing freight is balanced with incoming freight.
    #[inline]
    fn next(&mut self, receiver: &mut dyn PacketHandler<C::Packet>) -> Result<PollOutcome, Failure> {
        if self.links.posted_receives.is_some() {
            self.take_batches()?;
        }
        self.polls = self.polls.wrapping_add(1);
        let in_one_go = self.polls.wrapping_sub(self.message_poll) > MESSAGE_POLLS;
        if self.polls.wrapping_sub(self.freight_poll) >= FREIGHT_EVERY {
            match self.poll_freight(in_one_go, receiver)? {
                PollOutcome::None => {}
                next => return Ok(next),
            }
        }
        let asked = self.turn.begin();
        for _ in 0..asked {
            match self.next_of(asked, in_one_go, receiver)? {
                PollOutcome::None => self.turn.advance(asked),
                next => return Ok(next),
            }
        }
        self.load_freight()?;
        Ok(PollOutcome::None)
    }

    /// Passes a complete packet of freight to the receiver, if there is one, and sends one. Freight has a separate
    /// polling order, so that a peer that sends without a pause cannot delay the freight of others.
    #[inline(never)]
    fn poll_freight(
        &mut self,
        in_one_go: bool,
        receiver: &mut dyn PacketHandler<C::Packet>,
    ) -> Result<PollOutcome, Failure> {
        self.freight_poll = self.polls;
        let links = &mut *self.links;
        let mut next = PollOutcome::None;
        for _ in 0..links.peers.len() {
            let place = self.freights;
            self.freights = (place + 1) % links.peers.len();
            let Some(peer) = &mut links.peers[place] else { continue };
            let come = peer.take_freight(in_one_go, &self.codec, &links.communicator, receiver)?;
            self.transfers |= peer.has_transfers();
            if let Some(more) = come {
                self.naps = 0;
                next = PollOutcome::behind_one(more);
                break;
            }
        }
        self.load_freight()?;
        Ok(next)
    }

    /// Passes the next packets of the current peer to the receiver. This poll covers `asked` peers.
    #[inline]
    fn next_of(
        &mut self,
        asked: u32,
        in_one_go: bool,
        receiver: &mut dyn PacketHandler<C::Packet>,
    ) -> Result<PollOutcome, Failure> {
        let links = &mut *self.links;
        let Some(peer) = &mut links.peers[self.turn.place()] else { return Ok(PollOutcome::None) };
        let come =
            peer.take(in_one_go, self.turn.quantum_left(), &self.codec, &links.communicator, receiver)?;
        self.transfers |= peer.has_transfers();
        let Some(Taken { lane, packets, more }) = come else { return Ok(PollOutcome::None) };
        self.transfers |= peer.send_due_grant(&links.communicator)?;
        self.naps = 0;
        match lane {
            Lane::Express => {
                self.turn.packets_taken(packets, asked);
                // Each packet counts as a poll, so that many packets bring the next poll of freight closer.
                self.polls = self.polls.wrapping_add(packets - 1);
                self.message_poll = self.polls;
            }
            Lane::Freight => {
                // Receiving a chunk takes long, so other peers may have packets by now.
                self.turn.advance(asked);
                self.load_freight()?;
            }
        }
        Ok(PollOutcome::behind_one(more))
    }

    #[cold]
    fn error(&self, why: Failure) -> Error {
        why.error(self.links.rank)
    }

    /// One round of closing; true once it is complete. Packets that still arrive are taken and dropped.
    fn close_round(&mut self) -> Result<bool, Failure> {
        let sent = self.make_progress(true)?;
        self.take_batches()?;
        let links = &mut *self.links;
        for peer in links.peers.iter_mut().flatten() {
            peer.discard(&links.communicator)?;
            self.transfers |= peer.send_due_grant(&links.communicator)? | peer.has_transfers();
        }
        Ok(sent && self.links.peers.iter().flatten().all(|peer| peer.is_closed() && !peer.has_transfers()))
    }

    fn open_ranks(&self) -> Vec<Rank> {
        let peers = (0..).map(Rank).zip(&self.links.peers);
        let silent = |peer: &Option<Peer>| peer.as_ref().is_some_and(|peer| !peer.is_closed());
        peers.filter(|(_, peer)| silent(peer)).map(|(rank, _)| rank).collect()
    }
}

/// The outcome of a poll.
enum PollOutcome {
    None,
    /// Packets were taken, and there may be more.
    More,
    /// The receiver takes no more packets now.
    Enough,
}

impl PollOutcome {
    /// The outcome after packets were taken; `more` tells whether the receiver takes more.
    fn behind_one(more: bool) -> PollOutcome {
        if more { PollOutcome::More } else { PollOutcome::Enough }
    }
}

fn arrivals(peers: &mut [Option<Peer>], from: u32) -> &mut InboundFrames {
    &mut peers[from as usize].as_mut().expect("a process sends nothing to itself").arrivals
}

impl<C: Codec> Transport<C::Packet> for Mpi<'_, C> {
    #[inline]
    fn send(&mut self, to: Rank, mut packet: C::Packet) -> Result<(), Error> {
        if C::is_freight(&packet) {
            self.freight[to.index()].push_back(packet);
            self.freight_waits += 1;
            return Ok(());
        }
        self.with_peer(to.0, |peer, codec, now_ns, communicator| {
            peer.send(|bytes| codec.encode(&mut packet, bytes), now_ns, communicator)
        })
        .map_err(|why| self.error(why))
    }

    fn send_written(
        &mut self,
        to: Rank,
        write: &mut dyn FnMut(&mut Vec<u8>) -> Encoded,
    ) -> Option<Result<(), Error>> {
        let sent =
            self.with_peer(to.0, |peer, _, now_ns, communicator| peer.send(write, now_ns, communicator));
        Some(sent.map_err(|why| self.error(why)))
    }

    fn poll_each(&mut self, receiver: &mut dyn PacketHandler<C::Packet>) -> Result<(), Error> {
        loop {
            self.looked = true;
            if self.needs_progress() {
                self.make_progress(false).map_err(|why| self.error(why.into()))?;
            }
            match self.next(receiver).map_err(|why| self.error(why))? {
                PollOutcome::More => {}
                PollOutcome::None | PollOutcome::Enough => return Ok(()),
            }
        }
    }

    fn set_frequent_polls(&mut self, often: bool) {
        self.turn.set_partial(often);
    }

    fn idle(&mut self) -> bool {
        // A failure occurs again at the next poll, which can return it.
        let left = self.make_progress(true).unwrap_or(false) || !self.waiting;
        left && self.freight_waits == 0
    }

    fn ready(&mut self) -> bool {
        let batches = self.links.posted_receives.as_mut().map_or(Ok(false), PostedReceives::ready);
        let mut ready = batches.unwrap_or(true) || self.next_to_load().is_some();
        for peer in self.links.peers.iter_mut().flatten() {
            ready = ready || peer.ready(&self.links.communicator).unwrap_or(true);
        }
        ready
    }

    fn congested(&self) -> bool {
        self.waiting && self.links.peers.iter().flatten().any(Peer::is_congested)
    }

    fn has_transfers(&self) -> bool {
        self.transfers || self.freight_waits > 0
    }

    /// None if senders always wake this process. Only senders of this host do, for frames. MPI wakes no thread.
    fn nap(&mut self) -> Option<Duration> {
        let wakes = self.links.posted_receives.is_none() && !self.has_transfers();
        let nap = (NAP_MIN * (1 << self.naps.min(8))).min(NAP_MAX);
        self.naps += 1;
        (!wakes).then_some(nap)
    }

    fn close(&mut self, lost: &dyn Fn(OpenRanks<'_>) -> bool) {
        let me = self.links.rank;
        let mut said = true;
        for to in (0..self.links.peers.len() as u32).filter(|&to| to != me) {
            let bye = self.with_peer(to, |peer, _, now_ns, communicator| peer.say_bye(now_ns, communicator));
            if let Err(why) = bye {
                let why = self.error(why);
                tracing::error!(rank = me, to, %why, "the end of the run cannot be sent");
                said = false;
            }
        }
        let mut rounds = 0u32;
        while said && !lost(&|| self.open_ranks()) {
            match self.close_round() {
                Ok(true) => {
                    self.links.closed = true;
                    return;
                }
                Ok(false) => {}
                Err(why) => {
                    let why = self.error(why);
                    tracing::error!(rank = me, %why, "the ranks cannot end the run together");
                    break;
                }
            }
            rounds += 1;
            match rounds {
                0..1000 => std::hint::spin_loop(),
                1000..2000 => std::thread::yield_now(),
                _ => std::thread::sleep(NAP_MIN),
            }
        }
        // Data of this run is left on the links, so another run cannot use them.
        self.links.communicator.give_up();
    }
}
