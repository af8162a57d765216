//! Failure detector: notifies the ranks of a job that a process has died, which MPI does not. Names stopped processes.
//!
//! Ranks form a [`Tree`]. Each rank has a TCP connection to its parent and to each of its children, on which nothing is
//! sent while all ranks work. When a process dies, for any reason, its kernel closes its sockets. When a process is
//! stopped, or has no vCPU, its sockets stay open. So the end of a connection is a death, and silence never is. There
//! is no heartbeat that a slow rank could miss. A host that vanishes closes nothing, but the kernels probe an idle
//! connection, and give it up after about 11 s.
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
//! The *neighbours* of a rank are its parent and its children. A rank *leaves* when its [`Liveness`] is dropped: it
//! sends a goodbye. A rank *dies* when its connections end without a goodbye. A rank is *lost* after it has left or
//! died. This module does not decide what a loss means for a run.
//!
//! # A round of pings
//! A rank that has begun no work for some time [pings](Pinger::ping) its neighbours. A neighbour replies with a pong at
//! once, and pings its own neighbours, so a round reaches all ranks. A neighbour that has not replied after
//! [`PING_TIMEOUT_NS`] is *silent*: its process is stopped, or its host has no time for it. The rank that sent the ping
//! reports this once, and reports when the neighbour replies again. A silent rank is not lost.
//!
//! # States of a child at its parent
//!
//! | state of a connection | begins | ends |
//! |---|---|---|
//! | pending | the parent accepts it and sends its password | watched when the child's password arrives; else dropped |
//! | watched | the password is right and its rank is awaited | lost: goodbye, or the end of the connection |
//!
//! | state of a rank | means |
//! |---|---|
//! | awaited | has not connected; if it has not when the listener closes, it is never watched |
//! | watched | has a connection; sends and receives losses |
//! | lost | died or left, for good |
//!
//! # Rules
//! 1. One thread per process, `caribou peers`, owns all its connections. It sleeps in `poll` until the kernel has
//!    events. It has a timeout only while children may still connect or pongs are due.
//! 2. Other threads command it through a pipe. A byte begins a round of pings. Dropping [`Liveness`] closes the pipe,
//!    and the thread sends the goodbye.
//! 3. The parent sends its password first, so a child checks that it has found its parent before it sends its own
//!    password. After that the child does not give up, so a connection that ends after the child's password is always a
//!    death. An inner rank connects to its parent before it sends anything to its children.
//! 4. Nothing blocks the thread. Bytes that a neighbour does not read are queued: at most a ping, a pong and a frame
//!    per loss.
//! 5. A rank forwards a loss to all its neighbours except the sender, and then calls its [`OnPeerEvent`]. It sends
//!    earlier losses to a child that connects late. There is one path between two ranks, so no rank receives a loss
//!    twice. If a rank dies because of a loss, its own death is reported after that loss.
//! 6. Only the first loss is forwarded, and the first death if that loss was none. All others are dropped, because a
//!    run is over at the first loss. At the end of a job all ranks leave, and need not receive all losses.
//! 7. A lost rank is not replaced, so the ranks that it connected lose contact. But on each side it has a neighbour
//!    that reports its loss. So all remaining ranks receive a loss: this one, or one on the path to it.
//! 8. A rank begins a round at the command of its process or at a neighbour's ping, and pings all other neighbours. It
//!    begins no round within [`PING_TIMEOUT_NS`] of the last. So a connection carries one ping in that time, however
//!    many ranks begin a round.
//! 9. A rank reports a neighbour as silent only after the time is up and all bytes that had arrived by then are read.
//!    If the thread itself ran much too late, it extends the time, because other processes may have been stopped too.
//! 10. A neighbour with an outstanding ping gets no second ping.
//!
//! # Limits
//! - A rank that computes forever is not detected, because its thread replies.
//! - A stopped rank forwards neither losses nor pings until it continues. Meanwhile losses behind it are not reported.
//! - Passwords keep other jobs and port scanners out, but are not encrypted: an attacker on the network can read them.
//! - If a process has forked without `exec`, its death is detected only when the child is gone too.
//! - A large core dump delays the detection until the dump is written.

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

/// How a rank was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LossKind {
    /// Its connection ended without a goodbye: killed, crashed, exited without dropping its [`Liveness`], or cut off.
    Died,
    /// It sent a goodbye.
    Left,
}

/// A rank that has left or died.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lost {
    pub(crate) rank: Rank,
    pub(crate) kind: LossKind,
}

/// An event about another rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PeerEvent {
    /// A loss; only the first loss and the first death.
    Lost(Lost),
    /// A neighbour has not replied in time.
    Silent(Rank),
    /// A silent neighbour has replied again.
    Answers(Rank),
}

/// The callback for events, which the thread of [`Liveness`] calls. The callback must not block. In particular it must
/// not wait for the thread that drops the [`Liveness`], because that thread waits for the callback.
pub(crate) type OnPeerEvent = Box<dyn Fn(PeerEvent) + Send>;

/// Time within which a neighbour replies to a ping, ns.
pub(crate) const PING_TIMEOUT_NS: u64 = 3_000_000_000;

/// Begins rounds of pings, from any thread.
#[derive(Clone)]
pub(crate) struct Pinger {
    /// None after the process has left.
    ask: Weak<PipeWriter>,
}

impl Pinger {
    /// Begins a round of pings, which reaches all ranks.
    pub(crate) fn ping(&self) {
        // An error means that the thread has ended, so there is nothing to ping.
        let _ = self.ask.upgrade().map(|pipe| (&*pipe).write(&[0]));
    }
}

/// The failure detector of one process. Dropping it sends the goodbye, which takes 200 ms at most.
pub(crate) struct Liveness {
    /// Writing a byte begins a round of pings. Closing the pipe ends the thread.
    orders: Option<Arc<PipeWriter>>,
    thread: Option<JoinHandle<()>>,
}

impl Liveness {
    /// Starts the detector of `rank`: connects to its parent, accepts its children, and watches them. Only rank 0 has
    /// no `parent`, and only inner ranks need a `door`. Returns when the parent watches this rank.
    ///
    /// Usually takes a millisecond, and up to 6 s per address of the parent that does not answer. Fails if no address
    /// leads to the parent. This rank and the ranks below it are then not watched, and get no losses. All other ranks
    /// are watched. A child that has not connected after 10 s is not watched; one warning has their number.
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
            // A callback that panicked has printed why, and nothing is left to watch.
            let _ = thread.join();
        }
    }
}
