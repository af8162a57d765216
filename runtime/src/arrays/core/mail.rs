//! Letters: where a message lies from the handler that sends it to the one that receives it.
//!
//! A message is written once, on a blank letter of its worker. Outbox and mailbox are lists of letters and pass them on
//! by a pointer; who has read one keeps it as a blank.

use std::mem::ManuallyDrop;
use std::rc::Rc;
use std::vec::Drain;

use super::envelope::{Delivery, Payload};
use super::handler::Effect;
use super::in_hand::InHand;
use crate::ids::{ChunkId, RUNTIME, Sender};

/// A message, and the letter behind it in a list.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Letter<M = Delivery> {
    pub(crate) to: ChunkId,
    pub(crate) message: M,
    next: Link<M>,
}

/// The rest of a list. [`Mail`] drops letters one after the other: left to themselves they would be dropped as deep as
/// the list is long, and each step of a letter would ask whether there is something to drop.
type Link<M> = ManuallyDrop<Option<Box<Letter<M>>>>;

impl<M> Letter<M> {
    pub(crate) fn new(to: ChunkId, message: M) -> Box<Letter<M>> {
        Box::new(Letter { to, message, next: ManuallyDrop::new(None) })
    }
}

/// Letters in a list, in one word.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mail<M = Delivery> {
    first: Link<M>,
}

impl<M> Default for Mail<M> {
    fn default() -> Mail<M> {
        Mail { first: ManuallyDrop::new(None) }
    }
}

impl<M> Mail<M> {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Puts a letter before all others.
    #[inline]
    pub(crate) fn push(&mut self, mut letter: Box<Letter<M>>) {
        letter.next = ManuallyDrop::new(self.first.take());
        self.first = ManuallyDrop::new(Some(letter));
    }

    /// The letters, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Letter<M>> {
        std::iter::successors(self.first.as_deref(), |letter| letter.next.as_deref())
    }

    /// Takes all letters, the last first. O(n).
    #[inline]
    pub(crate) fn take_reversed(&mut self) -> Mail<M> {
        match &*self.first {
            Some(first) if first.next.is_some() => self.reverse_many(),
            _ => std::mem::take(self),
        }
    }

    fn reverse_many(&mut self) -> Mail<M> {
        let mut reversed = Mail::default();
        for letter in self {
            reversed.push(letter);
        }
        reversed
    }

    #[cold]
    fn clear(&mut self) {
        self.by_ref().for_each(drop);
    }

    /// The messages, without their letters.
    pub(crate) fn into_messages(self) -> impl Iterator<Item = M> {
        self.map(|letter| letter.message)
    }
}

/// Takes the first letter.
impl<M> Iterator for Mail<M> {
    type Item = Box<Letter<M>>;

    #[inline]
    fn next(&mut self) -> Option<Box<Letter<M>>> {
        let mut first = self.first.take()?;
        self.first = ManuallyDrop::new(first.next.take());
        Some(first)
    }
}

impl<M> FromIterator<Box<Letter<M>>> for Mail<M> {
    fn from_iter<I: IntoIterator<Item = Box<Letter<M>>>>(letters: I) -> Mail<M> {
        let mut newest_first = Mail::default();
        letters.into_iter().for_each(|letter| newest_first.push(letter));
        newest_first.take_reversed()
    }
}

impl<M> Drop for Mail<M> {
    #[inline]
    fn drop(&mut self) {
        if !self.is_empty() {
            self.clear();
        }
    }
}

/// Blank letters of a worker: what is on them may be forgotten.
#[derive(Default)]
pub(crate) struct Blanks {
    letters: Mail,
    count: usize,
}

/// Blanks that a worker keeps, at most.
const BLANKS_MAX: usize = 256;

impl Blanks {
    /// A letter with this on it.
    #[inline(always)]
    pub(crate) fn write(
        &mut self,
        to: ChunkId,
        from: Sender,
        bytes: u64,
        payload: impl FnOnce() -> Payload,
    ) -> Box<Letter> {
        let mut letter = self.address(to, from, bytes);
        letter.message.payload.overwrite(payload());
        letter
    }

    /// A letter with all on it but the payload.
    #[inline(always)]
    pub(crate) fn address(&mut self, to: ChunkId, from: Sender, bytes: u64) -> Box<Letter> {
        let mut letter = self.take();
        letter.to = to;
        letter.message.from = from;
        letter.message.bytes = bytes;
        letter
    }

    #[inline]
    fn take(&mut self) -> Box<Letter> {
        match self.letters.next() {
            Some(letter) => {
                self.count -= 1;
                letter
            }
            None => Blanks::make(),
        }
    }

    #[inline(never)]
    fn make() -> Box<Letter> {
        Letter::new(RUNTIME, Delivery::by_runtime(Payload::Resume))
    }

    /// Takes the message from a letter, and keeps that.
    #[inline]
    pub(crate) fn read(&mut self, mut letter: Box<Letter>) -> Delivery {
        let delivery = letter.message.take();
        self.put(letter);
        delivery
    }

    /// Keeps a letter whose message was taken by its handler, or drops it where more is left of it than nothing.
    #[inline]
    pub(crate) fn keep(&mut self, letter: Box<Letter>) {
        match &letter.message.payload {
            Payload::Value(value) if !value.is_heap() => self.put(letter),
            Payload::Start | Payload::Resume | Payload::Kept => self.put(letter),
            _ => {}
        }
    }

    /// Keeps a letter with nothing on it.
    #[inline]
    pub(crate) fn put(&mut self, letter: Box<Letter>) {
        if self.count < BLANKS_MAX {
            self.letters.push(letter);
            self.count += 1;
        }
    }
}

/// Effects of a handler for which an outbox keeps memory, at most.
const EFFECTS_KEPT: usize = 64;

/// Contributions that a chunk may leave with kept messages before they are carried out. To stop for each took a stencil of small
/// chunks, which contribute in each step, a tenth longer.
const CONTRIBUTIONS_MAX: usize = 8;

/// What a handler leaves, in order: letters, and effects that are no message to a single chunk.
pub(crate) struct Outbox {
    newest_first: Mail,
    /// Each with the letters before it, in order.
    effects: Vec<(Mail, Effect)>,
    pub(crate) blanks: Blanks,
    /// What its worker does: the chunk there is the one whose handler leaves it.
    pub(crate) in_hand: Rc<InHand>,
}

impl Default for Outbox {
    fn default() -> Outbox {
        Outbox::of(Rc::default())
    }
}

/// One thing that a handler left.
pub(crate) enum Left {
    Letter(Box<Letter>),
    Effect(Effect),
}

impl Outbox {
    /// One for a worker that has this in hand.
    pub(crate) fn of(in_hand: Rc<InHand>) -> Outbox {
        let (newest_first, effects, blanks) = (Mail::default(), Vec::new(), Blanks::default());
        Outbox { newest_first, effects, blanks, in_hand }
    }

    /// Leaves a message to a single chunk.
    #[inline(always)]
    pub(crate) fn send(&mut self, to: ChunkId, from: Sender, bytes: u64, payload: impl FnOnce() -> Payload) {
        let letter = self.blanks.write(to, from, bytes, payload);
        self.leave(letter);
    }

    /// Leaves one that is written.
    #[inline]
    pub(crate) fn leave(&mut self, letter: Box<Letter>) {
        self.newest_first.push(letter);
    }

    /// Leaves an effect.
    pub(crate) fn push(&mut self, effect: Effect) {
        let before = self.take_letters();
        self.effects.push((before, effect));
    }

    /// Leaves again what was taken.
    pub(crate) fn put_back(&mut self, left: Left) {
        match left {
            Left::Letter(letter) => self.leave(letter),
            Left::Effect(effect) => self.push(effect),
        }
    }

    /// Tells whether there is nothing but letters.
    #[inline]
    pub(crate) fn has_only_letters(&self) -> bool {
        self.effects.is_empty()
    }

    /// Tells whether there are letters behind all effects.
    pub(crate) fn has_letters(&self) -> bool {
        !self.newest_first.is_empty()
    }

    /// Tells whether there is little beside letters: some contributions.
    pub(crate) fn has_few_contributions(&self) -> bool {
        let contributes = |effect: &Effect| {
            matches!(effect, Effect::Contribute { .. } | Effect::ContributeIn(_) | Effect::AbstainUntil(_))
        };
        self.effects.len() < CONTRIBUTIONS_MAX && self.effects.iter().all(|(_, effect)| contributes(effect))
    }

    /// Takes the letters behind all effects.
    #[inline]
    pub(crate) fn take_letters(&mut self) -> Mail {
        self.newest_first.take_reversed()
    }

    /// Takes the effects, each with the letters before it, one after the other; beside the blanks of who sends these.
    #[inline]
    pub(crate) fn effects_and_blanks(&mut self) -> (Drain<'_, (Mail, Effect)>, &mut Blanks) {
        (self.effects.drain(..), &mut self.blanks)
    }

    /// Gives back the memory of many effects.
    #[inline]
    pub(crate) fn shrink(&mut self) {
        self.effects.shrink_to(EFFECTS_KEPT);
    }

    /// Takes everything.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Left> + use<> {
        let effects = std::mem::take(&mut self.effects).into_iter();
        let all = effects.flat_map(|(before, effect)| before.map(Left::Letter).chain([Left::Effect(effect)]));
        all.chain(self.take_letters().map(Left::Letter))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrays::core::reduction::{Agreement, Goal, Reducer, Values};
    use crate::ids::ArrayId;

    fn mail(keys: impl IntoIterator<Item = u64>) -> Mail<()> {
        keys.into_iter().map(|key| Letter::new(ChunkId { array: ArrayId(0), key }, ())).collect()
    }

    fn keys(mail: Mail<()>) -> Vec<u64> {
        mail.map(|letter| letter.to.key).collect()
    }

    #[test]
    fn letters_are_taken_in_order_and_reversed() {
        assert_eq!(keys(mail(0..5)), [0, 1, 2, 3, 4]);
        let mut taken = mail(0..5);
        assert_eq!(taken.next().map(|letter| letter.to.key), Some(0));
        assert_eq!(keys(taken.take_reversed()), [4, 3, 2, 1]);
        assert!(taken.is_empty());
    }

    #[test]
    fn a_list_longer_than_the_stack_is_dropped_with_all_its_messages() {
        let message = std::sync::Arc::new(());
        let letters = (0..1_000_000).map(|_| Letter::new(RUNTIME, message.clone()));
        drop(letters.collect::<Mail<_>>());
        assert_eq!(std::sync::Arc::strong_count(&message), 1);
    }

    #[test]
    fn memory_is_kept_for_few_effects_and_given_back_of_many() {
        let mut outbox = Outbox::default();
        for count in [1, EFFECTS_KEPT, 100 * EFFECTS_KEPT, 2] {
            (0..count).for_each(|_| outbox.push(Effect::Remove));
            assert_eq!(outbox.effects_and_blanks().0.count(), count);
            outbox.shrink();
            assert!(outbox.has_only_letters());
            assert!((1..=EFFECTS_KEPT).contains(&outbox.effects.capacity()), "{count}");
        }
    }

    #[test]
    fn few_contributions_may_wait_for_more_and_nothing_else_may() {
        let contribution = || {
            let (agreement, values) =
                (Agreement { tag: 0, reducer: Reducer::Sum, goal: Goal::All }, Values::U64(Vec::new()));
            Effect::Contribute { agreement, values, step: None }
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
    fn what_a_handler_leaves_stays_in_order_also_when_some_is_put_back() {
        let (mut outbox, to) = (Outbox::default(), |key| ChunkId { array: ArrayId(0), key });
        let names = |left: &Left| match left {
            Left::Letter(letter) => format!("letter {}", letter.to.key),
            Left::Effect(Effect::Fail(why)) => format!("effect {why}"),
            Left::Effect(_) => unreachable!("nothing else was left"),
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
        assert_eq!(rest[4..], ["letter 9"]);
    }
}
