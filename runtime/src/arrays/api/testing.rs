//! Runs one handler without a runtime, for unit tests of chunks. A handler is a function (state, message) -> (state,
//! outbox); [`probe`] calls it and returns the outbox.

use std::any::Any;
use std::time::Duration;

use serde::de::DeserializeOwned;

use super::chunk::Chunk;
use super::ctx::Ctx;
use super::index::Index;
use super::slot::inserted;
use crate::arrays::core::collectives::exit_value::ExitValue;
use crate::arrays::core::collectives::section::SectionContribution;
use crate::arrays::core::lifecycle::handler::{ChunkRecord, Effect, Handler, HandlerHost, RankInfo};
use crate::arrays::core::routing::envelope::{Payload, WideOption};
use crate::arrays::core::routing::message_list::{MessageNode, Outbox, OutboxEntry};
use crate::ids::{ArrayId, ChunkId, Rank, SyncId};
use crate::trace::{StepRecord, StepsSoFar, UserEvent};
use crate::wire;

/// The effects of one handler, which the runtime would apply after it.
///
/// ```
/// # use caribou::testing::Effects;
/// # use caribou::{Chunk, Ctx}; use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize)] struct Quiet;
/// # impl Chunk for Quiet { type Index = u32; type Message = (); fn receive(&mut self, _: (), _: &mut Ctx<'_, Self>) {} }
/// let effects = Effects::<Quiet>::default();
/// assert!(effects.messages.is_empty() && !effects.exit);
/// ```
pub struct Effects<C: Chunk> {
    /// Messages to chunks of the same array, in order.
    pub messages: Vec<(C::Index, C::Message)>,
    /// Broadcasts to the same array.
    pub broadcasts: Vec<C::Message>,
    /// Multicasts: the receivers, and the message.
    pub multicasts: Vec<(Vec<C::Index>, C::Message)>,
    /// Contributions: tag and values.
    pub contributions: Vec<(u32, crate::Values)>,
    /// Contributions to the reductions of steps: step, tag and values.
    pub step_contributions: Vec<(u64, u32, crate::Values)>,
    /// The step until which the handler abstains from reductions.
    pub abstains_until: Option<u64>,
    /// True if the handler left the reductions of its array.
    pub left_reductions: bool,
    /// Contributions to reductions over sections: the chunks of the section, tag and values.
    pub section_contributions: Vec<(Vec<C::Index>, u32, crate::Values)>,
    /// Chunks inserted.
    pub inserted: Vec<C::Index>,
    /// Number of chunks spawned.
    pub spawned: usize,
    /// Chunks for other chunks to insert: keys, chunks, and keys of their parents.
    insertions: Vec<(u64, Box<dyn Any + Send>, u64)>,
    /// Messages to chunks of the same array that wait for quiescence.
    pub at_quiescence: Vec<(C::Index, C::Message)>,
    /// Messages to the chunk itself after a time.
    pub after: Vec<(Duration, C::Message)>,
    /// Number of messages to other arrays, and of chunks inserted without a parent.
    pub elsewhere: usize,
    /// True if the handler came to a sync, with `at_sync` or `at_sync_nowait`.
    pub at_sync: bool,
    /// True if the handler requested a checkpoint.
    pub checkpoint: bool,
    /// The last number of active ranks that the handler requested.
    pub resize: Option<u32>,
    /// True if the handler removed its chunk.
    pub removed: bool,
    /// True if the handler ended the run.
    pub exit: bool,
    /// The error with which the handler ended the run.
    pub failed: Option<String>,
    /// Load that the handler declared, ns of ticks.
    pub charged: Option<u64>,
    value: Option<Box<ExitValue>>,
}

impl<C: Chunk> Default for Effects<C> {
    fn default() -> Self {
        Effects {
            messages: Vec::new(),
            broadcasts: Vec::new(),
            multicasts: Vec::new(),
            contributions: Vec::new(),
            step_contributions: Vec::new(),
            abstains_until: None,
            left_reductions: false,
            section_contributions: Vec::new(),
            inserted: Vec::new(),
            spawned: 0,
            insertions: Vec::new(),
            at_quiescence: Vec::new(),
            after: Vec::new(),
            elsewhere: 0,
            at_sync: false,
            checkpoint: false,
            resize: None,
            removed: false,
            exit: false,
            failed: None,
            charged: None,
            value: None,
        }
    }
}

/// A chunk under test.
///
/// ```
/// use caribou::{Chunk, Ctx, testing::probe};
/// use serde::{Deserialize, Serialize};
/// #[derive(Serialize, Deserialize)]
/// struct Greeter;
/// impl Chunk for Greeter {
///     type Index = u32;
///     type Message = String;
///     fn start(&mut self, ctx: &mut Ctx<'_, Self>) { ctx.send(1, "hello".into()); }
///     fn receive(&mut self, _: String, ctx: &mut Ctx<'_, Self>) { ctx.exit(); }
/// }
/// assert_eq!(probe(&mut Greeter, 0).start().messages, [(1, "hello".to_string())]);
/// assert!(probe(&mut Greeter, 1).receive("hello".into()).exit);
/// ```
pub struct Probe<'c, C: Chunk> {
    chunk: &'c mut C,
    index: C::Index,
    info: RankInfo,
}

/// Prepares to call handlers of `chunk` as if its index were `index`.
pub fn probe<C: Chunk>(chunk: &mut C, index: C::Index) -> Probe<'_, C> {
    let info = RankInfo {
        rank: Rank(0),
        ranks: 1,
        period: 0,
        by_windows: false,
        takes_resizes: false,
        signal_ns: u64::MAX,
        slowness: 1.0,
        services: Vec::new(),
    };
    Probe { chunk, index, info }
}

impl<C: Chunk> Probe<'_, C> {
    /// Makes syncs due every `period` steps. Otherwise they are never due.
    #[must_use]
    pub fn period(mut self, period: u64) -> Self {
        self.info.period = period;
        self
    }

    /// Provides a service, as [`Setup::service`](crate::Setup::service) does for a run.
    #[must_use]
    pub fn service<T: Send + Sync + 'static>(mut self, service: T) -> Self {
        self.info.services.push(Box::new(service));
        self
    }

    /// Calls `start`.
    pub fn start(&mut self) -> Effects<C> {
        self.call(|chunk, ctx| chunk.start(ctx))
    }

    /// Calls `receive`, whether the chunk is ready or not.
    pub fn receive(&mut self, message: C::Message) -> Effects<C> {
        self.call(|chunk, ctx| chunk.receive(message, ctx))
    }

    /// Calls `resume`.
    pub fn resume(&mut self) -> Effects<C> {
        self.call(|chunk, ctx| chunk.resume(ctx))
    }

    fn call(&mut self, handler: impl FnOnce(&mut C, &mut Ctx<'_, C>)) -> Effects<C> {
        let (mut record, mut outbox, mut host) = (ChunkRecord::default(), Outbox::default(), NullHost);
        outbox.activity.chunk.set(ChunkId { array: ArrayId(0), key: self.index.pack() });
        let surroundings = &mut Handler { outbox: &mut outbox, info: &self.info, host: &mut host };
        handler(self.chunk, &mut Ctx::new(surroundings, &mut record, self.chunk));
        let mut effects = Effects { charged: record.charged, ..Effects::default() };
        outbox.take().for_each(|left| match left {
            OutboxEntry::Message(node) => effects.add_message(*node),
            OutboxEntry::Effect(effect) => effects.add(effect),
        });
        effects
    }
}

impl<C: Chunk> Effects<C> {
    /// The value with which the handler ended the run.
    ///
    /// # Panics
    /// If there is no value, or the value is of another type.
    #[track_caller]
    pub fn exit_value<T: DeserializeOwned>(&self) -> T {
        match self.value.as_ref().map(|value| value.read()) {
            Some(Ok(value)) => value,
            Some(Err(why)) => panic!("{why}"),
            None => panic!("the handler did not call exit_with"),
        }
    }

    /// Chunks of type `D` that the handler inserted with [`insert_into`](Ctx::insert_into): index, chunk and parent.
    ///
    /// ```
    /// use caribou::{Array, Chunk, Ctx, Setup, testing::probe};
    /// use serde::{Deserialize, Serialize};
    /// #[derive(Serialize, Deserialize)]
    /// struct Coarse { fine: Array<Fine> }
    /// #[derive(Debug, PartialEq, Serialize, Deserialize)]
    /// struct Fine { level: u8 }
    /// impl Chunk for Coarse {
    ///     type Index = u32;
    ///     type Message = ();
    ///     fn receive(&mut self, (): (), ctx: &mut Ctx<'_, Self>) {
    ///         let me = ctx.index();
    ///         for half in [2 * me, 2 * me + 1] { ctx.insert_into(self.fine, half, Fine { level: 1 }, me); }
    ///     }
    /// }
    /// # impl Chunk for Fine {
    /// #     type Index = u32; type Message = ();
    /// #     fn receive(&mut self, (): (), _: &mut Ctx<'_, Self>) {}
    /// # }
    /// let fine = Setup::default().array(4, |_| Fine { level: 0 });
    /// let effects = probe(&mut Coarse { fine }, 3).receive(());
    /// assert_eq!(effects.inserted_into::<Fine>(), [(6, &Fine { level: 1 }, 3), (7, &Fine { level: 1 }, 3)]);
    /// ```
    pub fn inserted_into<D: Chunk>(&self) -> Vec<(D::Index, &D, D::Index)> {
        let of_type = self.insertions.iter().filter_map(|(key, chunk, parent)| {
            Some((D::Index::unpack(*key), inserted(&**chunk)?, D::Index::unpack(*parent)))
        });
        of_type.collect()
    }

    fn add_message(&mut self, node: MessageNode) {
        match node.message.payload {
            Payload::Insertion { key, chunk } => self.insertions.push((key, chunk, node.to.key)),
            payload if node.to.array == ArrayId(0) => {
                self.messages.push((C::Index::unpack(node.to.key), message_of::<C>(payload)));
            }
            _ => self.elsewhere += 1,
        }
    }

    fn add(&mut self, effect: Effect) {
        let decode =
            |bytes: &[u8]| wire::decode_message(bytes).expect("what was encoded a moment ago decodes");
        match effect {
            Effect::SendAtQuiescence(node) => {
                let to = C::Index::unpack(node.to.key);
                self.at_quiescence.push((to, message_of::<C>(node.message.payload)));
            }
            Effect::SendAfter { delay, node } => {
                self.after.push((delay, message_of::<C>(node.message.payload)));
            }
            Effect::Broadcast { array: ArrayId(0), message } => self.broadcasts.push(decode(&message)),
            Effect::Multicast { array: ArrayId(0), keys, message } => {
                self.multicasts
                    .push((keys.iter().map(|&key| C::Index::unpack(key)).collect(), decode(&message)));
            }
            Effect::Broadcast { .. } | Effect::Multicast { .. } | Effect::InsertRoot { .. } => {
                self.elsewhere += 1;
            }
            Effect::Contribute { spec, values, step: None } => {
                self.contributions.push((spec.tag, values));
            }
            Effect::Contribute { spec, values, step: Some(step) } => {
                self.step_contributions.push((step, spec.tag, values));
            }
            Effect::AbstainUntil(step) => self.abstains_until = Some(step),
            Effect::LeaveReductions => self.left_reductions = true,
            Effect::ContributeIn(contribution) => {
                let section = contribution.keys.iter().map(|&key| C::Index::unpack(key)).collect();
                let SectionContribution { spec, values, .. } = *contribution;
                self.section_contributions.push((section, spec.tag, values));
            }
            Effect::Insert { key, .. } => self.inserted.push(C::Index::unpack(key)),
            Effect::Spawn(_) => self.spawned += 1,
            Effect::AtSync { .. } => self.at_sync = true,
            Effect::Checkpoint => self.checkpoint = true,
            Effect::Resize(ranks) => self.resize = Some(ranks),
            Effect::Remove => self.removed = true,
            Effect::HandleDeferred => unreachable!("nothing stops it"),
            Effect::Exit(value) => {
                self.exit = true;
                self.value = self.value.take().or(value);
            }
            Effect::End(error) => self.failed = self.failed.take().or(Some(error.to_string())),
            Effect::Fail(why) => self.failed = self.failed.take().or(Some(why.into())),
        }
    }
}

/// The message in a delivery to the probed chunk's array.
fn message_of<C: Chunk>(payload: Payload) -> C::Message {
    let Payload::Value(mut value) = payload else { unreachable!("sent as a value") };
    let message = value.downcast_mut::<WideOption<C::Message>>().and_then(WideOption::take);
    message.expect("array 0 is the probed chunk's own")
}

/// A host that sends nothing before a probed handler returns.
struct NullHost;

impl HandlerHost for NullHost {
    fn flush(&mut self, _: &mut Outbox) {}

    fn send_messages(&mut self, _: &mut Outbox) -> bool {
        true
    }

    fn is_blocked(&self) -> bool {
        false
    }

    fn defer(&mut self, _: SyncId, _: u64) {}
    fn read_deferred(&mut self, _: Option<SyncId>, _: u64) {}
    fn shared_message_read(&mut self) {}
    fn now_ns(&self) -> u64 {
        0
    }
    fn set_kind(&mut self, _: &'static str) {}
    fn record_event(&mut self, _: UserEvent) {}

    fn is_traced(&self) -> bool {
        false
    }

    fn record_steps(&mut self, _: &[StepRecord]) {}
    fn update_steps(&mut self, _: &mut dyn FnMut(&mut StepsSoFar)) {}
    fn take_resize(&mut self) -> Option<u32> {
        None
    }

    fn resize_ended(&mut self, _: u32, _: &str) {}
    fn charge(&mut self, _: u64) {}
}
