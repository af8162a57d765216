//! `rotate` moves every chunk to the next available rank. It makes nothing faster: it tests whether a program survives
//! migration.

use crate::arrays::loads::Loads;
use crate::arrays::snapshot::{Assignment, Snapshot};
use crate::arrays::strategy::{Background, Strategy, Terms};
use crate::entry::Entry;
use crate::rank::Rank;

/// The entry in the table of strategies.
pub const ENTRY: Entry<dyn Strategy> = Entry {
    name: "rotate",
    summary: "every chunk to the next available rank; a test of migration",
    parameters: &[],
    build: |_| Ok(Box::new(Rotate)),
};

/// Moves every chunk one rank on.
///
/// ```
/// use lb_strategies::{Rank, Strategy, strategies::rotate::Rotate, synthetic::Workload};
/// let snapshot = Workload::Equal.snapshot(3, 3, 1);
/// assert_eq!(Rotate.assign(&snapshot).ranks, [Rank(1), Rank(2), Rank(0)]);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Rotate;

impl Strategy for Rotate {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn terms(&self) -> Terms {
        Terms { must_pay: false, ..Terms::default() }
    }

    fn assign(&self, snapshot: &Snapshot) -> Assignment {
        let mut assignment = Assignment::current(snapshot);
        let available = Loads::background(snapshot, Background::Share).available;
        let next = |rank: Rank| {
            let after = available.partition_point(|&other| other <= rank);
            available.get(after).or(available.first()).copied()
        };
        for (chunk, rank) in
            snapshot.chunks.iter().zip(&mut assignment.ranks).filter(|(chunk, _)| chunk.migratable)
        {
            *rank = next(chunk.rank).unwrap_or(chunk.rank);
        }
        assignment.within_memory(snapshot)
    }
}
