//! When a worker reports next (paper, Fig. 2 and the equation below it).

use super::parameters::{Settings, seconds};
use crate::pool::{Nanos, SECOND};

/// The most by which an interval shrinks at once.
const SHRINK: f64 = 0.8;
/// The most by which an interval grows at once.
const GROW: f64 = 1.2;

/// The time to the next report of a worker whose last interval was `elapsed`, and whose speed is now `ratio` times what it was.
///
/// Sooner where the speed has changed by more than `ds_max`, later where it has hardly changed; never below
/// `report_floor`, and what would exceed the checkpoint interval falls back to 0.8 of it.
pub(crate) fn next_interval(settings: &Settings, elapsed: Nanos, ratio: f64) -> Nanos {
    let (deviation, limit) = ((ratio - 1.0).abs(), settings.ds_max);
    let factor = if deviation > limit {
        (1.0 - (deviation - limit)).max(SHRINK)
    } else if deviation < 0.1 * limit {
        (1.0 + (0.5 * limit - deviation)).min(GROW)
    } else {
        1.0
    };
    let mut next = (seconds(elapsed) * factor * SECOND as f64).round() as Nanos;
    if next >= settings.checkpoint {
        next = (settings.checkpoint as f64 * SHRINK).round() as Nanos;
    }
    next.max(settings.report_floor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Golden vector 1.
    #[test]
    fn a_changed_speed_is_reported_sooner_and_a_steady_one_later() {
        let settings = Settings::of("");
        for (ratio, next) in
            [(1.0, 210), (1.005, 209), (1.05, 200), (1.15, 190), (0.8, 180), (2.0, 160), (0.0, 160)]
        {
            assert_eq!(next_interval(&settings, 200 * SECOND, ratio), next * SECOND, "ratio {ratio}");
        }
    }

    /// Golden vector 1b.
    #[test]
    fn an_interval_stays_between_the_floor_and_the_checkpoints() {
        let settings = Settings::of("");
        assert_eq!(next_interval(&settings, 292 * SECOND, 1.0), 240 * SECOND);
        assert_eq!(next_interval(&settings, 3 * SECOND, 1.0), 10 * SECOND);
        let settings = Settings::of("checkpoint=11,report-floor=10");
        assert_eq!(next_interval(&settings, 20 * SECOND, 1.0), 10 * SECOND);
    }

    /// Golden vector 1c.
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

    proptest! {
        /// Invariant 9.
        #[test]
        fn an_interval_is_within_its_bounds(elapsed in 0..1000 * SECOND, ratio in 0.0..10.0f64, checkpoint in 13..1000u64) {
            let settings = Settings::of(&format!("checkpoint={checkpoint},report-floor=10"));
            let next = next_interval(&settings, elapsed, ratio);
            prop_assert!((10 * SECOND..settings.checkpoint).contains(&next), "{next}");
        }
    }
}
