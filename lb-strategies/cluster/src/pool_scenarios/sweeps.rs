//! Sweeps: many pool scenarios of one kind, for means, medians and worst cases, because a single result may be luck.

use super::many_ranks::{self, H_ALTERNATE, H_TOGETHER};
use super::{one_rank, scenario};
use crate::pool_scenario::{Network, Scenario};
use lb_strategies::pools::machine::SECOND;

/// A row of the table of sweeps.
///
/// ```
/// use virtual_cluster::SWEEPS;
/// let sweep = SWEEPS.iter().find(|sweep| sweep.name == "S2").expect("listed");
/// assert_eq!(sweep.scenarios().len(), 40);
/// ```
#[derive(Clone, Copy)]
pub struct Sweep {
    /// The name in commands and reports.
    pub name: &'static str,
    /// The sweep in one line.
    pub about: &'static str,
    /// Values of the parameter `interval`, s, for policies that have it. If empty, policies run with their defaults.
    pub intervals_s: &'static [u32],
    scenarios: fn() -> Vec<Scenario>,
}

impl Sweep {
    /// The scenarios of the sweep.
    pub fn scenarios(&self) -> Vec<Scenario> {
        (self.scenarios)()
    }
}

const fn sweep(name: &'static str, about: &'static str, scenarios: fn() -> Vec<Scenario>) -> Sweep {
    Sweep { name, about, intervals_s: &[], scenarios }
}

/// All sweeps.
pub const SWEEPS: &[Sweep] = &[
    sweep("S1", "M3, a rank collapses at 2400 ... 2985 s", || collapses("M3", many_ranks::collapse)),
    sweep("S2", "L4, a worker collapses at 2400 ... 2985 s", || collapses("L4", one_rank::collapse)),
    sweep("S3", "M4, phases 0 ... 468 s", || phases("M4", H_ALTERNATE)),
    sweep("S4", "M5, phases 0 ... 468 s", || phases("M5", H_TOGETHER)),
    sweep("S5", "F6, F7, F8 and M3 with RTT 0.1, 10, 50 and 200 ms", far),
    Sweep {
        intervals_s: &[60, 300, 600],
        ..sweep("S6", "F6, F7 and F8a with rebalances every 60, 300 and 600 s", paper)
    },
    sweep("S8", "L8 on one rank, 20 seeds of each mean cost", seeds),
];

fn collapses(name: &str, at: fn(f64) -> Scenario) -> Vec<Scenario> {
    let times = (0..40).map(|step| 2400 + 15 * step);
    times.map(|time| Scenario { name: format!("{name} at {time} s"), ..at(f64::from(time)) }).collect()
}

fn phases(name: &str, groups: u32) -> Vec<Scenario> {
    let phases = (0..40).map(|step| 12 * step);
    let one = |phase| Scenario {
        name: format!("{name} phase {phase} s"),
        ..many_ranks::periodic(groups, f64::from(phase))
    };
    phases.map(one).collect()
}

fn listed(names: &[&str]) -> Vec<Scenario> {
    names.iter().map(|name| scenario(name).expect("it is listed")).collect()
}

fn paper() -> Vec<Scenario> {
    listed(&["F6-1", "F6-2", "F6-3", "F6-4", "F7", "F8a"])
}

fn far() -> Vec<Scenario> {
    let near = listed(&["F6-1", "F6-2", "F6-3", "F6-4", "F7", "F8a", "F8b", "M3-late", "M3-mid"]);
    let at = |tenths_ms: u64| {
        near.iter().map(move |scenario| Scenario {
            name: format!("{} RTT {} ms", scenario.name, tenths_ms as f64 / 10.0),
            network: Network { rtt: tenths_ms * (SECOND / 10_000), ..scenario.network },
            ..scenario.clone()
        })
    };
    [1, 100, 500, 2000].into_iter().flat_map(at).collect()
}

fn seeds() -> Vec<Scenario> {
    let one = |(size, seed)| Scenario {
        name: format!("L8-{} seed {seed}", ["1ms", "1s", "30s"][size]),
        ..one_rank::lognormal(1, size, seed)
    };
    (0..3).flat_map(|size| (1..=20).map(move |seed| (size, seed))).map(one).collect()
}
