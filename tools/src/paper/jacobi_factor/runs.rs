//! Runs the Jacobi iteration for all sizes, numbers of nodes and exchanges, and computes times, idle times and speedups.

use lb_strategies::SUPERSTEPS;
use virtual_cluster::jacobi_cluster::{DELAY_S, NODES, SIZES, scenario, serial_s};
use virtual_cluster::{Exchange, Part, StepsRun, Wire};

use super::Context;

/// The paper's policy: divides once, after the first iteration, at any cost.
pub(super) const PAPER: &str = "load-factor,look=0,by=wall,tolerance=0,ahead=0";

/// A program of figure 4, balanced if not stated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Program {
    /// Not balanced, `MPI_Send` and `MPI_Recv`.
    Unbalanced,
    /// `MPI_Send` and `MPI_Recv`.
    Blocking,
    /// `MPI_Sendrecv`.
    Pairs,
    /// `MPI_Allgatherv`.
    AllGather,
    /// The exchange of production.
    Direct,
    /// Not balanced, `MPI_Allgatherv`; only for idle times.
    UnbalancedGather,
}

impl Program {
    /// The programs of figure 4, and the exchange of production.
    pub(super) const ALL: [Self; 5] =
        [Self::Unbalanced, Self::Blocking, Self::Pairs, Self::AllGather, Self::Direct];

    /// All programs, in the order of [`Runs`].
    const RUN: [Self; 6] = [
        Self::Unbalanced,
        Self::Blocking,
        Self::Pairs,
        Self::AllGather,
        Self::Direct,
        Self::UnbalancedGather,
    ];

    /// Its name in tables and pictures.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Unbalanced => "not balanced, send/recv",
            Self::Blocking => "send/recv",
            Self::Pairs => "sendrecv",
            Self::AllGather => "allgatherv",
            Self::Direct => "direct",
            Self::UnbalancedGather => "not balanced, allgatherv",
        }
    }

    /// The exchange after each iteration.
    pub(super) fn exchange(self) -> Exchange {
        self.parts().1
    }

    fn parts(self) -> (&'static str, Exchange) {
        match self {
            Self::Unbalanced => ("equal", Exchange::Blocking),
            Self::Blocking => (PAPER, Exchange::Blocking),
            Self::Pairs => (PAPER, Exchange::Ring),
            Self::AllGather => (PAPER, Exchange::Doubling),
            Self::Direct => (PAPER, Exchange::Direct),
            Self::UnbalancedGather => ("equal", Exchange::Doubling),
        }
    }
}

/// One run of `policy`.
pub(super) fn run(size: u64, nodes: usize, policy: &str, exchange: Exchange) -> StepsRun {
    let policy = SUPERSTEPS.parse(policy).expect("it is listed");
    scenario(size, nodes, exchange).run(&*policy)
}

/// Percent of the run in which the average node waits for the slowest node, without the time of messages.
pub(super) fn idle_percent(run: &StepsRun) -> f64 {
    let mean = run.computing_s.iter().sum::<f64>() / run.computing_s.len() as f64;
    let slowest = run.computing_s.iter().copied().fold(0.0, f64::max);
    100.0 * (slowest - mean) / run.makespan_s()
}

/// The time of an exchange of equal parts, until all nodes have all parts, s.
fn exchange_s(size: u64, nodes: usize, exchange: Exchange, delay_s: f64) -> f64 {
    let program = scenario(size, nodes, exchange).program;
    let bytes = size as f64 * program.part_bytes / nodes as f64;
    let parts: Vec<Part> = (0..nodes).map(|by| Part { by, at_s: 0.0, bytes }).collect();
    let arrivals = exchange.arrival_times(&parts, Wire { delay_s, ..program.link }, nodes);
    arrivals.into_iter().fold(0.0, f64::max)
}

/// Equation 1 for shares in proportion to speed, s.
pub(super) fn iteration_s(size: u64, nodes: usize, exchange: Exchange, delay_s: f64) -> f64 {
    let scenario = scenario(size, nodes, exchange);
    scenario.ideal_s() / scenario.program.steps as f64 + exchange_s(size, nodes, exchange, delay_s)
}

/// All runs of figures 4 and 5.
pub(super) struct Runs(Vec<StepsRun>);

impl Runs {
    /// Runs all programs on all numbers of nodes with all sizes.
    pub(super) fn all(context: &Context) -> Self {
        let count = Program::RUN.len() * SIZES.len() * NODES.len();
        Self(context.each("jacobi-factor, figures 4 and 5", count, |index| {
            let (rest, nodes) = (index / NODES.len(), NODES[index % NODES.len()]);
            let (program, size) = (Program::RUN[rest / SIZES.len()], SIZES[rest % SIZES.len()]);
            let (policy, exchange) = program.parts();
            run(size, nodes, policy, exchange)
        }))
    }

    /// The run of a program.
    pub(super) fn of(&self, program: Program, size: u64, nodes: usize) -> &StepsRun {
        let place = |found: Option<usize>| found.expect("it was run");
        let program = place(Program::RUN.iter().position(|&one| one == program));
        let size = place(SIZES.iter().position(|&one| one == size));
        let nodes = place(NODES.iter().position(|&one| one == nodes));
        &self.0[(program * SIZES.len() + size) * NODES.len() + nodes]
    }

    /// Time of a program, s.
    pub(super) fn s(&self, program: Program, size: u64, nodes: usize) -> f64 {
        self.of(program, size, nodes).makespan_s()
    }

    /// Speedup over the serial program.
    pub(super) fn speedup(&self, program: Program, size: u64, nodes: usize) -> f64 {
        serial_s(size) / self.s(program, size, nodes)
    }

    /// The greatest speedup on any number of nodes.
    pub(super) fn greatest(&self, program: Program, size: u64) -> f64 {
        NODES.map(|nodes| self.speedup(program, size, nodes)).into_iter().fold(0.0, f64::max)
    }

    /// The number of nodes with the greatest speedup.
    pub(super) fn greatest_at(&self, program: Program, size: u64) -> usize {
        let speedup = |nodes: &usize| self.speedup(program, size, *nodes);
        NODES.into_iter().max_by(|one, other| speedup(one).total_cmp(&speedup(other))).unwrap_or(0)
    }

    /// The time if all nodes always computed, s.
    pub(super) fn ideal_s(&self, size: u64, nodes: usize) -> f64 {
        scenario(size, nodes, Exchange::Direct).ideal_s()
    }

    /// Computing time of the average node over the rest of the time, balanced with allgatherv.
    pub(super) fn granularity(&self, size: u64, nodes: usize) -> f64 {
        let run = self.of(Program::AllGather, size, nodes);
        let computing = run.computing_s.iter().sum::<f64>() / run.computing_s.len() as f64;
        computing / (run.makespan_s() - computing)
    }

    /// Equation 1 for a run with allgatherv: longest computing time plus shortest communication time, s.
    pub(super) fn equation_1_s(&self, run: &StepsRun, size: u64, nodes: usize) -> f64 {
        let steps = run.step_seconds.len() as f64;
        let computing = run.computing_s.iter().copied().fold(0.0, f64::max) / steps;
        computing + exchange_s(size, nodes, Exchange::Doubling, DELAY_S)
    }

    fn mean_idle(&self, program: Program) -> f64 {
        let settings = SIZES.into_iter().flat_map(|size| NODES.map(|nodes| (size, nodes)));
        let idle = settings.map(|(size, nodes)| idle_percent(self.of(program, size, nodes)));
        idle.sum::<f64>() / (SIZES.len() * NODES.len()) as f64
    }

    /// Mean idle time of all settings in percent, not balanced.
    pub(super) fn idle_before(&self) -> f64 {
        self.mean_idle(Program::UnbalancedGather)
    }

    /// The same balanced.
    pub(super) fn idle_after(&self) -> f64 {
        self.mean_idle(Program::AllGather)
    }

    /// By setting, the time with allgatherv over the time with `direct`.
    pub(super) fn gains_of_direct(&self) -> Vec<f64> {
        let settings = SIZES.into_iter().flat_map(|size| NODES.map(|nodes| (size, nodes)));
        let gain =
            |(size, nodes)| self.s(Program::AllGather, size, nodes) / self.s(Program::Direct, size, nodes);
        settings.map(gain).collect()
    }
}
