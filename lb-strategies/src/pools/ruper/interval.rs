//! Computes the time to the next report of a worker (paper, Fig. 2 and the equation below it), and of a rank.

use super::parameters::{Settings, seconds};
use crate::pools::machine::{Nanos, SECOND};

/// The least factor by which an interval shrinks at once.
const SHRINK: f64 = 0.8;
/// The largest factor by which an interval grows at once.
const GROW: f64 = 1.2;
/// The longest interval between reports of a rank, as a multiple of the shortest.
const MPI_STRETCH: u64 = 4;

/// The time to the next report of a worker, after an interval in which its speed changed by the factor `ratio`.
///
/// The interval shrinks if the speed changed by more than `ds_max`, and grows if it hardly changed. It is at least
/// `report_floor`. If it would reach the interval between rebalances, it becomes 0.8 of that interval.
pub(crate) fn next_interval(settings: &Settings, elapsed: Nanos, ratio: f64) -> Nanos {
    let mut next = scaled(elapsed, factor(settings, ratio));
    if next >= settings.interval {
        next = scaled(settings.interval, SHRINK);
    }
    next.max(settings.report_floor)
}

/// The time to the next report of a rank, after `interval`, in which its speed changed by the factor `ratio`:
/// `mpi_interval`, or with `mpi_adapt` up to [`MPI_STRETCH`] times that for a steady speed.
pub(crate) fn next_mpi_interval(settings: &Settings, interval: Nanos, ratio: f64) -> Nanos {
    let (shortest, longest) = (settings.mpi_interval, settings.mpi_interval.saturating_mul(MPI_STRETCH));
    if settings.mpi_adapt {
        scaled(interval, factor(settings, ratio)).clamp(shortest, longest)
    } else {
        shortest
    }
}

/// The factor by which an interval changes.
fn factor(settings: &Settings, ratio: f64) -> f64 {
    let (deviation, limit) = ((ratio - 1.0).abs(), settings.ds_max);
    if deviation > limit {
        (1.0 - (deviation - limit)).max(SHRINK)
    } else if deviation < 0.1 * limit {
        (1.0 + (0.5 * limit - deviation)).min(GROW)
    } else {
        1.0
    }
}

fn scaled(interval: Nanos, factor: f64) -> Nanos {
    (seconds(interval) * factor * SECOND as f64).round() as Nanos
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_changed_speed_is_reported_sooner_and_a_steady_one_later() {
        let settings = Settings::of("");
        for (ratio, next) in
            [(1.0, 210), (1.005, 209), (1.05, 200), (1.15, 190), (0.8, 180), (2.0, 160), (0.0, 160)]
        {
            assert_eq!(next_interval(&settings, 200 * SECOND, ratio), next * SECOND, "ratio {ratio}");
        }
    }

    #[test]
    fn an_interval_stays_between_the_floor_and_the_next_rebalance() {
        let settings = Settings::of("");
        assert_eq!(next_interval(&settings, 292 * SECOND, 1.0), 240 * SECOND);
        assert_eq!(next_interval(&settings, 3 * SECOND, 1.0), 10 * SECOND);
        let settings = Settings::of("interval=11,report-floor=10");
        assert_eq!(next_interval(&settings, 20 * SECOND, 1.0), 10 * SECOND);
    }

    #[test]
    fn a_steady_worker_reports_less_and_less_often_until_it_starts_over() {
        let settings = Settings::of("");
        let intervals =
            std::iter::successors(Some(200 * SECOND), |&last| Some(next_interval(&settings, last, 1.0)));
        let millis: Vec<u64> =
            intervals.skip(1).take(10).map(|interval| (interval + 500_000) / 1_000_000).collect();
        let expected =
            [210_000, 220_500, 231_525, 243_101, 255_256, 268_019, 281_420, 295_491, 240_000, 252_000];
        assert_eq!(millis, expected);
    }

    #[test]
    fn a_steady_rank_reports_less_often_if_it_may_and_a_changed_one_as_often_as_at_first() {
        let next = |settings: &str, interval: u64, ratio| {
            next_mpi_interval(&Settings::of(settings), interval * SECOND, ratio) / SECOND
        };
        assert_eq!(next("", 300, 1.0), 300, "constant by default");
        assert_eq!(next("mpi-adapt=on", 300, 1.0), 315);
        assert_eq!(next("mpi-adapt=on", 1190, 1.0), 1200, "four times as long at most");
        assert_eq!(next("mpi-adapt=on", 1000, 0.5), 800);
        assert_eq!(next("mpi-adapt=on", 310, 0.5), 300, "never shorter than at first");
    }

    proptest! {
        #[test]
        fn an_interval_is_within_its_bounds(elapsed in 0..1000 * SECOND, ratio in 0.0..10.0f64, interval in 13..1000u64) {
            let settings = Settings::of(&format!("interval={interval},report-floor=10"));
            let next = next_interval(&settings, elapsed, ratio);
            prop_assert!((10 * SECOND..settings.interval).contains(&next), "{next}");
        }
    }
}
