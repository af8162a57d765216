//! Simulates the cloud and the programs of Gupta, Sarood, Kale and Milojicic (2013), sections 5 and 6: virtual machines
//! (VMs) of one vCPU, four to a node, with slow nodes and interfering VMs.
//!
//! # What the paper gives
//! The clocks (3.00 GHz on *fast* nodes, 2.13 GHz on *slow* ones), the sizes of the grids, 256 x 256 cells to a chunk,
//! 500 iterations of Stencil2D and Wave2D and 200 of Mol3D, a sync every 20 iterations (every 50 on 64 VMs). Two times are
//! in the text: Stencil2D without balancing takes 86.77 s on 16 VMs and 48.09 s on 32, four of them slow.
//!
//! # What is fitted
//! Two times determine two numbers. With the compute time proportional to 1 / VMs, what remains is [`BARRIER_S`] for
//! each iteration, on any number of VMs. A cell then takes [`CELL_S`] on a fast VM. The paper's figure 4 has idle time of
//! the same kind: after balancing, all VMs are idle for 18 % of the time, because of communication.
//!
//! # What is assumed
//! - The interfering VM always runs, and gets half of the vCPU that it shares.
//! - Wave2D takes as long for a cell as Stencil2D. Mol3D has the cells and pairs of cells of 92,000 atoms
//!   ([`Program::Mol3d`]) and takes [`MOLECULES_S`] for an iteration on one fast VM.
//! - A sync takes half of an iteration, a move 2 ms and the time of its bytes on 1 Gbit/s ([`Syncs`]).
//! - Each chunk has an overhead of [`CHUNK_S`] in each iteration, and blocks that exceed the second-level cache are slower
//!   ([`CACHE_BYTES`], [`UNCACHED`]). Both matter only where the size of chunks changes.

use super::array_scenario::ArrayScenario;
use super::array_simulation::Array;
use super::chunk_costs::ChunkCosts;
use super::cost_table::CostTable;
use super::neighbours::{Beside, Neighbour, Presence};
use super::overheads::Noise;
use super::series::{PerWorker, Series, Shared};
use lb_strategies::pools::machine::SECOND;
use lb_strategies::{Period, Rank};

/// Clock of a slow node, relative to a fast one.
pub const SLOW_CLOCK: f64 = 2.13 / 3.0;
/// VMs of a node.
pub const VMS_PER_NODE: u32 = 4;
/// Time of a cell of a grid in an iteration on a fast VM, s; fitted.
pub const CELL_S: f64 = 25.4e-9;
/// Time from the end of an iteration on the last VM to the begin of the next, s; fitted.
pub const BARRIER_S: f64 = 18.8e-3;
/// Time that a chunk adds to an iteration, s: its turn in the scheduler, and its messages.
pub const CHUNK_S: f64 = 50e-6;
/// Bytes of the second-level cache that two cores share.
pub const CACHE_BYTES: f64 = 6e6;
/// Time of a cell of a block that exceeds the cache, relative to one that does not.
pub const UNCACHED: f64 = 1.15;
/// Time of an iteration of Mol3D on one fast VM, s.
pub const MOLECULES_S: f64 = 4.0;

/// A program of the paper.
///
/// ```
/// use virtual_cluster::cloud_cluster::Program;
/// assert_eq!(Program::Stencil2d.chunks(), 1024);
/// assert_eq!(Program::Wave2d.chunks(), 2304);
/// assert_eq!(Program::Grid { side: 8192, block: 512 }.chunks(), 256);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// Averages in a grid of 8192 x 8192 cells, in blocks of 256 x 256.
    Stencil2d,
    /// A wave on a grid of 12288 x 12288 cells, in blocks of 256 x 256.
    Wave2d,
    /// Molecular dynamics of 92,000 atoms: 9 x 9 x 6 cells of the length of the cutoff. A chunk is a cell, or a pair of
    /// neighbouring cells; a pair costs the more the more of its volume is within the cutoff.
    Mol3d,
    /// Stencil2D on another grid, or in other blocks.
    Grid {
        /// Cells of a side of the grid.
        side: u32,
        /// Cells of a side of a block.
        block: u32,
    },
}

/// Cells of Mol3D: a box of 109 x 109 x 78 Angstrom with a cutoff of 12.
const MOLECULE_CELLS: u32 = 9 * 9 * 6;
/// Of 14 chunks for each cell, the relative cost: the cell with itself, then pairs that share a face, an edge or a corner.
const PAIRS: [(usize, f64); 4] = [(1, 1.0), (3, 0.9), (6, 0.5), (4, 0.25)];

impl Program {
    /// The three programs of figures 6 and 7.
    pub const ALL: [Self; 3] = [Self::Stencil2d, Self::Wave2d, Self::Mol3d];

    /// The name in the paper.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stencil2d | Self::Grid { .. } => "Stencil2D",
            Self::Wave2d => "Wave2D",
            Self::Mol3d => "Mol3D",
        }
    }

    /// Number of iterations of a run.
    pub fn iterations(self) -> u64 {
        if self == Self::Mol3d { 200 } else { 500 }
    }

    /// Number of chunks.
    pub fn chunks(self) -> u32 {
        match self.grid() {
            Some((side, block)) => (side / block).pow(2),
            None => MOLECULE_CELLS * PAIRS.iter().map(|(count, _)| *count as u32).sum::<u32>(),
        }
    }

    /// Cells of a side of the grid and of a block.
    fn grid(self) -> Option<(u32, u32)> {
        match self {
            Self::Stencil2d => Some((8192, 256)),
            Self::Wave2d => Some((12288, 256)),
            Self::Grid { side, block } => Some((side, block)),
            Self::Mol3d => None,
        }
    }

    /// Size of a chunk, in bytes.
    fn state_bytes(self) -> u64 {
        // A pair of cells has no atoms of its own; on average a chunk has the 190 atoms of a cell / 14.
        self.grid().map_or(1024, |(_, block)| 8 * u64::from(block).pow(2))
    }

    /// Seconds of a fast VM for each chunk in an iteration.
    fn costs(self) -> Vec<f64> {
        if let Some((_, block)) = self.grid() {
            let cells = f64::from(block).powi(2);
            // Two arrays, the old and the new one.
            let slower = if 16.0 * cells > CACHE_BYTES { UNCACHED } else { 1.0 };
            return vec![CHUNK_S + cells * CELL_S * slower; self.chunks() as usize];
        }
        let of_cell: Vec<f64> =
            PAIRS.iter().flat_map(|&(count, cost)| std::iter::repeat_n(cost, count)).collect();
        let unit_s = MOLECULES_S / (f64::from(MOLECULE_CELLS) * of_cell.iter().sum::<f64>());
        let costs = of_cell.iter().map(|cost| CHUNK_S + cost * unit_s);
        costs.cycle().take(self.chunks() as usize).collect()
    }
}

/// The VMs of an experiment, and what disturbs them.
///
/// ```
/// use virtual_cluster::cloud_cluster::{Cloud, Program};
/// let run = Cloud { slow: 4, ..Cloud::new(Program::Stencil2d, 32) };
/// let none = lb_strategies::ARRAYS.parse("none")?;
/// let seconds = run.scenario().run(none.into()).makespan() as f64 / 1e9;
/// assert!((seconds / 48.09 - 1.0).abs() < 0.05, "{seconds} s; the paper: 48.09 s");
/// # Ok::<(), lb_strategies::ParseError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cloud {
    /// The program.
    pub program: Program,
    /// Number of VMs, one rank on each.
    pub vms: u32,
    /// Number of slow VMs, the first ones.
    pub slow: u32,
    /// Speed of the second half of the VMs. The paper's two kinds of fast nodes differ; elsewhere it is 1.
    pub second_half: f64,
    /// The iterations of a run without balancing between which a VM interferes with the last VM.
    pub interferes: Option<(f64, f64)>,
    /// Whether the time that a neighbour takes counts as CPU time of the VM, as under KVM (section IV). The VM then seems to run
    /// at half of its speed.
    pub hidden: bool,
    /// When chunks are balanced.
    pub period: Period,
    /// What syncs cost, and how well they measure.
    pub syncs: Syncs,
}

/// What syncs cost, and how well they measure. The paper has no numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Syncs {
    /// Time of the reports and the decision, s.
    pub decision_s: f64,
    /// Time to pack and unpack a chunk, s.
    pub move_s: f64,
    /// Standard deviation of a measured load, as a part of it, at a sync every 20 iterations. It falls with the square root
    /// of the number of iterations.
    pub error: f64,
}

impl Default for Syncs {
    /// Half of the time of an iteration for a sync, and 2 ms for a chunk of 512 KiB.
    fn default() -> Self {
        Self { decision_s: 0.05, move_s: 0.002, error: 0.01 }
    }
}

impl Cloud {
    /// Fast VMs without a neighbour, with the paper's period.
    pub fn new(program: Program, vms: u32) -> Self {
        Self {
            program,
            vms,
            slow: 0,
            second_half: 1.0,
            interferes: None,
            hidden: false,
            period: Period::Steps(if vms < 64 { 20 } else { 50 }),
            syncs: Syncs::default(),
        }
    }

    fn speed(&self, rank: u32) -> f64 {
        let second_half = if rank < self.vms / 2 { 1.0 } else { self.second_half };
        if rank < self.slow { SLOW_CLOCK } else { second_half }
    }

    /// Seconds of an iteration without balancing or a neighbour, with its barrier.
    fn iteration_s(&self) -> f64 {
        let slowest = (0..self.vms).map(|rank| self.speed(rank)).fold(f64::INFINITY, f64::min);
        self.program.costs().iter().sum::<f64>() / f64::from(self.vms) / slowest + BARRIER_S
    }

    /// The times between which the neighbour is there, s. Meanwhile iterations without balancing take as long as its VM.
    fn neighbour_s(&self) -> Option<[f64; 2]> {
        let (from, to) = self.interferes?;
        let (quiet_s, last) = (self.iteration_s(), self.vms - 1);
        let compute_s = self.program.costs().iter().sum::<f64>() / f64::from(self.vms);
        let beside_s = quiet_s.max(2.0 * compute_s / self.speed(last) + BARRIER_S);
        Some([from * quiet_s, from * quiet_s + (to - from) * beside_s])
    }

    /// The paper's experiment.
    pub fn scenario(&self) -> ArrayScenario {
        let Self { program, vms, .. } = *self;
        let array = Array {
            chunks: program.chunks(),
            iterations: program.iterations(),
            period: self.period,
            state_bytes: program.state_bytes(),
            workers: vec![1; vms as usize],
        };
        let cloud = *self;
        let speeds =
            PerWorker::new(&array.workers, move |worker| Series::constant(cloud.speed(worker.rank.0)));
        let neighbour = self.neighbour_s().map(|[from_s, to_s]| Neighbour {
            presence: Presence::Between { from_s, to_s },
            ..Neighbour::always(Rank(vms - 1))
        });
        let shares = Beside::Vcpu.shares(neighbour.as_slice());
        let mut scenario = ArrayScenario::new(program.name(), array, move || {
            let (speeds, shares) = (Box::new(speeds.clone()), shares.clone());
            Box::new(if cloud.hidden { Shared::slowed(speeds, shares) } else { Shared::new(speeds, shares) })
        });
        scenario.costs = ChunkCosts::Listed(CostTable::new(program.chunks(), program.costs()));
        // The barrier has the time of all messages of an iteration.
        scenario.exchange = false;
        let Syncs { decision_s, move_s, error } = self.syncs;
        scenario.overheads.barrier = Some((BARRIER_S * SECOND as f64) as u64);
        scenario.overheads.decision =
            super::DecisionCost::PerChunk((decision_s * SECOND as f64 / f64::from(program.chunks())) as u64);
        let measured = match self.period {
            Period::Steps(steps) => steps as f64,
            Period::Auto | Period::Every(_) => 20.0,
        };
        scenario.overheads.noise = Noise { relative_sd: error * (20.0 / measured.max(1.0)).sqrt(), seed: 1 };
        scenario.overheads.bandwidths.between_hosts = 1.25e8;
        scenario.overheads.bandwidths.within_host = 1e9;
        scenario.overheads.bandwidths.ranks_per_host = VMS_PER_NODE;
        scenario.move_cost.per_chunk_ns = (move_s * SECOND as f64) as u64;
        scenario
    }

    /// The time that no placement can beat, with [`BARRIER_S`] after each iteration, s. Chunks are whole if they are equal;
    /// those of Mol3D are so many that they count as divisible.
    pub fn bound_s(&self) -> f64 {
        let [quiet_s, beside_s] = [false, true].map(|beside| self.least_iteration_s(beside) + BARRIER_S);
        let [from_s, to_s] = self.neighbour_s().unwrap_or([f64::INFINITY; 2]);
        let all = self.program.iterations() as f64;
        let before = (from_s / quiet_s).min(all);
        let during = ((to_s - from_s) / beside_s).min(all - before);
        (all - during) * quiet_s + if during > 0.0 { during * beside_s } else { 0.0 } - BARRIER_S
    }

    /// Least time in which all VMs together compute an iteration, s.
    fn least_iteration_s(&self, beside: bool) -> f64 {
        let costs = self.program.costs();
        let speed = |rank| self.speed(rank) * if beside && rank == self.vms - 1 { 0.5 } else { 1.0 };
        let speeds: Vec<f64> = (0..self.vms).map(speed).collect();
        let divisible_s = costs.iter().sum::<f64>() / speeds.iter().sum::<f64>();
        if self.program == Program::Mol3d {
            return divisible_s;
        }
        let cost_s = costs[0];
        let fits =
            |at_s: f64| -> f64 { speeds.iter().map(|speed| (at_s * speed / cost_s + 1e-9).floor()).sum() };
        // The last VM ends with a whole number of chunks.
        let ends = speeds.iter().flat_map(|speed| {
            let least = (divisible_s * speed / cost_s).floor();
            (0..3).map(move |more| (least + f64::from(more)) * cost_s / speed)
        });
        ends.filter(|&at_s| fits(at_s) >= costs.len() as f64).fold(f64::INFINITY, f64::min)
    }
}
