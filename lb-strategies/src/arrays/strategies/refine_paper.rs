//! `refine-paper` is Algorithm 1 of the refinement paper (see [`refine`](super::refine)), unchanged. It shows what each
//! change of [`Refine`] is worth.
//!
//! Loads are measured in the last phase. Background load is by equation 2, and constant when chunks move (equation 1).
//! Ranks above the average by more than epsilon give chunks, heaviest first. Receivers are below the average by more
//! than epsilon and stay so (equation 3). Every plan is carried out. If no chunk fits, the donor stays late.
//!
//! Each parameter switches on one change of [`Refine`]:
//!
//! | parameter | change |
//! |---|---|
//! | `background=share` | another process on the vCPU takes a share of the rank's time, not a constant time |
//! | `settle=0.005` | once something moves, donors are drained nearer to the average than epsilon |
//! | `receivers=all` | every rank that is not overloaded receives, up to the level of donors |
//! | `band=0.2` | of about equal chunks, the one with the index nearest to the receiver goes |
//! | `coarse=on` | the placement is planned anew where no chunk fits a receiver |
//! | `smoothing=0.5` | loads are smoothed over the last phases |
//! | `speed-noise=0.08` | a small difference of speed is ignored |
//! | `pay=on` | a plan is dropped if moving takes longer than it saves |
//!
//! The paper does not define two things. *Epsilon*: here a part of the average. *The quantity to equalise*: equation 3
//! taken literally compares ticks (`equal=ticks`). That would give a slow vCPU as much work as a fast one, and could
//! not have shortened the paper's runs on unequal hosts. By default, completion times are equalised, as in [`Refine`].
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

/// The entry in the table of strategies.
pub const ENTRY: Entry<dyn Strategy> = Entry {
    name: "refine-paper",
    summary: "Algorithm 1 of the refinement paper; each parameter switches on one change that refine makes",
    parameters: &[
        Parameter {
            name: "tolerance",
            default: "0.05",
            meaning: "the paper's epsilon, as a part of the average",
        },
        Parameter {
            name: "settle",
            default: "tolerance",
            meaning: "part above the average to which ranks are brought down, or tolerance; refine: 0.005",
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
            default: "light",
            meaning: "ranks that receive chunks: light (underloaded before and after), or all that are not overloaded; refine: all",
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
/// assert_eq!((moved("refine-paper"), moved("refine")), (53, 43));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct RefinePaper {
    /// The algorithm.
    pub refine: Refine,
    /// The terms of the strategy.
    pub terms: Terms,
}

impl RefinePaper {
    fn from_parameters(parameters: &Parameters) -> Result<Self, ParseError> {
        let refine = Refine {
            equalise: parameters.one_of("equal", &[("time", Equalise::Time), ("ticks", Equalise::Ticks)])?,
            receivers: parameters
                .one_of("receivers", &[("all", Receivers::All), ("light", Receivers::Underloaded)])?,
            misfit: parameters.one_of("coarse", &[("on", Misfit::Replan), ("off", Misfit::StayLate)])?,
            ..Refine::from_parameters(parameters)?
        };
        let terms = Terms {
            must_pay: parameters.switch("pay")?,
            smoothing: parameters.number("smoothing", 0.01..=1.0)?,
            speed_noise: parameters.number("speed-noise", 0.0..=1.0)?,
            background_by_idle: true,
            scatters: false,
            ..refine.terms()
        };
        Ok(Self { refine, terms })
    }
}

impl Strategy for RefinePaper {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn assign(&self, snapshot: &Snapshot) -> Assignment {
        self.refine.assign(snapshot)
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
        assert_eq!(counts(&snapshot, &assign("refine-paper", &snapshot)), [114, 96, 95, 95]);
        assert_eq!(counts(&snapshot, &assign("refine-paper,receivers=all", &snapshot)), [105, 99, 98, 98]);
    }

    #[test]
    fn the_background_is_added_to_the_average_too() {
        // Equation 1: (100 + (100 + 100)) / 2 = 150. Rank 1 gives until it has 57, and the neighbour's 100.
        let mut snapshot = held(&[100, 100]);
        snapshot.ranks[1].background_ns = 100_000_000;
        assert_eq!(counts(&snapshot, &assign("refine-paper", &snapshot)), [142, 58]);
        snapshot.ranks[1].share = 0.1;
        assert_eq!(
            counts(&snapshot, &assign("refine-paper", &snapshot)),
            [142, 58],
            "the share is not the paper's"
        );
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
            let assignment = assign("refine-paper,tolerance=0.001", &snapshot);
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
        assert_eq!(counts(&snapshot, &assign("refine-paper,equal=ticks", &snapshot)), [142, 158]);
        let assignment = assign("refine-paper", &snapshot);
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
        let assignment = assign("refine-paper,equal=ticks,coarse=on", &snapshot);
        assert_eq!(assignment.ranks, [0, 1, 1, 1].map(Rank));
    }

    #[test]
    fn with_all_changes_it_is_refine() {
        let changes = "settle=0.005,band=0.2,background=share,receivers=all,coarse=on,smoothing=0.5,\
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
        assert_eq!(assign("refine-paper", &coarse), Assignment::current(&coarse));
        assert_ne!(assign("refine-paper,coarse=on", &coarse), Assignment::current(&coarse));
    }
}
