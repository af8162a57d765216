//! The context of a handler ([`Ctx`]): the effects that a handler can have besides changing its chunk.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::chunk::Chunk;
use super::index::Index;
use super::section::Section;
use super::seed::assert_insertable;
use super::slot::{Slot, insertion, write_node};
use crate::arrays::core::collectives::exit_value::ExitValue;
use crate::arrays::core::collectives::reduction::{Reducer, ReductionSpec, ResultTarget, Values};
use crate::arrays::core::lifecycle::handler::{ChunkRecord, Effect, Handler, SyncState};
use crate::arrays::core::routing::envelope::{NODE_BYTES, Payload};
use crate::error::Error;
use crate::ids::{ArrayId, ChunkId, Rank, Sender};
use crate::trace::{StepRecord, StepsSoFar, UserEvent};
use crate::wire::{self, catching};

/// A handle to an array, to send to it from chunks of other arrays. It can be stored, sent and migrated.
///
/// ```
/// use caribou::{Chunk, Config, Ctx, Array};
/// use serde::{Deserialize, Serialize};
/// #[derive(Serialize, Deserialize)]
/// struct Pupil { teacher: Array<Teacher> }
/// #[derive(Serialize, Deserialize)]
/// struct Teacher;
///
/// impl Chunk for Pupil {
///     type Index = u32;
///     type Message = ();
///     fn start(&mut self, ctx: &mut Ctx<'_, Self>) { ctx.send_to(self.teacher, 0, ctx.index()); }
///     fn receive(&mut self, (): (), _: &mut Ctx<'_, Self>) {}
/// }
/// impl Chunk for Teacher {
///     type Index = u32;
///     type Message = u32;
///     fn receive(&mut self, pupil: u32, ctx: &mut Ctx<'_, Self>) { if pupil == 2 { ctx.exit(); } }
/// }
/// caribou::run(Config::default().ranks(2), |setup| {
///     let teacher = setup.array(1, |_| Teacher);
///     setup.array(3, move |_| Pupil { teacher });
/// })?;
/// # Ok::<(), caribou::Error>(())
/// ```
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Array<C: Chunk> {
    pub(super) id: ArrayId,
    chunk: PhantomData<fn() -> C>,
}

impl<C: Chunk> Array<C> {
    pub(crate) fn new(id: ArrayId) -> Array<C> {
        Array { id, chunk: PhantomData }
    }
}

impl<C: Chunk> Clone for Array<C> {
    fn clone(&self) -> Array<C> {
        *self
    }
}

impl<C: Chunk> Copy for Array<C> {}

impl<C: Chunk> std::fmt::Debug for Array<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "array {}", self.id)
    }
}

/// The receivers of the result of a reduction.
///
/// ```
/// use caribou::Target;
/// assert_ne!(Target::Chunk(3u32), Target::All);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<I> {
    /// To every chunk of the array.
    All,
    /// To one chunk of the array.
    Chunk(I),
    /// To every chunk, each with a separate result: the contributions of the chunks with lower packed index, combined
    /// (an exclusive scan). The first chunk receives the neutral value of the reducer: 0 for a sum. Rank 0 stores all
    /// contributions until the last one has come.
    Scan,
    /// To the caller of [`run`](crate::run()), which ends the run: see [`Report::value`](crate::Report::value).
    Exit,
    /// To chunks of another array. Made by [`chunk_of`](Target::chunk_of) and [`all_of`](Target::all_of).
    Elsewhere(Elsewhere),
}

/// Chunks of another array, as receivers of the result of a reduction.
///
/// ```
/// # use caribou::{Chunk, Ctx, Setup, Target}; use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize)] struct Master;
/// # impl Chunk for Master {
/// #     type Index = u32; type Message = ();
/// #     fn receive(&mut self, (): (), _: &mut Ctx<'_, Self>) {}
/// # }
/// let master = Setup::default().array(1, |_| Master);
/// let target: Target<u32> = Target::all_of(master);
/// assert!(matches!(target, Target::Elsewhere(_)) && target != Target::All);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elsewhere(ResultTarget);

impl<I> Target<I> {
    /// To a chunk of another array. The [`Chunk::reduced`] of that chunk makes a message of the result, as of results
    /// of its own array. Different tags distinguish the two.
    ///
    /// ```
    /// use caribou::{Array, Chunk, Config, Ctx, Reducer, Target, Values};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Worker { master: Array<Master> }
    /// #[derive(Serialize, Deserialize)]
    /// struct Master;
    ///
    /// const DONE: u32 = 1;
    ///
    /// impl Chunk for Worker {
    ///     type Index = u32;
    ///     type Message = ();
    ///     fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
    ///         let work = vec![u64::from(ctx.index())];
    ///         ctx.contribute(DONE, Reducer::Sum, work, Target::chunk_of(self.master, 0));
    ///     }
    ///     fn receive(&mut self, (): (), _: &mut Ctx<'_, Self>) {}
    /// }
    /// impl Chunk for Master {
    ///     type Index = u32;
    ///     type Message = u64;
    ///     fn reduced(tag: u32, values: Values) -> u64 {
    ///         match (tag, values) {
    ///             (DONE, Values::U64(work)) => work[0],
    ///             other => unreachable!("{other:?}"),
    ///         }
    ///     }
    ///     fn receive(&mut self, work: u64, ctx: &mut Ctx<'_, Self>) { ctx.exit_with(&work); }
    /// }
    ///
    /// let report = caribou::run(Config::default().ranks(2), |setup| {
    ///     let master = setup.array(1, |_| Master);
    ///     setup.array(100, move |_| Worker { master });
    /// })?;
    /// assert_eq!(report.value::<u64>()?, 4950);
    /// # Ok::<(), caribou::Error>(())
    /// ```
    pub fn chunk_of<D: Chunk>(array: Array<D>, index: D::Index) -> Target<I> {
        Target::Elsewhere(Elsewhere(ResultTarget::ChunkOf(ChunkId { array: array.id, key: index.pack() })))
    }

    /// To every chunk of another array, see [`chunk_of`](Self::chunk_of).
    pub fn all_of<D: Chunk>(array: Array<D>) -> Target<I> {
        Target::Elsewhere(Elsewhere(ResultTarget::AllOf(array.id)))
    }
}

/// The interface of the runtime to a handler of chunk type `C`.
///
/// The effects of a call take place when the handler returns, in the order of the calls (see also
/// [`flush`](Ctx::flush)). A chunk that is inserted before [`contribute`](Ctx::contribute) or [`at_sync`](Ctx::at_sync)
/// is called takes part in that reduction or sync. A chunk that is inserted after the call takes part in the next one.
/// A chunk that contributes and then [removes](Ctx::remove) itself in the same handler has contributed.
///
/// ```
/// use caribou::{Chunk, Ctx, testing::probe};
/// use serde::{Deserialize, Serialize};
/// #[derive(Serialize, Deserialize)]
/// struct Echo;
/// impl Chunk for Echo {
///     type Index = u32;
///     type Message = String;
///     fn receive(&mut self, text: String, ctx: &mut Ctx<'_, Self>) { ctx.send(ctx.index() + 1, text); }
/// }
/// assert_eq!(probe(&mut Echo, 4).receive("hi".into()).messages, [(5, "hi".to_string())]);
/// ```
pub struct Ctx<'a, C: Chunk> {
    pub(crate) handler: &'a mut Handler<'a>,
    pub(crate) record: &'a mut ChunkRecord,
    /// The chunk's `state_bytes` before the handler. A chunk that goes on after it came to a sync may change them.
    pub(crate) state_bytes: u64,
    chunk: PhantomData<fn() -> C>,
}

impl<'a, C: Chunk> Ctx<'a, C> {
    #[inline]
    pub(crate) fn new(handler: &'a mut Handler<'a>, record: &'a mut ChunkRecord, chunk: &C) -> Ctx<'a, C> {
        Ctx { handler, record, state_bytes: chunk.state_bytes(), chunk: PhantomData }
    }

    /// This chunk's index.
    #[inline]
    pub fn index(&self) -> C::Index {
        C::Index::unpack(self.handler.chunk().key)
    }

    /// The array of this chunk.
    #[inline]
    pub fn array(&self) -> Array<C> {
        Array::new(self.handler.chunk().array)
    }

    /// The rank that this chunk is on now. For services and reports, never for addressing.
    pub fn rank(&self) -> Rank {
        self.handler.info.rank
    }

    /// The factor by which this rank is to compute slower than it can, for an experiment, see
    /// [`Config::slowed`](crate::Config::slowed). Otherwise 1.
    pub fn slowness(&self) -> f64 {
        self.handler.info.slowness
    }

    /// Number of ranks in this run.
    pub fn ranks(&self) -> u32 {
        self.handler.info.ranks
    }

    /// Time since the run began, ns; virtual time in a simulation.
    pub fn elapsed_ns(&self) -> u64 {
        self.handler.host.now_ns()
    }

    /// The service of type `T` that [`Setup::service`](crate::Setup::service) got on this rank.
    ///
    /// # Panics
    /// If `setup` provided no such service.
    #[track_caller]
    pub fn service<T: Send + Sync + 'static>(&self) -> &'a T {
        let info = self.handler.info;
        match info.services.iter().find_map(|service| service.downcast_ref()) {
            Some(found) => found,
            None => panic!(
                "this rank has no service of type {}: provide it with `Setup::service`, or with `Probe::service` in a \
                 test",
                std::any::type_name::<T>()
            ),
        }
    }

    /// Sends a message to a chunk of the same array. The message leaves when this handler returns or at
    /// [`flush`](Self::flush), and is delivered exactly once, wherever the chunk is. Messages from this chunk to the
    /// same chunk arrive in order. O(1); does not block.
    // Hop 1. Hop 2 is the flush of the worker.
    #[inline(always)]
    pub fn send(&mut self, to: C::Index, message: C::Message) {
        self.send_to(self.array(), to, message);
    }

    /// Sends a message to a chunk of another array. The message must be of that array's message type:
    ///
    /// ```compile_fail,E0308
    /// # use caribou::{Array, Chunk, Ctx}; use serde::{Deserialize, Serialize};
    /// # #[derive(Serialize, Deserialize)] struct Counter;
    /// impl Chunk for Counter {
    ///     type Index = u32;
    ///     type Message = u64;
    ///     fn receive(&mut self, count: u64, ctx: &mut Ctx<'_, Self>) { ctx.send(0, "a word"); }
    /// }
    /// ```
    #[inline(always)]
    pub fn send_to<D: Chunk>(&mut self, array: Array<D>, to: D::Index, message: D::Message) {
        self.send_value(ChunkId { array: array.id, key: to.pack() }, message);
    }

    /// Sends a message of the type of the chunk's array.
    #[inline(always)]
    pub(super) fn send_value<M: Serialize + Send + 'static>(&mut self, to: ChunkId, message: M) {
        tracing::trace!(hop = 1, "Ctx::send");
        let from = self.next_message();
        let outbox = &mut self.handler.outbox;
        let node = write_node(&mut outbox.free_list, to, from, message);
        outbox.push_node(node);
    }

    /// Sends a message to a chunk of the same array at *quiescence*: no handler runs on any rank, and no message is in
    /// flight or can be handled. For programs that spawn chunks and would otherwise have to count them. A chunk that
    /// has been inserted or spawned and has yet to start counts as work.
    ///
    /// A reduction also detects termination, and returns a value. Each chunk inserts or spawns others,
    /// [contributes](Self::contribute) its value, and removes itself. The result comes as soon as the last chunk has
    /// contributed, without a wait of some ms. With [`Target::Exit`] the result ends the run.
    ///
    /// The message has no order relative to other messages. Several such messages are sent at the same moment, some ms
    /// after the last handler has returned. Messages that still wait when the run ends are dropped.
    ///
    /// A program that is stuck has no work left either: its chunks are not ready for any message, or wait for a sync or
    /// a reduction to which other chunks do not come. It gets this message, and no
    /// [`Error::Stalled`](crate::Error::Stalled).
    ///
    /// ```
    /// use caribou::{Chunk, Config, Ctx};
    /// use serde::{Deserialize, Serialize};
    ///
    /// /// Counts the leaves of a tree of chunks, whose number nobody knows before.
    /// #[derive(Serialize, Deserialize)]
    /// struct Node { depth: u32 }
    ///
    /// impl Chunk for Node {
    ///     type Index = u32;
    ///     type Message = ();
    ///
    ///     fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
    ///         let me = ctx.index();
    ///         if me == 1 { ctx.send_at_quiescence(1, ()); }
    ///         if self.depth == 0 { return; }
    ///         for child in [2 * me, 2 * me + 1] { ctx.insert(child, Node { depth: self.depth - 1 }); }
    ///     }
    ///
    ///     fn receive(&mut self, (): (), ctx: &mut Ctx<'_, Self>) { ctx.exit(); }
    /// }
    ///
    /// let report = caribou::run(Config::default().ranks(2), |setup| {
    ///     setup.array(vec![1], |_: u32| Node { depth: 5 });
    /// })?;
    /// assert_eq!(report.messages, 63 + 1, "each of 63 nodes started, and the last message");
    /// # Ok::<(), caribou::Error>(())
    /// ```
    #[inline]
    pub fn send_at_quiescence(&mut self, to: C::Index, message: C::Message) {
        let to = ChunkId { array: self.handler.chunk().array, key: to.pack() };
        let from = self.next_message();
        let outbox = &mut self.handler.outbox;
        let node = write_node(&mut outbox.free_list, to, from, message);
        outbox.push(Effect::SendAtQuiescence(node));
    }

    /// Sends a message to this chunk itself after a delay, to poll something outside, report progress, or implement a
    /// timeout.
    ///
    /// The delay is wall-clock time (virtual time in a simulation) and begins when the handler has returned. The
    /// message is sent at the end of the delay or later, never earlier. The worker that ran this handler checks for due
    /// messages between chunks, and every 50 us while one chunk handles many messages. A due message is sent to the
    /// rank on which the chunk is then. Two messages of one handler with the same delay arrive in the order of the
    /// calls; no other order is guaranteed. With a delay of zero the message comes after all that are already queued.
    ///
    /// Until it is due, the message counts as in flight. Quiescence waits for it, and [`exit`](Self::exit) drops it. A
    /// run in which no other work is left sleeps until then and is not stalled. The message cannot be cancelled; the
    /// chunk can ignore it. If the chunk is removed, the message goes to the next chunk with its index. Each such
    /// message costs about 100 ns more than a [`send`](Self::send). In a trace its send time is the time of this call,
    /// so its latency includes the delay.
    ///
    /// ```
    /// use std::time::Duration;
    /// use caribou::{Chunk, Config, Ctx};
    /// use serde::{Deserialize, Serialize};
    ///
    /// /// Improves its answer until time is up.
    /// #[derive(Serialize, Deserialize)]
    /// struct Search { best: u64 }
    ///
    /// #[derive(Serialize, Deserialize)]
    /// enum Message { Improve, TimeIsUp }
    ///
    /// impl Chunk for Search {
    ///     type Index = u32;
    ///     type Message = Message;
    ///
    ///     fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
    ///         ctx.send_after(Duration::from_millis(20), Message::TimeIsUp);
    ///         ctx.send(ctx.index(), Message::Improve);
    ///     }
    ///
    ///     fn receive(&mut self, message: Message, ctx: &mut Ctx<'_, Self>) {
    ///         match message {
    ///             Message::Improve => {
    ///                 self.best += 1;
    ///                 ctx.send(ctx.index(), Message::Improve);
    ///             }
    ///             Message::TimeIsUp => ctx.exit_with(&self.best),
    ///         }
    ///     }
    /// }
    ///
    /// let report = caribou::run(Config::default(), |setup| { setup.array(1, |_| Search { best: 0 }); })?;
    /// assert!(report.value::<u64>()? > 0);
    /// # Ok::<(), caribou::Error>(())
    /// ```
    pub fn send_after(&mut self, delay: Duration, message: C::Message) {
        let (from, to) = (self.next_message(), self.handler.chunk());
        let outbox = &mut self.handler.outbox;
        let node = write_node(&mut outbox.free_list, to, from, message);
        outbox.push(Effect::SendAfter { delay, node });
    }

    /// The sender of the next message to a single chunk, with the number of the message.
    #[inline(always)]
    fn next_message(&mut self) -> Sender {
        self.record.last_number = self.record.last_number.wrapping_add(1).max(1);
        Sender::new(self.handler.chunk(), self.record.last_number)
    }

    /// Sends a message to every chunk of this array, including this one, exactly once.
    ///
    /// Two broadcasts of one chunk arrive in order. A broadcast has no order relative to other messages. A chunk that
    /// is being inserted receives the broadcasts that reach its rank after the chunk.
    ///
    /// If its broadcasts are far ahead of the slowest rank, a chunk does not run again until that rank has caught up.
    /// The same holds for a chunk that sends too many bytes to one rank, see
    /// [`Config::mail_limit`](crate::Config::mail_limit).
    ///
    /// If the `Serialize` implementation of the message fails, the run ends when the handler returns, as with
    /// [`fail`](Self::fail).
    pub fn broadcast(&mut self, message: &C::Message) {
        self.broadcast_to(self.array(), message);
    }

    /// Sends a message to every chunk of another array, exactly once.
    pub fn broadcast_to<D: Chunk>(&mut self, array: Array<D>, message: &D::Message) {
        self.spread("a broadcast", message, |message| Effect::Broadcast { array: array.id, message });
    }

    /// Sends a message to every chunk of a section of this array. The message is encoded once, and sent once per rank.
    /// If it cannot be encoded, the run ends, as with [`broadcast`](Self::broadcast).
    pub fn multicast(&mut self, section: &Section<C>, message: &C::Message) {
        self.multicast_value(self.handler.chunk().array, section.keys.clone(), message);
    }

    /// Sends a message of the array's type to several of its chunks.
    pub(super) fn multicast_value<M: Serialize>(&mut self, array: ArrayId, keys: Arc<[u64]>, message: &M) {
        self.spread("a multicast", message, |message| Effect::Multicast { array, keys, message });
    }

    /// Adds a message for many chunks to the outbox, encoded once, or the failure to encode it.
    fn spread<M: Serialize>(&mut self, what: &str, message: &M, effect: impl FnOnce(Arc<[u8]>) -> Effect) {
        let mut bytes = Vec::new();
        match catching::<M, _>("encoded", || wire::encode_message_into(message, &mut bytes)) {
            Ok(()) => self.handler.outbox.push(effect(bytes.into())),
            Err(why) => self.fail(format!("{what} cannot cross the wire: {why}")),
        }
    }

    /// Contributes to the next reduction of this array. The reduction has a result when every chunk has contributed.
    ///
    /// The result comes to `target`, as the message that [`Chunk::reduced`] makes of it. With [`Target::Exit`] the
    /// result ends the run. Each chunk counts its own calls: its k-th call is for the same reduction as the k-th call
    /// of every other chunk. Tag, reducer, target and length must be the same in all these calls. Several reductions
    /// may be in progress. An inserted chunk joins at the reduction that its parent contributes to next, and does not
    /// receive results of earlier reductions with [`Target::All`]. A removed chunk leaves at its own next reduction.
    ///
    /// # Panics
    /// If values of a user-defined type ([`Reducer::Own`]) have the target [`Target::Scan`], because they have no
    /// neutral value for the first chunk.
    #[track_caller]
    pub fn contribute(
        &mut self,
        tag: u32,
        reducer: Reducer,
        values: impl Into<Values>,
        target: Target<C::Index>,
    ) {
        let (spec, values) = self.contribution(tag, reducer, values.into(), target);
        self.handler.outbox.push(Effect::Contribute { spec, values, step: None });
    }

    /// Contributes to the reduction of a step. For chunks that come and go, or that take part in some steps only.
    ///
    /// As [`contribute`](Self::contribute), but the caller gives the number of the reduction. A chunk that contributes
    /// to step 7 after step 4 abstains from 5 and 6. The reduction of a step has a result when every chunk of the array
    /// has contributed to it, abstained, or [left](Self::leave_reductions), unless no chunk has contributed.
    ///
    /// Steps are counted from 0 and rise. Each step that a chunk leaves out costs a separate report. So number the
    /// steps that reduce consecutively: with a reduction every tenth step, `step / 10`. An inserted chunk may
    /// contribute from the step that its parent contributes to next. A call of `contribute` is for the next step.
    ///
    /// ```
    /// use caribou::{Chunk, Config, Ctx, Reducer, Target, Values};
    /// use serde::{Deserialize, Serialize};
    ///
    /// /// Chunk `i` takes part in every `i + 1`-th of 12 steps.
    /// #[derive(Serialize, Deserialize)]
    /// struct Now { results: Vec<u64> }
    ///
    /// impl Chunk for Now {
    ///     type Index = u32;
    ///     type Message = u64;
    ///     fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
    ///         for step in (0..12).step_by(ctx.index() as usize + 1) {
    ///             ctx.contribute_at(step, 0, Reducer::Sum, vec![1u64], Target::Chunk(0));
    ///         }
    ///         ctx.abstain_until(12);
    ///     }
    ///     fn reduced(_: u32, values: Values) -> u64 {
    ///         match values { Values::U64(count) => count[0], other => unreachable!("{other:?}") }
    ///     }
    ///     fn receive(&mut self, chunks: u64, ctx: &mut Ctx<'_, Self>) {
    ///         self.results.push(chunks);
    ///         if self.results.len() == 12 { ctx.exit_with(&self.results); }
    ///     }
    /// }
    ///
    /// let report = caribou::run(Config::default().ranks(2), |setup| {
    ///     setup.array(3, |_| Now { results: Vec::new() });
    /// })?;
    /// assert_eq!(report.value::<Vec<u64>>()?, [3, 1, 2, 2, 2, 1, 3, 1, 2, 2, 2, 1]);
    /// # Ok::<(), caribou::Error>(())
    /// ```
    ///
    /// # Errors
    /// A step that the chunk has contributed to or abstained from, or that is more than 65 536 after its next step,
    /// ends the run with [`Error::Reduction`](crate::Error::Reduction).
    ///
    /// # Panics
    /// As `contribute` does.
    #[track_caller]
    pub fn contribute_at(
        &mut self,
        step: u64,
        tag: u32,
        reducer: Reducer,
        values: impl Into<Values>,
        target: Target<C::Index>,
    ) {
        let (spec, values) = self.contribution(tag, reducer, values.into(), target);
        self.handler.outbox.push(Effect::Contribute { spec, values, step: Some(step) });
    }

    /// Abstains from all reductions of this array before that of `step`. A chunk that contributes to a later step does
    /// this implicitly. No effect if the chunk has contributed to `step - 1` or a later step, or abstained from it.
    ///
    /// Each step that is left out costs a report on every rank, and some hundred bytes there until its reduction is
    /// complete. So a chunk that runs 10^6 steps ahead of the others takes memory accordingly.
    ///
    /// # Errors
    /// A step more than 65 536 after the next one of this chunk ends the run with
    /// [`Error::Reduction`](crate::Error::Reduction). The limit is for a single call, not for the sum of several.
    #[track_caller]
    pub fn abstain_until(&mut self, step: u64) {
        self.assert_not_removed("abstain");
        self.handler.outbox.push(Effect::AbstainUntil(step));
    }

    /// Contributes to no reduction of this array any more. No later reduction waits for this chunk, nor for chunks that
    /// it inserts from now on. The chunk still receives the results for all chunks, and may contribute to reductions
    /// over sections. It cannot come back.
    #[track_caller]
    pub fn leave_reductions(&mut self) {
        self.assert_not_removed("leave reductions");
        self.handler.outbox.push(Effect::LeaveReductions);
    }

    /// The parts of a contribution to any reduction.
    #[track_caller]
    pub(super) fn contribution(
        &self,
        tag: u32,
        reducer: Reducer,
        mut values: Values,
        target: Target<C::Index>,
    ) -> (ReductionSpec, Values) {
        self.assert_not_removed("contribute");
        let scans_own = reducer == Reducer::Own && matches!(target, Target::Scan);
        assert!(
            !scans_own,
            "a scan cannot use Reducer::Own, because values of your own type have no neutral element"
        );
        if let Values::Gathered(parts) = &mut values {
            parts.iter_mut().for_each(|(key, _)| *key = self.handler.chunk().key);
        }
        let target = match target {
            Target::All => ResultTarget::All,
            Target::Chunk(index) => ResultTarget::Chunk(index.pack()),
            Target::Scan => ResultTarget::Scan,
            Target::Exit => ResultTarget::Exit,
            Target::Elsewhere(Elsewhere(target)) => target,
        };
        (ReductionSpec { tag, reducer, target }, values)
    }

    /// True if the step that was just completed ends a phase: every [`period`](crate::Config::period) steps. If the
    /// period is 8 or longer, also true after a quarter of the first period, so that a bad start does not last: with a
    /// period of 20, at steps 5, 20, 40 and 60. False for step 0. Chunks with other step counts come to other syncs.
    ///
    /// Never true where chunks are balanced [in windows](crate::config::Period), as by default: the program then runs
    /// without syncs. Strategies that move chunks whether it pays or not ([`must_pay`](crate::lb::Terms::must_pay) is
    /// false) keep to syncs by default, with a period of 20.
    pub fn sync_due(&self, step: u64) -> bool {
        let period = self.handler.info.period;
        let early = period >= 8 && step == period / 4;
        early || (period > 0 && step > 0 && step.is_multiple_of(period))
    }

    /// Comes to a sync and waits. When all chunks have come and the balancer has decided, [`Chunk::resume`] is called,
    /// perhaps on another rank. Messages that come before are deferred, so a neighbour that resumed earlier cannot make
    /// this chunk run ahead of its own `resume`.
    ///
    /// Does not block: the handler goes on and returns. For chunks that need not wait, see
    /// [`at_sync_nowait`](Self::at_sync_nowait). Where chunks are balanced [in windows](crate::config::Period) (the
    /// default), and under `none`, `resume` is called next without a wait. So `at_sync` is no barrier. To wait for all
    /// chunks, [contribute](Self::contribute) to a reduction with [`Target::All`].
    ///
    /// # Panics
    /// If called again before `resume`, or by a chunk of an [array without sync](crate::Setup::array_without_sync).
    #[track_caller]
    pub fn at_sync(&mut self) {
        self.assert_not_removed("come to a sync");
        assert!(self.record.sync == SyncState::Running, "at_sync is called twice before resume");
        self.record.sync = SyncState::Waiting;
        self.handler.outbox.push(Effect::AtSync { bytes: self.state_bytes });
    }

    /// Comes to a sync and goes on. Until [`Chunk::resume`] is called the chunk handles messages as usual. Between any
    /// two handlers it may migrate, and it cannot remove itself. `resume` only reports that the sync is over, so
    /// override its default, which calls `start`.
    ///
    /// Two kinds of chunks wait: migrating chunks while they migrate, and chunks that come to the next sync before this
    /// one is over. The latter defer their messages until `resume`, and then pass the next sync.
    ///
    /// # Panics
    /// If a sync was entered with [`at_sync`](Self::at_sync) and has not ended, or by a chunk of an array without sync.
    #[track_caller]
    pub fn at_sync_nowait(&mut self) {
        self.assert_not_removed("come to a sync");
        self.record.sync = match self.record.sync {
            SyncState::Running => {
                self.handler.outbox.push(Effect::AtSync { bytes: self.state_bytes });
                SyncState::RunningThroughSync
            }
            SyncState::RunningThroughSync => SyncState::WaitingForEarlier,
            SyncState::Waiting | SyncState::WaitingForEarlier => {
                panic!("a chunk that waits for a sync cannot come to another sync")
            }
        };
    }

    /// Moves this chunk to a rank at the next sync that it comes to, whatever the strategy decides. For programs with a
    /// better placement, such as one along a curve. With the chunk's present rank, the chunk stays at that sync.
    ///
    /// The strategy places all other chunks around it. The call holds for one sync, so repeat it before each sync; the
    /// last call counts. Where chunks are balanced [in windows](crate::config::Period) (the default), it holds for the
    /// first window with a decision after the sync, and the chunk has resumed by then. So a program that places its
    /// chunks sets a [period](crate::Config::period), or the strategy `program`, which keeps to syncs. With
    /// `CARIBOU_LB=program` only the program moves chunks, except off an unavailable rank. With `none`, and in an array
    /// without sync, no chunk is ever moved. Chunks [kept together](crate::Setup::array_beside) move together, even if
    /// [`Chunk::migratable`] is false. If several of them call this, the call of the lowest array counts.
    ///
    /// ```
    /// use caribou::lb::Rank;
    /// use caribou::{Chunk, Config, Ctx, Reducer, Target};
    /// use serde::{Deserialize, Serialize};
    /// /// Goes to the rank that its index names.
    /// #[derive(Serialize, Deserialize)]
    /// struct Homing;
    /// impl Chunk for Homing {
    ///     type Index = u32;
    ///     type Message = ();
    ///     fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
    ///         ctx.migrate_to(Rank(ctx.index() % ctx.ranks()));
    ///         ctx.at_sync();
    ///     }
    ///     fn resume(&mut self, ctx: &mut Ctx<'_, Self>) {
    ///         let home = ctx.rank().0 == ctx.index() % ctx.ranks();
    ///         ctx.contribute(0, Reducer::Sum, vec![u64::from(home)], Target::Exit);
    ///     }
    ///     fn receive(&mut self, (): (), _: &mut Ctx<'_, Self>) {}
    /// }
    /// let config = Config::default().ranks(3).lb("program")?;
    /// let report = caribou::run(config, |setup| { setup.array(12, |_| Homing); })?;
    /// assert_eq!(report.value::<Vec<u64>>()?, [12]);
    /// # Ok::<(), caribou::Error>(())
    /// ```
    ///
    /// # Panics
    /// If there is no such rank.
    #[track_caller]
    pub fn migrate_to(&mut self, rank: Rank) {
        let ranks = self.ranks();
        assert!(
            rank.0 < ranks,
            "a chunk cannot migrate to rank {rank}, expected a rank from 0 to {}",
            ranks - 1
        );
        self.record.wish = Some(rank);
    }

    #[track_caller]
    pub(super) fn assert_not_removed(&self, what: &str) {
        assert!(!self.record.removed, "a chunk cannot {what} after it has removed itself");
    }

    /// Declares load for this phase, which replaces the measured load: ns of work on a vCPU of speed 1. Calls add up.
    pub fn charge(&mut self, ticks_ns: u64) {
        let charged = self.record.charged.get_or_insert(0);
        *charged = charged.saturating_add(ticks_ns);
        self.handler.host.charge(ticks_ns);
    }

    /// Adds a chunk to this array. The new chunk starts on the rank that the array's [placement](crate::Placement)
    /// gives its index. If the index was used before, the chunk starts where the last chunk with this index was.
    /// Messages may be sent to it at once. It also receives messages that were sent to the index while no chunk had it.
    ///
    /// The new chunk takes part in the reduction and the sync that this chunk comes to next, perhaps later in the same
    /// handler. If a parent inserts a chunk and then calls [`at_sync`](Self::at_sync), that sync waits for the new
    /// chunk, which must come to that sync too, in its [`start`](Chunk::start). The same holds for a contribution.
    ///
    /// [`insert_into`](Self::insert_into) adds a chunk to another array, [`insert_root`](Self::insert_root) adds one
    /// without a parent, and [`spawn`](Self::spawn) adds one that may start on any rank.
    ///
    /// # Panics
    /// If this chunk has removed itself, or if the index is a [`Seed`](crate::Seed) that only a rank can give.
    #[track_caller]
    pub fn insert(&mut self, index: C::Index, chunk: C) {
        self.assert_not_removed("insert");
        assert_insertable(index);
        self.handler.outbox.push(insertion(index.pack(), chunk));
    }

    /// Makes a chunk of another array, or of this one, insert a chunk of its array. The new chunk takes part in the
    /// reduction and the sync that its `parent` comes to next, as if a handler of the parent had called
    /// [`insert`](Self::insert). For a source that makes tasks, or a cell that is refined by cells of another array.
    ///
    /// The new chunk goes to the parent as a message does, in the order of this chunk's messages to the parent, and
    /// from there to its own rank. Neither a handler of the parent nor [`ready`](Chunk::ready) is called. A parent that
    /// waits in a sync inserts the chunk when the parent goes on. So messages that are sent to the parent afterwards
    /// find the chunk inserted. A message to the new chunk itself may be sent at once.
    ///
    /// If there is no such parent, nothing is inserted, and [`Report::undelivered`](crate::Report::undelivered) names
    /// both. For an array without chunks that stay use [`insert_root`](Self::insert_root).
    ///
    /// ```
    /// use caribou::{Array, Chunk, Config, Ctx, Reducer, Target};
    /// use serde::{Deserialize, Serialize};
    ///
    /// /// Makes work for tasks, by way of task 0, which is there from the beginning.
    /// #[derive(Serialize, Deserialize)]
    /// struct Source { tasks: Array<Task> }
    /// #[derive(Serialize, Deserialize)]
    /// struct Task { number: u64 }
    ///
    /// impl Chunk for Source {
    ///     type Index = u32;
    ///     type Message = ();
    ///     fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
    ///         for number in 1..=100 { ctx.insert_into(self.tasks, number, Task { number: number.into() }, 0); }
    ///         ctx.send_to(self.tasks, 0, ());
    ///     }
    ///     fn receive(&mut self, (): (), _: &mut Ctx<'_, Self>) {}
    /// }
    /// impl Task {
    ///     fn work(&self, ctx: &mut Ctx<'_, Self>) {
    ///         ctx.contribute(0, Reducer::Sum, vec![self.number * self.number], Target::Exit);
    ///     }
    /// }
    /// impl Chunk for Task {
    ///     type Index = u32;
    ///     type Message = ();
    ///     fn start(&mut self, ctx: &mut Ctx<'_, Self>) { if ctx.index() > 0 { self.work(ctx); } }
    ///     /// All are there: task 0 counts them in.
    ///     fn receive(&mut self, (): (), ctx: &mut Ctx<'_, Self>) { self.work(ctx); }
    /// }
    ///
    /// let report = caribou::run(Config::default().ranks(2), |setup| {
    ///     let tasks = setup.array(1, |_| Task { number: 0 });
    ///     setup.array(1, move |_| Source { tasks });
    /// })?;
    /// assert_eq!(report.value::<Vec<u64>>()?, [338_350]);
    /// # Ok::<(), caribou::Error>(())
    /// ```
    ///
    /// # Panics
    /// If the index is a [`Seed`](crate::Seed) that only a rank can give.
    #[track_caller]
    pub fn insert_into<D: Chunk>(&mut self, array: Array<D>, index: D::Index, chunk: D, parent: D::Index) {
        assert_insertable(index);
        let to = ChunkId { array: array.id, key: parent.pack() };
        let from = self.next_message();
        let payload = || Payload::Insertion { key: index.pack(), chunk: Box::new(Some(chunk)) };
        let bytes = NODE_BYTES + size_of::<D>() as u64;
        self.handler.outbox.send(to, from, bytes, payload);
    }

    /// Adds a chunk without a parent to any array, also to one without chunks.
    ///
    /// The chunk goes through rank 0. It takes part from the first reduction and the first sync on that are not
    /// complete there. Which ones these are depends on timing, unless the program ensures that none is in progress. If
    /// the array has chunks that can decide when to insert, [`insert`](Self::insert) and
    /// [`insert_into`](Self::insert_into) are exact. A message to the new chunk may be sent at once.
    ///
    /// ```
    /// use caribou::{Array, Chunk, Config, Ctx, Placement};
    /// use serde::{Deserialize, Serialize};
    ///
    /// /// Makes tasks, of which there are none at the beginning.
    /// #[derive(Serialize, Deserialize)]
    /// struct Source { tasks: Array<Task>, done: u32 }
    /// #[derive(Serialize, Deserialize)]
    /// struct Task { source: Array<Source> }
    ///
    /// impl Chunk for Source {
    ///     type Index = u32;
    ///     type Message = ();
    ///     fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
    ///         for number in 0..100 { ctx.insert_root(self.tasks, number, Task { source: ctx.array() }); }
    ///     }
    ///     fn receive(&mut self, (): (), ctx: &mut Ctx<'_, Self>) {
    ///         self.done += 1;
    ///         if self.done == 100 { ctx.exit(); }
    ///     }
    /// }
    /// impl Chunk for Task {
    ///     type Index = u32;
    ///     type Message = ();
    ///     fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
    ///         ctx.send_to(self.source, 0, ());
    ///         ctx.remove();
    ///     }
    ///     fn receive(&mut self, (): (), _: &mut Ctx<'_, Self>) {}
    /// }
    ///
    /// caribou::run(Config::default().ranks(2), |setup| {
    ///     let tasks = setup.array_with(0, Placement::Hash, |_| unreachable!("there are none"));
    ///     setup.array(1, move |_| Source { tasks, done: 0 });
    /// })?;
    /// # Ok::<(), caribou::Error>(())
    /// ```
    ///
    /// # Panics
    /// If this chunk has removed itself, or if the index is a [`Seed`](crate::Seed) that only a rank can give.
    #[track_caller]
    pub fn insert_root<D: Chunk>(&mut self, array: Array<D>, index: D::Index, chunk: D) {
        self.assert_not_removed("insert");
        assert_insertable(index);
        let id = ChunkId { array: array.id, key: index.pack() };
        self.handler.outbox.push(Effect::InsertRoot { chunk: id, slot: Box::new(Slot::new(chunk)) });
    }

    /// Removes this chunk when the handler returns. Messages that the chunk has not read are dropped, and counted in
    /// [`Report::undelivered`](crate::Report::undelivered). Later messages wait for the next chunk with its index.
    ///
    /// A chunk that is removed on its home rank leaves no memory behind. A chunk that is removed on another rank leaves
    /// 20 to 40 bytes on every rank until the run ends, once per index.
    ///
    /// # Panics
    /// Between `at_sync` or `at_sync_nowait` and `resume`. Afterwards the chunk can only send.
    #[track_caller]
    pub fn remove(&mut self) {
        self.assert_not_removed("remove itself");
        assert!(
            self.record.sync == SyncState::Running,
            "a chunk cannot remove itself between at_sync or at_sync_nowait and resume"
        );
        self.record.removed = true;
        self.handler.outbox.push(Effect::Remove);
    }

    /// Sends the messages of this handler that are in the outbox so far. For handlers that run for long.
    ///
    /// Other effects (contributions, insertions, `send_after`, `at_sync`, ...), and the messages after them, wait for
    /// the end of the handler. Flow control does not stop a running handler: it blocks the chunk afterwards.
    pub fn flush(&mut self) {
        let Handler { outbox, host, .. } = &mut *self.handler;
        host.flush(outbox);
    }

    /// Marks this moment in the trace, if one is recorded.
    pub fn mark(&mut self, name: &'static str) {
        self.handler.host.record_event(UserEvent::Mark { name });
    }

    /// Names the part of this handler from `begin_ns`, an earlier [`elapsed_ns`](Self::elapsed_ns), until now.
    pub fn span(&mut self, name: &'static str, begin_ns: u64) {
        self.handler.host.record_event(UserEvent::Span { name, begin_ns });
    }

    /// Writes a value of the program into the trace, such as a residual.
    pub fn counter(&mut self, name: &'static str, value: f64) {
        self.handler.host.record_event(UserEvent::Counter { name, value });
    }

    /// True if the run writes a trace.
    pub(crate) fn writes(&self) -> bool {
        self.handler.host.is_traced()
    }

    /// Writes step records into the trace.
    pub(crate) fn steps(&mut self, steps: &[StepRecord]) {
        self.handler.host.record_steps(steps);
    }

    /// Takes the last request from outside for a number of active ranks, where the runtime moves no chunk.
    pub(crate) fn take_resize(&mut self) -> Option<u32> {
        self.handler.host.take_resize()
    }

    /// `active` ranks are active now: prints `line`.
    pub(crate) fn resize_ended(&mut self, active: u32, line: &str) {
        self.handler.host.resize_ended(active, line);
    }

    /// Changes what the monitor shows of steps.
    pub(crate) fn stepped(&mut self, mut update: impl FnMut(&mut StepsSoFar)) {
        self.handler.host.update_steps(&mut update);
    }

    /// Ends the run on all ranks when the handler returns. Messages in flight are dropped. Messages to an index without
    /// a chunk are counted in [`Report::undelivered`](crate::Report::undelivered).
    pub fn exit(&mut self) {
        self.handler.outbox.push(Effect::Exit(None));
    }

    /// Ends the run as [`exit`](Self::exit) does, with a value for the caller of [`run`](crate::run()), in every
    /// process. [`Report::value`](crate::Report::value) must be called with the same type `T`. `&(cost, &tour)` has
    /// another type than a tuple of owned values, so that call fails with [`Error::Value`](crate::Error::Value).
    ///
    /// ```
    /// use caribou::{Chunk, Config, Ctx};
    /// use serde::{Deserialize, Serialize};
    /// #[derive(Serialize, Deserialize)]
    /// struct Counter { count: u64 }
    /// impl Chunk for Counter {
    ///     type Index = u32;
    ///     type Message = ();
    ///     fn start(&mut self, ctx: &mut Ctx<'_, Self>) { ctx.send(0, ()); }
    ///     fn receive(&mut self, (): (), ctx: &mut Ctx<'_, Self>) {
    ///         self.count += 1;
    ///         if self.count == 8 { ctx.exit_with(&self.count); }
    ///     }
    /// }
    /// let report = caribou::run(Config::default().ranks(2), |setup| {
    ///     setup.array(8, |_| Counter { count: 0 });
    /// })?;
    /// assert_eq!(report.value::<u64>()?, 8);
    /// # Ok::<(), caribou::Error>(())
    /// ```
    ///
    /// # Panics
    /// If the value's `Serialize` implementation fails.
    #[track_caller]
    pub fn exit_with<T: Serialize>(&mut self, value: &T) {
        match ExitValue::new(value) {
            Ok(value) => self.handler.outbox.push(Effect::Exit(Some(Box::new(value)))),
            Err(why) => panic!("the value of the run cannot be encoded: {why}"),
        }
    }

    /// Requests a [checkpoint](crate::checkpoint) at a good moment for the program, such as the end of a long phase.
    /// The checkpoint is made as soon as this handler has returned and all ranks can stop. If another is being made,
    /// this one follows. The next regular checkpoint comes an interval later. Several chunks with requests at about the
    /// same time get one or two checkpoints.
    ///
    /// No effect in a run that makes no checkpoints ([`Config::checkpoint`](crate::Config::checkpoint)).
    pub fn checkpoint(&mut self) {
        self.handler.outbox.push(Effect::Checkpoint);
    }

    /// Shrinks or expands the run: makes the first `ranks` ranks the active ones, at least one and at most all. The
    /// others keep no chunk that may move, and get none until the run is expanded again. They forward packets, and cost
    /// next to nothing. For a program that has less to do for a while; `caribou resize` requests the same from outside.
    ///
    /// The last request counts. Chunks move with the next decision of the strategy: within some 10 ms where chunks are
    /// balanced while they run, else at the next sync. A line is printed once they have moved, or a warning if no chunk
    /// of the run can be moved. Results do not depend on the number of active ranks.
    pub fn resize(&mut self, ranks: u32) {
        self.handler.outbox.push(Effect::Resize(ranks));
    }

    /// Ends the run on all ranks when the handler returns, with an error of the program, such as a sum that diverges.
    /// [`run`](crate::run()) returns [`Error::Program`](crate::Error::Program) in every process, with the chunk and this
    /// text. The first error of a run counts.
    ///
    /// ```
    /// use caribou::{Chunk, Config, Ctx, Error};
    /// use serde::{Deserialize, Serialize};
    /// #[derive(Serialize, Deserialize)]
    /// struct Solver { residual: f64 }
    /// impl Chunk for Solver {
    ///     type Index = u32;
    ///     type Message = f64;
    ///     fn start(&mut self, ctx: &mut Ctx<'_, Self>) { ctx.send(ctx.index(), 10.0 * self.residual); }
    ///     fn receive(&mut self, residual: f64, ctx: &mut Ctx<'_, Self>) {
    ///         if residual > 1e6 { return ctx.fail(format!("the residual has grown to {residual:e}")); }
    ///         ctx.send(ctx.index(), 10.0 * residual);
    ///     }
    /// }
    /// let result = caribou::run(Config::default().ranks(2), |setup| {
    ///     setup.array(1, |_| Solver { residual: 2.0 });
    /// });
    /// let Err(error @ Error::Program { .. }) = result else { panic!("{result:?}") };
    /// assert_eq!(
    ///     error.to_string(),
    ///     "rank 0: chunk Solver[0] of array 0 ended the run: the residual has grown to 2e6"
    /// );
    /// ```
    pub fn fail(&mut self, why: impl Into<String>) {
        self.handler.outbox.push(Effect::Fail(why.into().into()));
    }

    pub(crate) fn fail_with(&mut self, error: Error) {
        self.handler.outbox.push(Effect::End(Box::new(error)));
    }
}
