//! Notices that a process of the job has died, which MPI does not tell.
//!
//! Every process holds one TCP connection to rank 0, on which nothing is said while all is well. When a process dies,
//! however it dies, its kernel closes its sockets; when it is merely stopped or has no vCPU, they stay open. So an end of
//! the connection is a death, and silence never is: no heartbeat that a slow rank could miss. A host that vanishes
//! closes nothing; the kernels probe an idle connection and give it up after about 11 s.
//!
//! ```text
//!   rank 1 -----\
//!   rank 2 ------- rank 0     "rank 2 died": from the kernel to rank 0, from rank 0 to all others
//!   rank 3 -----/
//! ```
//!
//! # Words
//! A rank *leaves* when its [`Liveness`] is dropped: it says goodbye. It *dies* when its connection ends without one. A
//! rank that is *lost* has left or died. What that means for a run is not decided here.
//!
//! # States: one connection, as rank 0 sees it
//!
//! | state | enters | leaves |
//! |---|---|---|
//! | knocking | rank 0 accepts it, and says the countersign | with the password, to watched; else is dropped |
//! | watched | the password is right and its rank is awaited | lost: goodbye, or the end of the connection |
//!
//! | state of a rank | means |
//! |---|---|
//! | awaited | has not connected; when the door closes it stays so and is not watched |
//! | watched | has a connection; is told who is lost |
//! | lost | died or left, for good |
//!
//! # Rules
//! 1. One thread a process, `caribou peers`, owns all its connections. It sleeps in `poll` until the kernel has news;
//!    only rank 0's, and only while ranks may still come, wakes by the clock.
//! 2. The other threads speak to it by one means: the drop of [`Liveness`] closes a pipe, and the thread says goodbye.
//! 3. Rank 0 speaks first. A rank therefore knows that it has found rank 0 before it gives the password, and from then
//!    on does not give up: a connection that ends after the password is a death, never a second thought.
//! 4. Nothing blocks rank 0's thread: what a peer does not take is kept for it, at most one frame a lost rank.
//! 5. A rank is lost once. Rank 0 tells the others first, then calls its own [`OnLost`]. Whoever comes late is told
//!    who was lost before.
//! 6. Without rank 0 nobody watches: a rank that hears that rank 0 is lost hears nothing more.
//!
//! # What it does not do
//! It does not notice a rank that computes for ever or is stopped for ever. It does not keep secrets from whoever reads
//! the network: the password keeps other jobs and port scanners out, not an attacker beside the wire. A process that
//! has forked without `exec` is noticed when its child is gone too, and one with a large core dump when that is written.

mod door;
mod host;
mod link;
#[cfg(test)]
mod tests;

use std::io::{self, PipeReader, PipeWriter};
use std::thread::{Builder, JoinHandle};

use rustix::event::{PollFd, PollFlags};

use self::link::{Frame, Link};
use crate::ids::ROOT;
use crate::ids::Rank;

pub(crate) use self::door::{Door, Invitation};

/// The way in which a rank was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// Its connection ended without a goodbye: killed, crashed, exited without dropping its [`Liveness`], or cut off.
    Died,
    /// It said goodbye.
    Left,
}

/// A rank that is no longer there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lost {
    pub(crate) rank: Rank,
    pub(crate) how: How,
}

/// The action on a lost rank. Called by the watching thread, at most once a rank. It must not block, above all not on
/// the thread that drops the [`Liveness`], which waits for it.
pub(crate) type OnLost = Box<dyn Fn(Lost) + Send>;

/// A process's part in the watch. Dropping it says goodbye; that takes 200 ms at most.
pub(crate) struct Liveness {
    /// Closed, not written to: the thread ends.
    stop: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
}

impl Liveness {
    /// Rank 0's part: lets in the other `ranks - 1`, and watches them. Returns at once.
    ///
    /// A rank that has not come after 10 s is not watched; one warning says how many these are.
    pub(crate) fn host(door: Door, ranks: u32, on_lost: OnLost) -> io::Result<Liveness> {
        Liveness::start(move |stop| host::Host::new(door, ranks, stop, on_lost).watch())
    }

    /// Another rank's part: connects to rank 0, and listens to it. Returns when rank 0 watches this rank.
    ///
    /// Usually takes a millisecond; where some of rank 0's addresses do not answer, up to 3 s for each. Fails where no
    /// address leads to rank 0. Then this rank is not watched and hears of nobody, while the others are and do.
    pub(crate) fn join(invitation: &Invitation, rank: Rank, on_lost: OnLost) -> io::Result<Liveness> {
        let link = door::knock_everywhere(invitation, rank)?;
        Liveness::start(move |stop| watch_root(link, rank, &stop, &on_lost))
    }

    fn start(watch: impl FnOnce(PipeReader) + Send + 'static) -> io::Result<Liveness> {
        let (reader, writer) = io::pipe()?;
        let thread = Builder::new().name("caribou peers".into()).spawn(move || watch(reader))?;
        Ok(Liveness { stop: Some(writer), thread: Some(thread) })
    }
}

impl Drop for Liveness {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A callback that panicked has printed why; there is nothing left to watch for.
            let _ = thread.join();
        }
    }
}

/// The thread of every rank but 0: passes on what rank 0 says until it is lost or this rank leaves.
fn watch_root(mut link: Link, rank: Rank, stop: &PipeReader, on_lost: &OnLost) {
    let mut open = true;
    loop {
        while let Some(frame) = link.next_frame() {
            // Rank 0 says nothing else now. What cannot be read is not rank 0 any more.
            let Some(Frame::Lost(lost)) = frame else {
                open = false;
                break;
            };
            on_lost(lost);
            if lost.rank == ROOT {
                return;
            }
        }
        if !open {
            return on_lost(Lost { rank: ROOT, how: How::Died });
        }
        let mut fds = [PollFd::new(stop, PollFlags::IN), link.poll_fd()];
        link::wait(&mut fds, None);
        let [stopped, news] = fds.map(|fd| !fd.revents().is_empty());
        if stopped {
            return link::part(vec![link], rank);
        }
        if news {
            open = link.hear();
        }
    }
}
