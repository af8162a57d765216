//! The mailbox of a chunk: its message queue, and the state machine that lets at most one worker run the chunk.
//!
//! # States
//!
//! | state | where the chunk is | ready entry |
//! |---|---|---|
//! | Vacant | nowhere | none |
//! | New: has not started | in the mailbox | one, on some queue of the rank |
//! | Idle | in the mailbox | none |
//! | Ready | in the mailbox | one, on some queue of the rank |
//! | Running | with the worker that began the run | with that worker |
//!
//! | gate | a push by this rank's chunks | a push by the core | a push creates an entry |
//! |---|---|---|---|
//! | Open | accepted | accepted | if Idle |
//! | Held: about to leave, or for a checkpoint | accepted | accepted | never |
//! | Closed: the routes have changed | refused | accepted | never |
//!
//! # Rules
//!
//! 1. *One entry.* Only the transition to New or Ready creates a ready entry. Only [`begin`](Mailbox::begin) and
//!    [`withdraw`](Mailbox::withdraw) consume it. So a chunk has at most one entry, and the worker with the entry is
//!    the only one that accesses the chunk. A run *takes the chunk out* of the mailbox: from then on Rust's ownership
//!    ensures this.
//! 2. *No lost push.* Messages are appended and taken under the lock. [`finish`](Mailbox::finish) checks for messages
//!    in the critical section that makes the chunk Idle.
//! 3. *Right chunk.* A push names its chunk. A mailbox with another chunk, or without one, refuses the push.
//! 4. *Unread messages*, which a run has left or a chunk has brought, go before all later messages: the next run gets
//!    only them. While a chunk runs, its mailbox has no unread messages.
//! 5. *User code* does not run while the lock is held, except `Chunk::waits_for` after the run of the program has
//!    stalled. No other lock is taken under this lock.

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

/// The owner of a vacant mailbox. No message is addressed to this id.
const NOBODY: ChunkId = ChunkId { array: ArrayId(u32::MAX), key: 0 };

struct Inner<S, M> {
    owner: ChunkId,
    chunk: Option<S>,
    /// Messages in order that go before all later ones: a run did not handle them, or they came with the chunk.
    unread: MessageList<M>,
    newest_first: MessageList<M>,
    state: State,
    gate: Gate,
}

/// The mailbox of one chunk of type `S`, with messages of type `M`.
pub(crate) struct Mailbox<S, M> {
    inner: ElidedMutex<Inner<S, M>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PushedBy {
    /// A chunk of this rank. Its route may be out of date.
    Chunk,
    /// The core, with current routes.
    Core,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PushOutcome<M> {
    /// Accepted. The chunk has an entry already, or may not get one.
    Queued,
    /// Accepted. The caller now owns the chunk's ready entry and must enqueue it.
    Ready,
    /// Not accepted: the caller must look up the route again.
    Refused(Box<MessageNode<M>>),
}

/// The outcome of consuming a ready entry.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BeginOutcome<S, M> {
    /// The id of the chunk, the chunk, and messages in order: the unread messages if there are any, else the new ones.
    Run(ChunkId, S, MessageList<M>),
    /// As `Run`, for a chunk that must be started first.
    Start(ChunkId, S, MessageList<M>),
    /// Nothing to run: the chunk is held, and no handler of it runs.
    Held,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FinishOutcome {
    Idle,
    /// More messages have arrived: the caller owns the next entry.
    Ready,
    /// The chunk is held, and no handler of it runs.
    Held,
}

impl<S, M> Mailbox<S, M> {
    pub(crate) fn new(owner: Tag) -> Mailbox<S, M> {
        let (state, gate) = (State::Vacant, Gate::Open);
        let (unread, newest_first) = (MessageList::default(), MessageList::default());
        let inner = Inner { owner: NOBODY, chunk: None, unread, newest_first, state, gate };
        Mailbox { inner: ElidedMutex::new(owner, inner) }
    }

    /// Moves in a chunk that has not started. The caller now owns its ready entry.
    pub(crate) fn settle_new(&self, owner: ChunkId, chunk: S) {
        self.move_in(owner, chunk, MessageList::default(), State::New);
    }

    /// Moves in a chunk with its messages. True if the caller now owns its ready entry.
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

    /// Hop 4: appends a message for the chunk.
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

    /// Consumes the ready entry. Unread messages come alone, and the rest stays for the next run. So a chunk that stops
    /// after each message does not reverse its whole list each time.
    #[inline]
    pub(crate) fn begin(&self) -> BeginOutcome<S, M> {
        // No closure: its result would be moved through memory.
        let mut inner = self.inner.lock();
        let starts = inner.state == State::New;
        assert!(starts || inner.state == State::Ready, "a ready entry belongs to a ready chunk");
        // A chunk that has not started starts first, and is held at the end of this run.
        if inner.gate != Gate::Open && !starts {
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

    /// Ends a run. `rest` has the messages that the run did not handle; the next run gets them first.
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

    /// Takes the messages that have arrived since the run of this chunk began.
    pub(crate) fn take_newer(&self) -> MessageList<M> {
        self.inner.lock().newest_first.take_reversed()
    }

    /// Ends the run of a removed chunk. Returns the messages in the mailbox, which no chunk will read.
    pub(crate) fn vacate(&self) -> MessageList<M> {
        let mut inner = self.inner.lock();
        assert_eq!(inner.state, State::Running, "a chunk removes itself, so it runs");
        (inner.owner, inner.state) = (NOBODY, State::Vacant);
        inner.newest_first.take_reversed()
    }

    /// Lets no further run begin. True if no run is active or due. Else the chunk is held when its entry or run ends.
    pub(crate) fn hold(&self) -> bool {
        let mut inner = self.inner.lock();
        inner.gate = Gate::Held;
        inner.state == State::Idle
    }

    /// Consumes the ready entry of a held chunk before the entry is taken. True if so: then no handler of the chunk
    /// runs. False if the entry stays on its queue, because the chunk is not held or has not started.
    pub(crate) fn withdraw(&self) -> bool {
        let mut inner = self.inner.lock();
        let withdrawn = inner.gate != Gate::Open && inner.state == State::Ready;
        if withdrawn {
            inner.state = State::Idle;
        }
        withdrawn
    }

    /// Refuses messages from chunks of this rank from now on.
    pub(crate) fn close(&self) {
        self.inner.lock().gate = Gate::Closed;
    }

    /// Lets a held chunk run again. True if the caller now owns its ready entry.
    pub(crate) fn release(&self) -> bool {
        let mut inner = self.inner.lock();
        inner.gate = Gate::Open;
        let ready = inner.state == State::Idle && !(inner.unread.is_empty() && inner.newest_first.is_empty());
        if ready {
            inner.state = State::Ready;
        }
        ready
    }

    /// Moves back in, with its messages, a chunk that was [taken](Mailbox::take) out. The chunk is held as before.
    pub(crate) fn put_back(&self, owner: ChunkId, chunk: S, mail: MessageList<M>) {
        self.move_in(owner, chunk, mail, State::Idle);
        self.inner.lock().gate = Gate::Held;
    }

    /// Moves out a held chunk with its messages.
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

    /// Calls `look` with the chunk, if the chunk is not running.
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
    fn the_first_message_creates_the_ready_entry_and_the_second_does_not() {
        let mailbox = occupied();
        assert_eq!(push(&mailbox, 1, PushedBy::Chunk), PushOutcome::Ready);
        assert_eq!(push(&mailbox, 2, PushedBy::Chunk), PushOutcome::Queued);
        assert_eq!(mailbox.begin(), BeginOutcome::Run(CHUNK, "chunk", mail([1, 2])));
    }

    #[test]
    fn messages_that_arrive_during_a_run_create_the_next_entry_at_its_end() {
        let mailbox = occupied();
        push(&mailbox, 1, PushedBy::Chunk);
        let BeginOutcome::Run(_, chunk, unread) = mailbox.begin() else { panic!("it was ready") };
        assert_eq!(push(&mailbox, 2, PushedBy::Chunk), PushOutcome::Queued);
        drop(unread);
        assert_eq!(mailbox.finish(chunk, MessageList::default()), FinishOutcome::Ready);
        assert_eq!(mailbox.begin(), BeginOutcome::Run(CHUNK, "chunk", mail([2])));
    }

    #[test]
    fn a_new_chunk_starts_once_with_the_messages_that_arrived_before() {
        let mailbox = Mailbox::new(Tag::SHARED);
        mailbox.settle_new(CHUNK, "chunk");
        assert_eq!(push(&mailbox, 1, PushedBy::Chunk), PushOutcome::Queued);
        assert_eq!(mailbox.begin(), BeginOutcome::Start(CHUNK, "chunk", mail([1])));
        assert_eq!(push(&mailbox, 2, PushedBy::Chunk), PushOutcome::Queued);
        assert_eq!(mailbox.finish("chunk", MessageList::default()), FinishOutcome::Ready);
        assert_eq!(mailbox.begin(), BeginOutcome::Run(CHUNK, "chunk", mail([2])));
    }

    #[test]
    fn unread_messages_come_alone_before_newer_ones() {
        let mailbox = with_unread_1_2_and_3_4_since();
        assert_eq!(mailbox.begin(), BeginOutcome::Run(CHUNK, "chunk", mail([1, 2])));
        assert_eq!(mailbox.finish("chunk", MessageList::default()), FinishOutcome::Ready);
        assert_eq!(mailbox.begin(), BeginOutcome::Run(CHUNK, "chunk", mail([3, 4])));
        assert_eq!(mailbox.finish("chunk", MessageList::default()), FinishOutcome::Idle);
    }

    #[test]
    fn unread_messages_leave_with_their_chunk_before_newer_ones() {
        let mailbox = with_unread_1_2_and_3_4_since();
        assert!(!mailbox.hold());
        assert_eq!(mailbox.begin(), BeginOutcome::Held);
        assert_eq!(mailbox.take(), ("chunk", mail([1, 2, 3, 4])));
    }

    #[test]
    fn the_entry_of_a_held_chunk_is_withdrawn_and_no_other() {
        let mailbox = occupied();
        push(&mailbox, 1, PushedBy::Chunk);
        assert!(!mailbox.withdraw(), "it is not held");
        assert!(!mailbox.hold() && mailbox.withdraw());
        assert!(!mailbox.withdraw(), "it has no entry any more");
        assert_eq!(push(&mailbox, 2, PushedBy::Chunk), PushOutcome::Queued);
        assert_eq!(mailbox.take(), ("chunk", mail([1, 2])));

        let running = occupied();
        push(&running, 1, PushedBy::Chunk);
        let BeginOutcome::Run(_, chunk, _) = running.begin() else { panic!("it was ready") };
        assert!(!running.hold() && !running.withdraw(), "it runs");
        assert_eq!(running.finish(chunk, MessageList::default()), FinishOutcome::Held);

        let new = Mailbox::<_, u32>::new(Tag::SHARED);
        new.settle_new(CHUNK, "chunk");
        assert!(!new.hold() && !new.withdraw(), "it starts first");
        assert!(matches!(new.begin(), BeginOutcome::Start(..)));
    }

    /// A ready chunk. Its last run took three messages and handled one.
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
    fn a_held_chunk_accepts_messages_but_does_not_run_and_leaves_with_them() {
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
    fn a_hold_waits_for_the_ready_entry_to_come_back() {
        let mailbox = occupied();
        push(&mailbox, 1, PushedBy::Chunk);
        assert!(!mailbox.hold());
        assert_eq!(mailbox.begin(), BeginOutcome::Held);
    }

    #[test]
    fn the_mailbox_of_a_removed_chunk_refuses_messages() {
        let mailbox = occupied();
        push(&mailbox, 1, PushedBy::Chunk);
        assert!(matches!(mailbox.begin(), BeginOutcome::Run(..)));
        assert!(mailbox.vacate().is_empty());
        assert_eq!(push(&mailbox, 2, PushedBy::Core), PushOutcome::Refused(MessageNode::new(CHUNK, 2)));
    }

    #[test]
    fn messages_for_a_previous_chunk_are_refused() {
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

    /// Pushes, and runs the chunk while it owns the ready entry. True if it found the chunk held.
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
