//! Computes the counters of a rank over time, from its samples at syncs and from its profiles.

use caribou::trace::{Activity, Profile, Sample};

/// Name, unit and value of each counter.
pub(super) fn of_sample(sample: &Sample) -> [(&'static str, &'static str, f64); 6] {
    let of_wall = |ns: u64| if sample.wall_ns > 0 { ns as f64 / sample.wall_ns as f64 } else { 0.0 };
    [
        ("load cpu", "s", sample.chunk_ns as f64 / 1e9),
        ("background", "s", sample.background_ns as f64 / 1e9),
        ("steal", "%", 100.0 * of_wall(sample.steal_ns)),
        ("cpu/wall", "", of_wall(sample.cpu_ns)),
        ("vCPU speed", "", sample.speed),
        ("chunks here", "chunks", sample.chunks as f64),
    ]
}

/// Percent of a rank's time in chunks or iterations, for each bin of its profiles.
pub(super) fn busy(profiles: &[Profile]) -> Vec<(u64, f64)> {
    let mut profiles = profiles.to_vec();
    let widest_ns = profiles.iter().map(|profile| profile.bin_ns).max().unwrap_or(1);
    let mut busy_ns: Vec<u64> = Vec::new();
    for profile in &mut profiles {
        while profile.bin_ns < widest_ns {
            profile.merge_bins();
        }
        let of_program = |activity| matches!(activity, Activity::Kind(_) | Activity::Iterations);
        for row in profile.rows.iter().filter(|row| of_program(row.activity)) {
            busy_ns.resize(busy_ns.len().max(row.ns.len()), 0);
            busy_ns.iter_mut().zip(&row.ns).for_each(|(sum, &ns)| *sum = sum.saturating_add(ns));
        }
    }
    let whole_ns = widest_ns as f64 * profiles.len().max(1) as f64;
    let shares = busy_ns.iter().map(|&ns| 100.0 * ns as f64 / whole_ns);
    let after = if busy_ns.is_empty() { None } else { Some(0.0) };
    (0u64..).zip(shares.chain(after)).map(|(bin, share)| (bin.saturating_mul(widest_ns), share)).collect()
}
