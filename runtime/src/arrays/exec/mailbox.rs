//! A chunk's mailbox: who may run the chunk, and what waits for it.
//!
//! # States
//!
//! | state | where the chunk is | ready entry |
//! |---|---|---|
//! | Vacant | nowhere | none |
//! | New: has not started | in the mailbox | one, on some queue of the rank |
//! | Idle | in the mailbox | none |
//! | Ready | in the mailbox | one, on some queue of the rank |
//! | Running | in the hands of the worker that began | with that worker |
//!
//! | gate | a push by this rank's chunks | a push by the core | a push makes a entry |
//! |---|---|---|---|
//! | Open | accepted | accepted | if Idle |
//! | Held: about to leave | accepted | accepted | never |
//! | Closed: the routes have changed | refused | accepted | never |
//!
//! # Rules
//!
//! 1. A entry is created only by the transition to New or Ready and consumed only by [`begin`](Mailbox::begin), so there is at
//!    most one: it is the proof that nobody else touches the chunk. Running *takes the chunk out*: the proof is ownership.
//! 2. MessageList is appended under the lock and taken under the lock; no push is lost between the last look of a run and its
//!    end, because [`finish`](Mailbox::finish) looks again in the same critical section that makes the chunk Idle.
//! 3. A push names the chunk it is for; a mailbox that holds another one (or none) refuses it.
//! 4. Unread mail, which a run has left or a chunk has brought, goes before all that has come since: the next run has it
//!    alone. While a chunk runs its mailbox has none.
//! 5. No user code runs while the lock is held, but `Chunk::waits_for` where a run has stalled; and no other lock is taken.

use crate::arrays::core::routing::message_list::{MessageList, MessageNode};
use crate::ids::{ArrayId, ChunkId};
use crate::threads::elided_mutex::{ElidedMutex, Tag};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Vacant,
    New,
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

/// The owner of a vacant mailbox, to which nothing is sent.
const NOBODY: ChunkId = ChunkId { array: ArrayId(u32::MAX), key: 0 };

struct Inner<S, M> {
    owner: ChunkId,
    chunk: Option<S>,
    /// MessageList in order that goes before what has come since: a run took it and did not handle it, or it came with the chunk.
    unread: MessageList<M>,
    newest_first: MessageList<M>,
    state: State,
    gate: Gate,
}

/// Holds one chunk of type `S` and its mail.
pub(crate) struct Mailbox<S, M> {
    inner: ElidedMutex<Inner<S, M>>,
}

/// The side that pushes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PushedBy {
    /// A chunk of this rank, by a route that may have changed meanwhile.
    Chunk,
    /// The core, which knows the routes.
    Core,
}

/// The outcome of a push.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PushOutcome<M> {
    /// The chunk will see it; somebody else has the entry, or nobody may have one.
    Queued,
    /// The chunk will see it, and the caller now has its entry and must put it on a queue.
    Ready,
    /// It is not accepted here: ask for the route again.
    Refused(Box<MessageNode<M>>),
}

/// The outcome of taking a entry.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BeginOutcome<S, M> {
    /// The chunk's name, the chunk, and mail in order: what is unread, or else what has come.
    Run(ChunkId, S, MessageList<M>),
    /// The same of a chunk that is to start first.
    Start(ChunkId, S, MessageList<M>),
    /// Nothing: the chunk is held, and it is now certain that no handler of it runs.
    Held,
}

/// The outcome of a run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FinishOutcome {
    Idle,
    /// More mail has come: the caller has the next entry.
    Ready,
    /// The chunk is held, and it is now certain that no handler of it runs.
    Held,
}

impl<S, M> Mailbox<S, M> {
    pub(crate) fn new(owner: Tag) -> Mailbox<S, M> {
        let (state, gate) = (State::Vacant, Gate::Open);
        let (unread, newest_first) = (MessageList::default(), MessageList::default());
        let inner = Inner { owner: NOBODY, chunk: None, unread, newest_first, state, gate };
        Mailbox { inner: ElidedMutex::new(owner, inner) }
    }

    /// Moves a chunk in that has not started. The caller now has its entry.
    pub(crate) fn settle_new(&self, owner: ChunkId, chunk: S) {
        self.move_in(owner, chunk, MessageList::default(), State::New);
    }

    /// Moves a chunk in, with mail. True if the caller now has its entry.
    pub(crate) fn settle(&self, owner: ChunkId, chunk: S, mail: MessageList<M>) -> bool {
        let ready = !mail.is_empty();
        self.move_in(owner, chunk, mail, if ready { State::Ready } else { State::Idle });
        ready
    }

    fn move_in(&self, owner: ChunkId, chunk: S, unread: MessageList<M>, state: State) {
        let mut inner = self.inner.lock();
        assert_eq!(inner.state, State::Vacant, "a cell is used by one chunk at a time");
        let newest_first = MessageList::default();
        *inner = Inner { owner, chunk: Some(chunk), unread, newest_first, state, gate: Gate::Open };
    }

    /// Hop 4: takes a message for the chunk and appends it.
    #[inline(always)]
    pub(crate) fn push(&self, node: Box<MessageNode<M>>, by: PushedBy) -> PushOutcome<M> {
        tracing::trace!(hop = 4, "Mailbox::push");
        self.inner.with(|inner| {
            if inner.owner != node.to || (by == PushedBy::Chunk && inner.gate == Gate::Closed) {
                return PushOutcome::Refused(node);
            }
            inner.newest_first.push(node);
            if inner.state == State::Idle && inner.gate == Gate::Open {
                inner.state = State::Ready;
                return PushOutcome::Ready;
            }
            PushOutcome::Queued
        })
    }

    /// Consumes the entry. MessageList that an earlier run left unread comes alone: the rest stays for the next, so that a chunk which
    /// stops after each message does not turn over all its mail each time.
    #[inline]
    pub(crate) fn begin(&self) -> BeginOutcome<S, M> {
        // No closure: what it returned would be moved by way of memory.
        let mut inner = self.inner.lock();
        let starts = inner.state == State::New;
        assert!(starts || inner.state == State::Ready, "a entry belongs to a ready chunk");
        if inner.gate != Gate::Open {
            assert!(!starts, "a chunk that leaves has come to a sync, so it has started");
            inner.state = State::Idle;
            return BeginOutcome::Held;
        }
        inner.state = State::Running;
        let chunk = inner.chunk.take().expect("a ready chunk is in its mailbox");
        let mail = if inner.unread.is_empty() {
            inner.newest_first.take_reversed()
        } else {
            std::mem::take(&mut inner.unread)
        };
        if starts {
            BeginOutcome::Start(inner.owner, chunk, mail)
        } else {
            BeginOutcome::Run(inner.owner, chunk, mail)
        }
    }

    /// Ends a run; `rest` is mail that was taken and not handled, and goes first.
    #[inline]
    pub(crate) fn finish(&self, chunk: S, rest: MessageList<M>) -> FinishOutcome {
        if !rest.is_empty() {
            self.leave_unread(rest);
        }
        self.inner.with(|inner| {
            inner.chunk = Some(chunk);
            if inner.gate != Gate::Open {
                inner.state = State::Idle;
                return FinishOutcome::Held;
            }
            if inner.unread.is_empty() && inner.newest_first.is_empty() {
                inner.state = State::Idle;
                return FinishOutcome::Idle;
            }
            inner.state = State::Ready;
            FinishOutcome::Ready
        })
    }

    #[inline(never)]
    fn leave_unread(&self, rest: MessageList<M>) {
        let mut inner = self.inner.lock();
        debug_assert!(inner.unread.is_empty(), "it was taken first");
        inner.unread = rest;
    }

    /// Takes what has come for a chunk that runs, behind what its run has begun with.
    pub(crate) fn take_newer(&self) -> MessageList<M> {
        self.inner.lock().newest_first.take_reversed()
    }

    /// Ends the run of a chunk that was removed; returns the mail nobody will read.
    pub(crate) fn vacate(&self) -> MessageList<M> {
        let mut inner = self.inner.lock();
        assert_eq!(inner.state, State::Running, "a chunk removes itself, so it runs");
        (inner.owner, inner.state) = (NOBODY, State::Vacant);
        inner.newest_first.take_reversed()
    }

    /// Lets no further run begin. True if none is under way or due; else the entry says so when it comes back.
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
    pub(crate) fn take(&self) -> (S, MessageList<M>) {
        let mut inner = self.inner.lock();
        assert_eq!(inner.state, State::Idle, "a chunk is taken when no handler of it can run");
        (inner.owner, inner.state, inner.gate) = (NOBODY, State::Vacant, Gate::Open);
        let chunk = inner.chunk.take().expect("an idle chunk is in its mailbox");
        let mut mail = inner.newest_first.take_reversed();
        for node in inner.unread.take_reversed() {
            mail.push(node);
        }
        (chunk, mail)
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
        assert!(!mailbox.settle(CHUNK, "chunk", MessageList::default()));
        mailbox
    }

    fn push(mailbox: &Mailbox<&'static str, u32>, message: u32, by: PushedBy) -> PushOutcome<u32> {
        mailbox.push(MessageNode::new(CHUNK, message), by)
    }

    fn mail<const N: usize>(messages: [u32; N]) -> MessageList<u32> {
        messages.into_iter().map(|message| MessageNode::new(CHUNK, message)).collect()
    }

    #[test]
    fn the_first_message_makes_the_token_and_the_second_does_not() {
        let mailbox = occupied();
        assert_eq!(push(&mailbox, 1, PushedBy::Chunk), PushOutcome::Ready);
        assert_eq!(push(&mailbox, 2, PushedBy::Chunk), PushOutcome::Queued);
        assert_eq!(mailbox.begin(), BeginOutcome::Run(CHUNK, "chunk", mail([1, 2])));
    }

    #[test]
    fn mail_that_comes_during_a_run_makes_the_next_token_at_its_end() {
        let mailbox = occupied();
        push(&mailbox, 1, PushedBy::Chunk);
        let BeginOutcome::Run(_, chunk, unread) = mailbox.begin() else { panic!("it was ready") };
        assert_eq!(push(&mailbox, 2, PushedBy::Chunk), PushOutcome::Queued);
        drop(unread);
        assert_eq!(mailbox.finish(chunk, MessageList::default()), FinishOutcome::Ready);
        assert_eq!(mailbox.begin(), BeginOutcome::Run(CHUNK, "chunk", mail([2])));
    }

    #[test]
    fn a_new_chunk_starts_once_with_what_came_before() {
        let mailbox = Mailbox::new(Tag::SHARED);
        mailbox.settle_new(CHUNK, "chunk");
        assert_eq!(push(&mailbox, 1, PushedBy::Chunk), PushOutcome::Queued);
        assert_eq!(mailbox.begin(), BeginOutcome::Start(CHUNK, "chunk", mail([1])));
        assert_eq!(push(&mailbox, 2, PushedBy::Chunk), PushOutcome::Queued);
        assert_eq!(mailbox.finish("chunk", MessageList::default()), FinishOutcome::Ready);
        assert_eq!(mailbox.begin(), BeginOutcome::Run(CHUNK, "chunk", mail([2])));
    }

    #[test]
    fn unread_mail_comes_alone_before_what_has_come_since() {
        let mailbox = with_unread_1_2_and_3_4_since();
        assert_eq!(mailbox.begin(), BeginOutcome::Run(CHUNK, "chunk", mail([1, 2])));
        assert_eq!(mailbox.finish("chunk", MessageList::default()), FinishOutcome::Ready);
        assert_eq!(mailbox.begin(), BeginOutcome::Run(CHUNK, "chunk", mail([3, 4])));
        assert_eq!(mailbox.finish("chunk", MessageList::default()), FinishOutcome::Idle);
    }

    #[test]
    fn unread_mail_leaves_with_its_chunk_before_what_has_come_since() {
        let mailbox = with_unread_1_2_and_3_4_since();
        assert!(!mailbox.hold());
        assert_eq!(mailbox.begin(), BeginOutcome::Held);
        assert_eq!(mailbox.take(), ("chunk", mail([1, 2, 3, 4])));
    }

    /// A chunk with its entry, whose last run took three messages and handled one.
    fn with_unread_1_2_and_3_4_since() -> Mailbox<&'static str, u32> {
        let mailbox = occupied();
        (0..3).for_each(|message| drop(push(&mailbox, message, PushedBy::Chunk)));
        let BeginOutcome::Run(_, chunk, mut unread) = mailbox.begin() else { panic!("it was ready") };
        unread.next();
        (3..5).for_each(|message| drop(push(&mailbox, message, PushedBy::Chunk)));
        assert_eq!(mailbox.finish(chunk, unread), FinishOutcome::Ready);
        mailbox
    }

    #[test]
    fn a_held_chunk_takes_mail_but_does_not_run_and_leaves_with_it() {
        let mailbox = occupied();
        assert!(mailbox.hold());
        assert_eq!(push(&mailbox, 1, PushedBy::Chunk), PushOutcome::Queued);
        mailbox.close();
        assert_eq!(push(&mailbox, 2, PushedBy::Chunk), PushOutcome::Refused(MessageNode::new(CHUNK, 2)));
        assert_eq!(push(&mailbox, 3, PushedBy::Core), PushOutcome::Queued);
        assert_eq!(mailbox.take(), ("chunk", mail([1, 3])));
        assert_eq!(push(&mailbox, 4, PushedBy::Core), PushOutcome::Refused(MessageNode::new(CHUNK, 4)));
    }

    #[test]
    fn a_hold_waits_for_the_token_to_come_back() {
        let mailbox = occupied();
        push(&mailbox, 1, PushedBy::Chunk);
        assert!(!mailbox.hold());
        assert_eq!(mailbox.begin(), BeginOutcome::Held);
    }

    #[test]
    fn where_a_chunk_was_removed_no_mail_is_taken_for_it() {
        let mailbox = occupied();
        push(&mailbox, 1, PushedBy::Chunk);
        assert!(matches!(mailbox.begin(), BeginOutcome::Run(..)));
        assert!(mailbox.vacate().is_empty());
        assert_eq!(push(&mailbox, 2, PushedBy::Core), PushOutcome::Refused(MessageNode::new(CHUNK, 2)));
    }

    #[test]
    fn mail_for_the_chunk_that_was_here_before_is_refused() {
        let refused = occupied().push(MessageNode::new(OTHER, 1), PushedBy::Core);
        assert_eq!(refused, PushOutcome::Refused(MessageNode::new(OTHER, 1)), "it is the caller's again");
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
        mailbox.settle(CHUNK, Vec::new(), MessageList::default());
        Arc::new(mailbox)
    }

    /// Pushes, and runs the chunk for as long as it has the entry. True if it found the chunk held.
    fn push_and_run(mailbox: &Mailbox<Vec<u32>, u32>, message: u32) -> bool {
        if mailbox.push(MessageNode::new(CHUNK, message), PushedBy::Chunk) != PushOutcome::Ready {
            return false;
        }
        while let BeginOutcome::Run(_, mut seen, mail) = mailbox.begin() {
            seen.extend(mail.into_messages());
            match mailbox.finish(seen, MessageList::default()) {
                FinishOutcome::Ready => {}
                end => return end == FinishOutcome::Held,
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
            assert_eq!(seen.len() + mail.count(), 1);
        });
    }
}
