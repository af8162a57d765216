//! Defines the strategy `eighth`, which measures the cost of migration: at every sync it moves every eighth point, in
//! turn, to the next rank. The moves gain nothing, so the extra time is their cost.

use caribou::lb::Entry;
use lb_strategies::strategies::rotate::Rotate;
use lb_strategies::{Assignment, Snapshot, Strategy, Terms};

/// The entry in the table of strategies.
pub(super) const ENTRY: Entry<dyn Strategy> = Entry {
    name: "eighth",
    summary: "every eighth chunk, in turn, to the next available rank; what migrating costs",
    parameters: &[],
    build: |_| Ok(Box::new(Eighth)),
};

/// Moves every eighth chunk one rank on.
#[derive(Clone, Copy, Debug)]
struct Eighth;

impl Strategy for Eighth {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn terms(&self) -> Terms {
        Terms { must_pay: false, ..Terms::default() }
    }

    fn assign(&self, snapshot: &Snapshot) -> Assignment {
        let mut assignment = Rotate.assign(snapshot);
        for (at, (chunk, rank)) in (0..).zip(snapshot.chunks.iter().zip(&mut assignment.ranks)) {
            if at % 8 != snapshot.phase % 8 {
                *rank = chunk.rank;
            }
        }
        assignment
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lb_strategies::synthetic::Workload;

    #[test]
    fn every_eighth_moves_and_each_in_its_turn() {
        let mut snapshot = Workload::Equal.snapshot(24, 3, 1);
        let mut moved = Vec::new();
        for phase in 0..8 {
            snapshot.phase = phase;
            let ranks = Eighth.assign(&snapshot).ranks;
            moved.extend((0..24).filter(|&at| ranks[at] != snapshot.chunks[at].rank));
            assert_eq!(moved.len() as u64, 3 * (phase + 1));
        }
        moved.sort_unstable();
        assert_eq!(moved, (0..24).collect::<Vec<_>>());
    }
}
