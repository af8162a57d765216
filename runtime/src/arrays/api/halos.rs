//! The halo counter: counts the messages of a step that have come to a chunk, and reports when all have come. It
//! numbers neighbours by slots; [`grid`](super::grid) maps directions to slots.

use std::fmt;
use std::vec::Drain;

use serde::{Deserialize, Serialize};

/// A message of one step, from one of the neighbours that send to a chunk in every step. Made by [`Halos::halo`].
///
/// ```
/// use caribou::{Halo, Halos};
/// let halo: Halo<f64> = Halos::new(2).halo(1, 0.5);
/// assert_eq!(halo.value, 0.5);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Halo<T> {
    /// The low half of the step, so that a value of 16 bytes fits into an envelope. No neighbour is 2^32 steps ahead.
    step: u32,
    slot: u32,
    /// The content.
    pub value: T,
}

/// The messages of the current step that have come to a chunk, and the number of the step. In each step a chunk
/// receives one message from each of a fixed number of neighbours. Each neighbour has a *slot*, a number that
/// distinguishes it from the receiver's other neighbours. [`Grid`](crate::Grid) gives neighbours with their slots.
///
/// The messages of a step are returned together and in the order of their slots. So a result computed from them does
/// not depend on the order of arrival. A neighbour may be a step ahead: [`Chunk::ready`](crate::Chunk::ready) returns
/// [`expects`](Self::expects), and the runtime defers messages that are early.
///
/// The step of a chunk may also need something else, such as the result of a reduction or messages of another array.
/// All halos of the step may come earlier, from faster neighbours. The chunk would then end a step that it has not
/// begun, and wait forever. So such a chunk notes when it has sent its own messages of a step, and returns
/// `self.has_sent && self.halos.expects(halo)`.
///
/// ```
/// use caribou::{Chunk, Config, Ctx, Halo, Halos, Reducer, Target};
/// use serde::{Deserialize, Serialize};
///
/// /// The mean of both neighbours, ten times, in a ring of six.
/// #[derive(Serialize, Deserialize)]
/// struct Mean { value: f64, halos: Halos<f64> }
///
/// impl Chunk for Mean {
///     type Index = u32;
///     type Message = Halo<f64>;
///
///     fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
///         for (slot, to) in [(0, ctx.index() + 1), (1, ctx.index() + 5)] {
///             ctx.send(to % 6, self.halos.halo(slot, self.value));
///         }
///     }
///
///     fn ready(&self, halo: &Halo<f64>) -> bool { self.halos.expects(halo) }
///
///     fn receive(&mut self, halo: Halo<f64>, ctx: &mut Ctx<'_, Self>) {
///         let Some(values) = self.halos.add(halo) else { return };
///         self.value = values.sum::<f64>() / 2.0;
///         match self.halos.step() {
///             10 => ctx.contribute(0, Reducer::Sum, vec![self.value], Target::Exit),
///             _ => self.start(ctx),
///         }
///     }
/// }
///
/// let report = caribou::run(Config::default().ranks(2), |setup| {
///     setup.array(6, |i| Mean { value: f64::from(i), halos: Halos::new(2) });
/// })?;
/// assert!((report.value::<Vec<f64>>()?[0] - 15.0).abs() < 1e-9, "means keep the sum");
/// # Ok::<(), caribou::Error>(())
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Halos<T> {
    /// Number of complete steps.
    step: u64,
    expected: u32,
    /// The messages of the current step, by slot.
    come: Vec<Halo<T>>,
}

impl<T> Halos<T> {
    /// Step 0, and `expected` messages in each step. With 0 expected messages [`add`](Self::add), which ends a step, is
    /// never called, and the chunk counts its steps itself.
    pub fn new(expected: u32) -> Halos<T> {
        Halos::at_step(0, expected)
    }

    /// As [`new`](Self::new), from a later step on. For a chunk that is inserted while others are at that step.
    pub fn at_step(step: u64, expected: u32) -> Halos<T> {
        Halos { step, expected, come: Vec::with_capacity(expected as usize) }
    }

    /// Step 0, and one message per step from each of these neighbours, such as the [faces](crate::Grid::faces) of an
    /// index.
    pub fn of(neighbours: impl IntoIterator) -> Halos<T> {
        Halos::new(neighbours.into_iter().count() as u32)
    }

    /// Changes the number of messages of the current and all later steps. Call this before the first message of the
    /// step comes: in [`Chunk::start`](crate::Chunk::start) or right after a step is complete.
    pub fn expect(&mut self, expected: u32) {
        self.expected = expected;
    }

    /// The current step, which is also the number of complete steps.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// A message of this chunk's current step, for slot `slot` of its receiver. Call this before [`add`](Self::add)
    /// completes the step, because chunks that exchange messages count the same steps.
    pub fn halo(&self, slot: u32, value: T) -> Halo<T> {
        Halo { step: self.step as u32, slot, value }
    }

    /// True if a message is of the current step or an earlier one. A message of an earlier step is an error that
    /// [`add`](Self::add) reports, so it is not deferred.
    #[inline]
    pub fn expects(&self, halo: &Halo<T>) -> bool {
        halo.step.wrapping_sub(self.step as u32).cast_signed() <= 0
    }

    /// Adds a message. The last message of a step completes it: returns the contents of all messages by slot, and
    /// begins the next step. Takes time proportional to the number of messages of the step that have come before.
    ///
    /// # Panics
    /// If the message is of another step, its slot is filled already, or no more messages are expected.
    #[inline]
    #[track_caller]
    pub fn add(&mut self, halo: Halo<T>) -> Option<impl ExactSizeIterator<Item = T> + '_> {
        Some(self.complete(halo)?.map(|halo| halo.value))
    }

    /// As [`add`](Self::add), but returns each value with its slot. For a chunk at a border, with some slots empty.
    ///
    /// ```
    /// use caribou::Halos;
    /// let mut halos = Halos::new(2);
    /// assert!(halos.add(halos.halo(3, 'b')).is_none());
    /// let values = halos.add_with_slots(halos.halo(0, 'a')).expect("both have come");
    /// assert!(values.eq([(0, 'a'), (3, 'b')]));
    /// ```
    ///
    /// # Panics
    /// As [`add`](Self::add).
    #[inline]
    #[track_caller]
    pub fn add_with_slots(&mut self, halo: Halo<T>) -> Option<impl ExactSizeIterator<Item = (u32, T)> + '_> {
        Some(self.complete(halo)?.map(|halo| (halo.slot, halo.value)))
    }

    /// Adds a message. If it is the last of the step, takes all messages of the step.
    #[inline]
    #[track_caller]
    fn complete(&mut self, halo: Halo<T>) -> Option<Drain<'_, Halo<T>>> {
        // Store the halo whole: taking it apart would cost as much as all the rest.
        let (step, slot, now) = (halo.step, halo.slot, self.step as u32);
        assert!(
            step == now,
            "a halo of step {step} arrived in step {now}: more halos arrive than are expected, or `Chunk::ready` does \
             not return Halos::expects"
        );
        assert!(
            self.come.len() < self.expected as usize,
            "a halo of step {step} arrived, but no more are expected"
        );
        let place = self.come.iter().rposition(|other| other.slot <= slot).map_or(0, |before| before + 1);
        let free = place == 0 || self.come[place - 1].slot != slot;
        assert!(free, "slot {slot} of step {step} is filled twice");
        self.come.insert(place, halo);
        if self.come.len() < self.expected as usize {
            return None;
        }
        self.step += 1;
        Some(self.come.drain(..))
    }
}

/// The messages that are missing, as in `2 of 4 messages of step 7; slots 0, 3 have arrived`.
impl<T> fmt::Display for Halos<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let missing = (self.expected as usize).saturating_sub(self.come.len());
        write!(f, "{missing} of {} messages of step {}", self.expected, self.step)?;
        let slots: Vec<String> = self.come.iter().map(|halo| halo.slot.to_string()).collect();
        match slots.len() {
            0 => Ok(()),
            1 => write!(f, "; slot {} has arrived", slots[0]),
            _ => write!(f, "; slots {} have arrived", slots.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(halos: &mut Halos<char>, halo: Halo<char>) -> Option<String> {
        halos.add(halo).map(Iterator::collect)
    }

    #[test]
    fn a_step_is_complete_with_its_last_message_and_ordered_by_slot() {
        let mut halos = Halos::new(3);
        let [a, b, c] = [(0, 'a'), (1, 'b'), (7, 'c')].map(|(slot, value)| halos.halo(slot, value));
        assert_eq!(added(&mut halos, c), None);
        assert_eq!(added(&mut halos, a.clone()), None);
        assert_eq!(halos.step(), 0);
        assert_eq!(added(&mut halos, b).as_deref(), Some("abc"));
        assert_eq!(halos.step(), 1);
        assert!(halos.expects(&a), "too late, which `add` says");
        halos.add(halos.halo(0, 'a'));
        let next = Halo { step: 2, slot: 0, value: 'd' };
        assert!(!halos.expects(&next));
    }

    #[test]
    fn values_come_with_their_slots_or_without() {
        let mut halos = Halos::of(['n', 's', 'w']);
        for (slot, value) in [(7, 'c'), (1, 'b')] {
            assert!(halos.add_with_slots(halos.halo(slot, value)).is_none());
        }
        let last = halos.halo(0, 'a');
        assert_eq!(added(&mut halos.clone(), last.clone()).as_deref(), Some("abc"));
        let with = halos.add_with_slots(last).expect("three have come");
        assert_eq!(with.collect::<Vec<_>>(), [(0, 'a'), (1, 'b'), (7, 'c')]);
        assert_eq!(halos.step(), 1);
    }

    #[test]
    fn who_joins_later_counts_the_steps_of_those_that_are_there() {
        let (mut old, mut new) = (Halos::new(1), Halos::at_step(1, 1));
        assert_eq!(added(&mut old, Halo { step: 0, slot: 0, value: 'a' }).as_deref(), Some("a"));
        let halo = old.halo(0, 'b');
        assert!(new.expects(&halo));
        assert_eq!(added(&mut new, halo).as_deref(), Some("b"));
    }

    #[test]
    fn what_is_missing_is_told_with_what_has_come() {
        let mut halos = Halos::new(4);
        assert_eq!(halos.to_string(), "4 of 4 messages of step 0");
        halos.add(halos.halo(3, 'a'));
        assert_eq!(halos.to_string(), "3 of 4 messages of step 0; slot 3 has arrived");
        halos.add(halos.halo(0, 'b'));
        assert_eq!(halos.to_string(), "2 of 4 messages of step 0; slots 0, 3 have arrived");
    }

    #[test]
    fn what_is_not_consumed_is_gone_and_the_number_may_change() {
        let mut halos = Halos::new(1);
        assert!(halos.add(halos.halo(0, 'a')).is_some());
        halos.expect(2);
        assert_eq!(added(&mut halos.clone(), halos.halo(5, 'b')), None);
        let first = halos.halo(5, 'b');
        assert_eq!(added(&mut halos, first), None);
        let second = halos.halo(4, 'c');
        assert_eq!(added(&mut halos, second).as_deref(), Some("cb"));
    }

    #[test]
    fn a_value_of_two_words_travels_in_its_envelope() {
        use crate::arrays::core::routing::envelope::{Value, WideOption};
        use smallbox::smallbox;
        let message: Value = smallbox!(WideOption::Filled(Halos::new(1).halo(0, [1_i64, 2])));
        assert!(!message.is_heap());
    }

    #[test]
    #[should_panic(expected = "a halo of step 0 arrived in step 1")]
    fn a_message_of_another_step_is_refused() {
        let mut halos = Halos::new(1);
        let late = halos.halo(0, 'a');
        halos.add(late.clone());
        halos.add(late);
    }

    #[test]
    #[should_panic(expected = "slot 3 of step 0 is filled twice")]
    fn a_slot_is_filled_once() {
        let mut halos = Halos::new(2);
        halos.add(halos.halo(3, 'a'));
        halos.add(halos.halo(3, 'b'));
    }
}
