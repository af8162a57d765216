//! Message nodes: intrusive lists that carry a message from the handler that sends it to the handler that receives it.
//!
//! A handler writes its message once, into a free node of its worker. The outbox and the mailbox are lists of nodes,
//! and pass a node on by its pointer. The worker that has handled the message keeps the node on its own free list.

use std::mem::ManuallyDrop;
use std::rc::Rc;
use std::vec::Drain;

use super::envelope::{Delivery, Payload};
use crate::arrays::core::lifecycle::activity::Activity;
use crate::arrays::core::lifecycle::handler::Effect;
use crate::ids::{ChunkId, RUNTIME, Sender};

/// A message, and the next node of its list.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct MessageNode<M = Delivery> {
    pub(crate) to: ChunkId,
    pub(crate) message: M,
    next: NextNode<M>,
}

/// The rest of a list. [`MessageList`] drops its nodes in a loop, because a recursive drop is as deep as the list is
/// long. `ManuallyDrop` saves a test at each move of a node: whether there is a rest to drop.
type NextNode<M> = ManuallyDrop<Option<Box<MessageNode<M>>>>;

impl<M> MessageNode<M> {
    pub(crate) fn new(to: ChunkId, message: M) -> Box<MessageNode<M>> {
        Box::new(MessageNode { to, message, next: ManuallyDrop::new(None) })
    }
}

/// A list of nodes, in one word.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct MessageList<M = Delivery> {
    first: NextNode<M>,
}

impl<M> Default for MessageList<M> {
    fn default() -> MessageList<M> {
        MessageList { first: ManuallyDrop::new(None) }
    }
}

impl<M> MessageList<M> {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Puts a node before all others.
    #[inline]
    pub(crate) fn push(&mut self, mut node: Box<MessageNode<M>>) {
        node.next = ManuallyDrop::new(self.first.take());
        self.first = ManuallyDrop::new(Some(node));
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &MessageNode<M>> {
        std::iter::successors(self.first.as_deref(), |node| node.next.as_deref())
    }

    /// Takes all nodes, the last first. O(n).
    #[inline]
    pub(crate) fn take_reversed(&mut self) -> MessageList<M> {
        match &*self.first {
            Some(first) if first.next.is_some() => self.reverse_many(),
            _ => std::mem::take(self),
        }
    }

    fn reverse_many(&mut self) -> MessageList<M> {
        let mut reversed = MessageList::default();
        for node in self {
            reversed.push(node);
        }
        reversed
    }

    #[cold]
    fn clear(&mut self) {
        self.by_ref().for_each(drop);
    }

    /// The messages, without their nodes.
    pub(crate) fn into_messages(self) -> impl Iterator<Item = M> {
        self.map(|node| node.message)
    }
}

/// Takes the first node.
impl<M> Iterator for MessageList<M> {
    type Item = Box<MessageNode<M>>;

    #[inline]
    fn next(&mut self) -> Option<Box<MessageNode<M>>> {
        let mut first = self.first.take()?;
        self.first = ManuallyDrop::new(first.next.take());
        Some(first)
    }
}

impl<M> FromIterator<Box<MessageNode<M>>> for MessageList<M> {
    fn from_iter<I: IntoIterator<Item = Box<MessageNode<M>>>>(nodes: I) -> MessageList<M> {
        let mut newest_first = MessageList::default();
        nodes.into_iter().for_each(|node| newest_first.push(node));
        newest_first.take_reversed()
    }
}

impl<M> Drop for MessageList<M> {
    #[inline]
    fn drop(&mut self) {
        if !self.is_empty() {
            self.clear();
        }
    }
}

/// The free nodes of a worker. Their messages need not be dropped.
#[derive(Default)]
pub(crate) struct FreeList {
    nodes: MessageList,
    count: usize,
}

/// Free nodes that a worker keeps, at most.
const FREE_MAX: usize = 256;

impl FreeList {
    /// A node with this message.
    #[inline(always)]
    pub(crate) fn fill(
        &mut self,
        to: ChunkId,
        from: Sender,
        bytes: u64,
        payload: impl FnOnce() -> Payload,
    ) -> Box<MessageNode> {
        let mut node = self.prepare(to, from, bytes);
        node.message.payload.overwrite(payload());
        node
    }

    /// A node with a message, except for the payload.
    #[inline(always)]
    pub(crate) fn prepare(&mut self, to: ChunkId, from: Sender, bytes: u64) -> Box<MessageNode> {
        let mut node = self.take();
        node.to = to;
        node.message.from = from;
        node.message.bytes = bytes;
        node
    }

    #[inline]
    fn take(&mut self) -> Box<MessageNode> {
        match self.nodes.next() {
            Some(node) => {
                self.count -= 1;
                node
            }
            None => FreeList::make(),
        }
    }

    #[inline(never)]
    fn make() -> Box<MessageNode> {
        MessageNode::new(RUNTIME, Delivery::by_runtime(Payload::Resume))
    }

    /// Takes the message from a node, and keeps the node.
    #[inline]
    pub(crate) fn take_message(&mut self, mut node: Box<MessageNode>) -> Delivery {
        let delivery = node.message.take();
        self.put(node);
        delivery
    }

    /// Keeps a node after a handler. Drops the node if something is left of its message.
    #[inline]
    pub(crate) fn recycle(&mut self, node: Box<MessageNode>) {
        match &node.message.payload {
            Payload::Value(value) if !value.is_heap() => self.put(node),
            Payload::Start | Payload::Resume | Payload::Deferred => self.put(node),
            _ => {}
        }
    }

    /// Keeps a node without a message.
    #[inline]
    pub(crate) fn put(&mut self, node: Box<MessageNode>) {
        if self.count < FREE_MAX {
            self.nodes.push(node);
            self.count += 1;
        }
    }
}

/// The most effects for which an outbox keeps memory.
const EFFECTS_KEPT: usize = 64;

/// The most contributions that gather in the outbox of a chunk while it handles deferred messages. Flushing after each
/// one made a stencil of small chunks, which contribute in each step, a tenth slower.
const CONTRIBUTIONS_MAX: usize = 8;

/// The output of a handler, in order: nodes for messages to single chunks, and effects for everything else.
pub(crate) struct Outbox {
    newest_first: MessageList,
    /// Each effect with the nodes before it, in order.
    effects: Vec<(MessageList, Effect)>,
    pub(crate) free_list: FreeList,
    /// The current activity of the worker, with the chunk of the handler that writes here.
    pub(crate) activity: Rc<Activity>,
}

impl Default for Outbox {
    fn default() -> Outbox {
        Outbox::of(Rc::default())
    }
}

/// One entry of an outbox.
pub(crate) enum OutboxEntry {
    Message(Box<MessageNode>),
    Effect(Effect),
}

impl Outbox {
    /// The outbox of a worker with this activity.
    pub(crate) fn of(activity: Rc<Activity>) -> Outbox {
        let (newest_first, effects, free_list) = (MessageList::default(), Vec::new(), FreeList::default());
        Outbox { newest_first, effects, free_list, activity }
    }

    /// Appends a message to a single chunk.
    #[inline(always)]
    pub(crate) fn send(&mut self, to: ChunkId, from: Sender, bytes: u64, payload: impl FnOnce() -> Payload) {
        let node = self.free_list.fill(to, from, bytes, payload);
        self.push_node(node);
    }

    /// Appends the node of a message.
    #[inline]
    pub(crate) fn push_node(&mut self, node: Box<MessageNode>) {
        self.newest_first.push(node);
    }

    pub(crate) fn push(&mut self, effect: Effect) {
        let before = self.take_messages();
        self.effects.push((before, effect));
    }

    /// Appends an entry that [`take`](Outbox::take) returned.
    pub(crate) fn put_back(&mut self, left: OutboxEntry) {
        match left {
            OutboxEntry::Message(node) => self.push_node(node),
            OutboxEntry::Effect(effect) => self.push(effect),
        }
    }

    /// True if there are no effects.
    #[inline]
    pub(crate) fn has_only_messages(&self) -> bool {
        self.effects.is_empty()
    }

    /// True if there are nodes after all effects.
    pub(crate) fn has_messages(&self) -> bool {
        !self.newest_first.is_empty()
    }

    /// True if the only effects are a few contributions.
    pub(crate) fn has_few_contributions(&self) -> bool {
        let contributes = |effect: &Effect| {
            matches!(effect, Effect::Contribute { .. } | Effect::ContributeIn(_) | Effect::AbstainUntil(_))
        };
        self.effects.len() < CONTRIBUTIONS_MAX && self.effects.iter().all(|(_, effect)| contributes(effect))
    }

    /// Takes the nodes after all effects.
    #[inline]
    pub(crate) fn take_messages(&mut self) -> MessageList {
        self.newest_first.take_reversed()
    }

    /// Takes the effects in order, each with the nodes before it. Also returns the free list for the nodes.
    #[inline]
    pub(crate) fn effects_and_free_list(&mut self) -> (Drain<'_, (MessageList, Effect)>, &mut FreeList) {
        (self.effects.drain(..), &mut self.free_list)
    }

    /// Frees the memory of effects beyond [`EFFECTS_KEPT`].
    #[inline]
    pub(crate) fn shrink(&mut self) {
        self.effects.shrink_to(EFFECTS_KEPT);
    }

    pub(crate) fn take(&mut self) -> impl Iterator<Item = OutboxEntry> + use<> {
        let effects = std::mem::take(&mut self.effects).into_iter();
        let all = effects.flat_map(|(before, effect)| {
            before.map(OutboxEntry::Message).chain([OutboxEntry::Effect(effect)])
        });
        all.chain(self.take_messages().map(OutboxEntry::Message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrays::core::collectives::reduction::{Reducer, ReductionSpec, ResultTarget, Values};
    use crate::ids::ArrayId;

    fn mail(keys: impl IntoIterator<Item = u64>) -> MessageList<()> {
        keys.into_iter().map(|key| MessageNode::new(ChunkId { array: ArrayId(0), key }, ())).collect()
    }

    fn keys(mail: MessageList<()>) -> Vec<u64> {
        mail.map(|node| node.to.key).collect()
    }

    #[test]
    fn nodes_are_taken_in_order_and_reversed() {
        assert_eq!(keys(mail(0..5)), [0, 1, 2, 3, 4]);
        let mut taken = mail(0..5);
        assert_eq!(taken.next().map(|node| node.to.key), Some(0));
        assert_eq!(keys(taken.take_reversed()), [4, 3, 2, 1]);
        assert!(taken.is_empty());
    }

    #[test]
    fn a_list_longer_than_the_stack_is_dropped_with_all_its_messages() {
        let message = std::sync::Arc::new(());
        let nodes = (0..1_000_000).map(|_| MessageNode::new(RUNTIME, message.clone()));
        drop(nodes.collect::<MessageList<_>>());
        assert_eq!(std::sync::Arc::strong_count(&message), 1);
    }

    #[test]
    fn memory_for_few_effects_is_kept_and_for_many_is_freed() {
        let mut outbox = Outbox::default();
        for count in [1, EFFECTS_KEPT, 100 * EFFECTS_KEPT, 2] {
            (0..count).for_each(|_| outbox.push(Effect::Remove));
            assert_eq!(outbox.effects_and_free_list().0.count(), count);
            outbox.shrink();
            assert!(outbox.has_only_messages());
            assert!((1..=EFFECTS_KEPT).contains(&outbox.effects.capacity()), "{count}");
        }
    }

    #[test]
    fn only_few_contributions_may_wait_for_more() {
        let contribution = || {
            let (spec, values) = (
                ReductionSpec { tag: 0, reducer: Reducer::Sum, target: ResultTarget::All },
                Values::U64(Vec::new()),
            );
            Effect::Contribute { spec, values, step: None }
        };
        let mut outbox = Outbox::default();
        (1..CONTRIBUTIONS_MAX).for_each(|_| outbox.push(contribution()));
        assert!(outbox.has_few_contributions());
        outbox.push(contribution());
        assert!(!outbox.has_few_contributions(), "there are many");
        let mut outbox = Outbox::default();
        outbox.push(Effect::AtSync { bytes: 0 });
        assert!(!outbox.has_few_contributions(), "the next handler is in the next phase");
    }

    #[test]
    fn entries_stay_in_order_also_when_some_are_put_back() {
        let (mut outbox, to) = (Outbox::default(), |key| ChunkId { array: ArrayId(0), key });
        let names = |left: &OutboxEntry| match left {
            OutboxEntry::Message(node) => format!("node {}", node.to.key),
            OutboxEntry::Effect(Effect::Fail(why)) => format!("effect {why}"),
            OutboxEntry::Effect(_) => unreachable!("nothing else was left"),
        };
        for key in 0..3 {
            outbox.push(Effect::Fail(format!("before {key}").into()));
            outbox.send(to(key), Sender::RUNTIME, 0, || Payload::Resume);
        }
        outbox.push(Effect::Fail("at the end".into()));
        let mut left: Vec<_> = outbox.take().collect();
        let order: Vec<_> = left.iter().map(names).collect();
        let expected = ["before 0", "0", "before 1", "1", "before 2", "2", "at the end"];
        assert!(order.iter().zip(expected).all(|(left, word)| left.ends_with(word)) && order.len() == 7);
        left.drain(..3).for_each(drop);
        left.into_iter().for_each(|left| outbox.put_back(left));
        outbox.send(to(9), Sender::RUNTIME, 0, || Payload::Resume);
        let rest: Vec<_> = outbox.take().map(|left| names(&left)).collect();
        assert_eq!(rest[..4], order[3..]);
        assert_eq!(rest[4..], ["node 9"]);
    }
}
