//! What moving chunks costs on this machine, learned from the moves that were made.

use super::accept::MoveCost;
use super::balancer::MOVE_COST;

/// Weight of the newest migration.
const WEIGHT: f64 = 0.3;
/// Bytes from which a migration tells how fast bytes travel: below, it is mostly waiting for handlers to end.
const BYTES_MIN: u64 = 1 << 20;

/// The price of bytes, assumed before the first large migration.
#[derive(Clone, Copy, Debug)]
pub(super) struct MovePrice {
    ns_per_byte: f64,
    is_measured: bool,
}

impl Default for MovePrice {
    fn default() -> MovePrice {
        MovePrice { ns_per_byte: 1e9 / MOVE_COST.bytes_per_second, is_measured: false }
    }
}

impl MovePrice {
    /// A migration of so many bytes has taken this long, ns.
    pub(super) fn learn(&mut self, bytes: u64, took_ns: u64) {
        if bytes < BYTES_MIN {
            return;
        }
        let measured = took_ns as f64 / bytes as f64;
        let weight = if std::mem::replace(&mut self.is_measured, true) { WEIGHT } else { 1.0 };
        self.ns_per_byte += weight * (measured - self.ns_per_byte);
    }

    pub(super) fn cost(&self) -> MoveCost {
        MoveCost { bytes_per_second: 1e9 / self.ns_per_byte, ..MOVE_COST }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_migration_sets_the_price_and_a_small_one_says_nothing() {
        let mut price = MovePrice::default();
        price.learn(4096, 50_000_000);
        assert_eq!(price.cost(), MOVE_COST);
        price.learn(100_000_000, 1_000_000_000);
        assert!((price.cost().bytes_per_second / 1e8 - 1.0).abs() < 1e-9);
        price.learn(100_000_000, 2_000_000_000);
        let bytes_per_second = price.cost().bytes_per_second;
        assert!(bytes_per_second < 1e8 && bytes_per_second > 5e7, "{bytes_per_second}");
    }
}
