//! `refine-paper` is Algorithm 1 of the refinement paper (see [`refine`](super::refine)), as its authors ran it. It shows
//! what each change of [`Refine`] is worth.
//!
//! Loads are measured in the last phase. Background load is by equation 2, and constant when chunks move (equation 1).
//! Ranks above the average by more than epsilon (`overHeap`) give chunks, heaviest first. Every other rank receives
//! (`underSet`), as long as no chunk makes it overloaded. Every plan is carried out. If no chunk fits, the donor stays
//! late.
//!
//! Each parameter switches on one change of [`Refine`], or another reading of the paper:
//!
//! | parameter | change |
//! |---|---|
//! | `background=share` | another process on the vCPU takes a share of the rank's time, not a constant time |
//! | `tolerance=0.05` | epsilon is fixed; `refine` has this one |
//! | `settle=0.005` | once something moves, donors are drained nearer to the average than a fixed epsilon |
//! | `receivers=light` | only ranks below the average by more than epsilon receive, and stay so |
//! | `band=0.2` | of about equal chunks, the one with the index nearest to the receiver goes |
//! | `coarse=on` | the placement is planned anew where no chunk fits a receiver |
//! | `smoothing=0.5` | loads are smoothed over the last phases |
//! | `speed-noise=0.08` | a small difference of speed is ignored |
//! | `pay=on` | a plan is dropped if moving takes longer than it saves |
//!
//! # Where the paper can be read in several ways
//! The authors' program settles three of them (`Refiner.C` in `github.com/guptaabhish/cloud-loadbalancer-charm`):
//!
//! - *The quantity to equalise.* Equation 3 taken literally compares ticks (`equal=ticks`). That would give a slow vCPU as
//!   much work as a fast one. The program compares the ticks of a rank with its part of all ticks by speed, which
//!   equalises completion times, as [`Refine`] does.
//! - *Underloaded ranks.* By the text, a receiver is below the average by more than epsilon, and remains so. Beside one
//!   neighbour on 32 vCPUs, the other ranks are 3 % below the average: with an epsilon of 5 % nothing moves
//!   (`receivers=light`). In the program, every rank that is not overloaded may receive.
//! - *Epsilon.* The text gives no value. The program searches the least one, in steps of 0.01 from 0.001, with which no
//!   rank is left overloaded. So epsilon follows the size of the chunks.
//!
//! With these readings most of what the paper says about figures 3 to 7 comes out in simulation (`caribou paper
//! cloud-refine`).
//!
//! A neighbour that runs whenever it can takes less time from a rank with less work. Equation 1 expects it to take the
//! same time. So on two ranks with a small epsilon, the algorithm stops at three quarters of the best achievable gain.
//! It gains more on more ranks, and with a larger epsilon, which stops it earlier.

use super::refine::{Equalise, Misfit, Receivers, Refine};
use crate::arrays::snapshot::{Assignment, Snapshot};
use crate::arrays::strategy::{Strategy, Terms};
use crate::entry::Entry;
use crate::parameters::Parameter;
use crate::parameters::Parameters;
use crate::parse_error::ParseError;

/// The values of epsilon that are searched.
const EPSILON_MIN: f64 = 0.001;
const EPSILON_STEP: f64 = 0.01;

/// The entry in the table of strategies.
pub const ENTRY: Entry<dyn Strategy> = Entry {
    name: "refine-paper",
    summary: "Algorithm 1 of the refinement paper; parameters switch on the changes that refine makes, and other readings",
    parameters: &[
        Parameter {
            name: "tolerance",
            default: "search",
            meaning: "the paper's epsilon, as a part of the average; or search, the least that leaves no rank overloaded; refine: 0.05",
        },
        Parameter {
            name: "settle",
            default: "tolerance",
            meaning: "part above the average to which ranks are brought down with a fixed tolerance, or tolerance; refine: 0.005",
        },
        Parameter {
            name: "band",
            default: "0",
            meaning: "loads that differ by less than this part count as equal, and chunks go by index; refine: 0.2",
        },
        Parameter {
            name: "background",
            default: "additive",
            meaning: "model of another process on the vCPU: additive (constant time), or share (of the vCPU); refine: share",
        },
        Parameter {
            name: "equal",
            default: "time",
            meaning: "what becomes equal on all ranks: completion time, or ticks (equation 3 taken literally)",
        },
        Parameter {
            name: "receivers",
            default: "all",
            meaning: "ranks that receive chunks: all that are not overloaded, or light (underloaded by epsilon before and after)",
        },
        Parameter {
            name: "coarse",
            default: "off",
            meaning: "on: a new plan with exchanges where no chunk fits a receiver; refine: on",
        },
        Parameter {
            name: "smoothing",
            default: "1",
            meaning: "weight of the last phase in the load of a chunk; refine: 0.5",
        },
        Parameter {
            name: "speed-noise",
            default: "0",
            meaning: "ranks that are slower by less than this part count as equally fast; refine: 0.08",
        },
        Parameter {
            name: "pay",
            default: "off",
            meaning: "on: chunks move only if this saves more time than it costs; refine: on",
        },
    ],
    build: |parameters| Ok(Box::new(RefinePaper::from_parameters(parameters)?)),
};

/// The paper's refinement, with any of our changes.
///
/// ```
/// use lb_strategies::{Strategy, metrics::Moved, ARRAYS, synthetic::Workload};
/// // A neighbour takes half of the second vCPU. The paper lets it have as much after the move as before.
/// let snapshot = Workload::NoisyRank.snapshot(256, 2, 1);
/// let moved = |spec: &str| Moved::of(&snapshot, &ARRAYS.parse(spec).expect("listed").assign(&snapshot)).chunks;
/// assert_eq!((moved("refine-paper,tolerance=0.05,receivers=light"), moved("refine")), (53, 43));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct RefinePaper {
    /// The algorithm.
    pub refine: Refine,
    /// True if epsilon is the least with which the algorithm ends, instead of the tolerance of `refine`.
    pub searches: bool,
    /// The terms of the strategy.
    pub terms: Terms,
}

impl RefinePaper {
    fn from_parameters(parameters: &Parameters) -> Result<Self, ParseError> {
        let tolerance = parameters.number_or("tolerance", 0.0..=10.0, "search")?;
        let searches = tolerance.is_none();
        let refine = Refine {
            equalise: parameters.one_of("equal", &[("time", Equalise::Time), ("ticks", Equalise::Ticks)])?,
            receivers: parameters
                .one_of("receivers", &[("all", Receivers::All), ("light", Receivers::Underloaded)])?,
            misfit: parameters.one_of("coarse", &[("on", Misfit::Replan), ("off", Misfit::StayLate)])?,
            ..Refine::with_tolerance(parameters, tolerance.unwrap_or(EPSILON_MIN))?
        };
        let terms = Terms {
            must_pay: parameters.switch("pay")?,
            smoothing: parameters.number("smoothing", 0.01..=1.0)?,
            speed_noise: parameters.number("speed-noise", 0.0..=1.0)?,
            background_by_idle: true,
            scatters: false,
            ..refine.terms()
        };
        Ok(Self { refine, searches, terms })
    }

    /// The plan with the least epsilon of a grid that leaves no rank overloaded, by bisection.
    fn searched(&self, snapshot: &Snapshot) -> Assignment {
        let start = self.refine.start(snapshot);
        let ends_with = |step: u32| {
            let epsilon = EPSILON_MIN + EPSILON_STEP * f64::from(step);
            let refine = Refine { tolerance: epsilon, settle: epsilon, ..self.refine };
            let plan = if refine.is_due(&start) { refine.refine(snapshot, &start) } else { start.clone() };
            (!refine.is_due(&plan)).then_some(plan)
        };
        // With the last step no rank is overloaded from the beginning. The conversion to an integer saturates, so the
        // one is added before.
        let (mut low, mut high) = (0, (start.level().max(0.0) / EPSILON_STEP + 1.0) as u32);
        let mut best = None;
        while low < high {
            let middle = low + (high - low) / 2;
            match ends_with(middle) {
                Some(plan) => (best, high) = (Some(plan), middle),
                None => low = middle + 1,
            }
        }
        best.unwrap_or(start).assignment.within_memory_or_stay(snapshot, self.refine.background)
    }
}

impl Strategy for RefinePaper {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn assign(&self, snapshot: &Snapshot) -> Assignment {
        if self.searches { self.searched(snapshot) } else { self.refine.assign(snapshot) }
    }

    fn terms(&self) -> Terms {
        self.terms
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ARRAYS;
    use crate::arrays::metrics::{completion_ns, max_ns};
    use crate::arrays::snapshot::RankLoad;
    use crate::arrays::strategy::Background;
    use crate::arrays::synthetic::Workload;
    use crate::rank::Rank;

    /// The text of the paper taken literally.
    const LETTER: &str = "refine-paper,tolerance=0.05,receivers=light";

    fn assign(spec: &str, snapshot: &Snapshot) -> Assignment {
        ARRAYS.parse(spec).expect("listed").assign(snapshot)
    }

    /// Equal chunks of 1 ms, `counts` on the ranks.
    fn held(counts: &[usize]) -> Snapshot {
        let mut snapshot = Workload::Equal.snapshot(counts.iter().sum(), counts.len(), 1);
        let ranks = counts.iter().enumerate().flat_map(|(rank, &count)| std::iter::repeat_n(rank, count));
        for (chunk, rank) in snapshot.chunks.iter_mut().zip(ranks) {
            chunk.rank = Rank(rank as u32);
        }
        snapshot
    }

    fn counts(snapshot: &Snapshot, assignment: &Assignment) -> Vec<usize> {
        let count = |rank| assignment.ranks.iter().filter(|other| other.index() == rank).count();
        (0..snapshot.ranks.len()).map(count).collect()
    }

    #[test]
    fn donors_stop_and_receivers_start_and_stay_outside_of_epsilon() {
        // The average is 100. The donor with 140 gives until it has 105. Of the others, only 70 is below 95, with room
        // for 25.
        let snapshot = held(&[140, 96, 94, 70]);
        assert_eq!(counts(&snapshot, &assign(LETTER, &snapshot)), [114, 96, 95, 95]);
        let all = counts(&snapshot, &assign("refine-paper,tolerance=0.05", &snapshot));
        assert_eq!(all, [105, 99, 98, 98]);
        assert_eq!(counts(&snapshot, &assign("refine-paper", &snapshot)), [100; 4], "the least epsilon");
    }

    #[test]
    fn the_background_is_added_to_the_average_too() {
        // Equation 1: (100 + (100 + 100)) / 2 = 150. Rank 1 gives until it has 57, and the neighbour's 100.
        let mut snapshot = held(&[100, 100]);
        snapshot.ranks[1].background_ns = 100_000_000;
        assert_eq!(counts(&snapshot, &assign(LETTER, &snapshot)), [142, 58]);
        snapshot.ranks[1].share = 0.1;
        assert_eq!(counts(&snapshot, &assign(LETTER, &snapshot)), [142, 58], "the share is not the paper's");
    }

    #[test]
    fn it_stalls_at_three_quarters_of_the_gain_beside_a_neighbour_that_always_runs() {
        let mut snapshot = held(&[1200, 1200]);
        for _ in 0..6 {
            // The neighbour takes as much time as the rank, and then the rest of the phase alone.
            let own: Vec<u64> =
                counts(&snapshot, &Assignment::current(&snapshot)).iter().map(|&n| n as u64).collect();
            let phase_ms = own[0].max(2 * own[1]);
            snapshot.ranks[1] = RankLoad {
                share: 0.5,
                background_ns: (phase_ms - own[1]) * 1_000_000,
                ..RankLoad::default()
            };
            let assignment = assign("refine-paper,tolerance=0.001,receivers=light", &snapshot);
            for (chunk, rank) in snapshot.chunks.iter_mut().zip(assignment.ranks) {
                chunk.rank = rank;
            }
        }
        let ns = |snapshot: &Snapshot| max_ns(snapshot, &Assignment::current(snapshot), Background::Share);
        let (before_ns, paper_ns, best_ns) = (2_400_000_000, ns(&snapshot), 1_600_000_000);
        let part = (before_ns - paper_ns) as f64 / (before_ns - best_ns) as f64;
        assert!((part - 0.75).abs() < 0.01, "{part}");
    }

    #[test]
    fn ticks_are_equal_to_the_letter_and_times_by_default() {
        let mut snapshot = held(&[100, 200]);
        snapshot.ranks[1].speed = 0.5;
        assert_eq!(counts(&snapshot, &assign(&format!("{LETTER},equal=ticks"), &snapshot)), [142, 158]);
        let assignment = assign(LETTER, &snapshot);
        // Fair is 200 ms. The fast rank takes chunks only while it stays light, and the slow rank is still late then.
        let times = completion_ns(&snapshot, &assignment, Background::Additive);
        assert_eq!(times, [190_000_000, 220_000_000]);
    }

    #[test]
    fn what_ticks_are_compared_with_is_in_ticks_too() {
        // At half speed, the heaviest chunk takes longer than either rank would take for its ticks at full speed.
        let mut snapshot = held(&[2, 2]);
        snapshot.ranks.iter_mut().for_each(|rank| rank.speed = 0.5);
        for (chunk, ticks) in snapshot.chunks.iter_mut().zip([10, 8, 1, 1]) {
            chunk.ticks = ticks * 1_000_000;
        }
        let assignment = assign(&format!("{LETTER},equal=ticks,coarse=on"), &snapshot);
        assert_eq!(assignment.ranks, [0, 1, 1, 1].map(Rank));
    }

    #[test]
    fn with_all_changes_it_is_refine() {
        let changes = "tolerance=0.05,settle=0.005,band=0.2,background=share,receivers=all,coarse=on,smoothing=0.5,\
                       speed-noise=0.08,pay=on";
        let changed = ARRAYS.parse(&format!("refine-paper,{changes}")).expect("listed");
        let refine = ARRAYS.parse("refine").expect("listed");
        for workload in Workload::ALL {
            let snapshot = workload.snapshot(288, 32, 1);
            assert_eq!(changed.assign(&snapshot), refine.assign(&snapshot), "{workload:?}");
        }
        assert_eq!(Terms { background_by_idle: false, scatters: true, ..changed.terms() }, refine.terms());
    }

    #[test]
    fn a_stall_is_left_as_it_is() {
        let mut coarse = held(&[8; 10]);
        coarse.ranks[3].speed = 0.5;
        assert_eq!(assign(LETTER, &coarse), Assignment::current(&coarse));
        assert_ne!(assign(&format!("{LETTER},coarse=on"), &coarse), Assignment::current(&coarse));
    }

    #[test]
    fn a_rank_that_is_late_beyond_all_steps_of_epsilon_is_emptied() {
        // The slow rank takes 5 * 10^11 times the fair time, and epsilon has 2^32 steps of 0.001.
        let mut snapshot = held(&[2, 2]);
        [snapshot.ranks[0].speed, snapshot.ranks[1].speed] = [1e6, 1e-6];
        let assignment = assign("refine-paper", &snapshot);
        assert_eq!(counts(&snapshot, &assignment), [4, 0]);
    }

    #[test]
    fn one_neighbour_on_many_ranks_is_seen_by_all_ranks_that_are_not_overloaded() {
        // All ranks but one are 3 % below the average, and a chunk is as much.
        let mut snapshot = held(&[32; 32]);
        snapshot.ranks[31].background_ns = 32_000_000;
        assert_eq!(assign(LETTER, &snapshot), Assignment::current(&snapshot));
        let counts = counts(&snapshot, &assign("refine-paper", &snapshot));
        // Epsilon is 0.001: each of 31 chunks that leave makes a rank as late as the average, 33 ms.
        assert_eq!((counts[31], counts[..31].iter().max()), (1, Some(&33)));
    }
}
