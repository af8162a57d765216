//! Chooses the next packet among the packets that wait for an output of the switch.

use rand::{Rng, RngExt};

/// The rule by which an output chooses among the crosspoints that hold packets for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Scheduler {
    /// The next crosspoint after the one that was served last.
    RoundRobin,
    /// The crosspoint with most packets; of equals the next after the one that was served last.
    LongestQueue,
    /// Any crosspoint, with the same probability.
    Random,
}

impl Scheduler {
    /// All of them.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 3] = [Self::RoundRobin, Self::LongestQueue, Self::Random];

    /// The name on the command line and in tables.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::RoundRobin => "round-robin",
            Self::LongestQueue => "longest-queue",
            Self::Random => "random",
        }
    }

    /// Chooses the input that an output serves now.
    ///
    /// `waiting` has a bit for each input with packets at its crosspoint, and is not zero. `lengths` are the numbers of
    /// packets. `last` is the input that the output served before.
    pub(crate) fn choose(self, waiting: u64, lengths: &[u32], last: usize, rng: &mut impl Rng) -> usize {
        match self {
            Self::RoundRobin => from(waiting, last + 1),
            Self::LongestQueue => longest(waiting, lengths, last + 1),
            Self::Random => {
                let skipped = rng.random_range(0..waiting.count_ones());
                let rest = (0..skipped).fold(waiting, |rest, _| rest & (rest - 1));
                rest.trailing_zeros() as usize
            }
        }
    }
}

/// The lowest bit at `start` or above, else the lowest of all.
fn from(waiting: u64, start: usize) -> usize {
    let above = if start < 64 { waiting >> start << start } else { 0 };
    let first = if above == 0 { waiting } else { above };
    first.trailing_zeros() as usize
}

/// The bit with the greatest length; of equals the first at `start` or above.
fn longest(waiting: u64, lengths: &[u32], start: usize) -> usize {
    let mut rest = waiting;
    let mut best = from(waiting, start);
    let mut input = best;
    loop {
        if lengths[input] > lengths[best] {
            best = input;
        }
        rest &= !(1 << input);
        if rest == 0 {
            return best;
        }
        input = from(rest, input + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use caribou::random::stream;

    const LENGTHS: [u32; 6] = [1, 0, 4, 2, 0, 4];
    const WAITING: u64 = 0b10_1101;

    fn choices(scheduler: Scheduler, rounds: usize) -> Vec<usize> {
        let (mut last, mut rng) = (2, stream(1, 0));
        let mut next = || {
            last = scheduler.choose(WAITING, &LENGTHS, last, &mut rng);
            last
        };
        (0..rounds).map(|_| next()).collect()
    }

    #[test]
    fn round_robin_goes_around_and_skips_the_empty() {
        assert_eq!(choices(Scheduler::RoundRobin, 6), [3, 5, 0, 2, 3, 5]);
    }

    #[test]
    fn the_longest_queues_take_turns() {
        assert_eq!(choices(Scheduler::LongestQueue, 3), [5, 2, 5]);
    }

    #[test]
    fn the_last_of_64_inputs_is_followed_by_the_first() {
        let (lengths, mut rng) = ([1; 64], stream(1, 0));
        for scheduler in [Scheduler::RoundRobin, Scheduler::LongestQueue] {
            assert_eq!(scheduler.choose(u64::MAX, &lengths, 63, &mut rng), 0);
            assert_eq!(scheduler.choose(1 << 63, &lengths, 63, &mut rng), 63);
        }
    }

    #[test]
    fn random_choices_are_even_and_never_empty() {
        let choices = choices(Scheduler::Random, 40_000);
        for input in [0, 2, 3, 5] {
            let count = choices.iter().filter(|&&choice| choice == input).count();
            // Four standard errors of a binomial are 350.
            assert!(count.abs_diff(10_000) < 350, "{input}: {count}");
        }
    }

    #[test]
    fn names_are_those_of_the_command_line() {
        for scheduler in Scheduler::ALL {
            let value = clap::ValueEnum::to_possible_value(&scheduler).unwrap();
            assert_eq!(value.get_name(), scheduler.name());
        }
    }
}
