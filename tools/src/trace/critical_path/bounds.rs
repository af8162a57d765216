//! Bounds: how fast the run could have been if only work that needs each other had to wait for each other.

use super::slices::Slices;
use crate::trace::select::Window;

/// The longest chain of handlers, each after the one that sent its message and the one before it of its chunk, on as many
/// workers as it likes, ns. No placement of the same work can beat it.
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
