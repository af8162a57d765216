//! The facts of a chunk that a balancing window (a measurement while chunks run) reports beside its cost: whether it
//! may migrate, its bytes, its declared load.
//!
//! Only the worker that runs a chunk may call its hooks (`migratable`, `state_bytes`, `load`), so the worker stores the
//! answers in the chunk's cell. It calls the hooks after the chunk's first run since a window. Before its first run on
//! this rank a chunk is not migratable.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::arrays::core::lifecycle::erased::ErasedSlot;
use crate::ids::Rank;

/// No load is declared.
const MEASURED: u64 = u64::MAX;
/// The program does not move the chunk.
const NOWHERE: u32 = u32::MAX;

/// The worker has called the hooks since the last window.
const KNOWN: u32 = 1;
const MIGRATABLE: u32 = 2;
/// The declared load is the same for each phase: handlers have declared no load since the last window.
const CONSTANT: u32 = 4;

/// The answers of a cell's chunk. The worker that runs the chunk and the worker that samples the rank may write at the
/// same time. Each field is a separate atomic, so a report may mix old and new answers. Then an estimate is a window
/// old, or a load that was declared in between is lost.
pub(crate) struct Facts {
    bytes: AtomicU64,
    declared_ns: AtomicU64,
    wish: AtomicU32,
    flags: AtomicU32,
}

impl Default for Facts {
    fn default() -> Facts {
        Facts {
            bytes: AtomicU64::new(0),
            declared_ns: AtomicU64::new(MEASURED),
            wish: AtomicU32::new(NOWHERE),
            flags: AtomicU32::new(0),
        }
    }
}

/// The facts as a window reports them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReportedFacts {
    pub(crate) bytes: u64,
    /// Load since the last window that the chunk declares, ns of ticks.
    pub(crate) declared_ns: Option<u64>,
    pub(crate) migratable: bool,
    /// True if the chunk has not run since the last window.
    pub(crate) unasked: bool,
    pub(crate) wish: Option<Rank>,
}

impl Facts {
    /// A chunk moves in. Its facts are unknown, but count as known if nothing `asks` for facts.
    pub(super) fn reset(&self, asks: bool) {
        self.bytes.store(0, Ordering::Relaxed);
        self.declared_ns.store(MEASURED, Ordering::Relaxed);
        self.wish.store(NOWHERE, Ordering::Relaxed);
        self.flags.store(if asks { 0 } else { KNOWN }, Ordering::Relaxed);
    }

    /// True if the worker has called the hooks of the chunk since the last window.
    #[inline]
    pub(crate) fn are_known(&self) -> bool {
        self.flags.load(Ordering::Relaxed) & KNOWN != 0
    }

    /// Calls the hooks of the chunk, which has just run: user code.
    #[cold]
    pub(crate) fn learn(&self, slot: &mut dyn ErasedSlot) {
        let mut flags = KNOWN | if slot.migratable() { MIGRATABLE } else { 0 };
        let is_charged = self.declared_ns.load(Ordering::Relaxed) != MEASURED
            && self.flags.load(Ordering::Relaxed) & CONSTANT == 0;
        if let Some(ticks_ns) = slot.declared_load().filter(|_| !is_charged) {
            flags |= CONSTANT;
            self.declared_ns.store(ticks_ns.min(MEASURED - 1), Ordering::Relaxed);
        }
        self.bytes.store(slot.state_bytes(), Ordering::Relaxed);
        self.flags.store(flags, Ordering::Relaxed);
    }

    /// A handler of the chunk declares this load, which replaces the constant load per phase.
    pub(crate) fn charge(&self, ticks_ns: u64) {
        if self.flags.fetch_and(!CONSTANT, Ordering::Relaxed) & CONSTANT != 0 {
            self.declared_ns.store(MEASURED, Ordering::Relaxed);
        }
        let before = Some(self.declared_ns.load(Ordering::Relaxed)).filter(|&before| before != MEASURED);
        let sum = before.unwrap_or(0).saturating_add(ticks_ns).min(MEASURED - 1);
        self.declared_ns.store(sum, Ordering::Relaxed);
    }

    /// The program moves the chunk to this rank.
    pub(crate) fn wish(&self, rank: Rank) {
        self.wish.store(rank.0, Ordering::Relaxed);
    }

    /// Takes the facts for a report. The next run updates them. A wish stays until a window `decides`.
    pub(crate) fn take(&self, decides: bool) -> ReportedFacts {
        let flags = self.flags.fetch_and(!KNOWN, Ordering::Relaxed);
        let declared_ns = match flags & CONSTANT {
            0 => self.declared_ns.swap(MEASURED, Ordering::Relaxed),
            _ => self.declared_ns.load(Ordering::Relaxed),
        };
        let wish = match decides {
            true => self.wish.swap(NOWHERE, Ordering::Relaxed),
            false => NOWHERE,
        };
        ReportedFacts {
            bytes: self.bytes.load(Ordering::Relaxed),
            declared_ns: Some(declared_ns).filter(|&declared_ns| declared_ns != MEASURED),
            migratable: flags & MIGRATABLE != 0,
            unasked: flags & KNOWN == 0,
            wish: Some(Rank(wish)).filter(|_| wish != NOWHERE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charged_load_replaces_that_of_each_phase_until_the_next_window() {
        let facts = Facts::default();
        facts.declared_ns.store(50, Ordering::Relaxed);
        facts.flags.store(KNOWN | CONSTANT, Ordering::Relaxed);
        assert_eq!(facts.take(true).declared_ns, Some(50));
        assert_eq!(facts.take(true).declared_ns, Some(50), "it is that of each phase");
        facts.charge(7);
        facts.charge(8);
        assert_eq!(facts.take(true).declared_ns, Some(15));
        assert_eq!(facts.take(true).declared_ns, None);
    }

    #[test]
    fn a_wish_waits_for_a_window_that_decides() {
        let facts = Facts::default();
        facts.wish(Rank(3));
        assert_eq!(facts.take(false).wish, None);
        assert_eq!(facts.take(true).wish, Some(Rank(3)));
        assert_eq!(facts.take(true).wish, None);
    }
}
