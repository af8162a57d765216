//! `random` puts every chunk on an available rank drawn at random. It shows the balance by chance, and tests migration.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::arrays::loads::Loads;
use crate::arrays::snapshot::{Assignment, Snapshot};
use crate::arrays::strategy::{Background, Strategy, Terms};
use crate::entry::Entry;
use crate::parameters::Parameter;

/// The entry in the table of strategies.
pub const ENTRY: Entry<dyn Strategy> = Entry {
    name: "random",
    summary: "every chunk to a random available rank; a test of migration",
    parameters: &[Parameter {
        name: "seed",
        default: "1",
        meaning: "seed of the random numbers, combined with the number of the phase",
    }],
    build: |parameters| Ok(Box::new(Random { seed: parameters.integer("seed")? })),
};

/// Draws a rank for every chunk.
///
/// ```
/// use lb_strategies::{Strategy, strategies::random::Random, synthetic::Workload};
/// let mut snapshot = Workload::Equal.snapshot(100, 10, 1);
/// let first = Random { seed: 1 }.assign(&snapshot);
/// assert_eq!(first, Random { seed: 1 }.assign(&snapshot));
/// snapshot.phase += 1;
/// assert_ne!(first, Random { seed: 1 }.assign(&snapshot));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Random {
    /// Seed of the draws, mixed with the phase.
    pub seed: u64,
}

impl Strategy for Random {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn terms(&self) -> Terms {
        Terms { must_pay: false, ..Terms::default() }
    }

    fn assign(&self, snapshot: &Snapshot) -> Assignment {
        let mut assignment = Assignment::current(snapshot);
        let available = Loads::background(snapshot, Background::Share).available;
        if available.is_empty() {
            return assignment;
        }
        // An odd multiplier spreads the phase over all bits, so that (seed, phase) pairs rarely meet.
        let mixed = self.seed ^ snapshot.phase.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut rng = Pcg64Mcg::seed_from_u64(mixed);
        for (_, rank) in
            snapshot.chunks.iter().zip(&mut assignment.ranks).filter(|(chunk, _)| chunk.migratable)
        {
            *rank = available[rng.random_range(0..available.len())];
        }
        assignment.within_memory(snapshot)
    }
}
