//! Predicts loads that move over the index space, such as a hot spot, a front or a cloud of particles.
//!
//! Chunks of an array with consecutive indices are treated as a ring, and rows of equal length as a torus.
//!
//! 1. On each axis, the sums of the loads of rows or columns are a *profile*.
//! 2. The shift that best maps the profile of a phase onto the next one, divided by the steps between the two, is a
//!    velocity.
//! 3. Of the velocities of the last four pairs of phases and 0, the one with the smallest error over all pairs counts.
//! 4. The prediction is the mean of the last three phases, each moved on by this velocity.

use std::ops::Range;

use super::{Predictor, Series};
use crate::arrays::snapshot::ChunkId;

/// Number of pairs of phases from which the velocity is chosen.
const PAIRS: usize = 4;
/// Number of phases whose loads are moved on for the prediction.
const MOVED_ON: usize = 3;
/// Number of moments of the coming phase at which loads are predicted.
const MOMENTS: usize = 4;
/// The longest profile. Neighbouring places of a longer profile are averaged.
const PROFILE_MAX: usize = 64;
/// The shortest axis on which a shift is looked for.
const AXIS_MIN: usize = 8;

/// Drift: loads move over the indices of each array at a steady velocity.
///
/// Indices must form lines or grids, see [`Index`](https://docs.rs/caribou). An array with other indices, or with a new
/// chunk, is not predicted. Time is linear in the number of chunks, and quadratic in the length of a profile, at most
/// 64.
///
/// ```
/// use lb_strategies::{ArrayId, ChunkId, predict::{Drift, Predictor, Series}};
/// let ids: Vec<ChunkId> = (0..12).map(|key| ChunkId { array: ArrayId(0), key }).collect();
/// // A hot spot that moves by two indices in each phase.
/// let phase = |spot| (0..12).map(|key| if key == spot { 9.0 } else { 1.0 }).collect::<Vec<f64>>();
/// let series = Series::of(&ids, vec![(phase(3), 1.0), (phase(5), 1.0), (phase(7), 1.0)]);
/// let predicted = Drift.predict(&series, 1.0).expect("they are a line");
/// assert!(predicted[9] > 4.0 && predicted[7] < 3.0, "{predicted:?}");
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Drift;

impl Predictor for Drift {
    fn predict(&self, series: &Series<'_>, steps: f64) -> Option<Vec<f64>> {
        let mut predicted = vec![f64::NAN; series.chunks()];
        for chunks in arrays(series.ids()) {
            if let Some(loads) =
                Grid::of(&series.ids()[chunks.clone()]).and_then(|grid| grid.predict(series, &chunks, steps))
            {
                predicted[chunks].copy_from_slice(&loads);
            }
        }
        predicted.iter().any(|load| !load.is_nan()).then_some(predicted)
    }
}

/// The range of chunks of each array.
fn arrays(ids: &[ChunkId]) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut begin = 0;
    ids.chunk_by(|a, b| a.array == b.array).map(move |chunks| {
        let array = begin..begin + chunks.len();
        begin = array.end;
        array
    })
}

/// The indices of an array in rows of equal length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Grid {
    rows: usize,
    columns: usize,
}

impl Grid {
    fn of(ids: &[ChunkId]) -> Option<Grid> {
        let follows = |pair: &[ChunkId]| pair[0].key.checked_add(1) == Some(pair[1].key);
        let columns = 1 + ids.windows(2).take_while(|pair| follows(pair)).count();
        let is_grid = ids.len().is_multiple_of(columns)
            && ids
                .windows(2)
                .zip(1..)
                .all(|(pair, number): (_, usize)| follows(pair) != number.is_multiple_of(columns));
        is_grid.then(|| Grid { rows: ids.len() / columns, columns })
    }

    fn predict(self, series: &Series<'_>, chunks: &Range<usize>, steps: f64) -> Option<Vec<f64>> {
        let phase = |back: usize| series.phase(back).map(|(at, loads)| (at, &loads[chunks.clone()]));
        let known =
            (0..=PAIRS).map_while(phase).take_while(|(_, loads)| loads.iter().all(|load| load.is_finite()));
        let phases: Vec<(f64, &[f64])> = known.collect();
        if phases.len() < 2 {
            return None;
        }
        let velocity = |axis: usize, length: usize| {
            if length < AXIS_MIN {
                return 0.0;
            }
            let profiles: Vec<(f64, Profile)> =
                phases.iter().map(|&(at, loads)| (at, Profile::of(self.sums(loads, axis)))).collect();
            velocity(&profiles)
        };
        let velocities = (velocity(0, self.rows), velocity(1, self.columns));
        let mut sum = vec![0.0; chunks.len()];
        for &(at, loads) in phases.iter().take(MOVED_ON) {
            for moment in 0..MOMENTS {
                let by = (moment as f64 + 0.5) / MOMENTS as f64 * steps - at;
                let moved = self.shifted(loads, velocities.0 * by, velocities.1 * by);
                sum.iter_mut().zip(moved).for_each(|(sum, load)| *sum += load);
            }
        }
        let count = (phases.len().min(MOVED_ON) * MOMENTS) as f64;
        sum.iter_mut().for_each(|sum| *sum /= count);
        Some(sum)
    }

    /// The sums of rows (axis 0) or columns.
    fn sums(self, loads: &[f64], axis: usize) -> Vec<f64> {
        if axis == 0 {
            return loads.chunks(self.columns).map(|row| row.iter().sum()).collect();
        }
        let mut sums = vec![0.0; self.columns];
        for row in loads.chunks(self.columns) {
            sums.iter_mut().zip(row).for_each(|(sum, load)| *sum += load);
        }
        sums
    }

    /// The loads, shifted by this number of rows and columns.
    fn shifted(self, loads: &[f64], rows: f64, columns: f64) -> Vec<f64> {
        let (above, left) = (Shift::of(rows, self.rows), Shift::of(columns, self.columns));
        let at = |row: usize, column: usize| loads[row * self.columns + column];
        let in_row = |row: usize, column: usize| {
            let (near, far) = left.sources(column);
            (1.0 - left.part) * at(row, near) + left.part * at(row, far)
        };
        let mut shifted = Vec::with_capacity(loads.len());
        for row in 0..self.rows {
            let (near, far) = above.sources(row);
            shifted.extend(
                (0..self.columns).map(|column| {
                    (1.0 - above.part) * in_row(near, column) + above.part * in_row(far, column)
                }),
            );
        }
        shifted
    }
}

/// A shift on a ring: by `whole` places, and a part of one more.
#[derive(Clone, Copy)]
struct Shift {
    whole: usize,
    part: f64,
    length: usize,
}

impl Shift {
    fn of(by: f64, length: usize) -> Shift {
        let by = by.rem_euclid(length as f64);
        let whole = by.floor();
        Shift { whole: whole as usize % length, part: by - whole, length }
    }

    /// The two places whose values come to this one.
    fn sources(self, place: usize) -> (usize, usize) {
        let near = (place + self.length - self.whole) % self.length;
        (near, (near + self.length - 1) % self.length)
    }
}

/// Loads along an axis that is a ring.
struct Profile {
    loads: Vec<f64>,
    /// Number of places of the axis that one place of the profile stands for.
    scale: usize,
}

impl Profile {
    /// A profile of these sums. Neighbouring places of a long one are averaged.
    fn of(sums: Vec<f64>) -> Profile {
        let scale = sums.len().div_ceil(PROFILE_MAX);
        if scale == 1 {
            return Profile { loads: sums, scale };
        }
        let mean = |places: &[f64]| places.iter().sum::<f64>() / places.len() as f64;
        Profile { loads: sums.chunks(scale).map(mean).collect(), scale }
    }

    /// The sum of the squared differences from `later` if this profile is shifted by `by` places of the profile.
    fn error(&self, later: &Profile, by: f64) -> f64 {
        let shift = Shift::of(by, self.loads.len());
        let differences = later.loads.iter().enumerate().map(|(place, later)| {
            let (near, far) = shift.sources(place);
            (1.0 - shift.part) * self.loads[near] + shift.part * self.loads[far] - later
        });
        differences.map(|difference| difference * difference).sum()
    }

    /// The shift that maps this profile best onto `later`, in places of the profile: from minus half to half of the
    /// ring.
    fn shift(&self, later: &Profile) -> f64 {
        let half = (self.loads.len() / 2) as i64;
        let whole = (-half..=half).map(|by| (self.error(later, by as f64), by));
        // Of shifts with equal errors the shortest counts, so that equal loads do not move.
        let nearest = |a: &(f64, i64), b: &(f64, i64)| a.0.total_cmp(&b.0).then(a.1.abs().cmp(&b.1.abs()));
        let Some((_, whole)) = whole.min_by(nearest) else { return 0.0 };
        let finer = (-10..=10).map(|part: i32| whole as f64 + f64::from(part) / 10.0);
        let best = finer
            .map(|by| (self.error(later, by), by))
            .min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.abs().total_cmp(&b.1.abs())));
        best.map_or(0.0, |(_, by)| by)
    }
}

/// The velocity at which each profile best fits the one before, in places per step. Profiles come newest first, each
/// with its time.
fn velocity(profiles: &[(f64, Profile)]) -> f64 {
    let pairs = || profiles.windows(2).map(|pair| (&pair[1], &pair[0]));
    let candidates = pairs().map(|((before, profile), (after, later))| {
        let gap = after - before;
        if gap > 0.0 { profile.shift(later) / gap } else { 0.0 }
    });
    let misfit = |velocity: f64| -> f64 {
        pairs()
            .map(|((before, profile), (after, later))| profile.error(later, velocity * (after - before)))
            .sum()
    };
    let best = candidates.chain([0.0]).map(|velocity| (misfit(velocity), velocity));
    let best = best.min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.abs().total_cmp(&b.1.abs())));
    best.map_or(0.0, |(_, velocity)| velocity)
        * profiles.first().map_or(1, |(_, profile)| profile.scale) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrays::snapshot::ArrayId;

    fn ids(rows: u64, columns: u64) -> Vec<ChunkId> {
        let keys = (0..rows).flat_map(|row| (0..columns).map(move |column| row << 32 | column));
        keys.map(|key| ChunkId { array: ArrayId(0), key }).collect()
    }

    #[test]
    fn rows_of_equal_length_are_a_grid_and_others_are_none() {
        assert_eq!(Grid::of(&ids(3, 5)), Some(Grid { rows: 3, columns: 5 }));
        assert_eq!(Grid::of(&ids(1, 5)), Some(Grid { rows: 1, columns: 5 }));
        assert_eq!(Grid::of(&ids(3, 5)[1..]), None);
        assert_eq!(Grid::of(&ids(3, 5)[..14]), None);
    }

    /// A cloud on a torus of 16 x 16.
    fn cloud(row: f64, column: f64) -> Vec<f64> {
        let away = |place: u32, centre: f64| {
            let off = (f64::from(place) - centre).rem_euclid(16.0);
            off.min(16.0 - off)
        };
        let load = |place: u32| {
            1.0 + 9.0 * (-(away(place / 16, row).powi(2) + away(place % 16, column).powi(2)) / 8.0).exp()
        };
        (0..256).map(load).collect()
    }

    #[test]
    fn a_cloud_is_found_where_it_goes_on_both_axes_whatever_the_lengths_of_phases() {
        let ids = ids(16, 16);
        // It moves 0.3 rows and -0.45 columns per step.
        let at = |step: f64| cloud(4.0 + 0.3 * step, 9.0 - 0.45 * step);
        let series = Series::of(&ids, vec![(at(1.0), 2.0), (at(4.0), 4.0), (at(7.0), 2.0), (at(10.0), 4.0)]);
        let predicted = Drift.predict(&series, 2.0).expect("it is a grid");
        let expected = at(13.0);
        let off = |loads: &[f64]| loads.iter().zip(&expected).map(|(a, b)| (a - b).abs()).sum::<f64>();
        assert!(off(&predicted) < 0.25 * off(&at(10.0)), "{} {}", off(&predicted), off(&at(10.0)));
    }

    #[test]
    fn loads_that_stand_still_are_predicted_as_they_are() {
        let ids = ids(16, 16);
        let series = Series::of(&ids, vec![(cloud(3.0, 3.0), 1.0); 3]);
        let predicted = Drift.predict(&series, 1.0).expect("it is a grid");
        let off = predicted.iter().zip(cloud(3.0, 3.0)).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(off < 1e-9, "{off}");
    }
}
