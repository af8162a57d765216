//! Simulates threads whose speed jumps at random. Each thread draws a level, keeps it for a while, then draws the next.
//!
//! This models a thread that the host moves from core to core, if only its speeds are known. If it is known which
//! threads share a core, use [`hardware_threads`](super::hardware_threads).

use std::collections::BTreeMap;

use lb_strategies::pools::machine::{Nanos, SECOND};
use lb_strategies::virtual_time::splitmix::SplitMix64;
use lb_strategies::virtual_time::vcpus::{Vcpus, Worker};

/// A speed, and the probability of drawing it.
///
/// ```
/// use virtual_cluster::Level;
/// let levels = [Level { speed: 1030.0, part: 0.62 }, Level { speed: 2200.0, part: 0.38 }];
/// assert_eq!(levels.iter().map(|level| level.part).sum::<f64>(), 1.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// Units of work per second.
    pub speed: f64,
    /// The part of the draws that give this level. The last level gets what the others leave of 1.
    pub part: f64,
}

/// One jump process per worker: draw a level, keep it for an exponentially distributed time, repeat.
///
/// ```
/// use lb_strategies::Rank;
/// use virtual_cluster::{Jumps, Level, Vcpus, Worker};
/// let levels = vec![Level { speed: 1.0, part: 0.5 }, Level { speed: 2.0, part: 0.5 }];
/// let mut vcpus = Jumps::new(levels, 230.0, |worker| u64::from(worker.number));
/// let (speed, until) = vcpus.speed(Worker { rank: Rank(0), number: 0 }, 0);
/// assert!((speed == 1.0 || speed == 2.0) && until > 0);
/// ```
pub struct Jumps<F> {
    levels: Vec<Level>,
    hold: f64,
    seed: F,
    threads: BTreeMap<Worker, Thread>,
}

struct Thread {
    rng: SplitMix64,
    speed: f64,
    /// End of the level, s; a float, so that rounding errors do not add up.
    until: f64,
}

impl<F: Fn(Worker) -> u64> Jumps<F> {
    /// Levels are kept for `hold` seconds in the mean. `seed` returns the seed of each worker's stream.
    pub fn new(levels: Vec<Level>, hold: f64, seed: F) -> Self {
        assert!(!levels.is_empty(), "there is a speed to draw");
        Self { levels, hold, seed, threads: BTreeMap::new() }
    }
}

impl<F: Fn(Worker) -> u64> Vcpus for Jumps<F> {
    fn speed(&mut self, worker: Worker, now: Nanos) -> (f64, Nanos) {
        let thread = self.threads.entry(worker).or_insert_with(|| Thread {
            rng: SplitMix64::new((self.seed)(worker)),
            speed: 0.0,
            until: 0.0,
        });
        while (thread.until * SECOND as f64) as Nanos <= now {
            thread.speed = draw(&self.levels, thread.rng.uniform());
            thread.until += thread.rng.exponential(self.hold);
        }
        (thread.speed, (thread.until * SECOND as f64) as Nanos)
    }
}

fn draw(levels: &[Level], uniform: f64) -> f64 {
    let mut below = 0.0;
    for level in levels {
        below += level.part;
        if uniform < below {
            return level.speed;
        }
    }
    levels[levels.len() - 1].speed
}
