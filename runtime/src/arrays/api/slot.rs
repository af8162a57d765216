//! The type-erasure boundary between a chunk of a user type and the core, which handles [`Payload`]s. [`Slot`]
//! implements [`ErasedSlot`] for every `Chunk`. One virtual call per message crosses the boundary.

use std::any::Any;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::mem::{ManuallyDrop, needs_drop};

use serde::{Deserialize, Serialize};
use smallbox::smallbox;

use super::chunk::{Chunk, Load};
use super::ctx::Ctx;
use super::index::Index;
use super::keys::Keys;
use super::seed::is_seed;
use super::setup::Placement;
use crate::arrays::core::collectives::reduction::Values;
use crate::arrays::core::lifecycle::erased::{ErasedArray, ErasedSlot};
use crate::arrays::core::lifecycle::handler::{ChunkRecord, Effect, Handler, SyncState};
use crate::arrays::core::lifecycle::seeds::split_key;
use crate::arrays::core::lifecycle::signature::{ArraySignature, hash_homes, sample};
use crate::arrays::core::routing::envelope::{Delivery, NODE_BYTES, Payload, Value, WideOption};
use crate::arrays::core::routing::message_list::{FreeList, MessageNode};
use crate::ids::{ArrayId, ChunkId, Rank, Sender};
use crate::text::{short_type_name, type_name_without_paths};
use crate::wire::{self, WireError, catching};

/// One chunk, its record, and its deferred messages, oldest first.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub(crate) struct Slot<C: Chunk> {
    pub(crate) chunk: C,
    record: ChunkRecord,
    /// None until a message is deferred. Most chunks are always ready.
    deferred: Option<Box<DeferredQueue<C>>>,
    /// True if the message type is not an enum, so that messages have no variant names.
    #[serde(skip)]
    unnamed: bool,
}

type DeferredQueue<C> = VecDeque<DeferredMessage<C>>;

/// One deferred delivery.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
struct DeferredMessage<C: Chunk> {
    from: Sender,
    /// Queued bytes of this message; 0 unless the message is deferred until a sync ends.
    bytes: u64,
    what: DeferredKind<C>,
}

#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
enum DeferredKind<C: Chunk> {
    Message(C::Message),
    Insertion { key: u64, chunk: Box<C> },
}

impl<C: Chunk> DeferredMessage<C> {
    fn is_ready(&self, chunk: &C) -> bool {
        match &self.what {
            DeferredKind::Message(message) => chunk.ready(message),
            DeferredKind::Insertion { .. } => true,
        }
    }
}

impl<C: Chunk> Slot<C> {
    pub(crate) fn new(chunk: C) -> Slot<C> {
        Slot { chunk, record: ChunkRecord::default(), deferred: None, unnamed: false }
    }

    /// Handles the message, or defers it. Moves the message once, directly to its destination, because each further
    /// copy would wait for the one before.
    #[inline(always)]
    fn offer<'a>(
        &'a mut self,
        from: &Sender,
        bytes: u64,
        place: &mut WideOption<C::Message>,
        handler: &'a mut Handler<'a>,
    ) {
        let message = place.get().expect("it is delivered once");
        let (kind, phase) = (name_of(message, &mut self.unnamed), self.record.syncs.next);
        handler.outbox.activity.set(kind, phase);
        if !(self.record.is_runnable() && self.chunk.ready(message)) {
            let message = place.take().expect("it was there a moment ago");
            return self.defer(*from, bytes, DeferredKind::Message(message), handler);
        }
        handler.begin(kind, phase, from);
        let mut ctx = Ctx::new(handler, &mut self.record, &self.chunk);
        let message = place.take().expect("it was there a moment ago");
        self.chunk.receive(message, &mut ctx);
        offer_deferred(&mut self.chunk, &mut self.deferred, &mut self.unnamed, &mut ctx);
    }

    #[inline(never)]
    fn defer(&mut self, from: Sender, bytes: u64, what: DeferredKind<C>, handler: &mut Handler<'_>) {
        // Other deferred bytes do not count as queued: the runtime cannot tell what the chunk waits for.
        let bytes = if self.record.is_runnable() { 0 } else { bytes };
        if bytes > 0 {
            handler.host.defer(self.record.awaited_sync(), bytes);
        }
        self.deferred.get_or_insert_default().push_back(DeferredMessage { from, bytes, what });
    }

    /// As [`deliver`](ErasedSlot::deliver), for a payload that is not a typed value.
    #[inline(never)]
    fn deliver_other<'a>(
        &'a mut self,
        delivery: &mut Delivery,
        handler: &'a mut Handler<'a>,
    ) -> Result<(), WireError> {
        let (from, mut bytes) = (&delivery.from, delivery.bytes);
        let message = match &mut delivery.payload {
            Payload::Encoded(bytes) => decode_message::<C>(&std::mem::take(bytes))?,
            Payload::Shared(shared) => {
                let message = decode_message::<C>(&shared.bytes)?;
                if self.record.is_runnable() {
                    drop(std::mem::replace(&mut delivery.payload, Payload::Resume));
                    handler.host.shared_message_read();
                } else {
                    // Count this copy first; the shared copy is released afterwards.
                    bytes += shared.bytes.len() as u64;
                }
                message
            }
            Payload::Reduced { number: Some(number), .. } if *number < self.record.first_reduction => {
                return Ok(());
            }
            Payload::Reduced { tag, values, .. } => {
                handler.outbox.activity.set("reduced", self.record.syncs.next);
                C::reduced(*tag, Values::clone(values))
            }
            Payload::Start => {
                self.call("start", handler, C::start);
                return Ok(());
            }
            Payload::Resume => {
                self.resume(handler);
                return Ok(());
            }
            Payload::Deferred => {
                let mut ctx = Ctx::new(handler, &mut self.record, &self.chunk);
                offer_deferred(&mut self.chunk, &mut self.deferred, &mut self.unnamed, &mut ctx);
                return Ok(());
            }
            insertion @ (Payload::Insertion { .. } | Payload::EncodedInsertion { .. }) => {
                return self.insert(*from, bytes, insertion, handler);
            }
            Payload::Value(_) => unreachable!("it was asked for before"),
        };
        self.offer(from, bytes, &mut WideOption::Filled(message), handler);
        Ok(())
    }

    /// Inserts a chunk that another chunk has sent here (`insert_into`). Deferred while this chunk waits at a sync.
    #[inline(never)]
    fn insert(
        &mut self,
        from: Sender,
        bytes: u64,
        payload: &mut Payload,
        handler: &mut Handler<'_>,
    ) -> Result<(), WireError> {
        let (key, chunk) = match payload {
            Payload::Insertion { key, chunk } => {
                let chunk = chunk.downcast_mut::<Option<C>>().and_then(Option::take);
                (*key, chunk.expect("its array's handle fixed the type, and it is delivered once"))
            }
            Payload::EncodedInsertion { key, chunk } => {
                (*key, catching::<C, _>("decoded", || wire::decode(&std::mem::take(chunk)))?)
            }
            other => unreachable!("{other:?} inserts nothing"),
        };
        if self.record.is_runnable() {
            handler.begin(INSERTION, self.record.syncs.next, &from);
            handler.outbox.push(insertion(key, chunk));
        } else {
            self.defer(from, bytes, DeferredKind::Insertion { key, chunk: Box::new(chunk) }, handler);
        }
        Ok(())
    }

    fn resume<'a>(&'a mut self, handler: &'a mut Handler<'a>) {
        let late = std::mem::take(&mut self.record.sync) == SyncState::WaitingForEarlier;
        self.call("resume", handler, if late { resume_and_pass } else { C::resume });
    }

    fn call<'a>(
        &'a mut self,
        kind: &'static str,
        handler: &'a mut Handler<'a>,
        call: fn(&mut C, &mut Ctx<'_, C>),
    ) {
        handler.begin(kind, self.record.syncs.next, &Sender::RUNTIME);
        let mut ctx = Ctx::new(handler, &mut self.record, &self.chunk);
        call(&mut self.chunk, &mut ctx);
        offer_deferred(&mut self.chunk, &mut self.deferred, &mut self.unnamed, &mut ctx);
    }
}

/// Ends one sync and passes the next, to which the chunk came before that end.
fn resume_and_pass<C: Chunk>(chunk: &mut C, ctx: &mut Ctx<'_, C>) {
    chunk.resume(ctx);
    ctx.at_sync_nowait();
}

/// Handles deferred messages, if there are any.
#[inline(always)]
fn offer_deferred<C: Chunk>(
    chunk: &mut C,
    kept: &mut Option<Box<DeferredQueue<C>>>,
    unnamed: &mut bool,
    ctx: &mut Ctx<'_, C>,
) {
    if let Some(kept) = kept
        && !kept.is_empty()
    {
        offer_all(chunk, kept, unnamed, ctx);
    }
}

/// Handles deferred messages until none is ready, or the chunk has come to a sync or was removed. Sends the effects of
/// each handler before the next handler runs. Stops, to continue later, if these are more than messages and a few
/// contributions, or if flow control blocks the chunk. Each handler may make any deferred message ready, so all are
/// checked again after each. So chunks should defer few messages.
fn offer_all<C: Chunk>(chunk: &mut C, kept: &mut DeferredQueue<C>, unnamed: &mut bool, ctx: &mut Ctx<'_, C>) {
    while ctx.record.is_runnable()
        && let Some(oldest) = kept.iter().position(|kept| kept.is_ready(chunk))
    {
        let Handler { outbox, host, .. } = &mut *ctx.handler;
        if !(host.send_messages(outbox) || outbox.has_few_contributions()) || host.is_blocked() {
            return outbox.push(Effect::HandleDeferred);
        }
        let DeferredMessage { from, bytes, what } = kept.remove(oldest).expect("it was found there");
        if bytes > 0 {
            ctx.handler.host.read_deferred(ctx.record.passing_sync(), bytes);
        }
        let phase = ctx.record.syncs.next;
        match what {
            DeferredKind::Message(message) => {
                ctx.handler.begin(name_of(&message, unnamed), phase, &from);
                ctx.state_bytes = chunk.state_bytes();
                chunk.receive(message, ctx);
            }
            DeferredKind::Insertion { key, chunk } => {
                ctx.handler.begin(INSERTION, phase, &from);
                ctx.handler.outbox.push(insertion(key, *chunk));
            }
        }
    }
    if ctx.record.is_runnable() {
        // The sync has ended. The other deferred messages do not wait for it.
        let bytes = kept.iter_mut().map(|kept| std::mem::take(&mut kept.bytes)).sum();
        if bytes > 0 {
            ctx.handler.host.read_deferred(ctx.record.passing_sync(), bytes);
        }
    }
}

/// As [`kind_of`], but `unnamed` stores that messages have no names, since each further test would make an error text.
fn name_of<M: Serialize>(message: &M, unnamed: &mut bool) -> &'static str {
    if *unnamed {
        return UNNAMED;
    }
    serde_variant::to_variant_name(message).unwrap_or_else(|_| {
        *unnamed = true;
        UNNAMED
    })
}

/// The name of a message that is not a variant of an enum.
const UNNAMED: &str = "message";

/// The name of an insertion through a parent, in lists of messages.
const INSERTION: &str = "insertion";

/// The effect by which a chunk inserts another.
pub(super) fn insertion<C: Chunk>(key: u64, chunk: C) -> Effect {
    Effect::Insert { key, slot: Box::new(Slot::new(chunk)) }
}

/// The effect by which a chunk spawns another.
pub(super) fn spawning<C: Chunk>(chunk: C) -> Effect {
    Effect::Spawn(Box::new(Slot::new(chunk)))
}

/// The chunk in a typed insertion.
pub(super) fn inserted<C: Chunk>(chunk: &(dyn Any + Send)) -> Option<&C> {
    chunk.downcast_ref::<Option<C>>().and_then(Option::as_ref)
}

fn decode_message<C: Chunk>(bytes: &[u8]) -> Result<C::Message, WireError> {
    catching::<C::Message, _>("decoded", || wire::decode_message(bytes))
}

/// Returns a node with this message, and an estimate of the bytes that the message takes while it is queued.
///
/// No call while `message` is held may unwind: otherwise the message would be in memory, written in parts and read
/// whole. Such a load stalls until the stores retire (a store-forwarding failure). A failed allocation leaks the
/// message.
#[inline(always)]
pub(super) fn write_node<M: Serialize + Send + 'static>(
    free_list: &mut FreeList,
    to: ChunkId,
    from: Sender,
    message: M,
) -> Box<MessageNode> {
    let message = ManuallyDrop::new(message);
    let mut node = free_list.prepare(to, from, NODE_BYTES + size_of::<M>() as u64);
    let value: Value = smallbox!(WideOption::Filled(ManuallyDrop::into_inner(message)));
    node.message.payload.overwrite(Payload::Value(value));
    if needs_drop::<M>()
        && let Payload::Value(value) = &node.message.payload
        && let Some(message) = message_in::<M>(value)
    {
        node.message.bytes += wire::message_bytes(message);
    }
    node
}

/// The message of this type, if it has not been taken yet.
#[inline]
fn message_in<M: 'static>(value: &Value) -> Option<&M> {
    value.downcast_ref::<WideOption<M>>().and_then(WideOption::get)
}

/// The name of the variant of an enum, else "message".
fn kind_of<M: Serialize>(message: &M) -> &'static str {
    serde_variant::to_variant_name(message).unwrap_or(UNNAMED)
}

impl<C: Chunk> ErasedSlot for Slot<C> {
    /// Hop 5: downcasts or decodes the message, checks whether the chunk is ready, then handles or defers the message.
    #[inline]
    fn deliver<'a>(
        &'a mut self,
        delivery: &mut Delivery,
        handler: &'a mut Handler<'a>,
    ) -> Result<(), Box<WireError>> {
        tracing::trace!(hop = 5, "Slot::deliver");
        let Payload::Value(value) = &mut delivery.payload else {
            return self.deliver_other(delivery, handler).map_err(Box::new);
        };
        let message = value.downcast_mut().expect("its array's handle fixed the type");
        self.offer(&delivery.from, delivery.bytes, message, handler);
        Ok(())
    }

    fn record(&mut self) -> &mut ChunkRecord {
        &mut self.record
    }

    fn declared_load(&self) -> Option<u64> {
        match self.chunk.load() {
            Load::Measured => None,
            Load::Ticks(ticks) => Some(ticks),
        }
    }

    fn migratable(&self) -> bool {
        self.chunk.migratable()
    }

    fn state_bytes(&self) -> u64 {
        self.chunk.state_bytes()
    }

    fn on_depart(&mut self) {
        self.chunk.on_depart();
    }

    fn on_arrive(&mut self) {
        self.chunk.on_arrive();
    }

    fn deferred(&self) -> usize {
        self.deferred.as_ref().map_or(0, |kept| kept.len())
    }

    fn deferred_bytes(&self) -> u64 {
        self.deferred.iter().flat_map(|kept| kept.iter()).map(|kept| kept.bytes).sum()
    }

    fn waits_for(&self) -> Option<String> {
        self.chunk.waits_for()
    }

    fn into_deferred(self: Box<Self>) -> Vec<Delivery> {
        let payload = |what| match what {
            DeferredKind::Message(message) => Payload::Value(smallbox!(WideOption::Filled(message))),
            DeferredKind::Insertion { key, chunk } => {
                Payload::Insertion { key, chunk: Box::new(Some(*chunk)) }
            }
        };
        let kept = self.deferred.into_iter().flat_map(|kept| *kept);
        kept.map(|DeferredMessage { from, what, .. }| Delivery { from, bytes: 0, payload: payload(what) })
            .collect()
    }

    fn encode_into(&self, bytes: &mut Vec<u8>) -> Result<(), WireError> {
        catching::<C, _>("encoded", || wire::encode_into(self, bytes))
    }
}

/// One array of a user type, behind [`ErasedArray`].
pub(crate) struct ArrayOf<C, F> {
    pub(crate) make: F,
    /// Packed indices of the initial chunks, ascending.
    pub(crate) keys: Keys,
    pub(crate) placement: Placement,
    pub(crate) syncs: bool,
    pub(crate) at_syncs: bool,
    pub(crate) group: bool,
    pub(crate) leader: Option<ArrayId>,
    pub(crate) chunk: std::marker::PhantomData<fn() -> C>,
}

impl<C: Chunk, F: Fn(C::Index) -> C + Send + Sync> ErasedArray for ArrayOf<C, F> {
    fn name(&self) -> &str {
        short_type_name::<C>()
    }

    fn kind(&self, payload: &Payload) -> Cow<'static, str> {
        let message = |message: &C::Message| kind_of(message);
        let kind = match payload {
            Payload::Value(value) => message_in(value).map_or(UNNAMED, message),
            Payload::Encoded(bytes) => wire::decode_message(bytes).as_ref().map_or(UNNAMED, message),
            Payload::Shared(shared) => wire::decode_message(&shared.bytes).as_ref().map_or(UNNAMED, message),
            Payload::Reduced { .. } => "reduced",
            Payload::Start => "start",
            Payload::Resume => "resume",
            Payload::Deferred => "kept",
            Payload::Insertion { key, .. } | Payload::EncodedInsertion { key, .. } => {
                return format!("{INSERTION} of {}[{}]", self.name(), self.index_text(*key)).into();
            }
        };
        kind.into()
    }

    fn encoded_bytes(&self, payload: &Payload) -> u64 {
        match payload {
            Payload::Value(value) => message_in(value).map_or(0, wire::message_bytes::<C::Message>),
            Payload::Insertion { chunk, .. } => inserted::<C>(&**chunk).map_or(0, wire::encoded_bytes),
            encoded => encoded.bytes(),
        }
    }

    fn population(&self) -> u64 {
        self.keys.len()
    }

    fn keys_on(&self, rank: Rank, ranks: u32) -> Vec<u64> {
        self.keys.iter().filter(|&key| self.home(key, ranks) == rank).collect()
    }

    fn home(&self, key: u64, ranks: u32) -> Rank {
        match split_key(key) {
            // A program may make up an index with a rank that does not exist. Its messages must still be queued
            // somewhere.
            (Some(rank), _) if self.has_seeds() => Rank(rank.0 % ranks),
            _ => self.placement.home(key, &self.keys, ranks),
        }
    }

    fn create(&self, key: u64) -> Box<dyn ErasedSlot> {
        Box::new(Slot::new((self.make)(C::Index::unpack(key))))
    }

    fn index_text(&self, key: u64) -> String {
        let text = format!("{:?}", C::Index::unpack(key));
        // Leave out the brackets of an array index, since the name of a chunk has brackets already.
        let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
        inner.filter(|inner| !inner.contains(['[', ']'])).map_or(text.clone(), str::to_owned)
    }

    fn leader(&self) -> Option<ArrayId> {
        self.leader
    }

    fn syncs(&self) -> bool {
        self.syncs
    }

    fn at_syncs(&self) -> bool {
        self.at_syncs
    }

    fn is_group(&self) -> bool {
        self.group
    }

    fn signature(&self, ranks: u32) -> ArraySignature {
        let sampled = sample(self.keys.len()).map(|nth| self.home(self.keys.nth(nth), ranks));
        ArraySignature {
            chunk: self.name().to_owned(),
            message: type_name_without_paths::<C::Message>(),
            chunks: self.keys.len(),
            indices: self.keys.hash(),
            placement: format!("{:?}", self.placement),
            homes: hash_homes(sampled),
            syncs: self.syncs,
            at_syncs: self.at_syncs,
            group: self.group,
            leader: self.leader,
        }
    }

    fn has_seeds(&self) -> bool {
        is_seed::<C::Index>()
    }

    fn encode_into(&self, payload: &Payload, bytes: &mut Vec<u8>) -> Result<(), WireError> {
        match payload {
            Payload::Value(value) => {
                let message: Option<&C::Message> = message_in(value);
                let message = message.expect("its array's handle fixed the type, and it was not delivered");
                // The handler of the sender may have returned long ago, so the error must not name the running handler.
                catching::<C::Message, _>("encoded", || wire::encode_message_into(message, bytes))
            }
            Payload::Insertion { chunk, .. } => {
                let chunk = inserted::<C>(&**chunk).expect("it has its array's type, and was not delivered");
                catching::<C, _>("encoded", || wire::encode_into(chunk, bytes))
            }
            other => unreachable!("{other:?} is sent as it is"),
        }
    }

    fn decode_message(&self, bytes: &[u8], over: &mut Payload) -> Result<(), WireError> {
        over.overwrite(Payload::Value(smallbox!(WideOption::Filled(decode_message::<C>(bytes)?))));
        Ok(())
    }

    fn decode_slot(&self, _key: u64, bytes: &[u8]) -> Result<Box<dyn ErasedSlot>, WireError> {
        let slot = catching::<C, _>("decoded", || wire::decode::<Slot<C>>(bytes))?;
        Ok(Box::new(slot))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrays::core::lifecycle::transfer::ChunkTransfer;

    #[derive(Serialize, Deserialize)]
    struct Keeper;

    impl Chunk for Keeper {
        type Index = u32;
        type Message = u32;
        fn receive(&mut self, _: u32, _: &mut Ctx<'_, Self>) {}
    }

    #[test]
    fn messages_deferred_at_a_sync_count_as_queued_where_the_chunk_arrives() {
        let mut slot = Slot::new(Keeper);
        let kept = [30, 0, 40].map(|bytes| DeferredMessage {
            from: Sender::RUNTIME,
            bytes,
            what: DeferredKind::Message(7),
        });
        slot.deferred = Some(Box::new(kept.into()));
        let mut bytes = Vec::new();
        slot.encode_into(&mut bytes).expect("it is plain");
        let slot: Slot<Keeper> = wire::decode(&bytes).expect("it was encoded a line above");
        let chunk = ChunkId { array: ArrayId(0), key: 0 };
        let mail = vec![Delivery { bytes: 5, ..Delivery::by_runtime(Payload::Resume) }];
        let transfer = ChunkTransfer { messages: mail, ..ChunkTransfer::inserted(chunk, Box::new(slot)) };
        assert_eq!(transfer.queued_bytes(), 75);
    }
}
