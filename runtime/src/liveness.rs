//! Notices that a process of the job has died, which MPI does not tell, and names a process that is stopped.
//!
//! Ranks are a [`Tree`], and each holds a TCP connection to its parent and to each of its children, on which nothing is
//! said while all ranks are at work. When a process dies, however it dies, its kernel closes its sockets; when it is merely stopped
//! or has no vCPU, they stay open. So an end of the connection is a death, and silence never is: no heartbeat that a slow
//! rank could miss. A host that vanishes closes nothing; the kernels probe an idle connection and give it up after about
//! 11 s.
//!
//! ```text
//!            rank 0                        "rank 3 died": from the kernel to rank 1, from there to ranks 0
//!           /      \                       and 4, and from rank 0 to rank 2. A rank has up to 256 children:
//!      rank 1      rank 2                  no process has more connections, and few jobs are more than a
//!      /    \          \                   star round rank 0.
//!  rank 3  rank 4      rank 5
//! ```
//!
//! # Words
//! The *neighbours* of a rank are its parent and its children. A rank *leaves* when its [`Liveness`] is dropped: it says
//! goodbye. It *dies* when its connections end without one. A rank that is *lost* has left or died. What that means for a
//! run is not decided here.
//!
//! # A round of questions
//! A rank that has begun no work for some time [asks](Pinger::ping) its neighbours whether they are there; they answer at
//! once and ask theirs, so that the question reaches all ranks. A neighbour that has not answered after
//! [`PING_TIMEOUT_NS`] is *silent*: its process is stopped, or its host has no time for it. The rank that asked says so
//! once, and says when the neighbour answers again. Nothing follows from it: a silent rank is not lost.
//!
//! # States: a child, as its parent sees it
//!
//! | state of a connection | enters | leaves |
//! |---|---|---|
//! | knocking | the parent accepts it, and says the countersign | with the password, to watched; else is dropped |
//! | watched | the password is right and its rank is awaited | lost: goodbye, or the end of the connection |
//!
//! | state of a rank | means |
//! |---|---|
//! | awaited | has not connected; when the door closes it stays so and is not watched |
//! | watched | has a connection, as the parent has for its child; says and is told who is lost |
//! | lost | died or left, for good |
//!
//! # Rules
//! 1. One thread a process, `caribou peers`, owns all its connections. It sleeps in `poll` until the kernel has news;
//!    only while children may still come or answers are due it wakes by the clock.
//! 2. The other threads speak to it by a pipe: a byte begins a round of questions; the drop of [`Liveness`] closes the
//!    pipe, and the thread says goodbye.
//! 3. The parent speaks first. A child therefore knows that it has found its parent before it gives the password, and
//!    from then on does not give up: a connection that ends after the password is a death, never a second thought. An
//!    inner rank has reached its own parent before it speaks to its children.
//! 4. Nothing blocks the thread: what a neighbour does not take is kept for it, at most a frame for each of the news, and
//!    a question and an answer.
//! 5. A rank passes news on to all its neighbours but the one that told it, and then calls its own [`OnPeerEvent`]. Whoever
//!    comes late is told what was news before. So nobody hears of a rank twice, for there is one way between two ranks;
//!    and who dies of the news is heard of after them.
//! 6. News are the first loss, and the first death if that was none. What else a rank hears it drops: a run is over at
//!    the first loss, and at the end of a job, where all leave, not everybody has to hear of everybody.
//! 7. Nobody takes the place of a lost rank: those whom it connected hear no more of each other. But on each side it
//!    has a neighbour that tells of it. So all who are there hear of a loss: of that one, or of one on the way there.
//! 8. A rank begins a round when its own process orders it, or when a neighbour asks, and passes the question to all
//!    other neighbours. It begins no round within [`PING_TIMEOUT_NS`] of the last, so a connection carries one question
//!    in that time, however many ranks ask.
//! 9. A rank calls a neighbour silent only after the time is up and all that had come by then is read. A thread that
//!    itself ran much too late grants the time again: its own process was stopped, and others may have been too.
//! 10. A neighbour that owes an answer gets no second question.
//!
//! # What it does not do
//! It does not notice a rank that computes for ever: that one answers. A stopped rank passes on neither news nor questions
//! until it goes on, so nothing is known meanwhile of the ranks behind it. It does not keep secrets from whoever reads the
//! network: the password keeps other jobs and port scanners out, not an attacker beside the wire. A process that has forked without `exec` is noticed when its child is
//! gone too, and one with a large core dump when that is written.

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

/// What a rank hears of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PeerEvent {
    /// Only the first loss and the first death.
    Lost(Lost),
    /// A neighbour has not answered in time.
    Silent(Rank),
    /// A neighbour answers that was silent.
    Answers(Rank),
}

/// The action on news. Called by the watching thread. It must not block, above all not on the thread that drops the
/// [`Liveness`], which waits for it.
pub(crate) type OnPeerEvent = Box<dyn Fn(PeerEvent) + Send>;

/// Time in which a neighbour answers, ns.
pub(crate) const PING_TIMEOUT_NS: u64 = 3_000_000_000;

/// Begins rounds of questions, from any thread.
#[derive(Clone)]
pub(crate) struct Pinger {
    /// None once the process has left.
    ask: Weak<PipeWriter>,
}

impl Pinger {
    /// Asks all ranks whether they are there.
    pub(crate) fn ping(&self) {
        // An error is a thread that has ended: there is nobody left to ask.
        let _ = self.ask.upgrade().map(|pipe| (&*pipe).write(&[0]));
    }
}

/// A process's part in the watch. Dropping it says goodbye; that takes 200 ms at most.
pub(crate) struct Liveness {
    /// Written to: the thread asks its neighbours. Closed: it ends.
    orders: Option<Arc<PipeWriter>>,
    thread: Option<JoinHandle<()>>,
}

impl Liveness {
    /// The part of `rank`: connects to its parent, which only rank 0 has none of, lets its children in by the `door`, which
    /// only inner ranks need, and watches them all. Returns when the parent watches this rank.
    ///
    /// Usually takes a millisecond; where some of the parent's addresses do not answer, up to 6 s for each. Fails where no
    /// address leads to it. Then this rank and those below it are not watched and hear of nobody, while the others are
    /// and do. A child that has not come after 10 s is not watched; one warning says how many these are.
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

    /// What begins rounds of questions.
    pub(crate) fn pinger(&self) -> Pinger {
        Pinger { ask: self.orders.as_ref().map_or_else(Weak::new, Arc::downgrade) }
    }
}

impl Drop for Liveness {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            // A callback that panicked has printed why; there is nothing left to watch for.
            let _ = thread.join();
        }
    }
}
