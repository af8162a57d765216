//! A chunk's mailbox: who may run the chunk, and what waits for it.
//!
//! # States
//!
//! | state | where the chunk is | ready token |
//! |---|---|---|
//! | Vacant | nowhere | none |
//! | Idle | in the mailbox | none |
//! | Ready | in the mailbox | one, on some queue of the rank |
//! | Running | in the hands of the worker that began | with that worker |
//!
//! | gate | a push by this rank's chunks | a push by the core | a push makes a token |
//! |---|---|---|---|
//! | Open | accepted | accepted | if Idle |
//! | Held: about to leave | accepted | accepted | never |
//! | Closed: the routes have changed | refused | accepted | never |
//!
//! # Rules
//!
//! 1. A token is created only by the transition to Ready and consumed only by [`begin`](Mailbox::begin), so there is at
//!    most one: it is the proof that nobody else touches the chunk. Running *takes the chunk out*: the proof is ownership.
//! 2. Mail is appended under the lock and taken under the lock; no push is lost between the last look of a run and its
//!    end, because [`finish`](Mailbox::finish) looks again in the same critical section that makes the chunk Idle.
//! 3. A push names the chunk it is for; a mailbox that holds another one (or none) refuses it.
//! 4. No user code runs while the lock is held, and no other lock is taken.

use std::iter::once_with;

use crate::ids::{ArrayId, ChunkId};
use crate::threads::guarded::{Guarded, Tag};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Vacant,
    Idle,
    Ready,
    Running,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gate {
    Open,
    Held,
    Closed,
}

struct Inner<S, M> {
    owner: ChunkId,
    chunk: Option<S>,
    /// None as long as there is none: a mailbox that waits keeps no buffer.
    mail: Option<Vec<M>>,
    state: State,
    gate: Gate,
}

/// Holds one chunk of type `S` and its mail.
pub(crate) struct Mailbox<S, M> {
    inner: Guarded<Inner<S, M>>,
}

/// The side that pushes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// A chunk of this rank, by a route that may have changed meanwhile.
    Chunk,
    /// The core, which knows the routes.
    Core,
}

/// The outcome of a push.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// The chunk will see it; somebody else has the token, or nobody may have one.
    Queued,
    /// The chunk will see it, and the caller now has its token and must put it on a queue.
    Token,
    /// It is not accepted here and was not taken: ask for the route again.
    Refused,
}

/// The outcome of taking a token.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Begun<S, M> {
    /// The chunk's name, the chunk, and its mail.
    Run(ChunkId, S, Vec<M>),
    /// Nothing: the chunk is held, and it is now certain that no handler of it runs.
    Held,
}

/// The outcome of a run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Finished {
    Idle,
    /// More mail has come: the caller has the next token.
    Token,
    /// The chunk is held, and it is now certain that no handler of it runs.
    Held,
}

impl<S, M> Mailbox<S, M> {
    pub(crate) fn new(owner: Tag) -> Mailbox<S, M> {
        let nobody = ChunkId { array: ArrayId(u32::MAX), key: 0 };
        let (state, gate) = (State::Vacant, Gate::Open);
        let inner = Inner { owner: nobody, chunk: None, mail: None, state, gate };
        Mailbox { inner: Guarded::new(owner, inner) }
    }

    /// Moves a chunk in, with mail. True if the caller now has its token.
    pub(crate) fn settle(&self, owner: ChunkId, chunk: S, mail: Vec<M>) -> bool {
        let mut inner = self.inner.lock();
        assert_eq!(inner.state, State::Vacant, "a cell is used by one chunk at a time");
        let ready = !mail.is_empty();
        let state = if ready { State::Ready } else { State::Idle };
        *inner = Inner { owner, chunk: Some(chunk), mail: ready.then_some(mail), state, gate: Gate::Open };
        ready
    }

    /// Hop 4: takes a message for chunk `to` and appends it. A mailbox without a buffer takes one from `spares`.
    #[inline(always)]
    pub(crate) fn push(
        &self,
        to: ChunkId,
        message: &mut Option<M>,
        by: By,
        spares: &mut Vec<Vec<M>>,
    ) -> Pushed {
        tracing::trace!(hop = 4, "Mailbox::push");
        let mut inner = self.inner.lock();
        if inner.owner != to
            || inner.state == State::Vacant
            || (by == By::Chunk && inner.gate == Gate::Closed)
        {
            return Pushed::Refused;
        }
        let mail = inner.mail.get_or_insert_with(|| spares.pop().unwrap_or_default());
        // Written in its place: one that is pushed by value is copied on the way.
        mail.extend(once_with(|| message.take().expect("nobody has taken it yet")));
        if inner.state == State::Idle && inner.gate == Gate::Open {
            inner.state = State::Ready;
            return Pushed::Token;
        }
        Pushed::Queued
    }

    /// Consumes the token.
    #[inline]
    pub(crate) fn begin(&self) -> Begun<S, M> {
        let mut inner = self.inner.lock();
        assert_eq!(inner.state, State::Ready, "a token belongs to a ready chunk");
        if inner.gate != Gate::Open {
            inner.state = State::Idle;
            return Begun::Held;
        }
        inner.state = State::Running;
        let chunk = inner.chunk.take().expect("a ready chunk is in its mailbox");
        Begun::Run(inner.owner, chunk, inner.mail.take().expect("a ready chunk has mail"))
    }

    /// Ends a run; `rest` is mail that was taken and not handled, and goes first.
    #[inline]
    pub(crate) fn finish(&self, chunk: S, rest: &mut Vec<M>) -> Finished {
        let mut inner = self.inner.lock();
        inner.chunk = Some(chunk);
        if !rest.is_empty() {
            rest.extend(inner.mail.take().into_iter().flatten());
            inner.mail = Some(std::mem::take(rest));
        }
        if inner.gate != Gate::Open {
            inner.state = State::Idle;
            return Finished::Held;
        }
        if inner.mail.is_none() {
            inner.state = State::Idle;
            return Finished::Idle;
        }
        inner.state = State::Ready;
        Finished::Token
    }

    /// Ends the run of a chunk that was removed; returns the mail nobody will read.
    pub(crate) fn vacate(&self) -> Vec<M> {
        let mut inner = self.inner.lock();
        assert_eq!(inner.state, State::Running, "a chunk removes itself, so it runs");
        inner.state = State::Vacant;
        inner.mail.take().unwrap_or_default()
    }

    /// Lets no further run begin. True if none is under way or due; else the token says so when it comes back.
    pub(crate) fn hold(&self) -> bool {
        let mut inner = self.inner.lock();
        inner.gate = Gate::Held;
        inner.state == State::Idle
    }

    /// Refuses mail from chunks of this rank from now on.
    pub(crate) fn close(&self) {
        self.inner.lock().gate = Gate::Closed;
    }

    /// Moves a held chunk out with its mail.
    pub(crate) fn take(&self) -> (S, Vec<M>) {
        let mut inner = self.inner.lock();
        assert_eq!(inner.state, State::Idle, "a chunk is taken when no handler of it can run");
        inner.state = State::Vacant;
        inner.gate = Gate::Open;
        (inner.chunk.take().expect("an idle chunk is in its mailbox"), inner.mail.take().unwrap_or_default())
    }

    /// Looks at a chunk that is not running.
    pub(crate) fn inspect<R>(&self, look: impl FnOnce(ChunkId, &mut S) -> R) -> Option<R> {
        let mut inner = self.inner.lock();
        let owner = inner.owner;
        inner.chunk.as_mut().map(|chunk| look(owner, chunk))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const CHUNK: ChunkId = ChunkId { array: ArrayId(0), key: 7 };
    const OTHER: ChunkId = ChunkId { array: ArrayId(0), key: 8 };

    fn occupied() -> Mailbox<&'static str, u32> {
        let mailbox = Mailbox::new(Tag::SHARED);
        assert!(!mailbox.settle(CHUNK, "chunk", Vec::new()));
        mailbox
    }

    #[test]
    fn the_first_message_makes_the_token_and_the_second_does_not() {
        let (mailbox, spares) = (occupied(), &mut Vec::new());
        assert_eq!(mailbox.push(CHUNK, &mut Some(1), By::Chunk, spares), Pushed::Token);
        assert_eq!(mailbox.push(CHUNK, &mut Some(2), By::Chunk, spares), Pushed::Queued);
        assert_eq!(mailbox.begin(), Begun::Run(CHUNK, "chunk", [1, 2].into()));
    }

    #[test]
    fn mail_that_comes_during_a_run_makes_the_next_token_at_its_end() {
        let (mailbox, spares) = (occupied(), &mut Vec::new());
        mailbox.push(CHUNK, &mut Some(1), By::Chunk, spares);
        let Begun::Run(_, chunk, mut mail) = mailbox.begin() else { panic!("it was ready") };
        assert_eq!(mailbox.push(CHUNK, &mut Some(2), By::Chunk, spares), Pushed::Queued);
        mail.clear();
        assert_eq!(mailbox.finish(chunk, &mut mail), Finished::Token);
        assert_eq!(mailbox.begin(), Begun::Run(CHUNK, "chunk", [2].into()));
    }

    #[test]
    fn unhandled_mail_keeps_its_place() {
        let (mailbox, spares) = (occupied(), &mut Vec::new());
        mailbox.push(CHUNK, &mut Some(1), By::Chunk, spares);
        mailbox.push(CHUNK, &mut Some(2), By::Chunk, spares);
        let Begun::Run(_, chunk, mut mail) = mailbox.begin() else { panic!("it was ready") };
        mailbox.push(CHUNK, &mut Some(3), By::Chunk, spares);
        assert_eq!(mailbox.finish(chunk, &mut mail), Finished::Token);
        assert_eq!(mailbox.begin(), Begun::Run(CHUNK, "chunk", [1, 2, 3].into()));
    }

    #[test]
    fn a_held_chunk_takes_mail_but_does_not_run_and_leaves_with_it() {
        let (mailbox, spares) = (occupied(), &mut Vec::new());
        assert!(mailbox.hold());
        assert_eq!(mailbox.push(CHUNK, &mut Some(1), By::Chunk, spares), Pushed::Queued);
        mailbox.close();
        assert_eq!(mailbox.push(CHUNK, &mut Some(2), By::Chunk, spares), Pushed::Refused);
        assert_eq!(mailbox.push(CHUNK, &mut Some(3), By::Core, spares), Pushed::Queued);
        assert_eq!(mailbox.take(), ("chunk", [1, 3].into()));
        assert_eq!(mailbox.push(CHUNK, &mut Some(4), By::Core, spares), Pushed::Refused);
    }

    #[test]
    fn a_hold_waits_for_the_token_to_come_back() {
        let (mailbox, spares) = (occupied(), &mut Vec::new());
        mailbox.push(CHUNK, &mut Some(1), By::Chunk, spares);
        assert!(!mailbox.hold());
        assert_eq!(mailbox.begin(), Begun::Held);
    }

    #[test]
    fn mail_for_the_chunk_that_was_here_before_is_refused() {
        let message = &mut Some(1);
        assert_eq!(occupied().push(OTHER, message, By::Core, &mut Vec::new()), Pushed::Refused);
        assert_eq!(*message, Some(1), "it is still the caller's");
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    const CHUNK: ChunkId = ChunkId { array: ArrayId(0), key: 7 };

    fn occupied() -> Arc<Mailbox<Vec<u32>, u32>> {
        let mailbox = Mailbox::new(Tag::SHARED);
        mailbox.settle(CHUNK, Vec::new(), Vec::new());
        Arc::new(mailbox)
    }

    /// Pushes, and runs the chunk for as long as it has the token. True if it found the chunk held.
    fn push_and_run(mailbox: &Mailbox<Vec<u32>, u32>, message: u32) -> bool {
        if mailbox.push(CHUNK, &mut Some(message), By::Chunk, &mut Vec::new()) != Pushed::Token {
            return false;
        }
        while let Begun::Run(_, mut seen, mut mail) = mailbox.begin() {
            seen.extend(mail.drain(..));
            match mailbox.finish(seen, &mut mail) {
                Finished::Token => {}
                end => return end == Finished::Held,
            }
        }
        true
    }

    #[test]
    fn loom_two_pushes_are_both_seen_and_never_by_two_runs_at_once() {
        loom::model(|| {
            let mailbox = occupied();
            let other = mailbox.clone();
            let pusher = thread::spawn(move || push_and_run(&other, 1));
            push_and_run(&mailbox, 2);
            pusher.join().expect("the pusher does not panic");
            let mut seen = mailbox.inspect(|_, seen| seen.clone()).expect("nobody runs it any more");
            seen.sort_unstable();
            assert_eq!(seen, [1, 2]);
        });
    }

    #[test]
    fn loom_a_hold_against_a_push_stops_the_chunk_and_keeps_the_message() {
        loom::model(|| {
            let mailbox = occupied();
            let other = mailbox.clone();
            let pusher = thread::spawn(move || push_and_run(&other, 1));
            let held_at_once = mailbox.hold();
            let held_later = pusher.join().expect("the pusher does not panic");
            assert!(held_at_once ^ held_later, "somebody, and only one, knows that it can be taken");
            let (seen, mail) = mailbox.take();
            assert_eq!(seen.len() + mail.len(), 1);
        });
    }
}
