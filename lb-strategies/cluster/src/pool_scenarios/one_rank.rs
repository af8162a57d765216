//! Pool scenarios with one rank: workers are unequal, collapse, stop or come late, and iterations are few or unequal.

use crate::costs::Costs;
use crate::pool_scenario::Scenario;
use crate::series::{PerWorker, Series};
use lb_strategies::Rank;
use lb_strategies::pools::machine::SECOND;
use lb_strategies::pools::policy::Pool;
use lb_strategies::virtual_time::vcpus::{Traces, Worker};

fn series(iterations: u64, workers: u32, of: impl Fn(u32) -> Series + Send + Sync + 'static) -> Scenario {
    let pool = Pool::new(iterations, vec![workers]);
    let vcpus = PerWorker::new(&pool.workers, |worker| of(worker.number));
    Scenario::new("L", pool, move || Box::new(vcpus.clone()))
}

fn unequal_speed(number: u32) -> Series {
    Series::constant(1000.0 + 150.0 * f64::from(number))
}

/// L1: constant speeds, from 1000 to 2050.
pub fn unequal() -> Scenario {
    series(20_000_000, 8, unequal_speed)
}

/// L2: constant speeds of 100, 200, 400 and 800.
pub fn doubling() -> Scenario {
    series(4_000_000, 4, |number| Series::constant(100.0 * f64::from(1 << number)))
}

/// L3: speeds of 1000. The last worker falls to 100 at 1500 s, early enough to be noticed.
pub fn early_collapse() -> Scenario {
    series(30_000_000, 8, |number| last_falls(number, 1500.0, 100.0))
}

/// L4: speeds of 1000. The last worker falls to 50 at `seconds`. The ideal end is soon after 3000 s.
pub fn collapse(seconds: f64) -> Scenario {
    series(24_000_000, 8, move |number| last_falls(number, seconds, 50.0))
}

fn last_falls(number: u32, seconds: f64, to: f64) -> Series {
    let quiet = Series::constant(1000.0);
    if number == 7 { quiet.then(seconds, to) } else { quiet }
}

/// L5: as L1, but worker 3 stops at 819.67 s, half of the ideal time, for 900 s.
pub fn standstill() -> Scenario {
    series(20_000_000, 8, |number| match number {
        3 => unequal_speed(3).then(819.67, 0.0).then(1719.67, 1450.0),
        _ => unequal_speed(number),
    })
}

/// L6: as L1, but worker 3 comes at 492 s.
pub fn late() -> Scenario {
    let late = vec![(Worker { rank: Rank(0), number: 3 }, 492 * SECOND)];
    Scenario { late, ..unequal() }
}

/// L7: four workers with speed 1000, and this number of iterations, none to five.
pub fn few(iterations: u64) -> Scenario {
    series(iterations, 4, |_| Series::constant(1000.0))
}

/// L8: lognormal costs (sigma 1.5) with a mean of 1 ms, 1 s or 30 s (`size` 0 to 2), on ranks of eight equal workers.
pub fn lognormal(ranks: usize, size: usize, seed: u64) -> Scenario {
    let (iterations, speed) = [(20_000_000, 1000.0), (20_000, 1.0), (700, 1.0 / 30.0)][size];
    let pool = Pool::new(iterations, vec![8; ranks]);
    let scenario = Scenario::new("L8", pool, move || Box::new(Traces::constant(move |_| speed)));
    Scenario { costs: Costs::lognormal(1.5, seed), ..scenario }
}
