//! Computes the length of the longest chain of dependent handlers, a lower bound of the run time.

use super::slices::Slices;
use crate::trace::select::Window;

/// The longest chain of handlers in ns. Each handler follows the one that sent its message and the previous handler of
/// its chunk. Workers are unlimited, so no placement of the same work can be faster.
pub(super) fn longest_chain_ns(slices: &Slices, window: Window) -> u64 {
    let mut chains_ns: Vec<u64> = Vec::with_capacity(slices.all.len());
    for slice in &slices.all {
        let inside_ns = window.overlap_ns(slice.begin_ns, slice.end_ns).min(slice.cpu_ns());
        let own_ns = if slice.is_work() { inside_ns } else { 0 };
        let after = [slice.of_chunk, slice.sender].into_iter().flatten();
        let after_ns = after.filter_map(|before| chains_ns.get(before as usize)).max();
        chains_ns.push(after_ns.copied().unwrap_or(0).saturating_add(own_ns));
    }
    chains_ns.into_iter().max().unwrap_or(0)
}
