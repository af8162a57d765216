//! `sfc` cuts a space-filling curve through the indices of chunks into one stretch per rank, by load.
//!
//! Chunks of a regular grid exchange messages with their neighbours. A stretch of a Hilbert or Morton curve is a compact
//! region, so few messages cross ranks, and this takes no knowledge of the messages. Ranks are taken in order, so ranks
//! of one host get neighbouring regions. The method is common in adaptive mesh codes (Pilkington and Baden, "Dynamic
//! partitioning of non-uniform structured workloads with spacefilling curves", 1996).
//!
//! Stretches are in proportion to capacities. A cut falls where the sum of loads is nearest to the fair sum, so a rank
//! is late by at most the load of one chunk. Time: O(chunks log chunks).

use crate::arrays::loads::Loads;
use crate::arrays::snapshot::{Assignment, ChunkLoad, Snapshot};
use crate::arrays::strategy::{Background, Strategy, Terms};
use crate::entry::Entry;
use crate::parameters::Parameter;
use crate::rank::Rank;

/// The entry in the table of strategies.
pub const ENTRY: Entry<dyn Strategy> = Entry {
    name: "sfc",
    summary: "one stretch of a space-filling curve through the indices for each rank",
    parameters: &[
        Parameter {
            name: "curve",
            default: "hilbert",
            meaning: "order of the chunks: hilbert, morton, or rows (the order of their indices)",
        },
        Parameter {
            name: "dimensions",
            default: "auto",
            meaning: "components of an index: 1, 2, 3, or auto (guessed from the indices)",
        },
        Parameter {
            name: "tolerance",
            default: "0.05",
            meaning: "chunks move if a rank exceeds the fair time by this part of it",
        },
        Background::PARAMETER,
    ],
    build: |parameters| {
        let curves = [("hilbert", Curve::Hilbert), ("morton", Curve::Morton), ("rows", Curve::Rows)];
        let dimensions = [("auto", None), ("1", Some(1)), ("2", Some(2)), ("3", Some(3))];
        Ok(Box::new(Sfc {
            curve: parameters.one_of("curve", &curves)?,
            dimensions: parameters.one_of("dimensions", &dimensions)?,
            tolerance: parameters.number("tolerance", 0.0..=10.0)?,
            background: Background::read(parameters)?,
        }))
    },
};

/// The order in which a curve visits the indices of an array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Curve {
    /// Neighbours on the curve are neighbours in space.
    #[default]
    Hilbert,
    /// The bits of the components alternate (Z-order).
    Morton,
    /// Row by row: the order of the packed indices.
    Rows,
}

/// A partition along a curve.
///
/// ```
/// use lb_strategies::{Strategy, strategies::sfc::Sfc, synthetic::Workload};
/// // The last of four ranks has half of its vCPU: it gets the last seventh of the curve.
/// let snapshot = Workload::NoisyRank.snapshot(700, 4, 1);
/// let ranks = Sfc::default().assign(&snapshot).ranks;
/// assert!(ranks.is_sorted());
/// assert!((98..=102).contains(&ranks.iter().filter(|rank| rank.0 == 3).count()));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Sfc {
    /// The curve.
    pub curve: Curve,
    /// Number of components of an index; none to guess it.
    pub dimensions: Option<u32>,
    /// A rank must be above the fair time by this part before anything moves.
    pub tolerance: f64,
    /// The model of a neighbour's load.
    pub background: Background,
}

impl Default for Sfc {
    fn default() -> Self {
        Self { curve: Curve::Hilbert, dimensions: None, tolerance: 0.05, background: Background::Share }
    }
}

impl Strategy for Sfc {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn assign(&self, snapshot: &Snapshot) -> Assignment {
        let mut assignment = Assignment::current(snapshot);
        let now = Loads::placed(snapshot, &assignment, self.background);
        let is_away =
            |chunk: &ChunkLoad| !snapshot.ranks.get(chunk.rank.index()).is_some_and(|rank| rank.available);
        let must_move = snapshot.chunks.iter().any(|chunk| chunk.migratable && is_away(chunk));
        if !must_move && now.max_ns() as f64 <= now.fair_ns() * (1.0 + self.tolerance) {
            return assignment;
        }
        let loads;
        (assignment, loads) = self.cut(snapshot);
        assignment
            .unless_worse(snapshot, &loads, self.background)
            .within_memory_or_stay(snapshot, self.background)
    }

    fn terms(&self) -> Terms {
        Terms { background: self.background, ..Terms::default() }
    }
}

impl Sfc {
    /// Cuts the curve, even if ranks are balanced. Returns the loads as well.
    pub(crate) fn cut(&self, snapshot: &Snapshot) -> (Assignment, Loads) {
        let mut assignment = Assignment::current(snapshot);
        let mut loads = Loads::pinned(snapshot, self.background);
        let limit_ns = fair_ns(snapshot, &loads);
        let mut ranks = loads.available.clone().into_iter().peekable();
        // The ticks that the ranks so far should still get: what one rank has too few or too many, the next one gets or
        // goes without. So cuts do not add up to an error at the end of the curve.
        let fair = |rank: Rank, loads: &Loads| {
            limit_ns * loads.capacity[rank.index()] - loads.ticks[rank.index()] as f64
        };
        let mut due = ranks.peek().map_or(0.0, |&rank| fair(rank, &loads));
        for position in self.order(snapshot) {
            let ticks = loads.clamp_load(snapshot.chunks[position].ticks);
            while due < ticks as f64 / 2.0 && ranks.len() > 1 {
                ranks.next();
                due += ranks.peek().map_or(0.0, |&rank| fair(rank, &loads));
            }
            let Some(&rank) = ranks.peek() else { break };
            due -= ticks as f64;
            loads.ticks[rank.index()] += ticks;
            assignment.ranks[position] = rank;
        }
        (assignment, loads)
    }

    /// Positions of the chunks that may move, in the order of the curve. Chunks of several arrays with the same index are
    /// neighbours.
    fn order(&self, snapshot: &Snapshot) -> Vec<usize> {
        let dimensions = self.dimensions.unwrap_or_else(|| guessed_dimensions(&snapshot.chunks));
        let movable = snapshot.chunks.iter().enumerate().filter(|(_, chunk)| chunk.migratable);
        let place = |chunk: &ChunkLoad| {
            let on_curve = match self.curve {
                Curve::Rows => u128::from(chunk.id.key),
                Curve::Morton => morton(components(chunk.id.key, dimensions), dimensions),
                Curve::Hilbert => hilbert(components(chunk.id.key, dimensions), dimensions),
            };
            (on_curve, chunk.id)
        };
        let mut order: Vec<_> = movable.map(|(position, chunk)| (place(chunk), position)).collect();
        order.sort_unstable();
        order.into_iter().map(|(_, position)| position).collect()
    }
}

/// The time at which all available ranks finish together, with the chunks that may move divided at will.
fn fair_ns(snapshot: &Snapshot, pinned: &Loads) -> f64 {
    let movable = snapshot.chunks.iter().filter(|chunk| chunk.migratable);
    let ticks: u64 = movable.map(|chunk| pinned.clamp_load(chunk.ticks)).sum();
    let capacity: f64 = pinned.available.iter().map(|rank| pinned.capacity[rank.index()]).sum();
    pinned.fair_ns() + if capacity > 0.0 { ticks as f64 / capacity } else { 0.0 }
}

/// Number of components of the indices: a key of one component is below 2^32, of two components has 32 bits for each,
/// of three components 16 bits. Rows of more than 65 536 columns look like three components.
fn guessed_dimensions(chunks: &[ChunkLoad]) -> u32 {
    let bits = chunks.iter().fold(0, |bits, chunk| bits | chunk.id.key);
    match bits {
        0..=0xffff_ffff => 1,
        _ if bits & 0xffff_0000 == 0 => 2,
        _ => 3,
    }
}

/// The components of a packed index, as `caribou::Index` packs them.
fn components(key: u64, dimensions: u32) -> [u32; 3] {
    match dimensions {
        1 => [0, 0, key as u32],
        2 => [0, (key >> 32) as u32, key as u32],
        _ => [(key >> 32) as u32, ((key >> 16) as u32) & 0xffff, key as u32 & 0xffff],
    }
}

/// The place on the Morton curve: the bits of all components in turn, the highest first.
fn morton(components: [u32; 3], dimensions: u32) -> u128 {
    let axes = &components[3 - dimensions as usize..];
    let bits = (0..32).rev().flat_map(|bit| axes.iter().map(move |axis| u128::from((axis >> bit) & 1)));
    bits.fold(0, |place, bit| (place << 1) | bit)
}

/// The place on the Hilbert curve, by Skilling, "Programming the Hilbert curve", 2004: the components are turned into the
/// transposed index, whose bits then alternate as on the Morton curve.
fn hilbert(mut components: [u32; 3], dimensions: u32) -> u128 {
    let axes = &mut components[3 - dimensions as usize..];
    let count = axes.len();
    for bit in (1..32).map(|shift| 1_u32 << (32 - shift)) {
        let below = bit - 1;
        for axis in 0..count {
            if axes[axis] & bit != 0 {
                axes[0] ^= below;
            } else {
                let turned = (axes[0] ^ axes[axis]) & below;
                axes[0] ^= turned;
                axes[axis] ^= turned;
            }
        }
    }
    (1..count).for_each(|axis| axes[axis] ^= axes[axis - 1]);
    let mut turned = 0;
    for bit in (1..32).map(|shift| 1_u32 << (32 - shift)) {
        if axes[count - 1] & bit != 0 {
            turned ^= bit - 1;
        }
    }
    axes.iter_mut().for_each(|axis| *axis ^= turned);
    morton(components, dimensions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrays::metrics::{Crossing, max_over_avg};
    use crate::arrays::snapshot::{ArrayId, ChunkId, Edge, RankLoad};

    /// A square grid of equal chunks that exchange messages with their neighbours, all on the first rank.
    fn grid(side: u64, ranks: usize) -> Snapshot {
        let key = |place: u64| ((place / side) << 32) | (place % side);
        let chunk = |place| ChunkLoad {
            id: ChunkId { array: ArrayId(0), key: key(place) },
            rank: Rank(0),
            ticks: 1_000_000,
            bytes: 1,
            migratable: true,
        };
        let right = (0..side * side).filter(|place| place % side + 1 < side).map(|place| (place, place + 1));
        let down = (0..side * (side - 1)).map(|place| (place, place + side));
        let edge = |(from, to)| Edge { from: from as usize, to: to as usize, messages: 1, bytes: 1 };
        Snapshot {
            ranks: vec![RankLoad::default(); ranks],
            chunks: (0..side * side).map(chunk).collect(),
            edges: right.chain(down).map(edge).collect(),
            ..Snapshot::default()
        }
    }

    #[test]
    fn neighbours_on_the_hilbert_curve_are_neighbours_in_space() {
        for dimensions in [2, 3] {
            let side = 8_u32;
            let mut cells: Vec<[u32; 3]> = (0..side.pow(3))
                .map(|cell| [cell / side / side, cell / side % side, cell % side])
                .filter(|cell| dimensions == 3 || cell[0] == 0)
                .collect();
            cells.sort_by_key(|&cell| hilbert(cell, dimensions));
            for pair in cells.windows(2) {
                let distance: u32 = (0..3).map(|axis| pair[0][axis].abs_diff(pair[1][axis])).sum();
                assert_eq!(distance, 1, "{pair:?} of {dimensions}");
            }
        }
    }

    #[test]
    fn a_curve_through_a_grid_cuts_fewer_messages_than_rows() {
        let snapshot = grid(32, 16);
        let cut = |curve| {
            let plan = Sfc { curve, ..Sfc::default() }.assign(&snapshot);
            assert!(max_over_avg(&snapshot, &plan, Background::Share) < 1.001);
            Crossing::of(&snapshot, &plan).messages
        };
        // Sixteen squares of 8 x 8 have 6 borders of 32; strips of two rows have 15.
        assert_eq!([Curve::Hilbert, Curve::Morton, Curve::Rows].map(cut), [192, 192, 480]);
    }

    #[test]
    fn indices_of_one_two_and_three_components_are_told_apart() {
        let chunks = |keys: &[u64]| -> Vec<ChunkLoad> {
            let mut chunks = grid(2, 1).chunks;
            chunks.truncate(keys.len());
            chunks.iter_mut().zip(keys).for_each(|(chunk, key)| chunk.id.key = *key);
            chunks
        };
        assert_eq!(guessed_dimensions(&chunks(&[0, 70_000])), 1);
        assert_eq!(guessed_dimensions(&chunks(&[1 << 32, 3])), 2);
        assert_eq!(guessed_dimensions(&chunks(&[1 << 32, 2 << 16 | 5])), 3);
        assert_eq!(components(3 << 32 | 2 << 16 | 5, 3), [3, 2, 5]);
    }
}
