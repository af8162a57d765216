//! Failure detector: tells the ranks of a job that a process has died, which MPI does not, and names stopped processes.
//!
//! Ranks form a [`Tree`]. Each rank holds a TCP connection to its parent and to each of its children. Nothing is sent on
//! it while all ranks are at work. When a process dies, for any reason, its kernel closes its sockets. When it is only
//! stopped, or has no vCPU, they stay open. So the end of a connection is a death, and silence never is. There is no
//! heartbeat that a slow rank could miss. A host that vanishes closes nothing; the kernels probe an idle connection and
//! give it up after about 11 s.
//!
//! ```text
//!            rank 0                        "rank 3 died": from the kernel to rank 1, from there to ranks 0
//!           /      \                       and 4, and from rank 0 to rank 2. A rank has up to 256 children:
//!      rank 1      rank 2                  no process has more than 257 connections, and most jobs are a
//!      /    \          \                   star round rank 0.
//!  rank 3  rank 4      rank 5
//! ```
//!
//! # Words
//! The *neighbours* of a rank are its parent and its children. A rank *leaves* when its [`Liveness`] is dropped: it sends
//! a goodbye. It *dies* when its connections end without one. A rank is *lost* once it has left or died. The consequence
//! of a loss for a run is not decided here.
//!
//! # A round of pings
//! A rank that has begun no work for some time [pings](Pinger::ping) its neighbours. They reply with a pong at once and ping
//! their own neighbours, so a round reaches all ranks. A neighbour that has not replied after [`PING_TIMEOUT_NS`] is
//! *silent*: its process is stopped, or its host has no time for it. The rank that sent the ping reports this once, and
//! reports when the neighbour replies again. Nothing follows from it: a silent rank is not lost.
//!
//! # States: a child, as its parent sees it
//!
//! | state of a connection | enters | leaves |
//! |---|---|---|
//! | pending | the parent accepts it, and sends its password | with the child's password, to watched; else is dropped |
//! | watched | the password is right and its rank is awaited | lost: goodbye, or the end of the connection |
//!
//! | state of a rank | means |
//! |---|---|
//! | awaited | has not connected; if it has not when the listener closes, it is never watched |
//! | watched | has a connection, as the parent has for its child; sends and receives losses |
//! | lost | died or left, for good |
//!
//! # Rules
//! 1. One thread per process, `caribou peers`, owns all its connections. It sleeps in `poll` until the kernel has events. It
//!    has a timeout only while children may still come or pongs are due.
//! 2. The other threads command it through a pipe: a byte begins a round of pings. The drop of [`Liveness`] closes the pipe,
//!    and the thread sends the goodbye.
//! 3. The parent sends its password first. A child therefore knows that it has found its parent before it sends its own
//!    password. From then on it does not give up, so a connection that ends after the child's password is always a death. An
//!    inner rank has reached its own parent before it sends anything to its children.
//! 4. Nothing blocks the thread. Bytes that a neighbour does not read yet are queued for it: at most a frame per loss, a
//!    ping and a pong.
//! 5. A rank forwards a loss to all its neighbours except the one that reported it, and then calls its own
//!    [`OnPeerEvent`]. A child that connects late is told the earlier losses. There is one path between two ranks, so no
//!    rank is told of a loss twice. If a rank dies because of a loss, its own death is reported after that loss.
//! 6. Only the first loss is forwarded, and the first death if that loss was none. A rank drops all others. A run is over
//!    at the first loss. At the end of a job all ranks leave, and not every rank has to be told of every other.
//! 7. A lost rank is not replaced: the ranks that it connected lose contact. But on each side it has a neighbour that
//!    reports its loss. So all remaining ranks are told of a loss: of this one, or of one on the path to it.
//! 8. A rank begins a round at the command of its own process or when a neighbour pings it, and pings all other
//!    neighbours. It begins no round within [`PING_TIMEOUT_NS`] of the last. A connection therefore carries one ping in
//!    that time, for any number of ranks that begin a round.
//! 9. A rank calls a neighbour silent only after the time is up and all bytes that had come by then are read. A thread
//!    that itself ran much too late grants the time again: its own process was stopped, and others may have been too.
//! 10. A neighbour with an outstanding ping is not sent a second one.
//!
//! # Limits
//! A rank that computes forever is not noticed: its thread replies. A stopped rank forwards neither losses nor pings
//! until it continues. Meanwhile nothing is known of the ranks behind it. Passwords keep other jobs and port scanners
//! out, but they travel in the clear: an attacker who reads the network can read them. If a process has forked without
//! `exec`, its death is noticed only when the child is gone too. A large core dump delays the notice until it is written.

mod connect;
mod handshakes;
mod link;
mod pings;
#[cfg(test)]
mod tests;
mod thread;
mod tree;

use std::io::{self, PipeWriter, Write};
use std::sync::{Arc, Weak};
use std::thread::{Builder, JoinHandle};

use self::handshakes::Handshakes;
use self::thread::LivenessThread;
use crate::ids::Rank;

pub(crate) use self::connect::{ContactInfo, Listener};
pub(crate) use self::tree::Tree;

/// The way in which a rank was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LossKind {
    /// Its connection ended without a goodbye: killed, crashed, exited without dropping its [`Liveness`], or cut off.
    Died,
    /// It said goodbye.
    Left,
}

/// A rank that is no longer there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lost {
    pub(crate) rank: Rank,
    pub(crate) kind: LossKind,
}

/// An event of another rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PeerEvent {
    /// Only the first loss and the first death.
    Lost(Lost),
    /// A neighbour has not answered in time.
    Silent(Rank),
    /// A silent neighbour has replied again.
    Answers(Rank),
}

/// The callback for events, called by the thread of [`Liveness`]. It must not block. Above all it must not wait for the
/// thread that drops the [`Liveness`], since that thread waits for the callback.
pub(crate) type OnPeerEvent = Box<dyn Fn(PeerEvent) + Send>;

/// Time within which a neighbour replies to a ping, ns.
pub(crate) const PING_TIMEOUT_NS: u64 = 3_000_000_000;

/// Begins rounds of pings, from any thread.
#[derive(Clone)]
pub(crate) struct Pinger {
    /// None once the process has left.
    ask: Weak<PipeWriter>,
}

impl Pinger {
    /// Pings all ranks.
    pub(crate) fn ping(&self) {
        // An error means that the thread has ended: there is nothing left to ping.
        let _ = self.ask.upgrade().map(|pipe| (&*pipe).write(&[0]));
    }
}

/// A process's part of the failure detector. Dropping it sends the goodbye; that takes 200 ms at most.
pub(crate) struct Liveness {
    /// A byte written begins a round of pings. When it is closed the thread ends.
    orders: Option<Arc<PipeWriter>>,
    thread: Option<JoinHandle<()>>,
}

impl Liveness {
    /// The part of `rank`: connects to its parent, accepts its children, and watches them all. Only rank 0 has no `parent`,
    /// and only inner ranks need a `door`. Returns when the parent watches this rank.
    ///
    /// Usually takes a millisecond; where some of the parent's addresses do not answer, up to 6 s for each. Fails where
    /// no address leads to the parent. Then this rank and the ranks below it are not watched and are told of no loss. All
    /// other ranks are watched. A child that has not come after 10 s is not watched; one warning gives the number of
    /// these.
    pub(crate) fn start(
        tree: Tree,
        rank: Rank,
        parent: Option<&ContactInfo>,
        door: Option<Listener>,
        on_news: OnPeerEvent,
    ) -> io::Result<Liveness> {
        let link = parent.map(|invitation| connect::connect_to_parent(invitation, rank)).transpose()?;
        let parent = tree.parent(rank).zip(link);
        let admission = door.map(|door| Handshakes::new(door, tree.children(rank)));
        let (reader, writer) = io::pipe()?;
        let node = LivenessThread::new(rank, parent, admission, reader, on_news);
        let thread = Builder::new().name("caribou peers".into()).spawn(|| node.run())?;
        Ok(Liveness { orders: Some(Arc::new(writer)), thread: Some(thread) })
    }

    /// A handle that begins rounds of pings.
    pub(crate) fn pinger(&self) -> Pinger {
        Pinger { ask: self.orders.as_ref().map_or_else(Weak::new, Arc::downgrade) }
    }
}

impl Drop for Liveness {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            // A callback that panicked has printed why; there is nothing left to watch.
            let _ = thread.join();
        }
    }
}
