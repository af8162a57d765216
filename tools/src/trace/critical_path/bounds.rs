//! How fast the run could have been.

use super::slices::Slices;
use crate::trace::select::Window;

/// Times that no placement of the same work can beat.
pub(super) struct Bounds {
    /// All workers busy with chunks all the time, ns.
    pub(super) balance_ns: u64,
    /// The longest chain of handlers, each after the one that sent its message and the one before it of its chunk, on as
    /// many workers as it likes, ns.
    pub(super) chain_ns: u64,
}

impl Bounds {
    pub(super) fn of(slices: &Slices, window: Window) -> Bounds {
        let mut work_ns = 0u128;
        let mut chains_ns: Vec<u64> = Vec::with_capacity(slices.all.len());
        for slice in &slices.all {
            let inside_ns = window.overlap_ns(slice.begin_ns, slice.end_ns).min(slice.cpu_ns());
            let own_ns = if slice.is_work() { inside_ns } else { 0 };
            work_ns += u128::from(own_ns);
            let after = [slice.of_chunk, slice.sender].into_iter().flatten();
            let after_ns = after.filter_map(|before| chains_ns.get(before as usize)).max();
            chains_ns.push(after_ns.copied().unwrap_or(0).saturating_add(own_ns));
        }
        let balance_ns = (work_ns / u128::from(slices.workers.max(1))) as u64;
        Bounds { balance_ns, chain_ns: chains_ns.into_iter().max().unwrap_or(0) }
    }
}
