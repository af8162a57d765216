//! Generates an on-off process: a load that comes and goes at random in time, by seed.
//!
//! Neighbours of simulated and of real workers follow the same schedule, so that a live run can be repeated in virtual
//! time. Quiet and busy stretches alternate. Their lengths are uniform and independent.

use crate::pools::machine::{Nanos, SECOND};

use super::splitmix::SplitMix64;

/// The shortest stretch, quiet or busy.
pub const SHORTEST: Nanos = SECOND / 5;

/// The longest stretch, quiet or busy.
pub const LONGEST: Nanos = 3 * SECOND;

/// The schedule of a seed, which begins with a quiet stretch at time 0.
///
/// It keeps the last stretch that was read: reading in ascending order is O(1) per stretch, else it starts again at 0.
///
/// ```
/// use lb_strategies::virtual_time::OnOff;
/// let mut schedule = OnOff::new(7);
/// let (busy, until) = schedule.at(0);
/// assert!(!busy && schedule.at(until).0, "first quiet, then busy");
/// assert_eq!(schedule.at(0), (busy, until));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnOff {
    seed: u64,
    rng: SplitMix64,
    busy: bool,
    begin: Nanos,
    end: Nanos,
}

impl OnOff {
    /// The schedule of `seed`.
    pub fn new(seed: u64) -> Self {
        let mut rng = SplitMix64::new(seed);
        let end = length(&mut rng);
        Self { seed, rng, busy: false, begin: 0, end }
    }

    /// Whether the load is present at `now`, and until when this holds (later than `now`).
    pub fn at(&mut self, now: Nanos) -> (bool, Nanos) {
        if now < self.begin {
            *self = Self::new(self.seed);
        }
        while self.end <= now {
            self.next();
        }
        (self.busy, self.end)
    }

    /// The time before `now` in which the load was present. O(stretches).
    pub fn busy_before(&self, now: Nanos) -> Nanos {
        let mut schedule = Self::new(self.seed);
        let mut sum = 0;
        while schedule.begin < now {
            if schedule.busy {
                sum += schedule.end.min(now) - schedule.begin;
            }
            schedule.next();
        }
        sum
    }

    fn next(&mut self) {
        self.busy = !self.busy;
        self.begin = self.end;
        self.end = self.begin.saturating_add(length(&mut self.rng));
    }
}

fn length(rng: &mut SplitMix64) -> Nanos {
    SHORTEST + (rng.uniform() * (LONGEST - SHORTEST) as f64) as Nanos
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The times at which the first stretches of a seed end.
    fn ends(seed: u64, count: usize) -> Vec<Nanos> {
        let mut schedule = OnOff::new(seed);
        let mut now = 0;
        let end = |number: usize| {
            let (busy, until) = schedule.at(now);
            assert_eq!(busy, number % 2 == 1, "quiet and busy take turns");
            now = until;
            until
        };
        (0..count).map(end).collect()
    }

    #[test]
    fn stretches_are_uniform_between_their_bounds() {
        let ends = ends(7, 20_000);
        let begins = [0].into_iter().chain(ends.iter().copied());
        let lengths: Vec<Nanos> = begins.zip(&ends).map(|(begin, end)| end - begin).collect();
        assert!(lengths.iter().all(|length| (SHORTEST..=LONGEST).contains(length)));
        let below = |bound: Nanos| lengths.iter().filter(|&&length| length < bound).count();
        for quarter in 1..4 {
            let part = below(SHORTEST + quarter * (LONGEST - SHORTEST) / 4) as f64 / lengths.len() as f64;
            assert!((part - quarter as f64 / 4.0).abs() < 0.02, "{part} below quarter {quarter}");
        }
    }

    #[test]
    fn the_schedule_is_the_seeds() {
        assert_eq!(ends(3, 50), ends(3, 50));
        assert_ne!(ends(3, 50), ends(4, 50));
    }

    #[test]
    fn any_time_may_be_asked_for() {
        let ends = ends(5, 50);
        let mut schedule = OnOff::new(5);
        assert_eq!(schedule.at(ends[40]), (true, ends[41]));
        assert_eq!(schedule.at(ends[9] - 1), (true, ends[9]));
        assert_eq!(schedule.at(ends[9]), (false, ends[10]));
    }

    #[test]
    fn busy_time_is_the_sum_of_busy_stretches() {
        let ends = ends(5, 4);
        let busy = |now| OnOff::new(5).busy_before(now);
        assert_eq!([busy(0), busy(ends[0]), busy(ends[0] + 10)], [0, 0, 10]);
        assert_eq!(busy(ends[2]), ends[1] - ends[0]);
        assert_eq!(busy(ends[3]), ends[1] - ends[0] + ends[3] - ends[2]);
    }
}
