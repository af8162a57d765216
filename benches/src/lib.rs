//! Shared pieces of the benchmarks: contenders that are timed in turn, and how far their times spread.
//!
//! A time means little on a machine whose speed changes from second to second; a ratio of two times taken in turn does.
#![forbid(unsafe_code)]

use std::fmt;
use std::hint::black_box;
use std::time::Instant;

/// Seconds that `work` takes.
#[expect(clippy::disallowed_methods, reason = "a benchmark reads the real clock")]
pub fn seconds<T>(work: impl FnOnce() -> T) -> f64 {
    let start = Instant::now();
    black_box(work());
    start.elapsed().as_secs_f64()
}

/// One contender: runs once and returns what it measured, usually a time.
pub type Contender<'c> = Box<dyn FnMut() -> f64 + 'c>;

/// Runs all contenders in turn, `rounds` times, after one round that does not count.
///
/// # Panics
/// If `rounds` is 0.
pub fn in_turn<const N: usize>(rounds: usize, mut contenders: [Contender<'_>; N]) -> [Spread; N] {
    assert!(rounds > 0, "a median needs a value");
    let mut measured = [const { Vec::new() }; N];
    for round in 0..=rounds {
        for (contender, values) in contenders.iter_mut().zip(&mut measured) {
            let value = contender();
            if round > 0 {
                values.push(value);
            }
        }
    }
    measured.map(Spread::of)
}

/// The median of some measurements, and their quartiles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The middle one.
    pub median: f64,
    /// A quarter is below.
    pub low: f64,
    /// A quarter is above.
    pub high: f64,
}

impl Spread {
    fn of(mut values: Vec<f64>) -> Spread {
        values.sort_by(f64::total_cmp);
        let at = |quarter: usize| values[(values.len() - 1) * quarter / 4];
        Spread { median: at(2), low: at(1), high: at(3) }
    }

    /// Every number divided by `unit`.
    #[must_use]
    pub fn per(self, unit: f64) -> Spread {
        Spread { median: self.median / unit, low: self.low / unit, high: self.high / unit }
    }
}

/// The median, then the quartiles in brackets.
impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Spread { median, low, high } = self;
        let digits = f.precision().unwrap_or(1);
        write!(f, "{median:>8.digits$} [{low:.digits$} .. {high:.digits$}]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contenders_run_in_turn_and_the_first_round_does_not_count() {
        let order = std::cell::RefCell::new(Vec::new());
        let contender = |name: usize| -> Contender<'_> {
            let mut runs = 0.0;
            let order = &order;
            Box::new(move || {
                order.borrow_mut().push(name);
                runs += 1.0;
                runs
            })
        };
        let [first, second] = in_turn(5, [contender(0), contender(1)]);
        assert_eq!(order.borrow()[..4], [0, 1, 0, 1]);
        assert_eq!(first, Spread { median: 4.0, low: 3.0, high: 5.0 });
        assert_eq!((first, first.per(2.0).median), (second, 2.0));
    }
}
