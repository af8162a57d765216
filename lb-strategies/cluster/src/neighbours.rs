//! Neighbours by schedule: who is beside which worker, from when to when, and what that takes from it.

use super::series::{PerWorker, Series};
use lb_strategies::Rank;
use lb_strategies::virtual_time::vcpus::Worker;

/// Somebody who computes beside a worker, or beside each worker of a rank.
///
/// ```
/// use lb_strategies::Rank;
/// use virtual_cluster::Neighbour;
/// let hour = Neighbour { from_s: 600.0, to_s: 4200.0, ..Neighbour::always(Rank(1)) };
/// assert_eq!((hour.worker, hour.duty), (None, 1.0));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Neighbour {
    /// Beside whom.
    pub rank: Rank,
    /// Beside which of the rank's workers; each of them has one if `None`.
    pub worker: Option<u32>,
    /// The moment at which it comes, s.
    pub from_s: f64,
    /// The moment at which it goes, s.
    pub to_s: f64,
    /// The part of a vCPU that it asks for while it is there, 0 to 1.
    pub duty: f64,
}

impl Neighbour {
    /// One beside each worker of `rank`, for ever, that asks for all it can get.
    pub fn always(rank: Rank) -> Self {
        Self { rank, worker: None, from_s: 0.0, to_s: f64::INFINITY, duty: 1.0 }
    }

    fn is_beside(&self, worker: Worker) -> bool {
        self.rank == worker.rank && self.worker.is_none_or(|number| number == worker.number)
    }

    fn is_there(&self, seconds: f64) -> bool {
        self.from_s <= seconds && seconds < self.to_s
    }
}

/// The effect of neighbours on a worker.
///
/// ```
/// use virtual_cluster::Beside;
/// assert_eq!(Beside::Vcpu.share(&[1.0]), 0.5);
/// assert_eq!(Beside::Vcpu.share(&[0.25]), 0.75, "it gets all it asks for");
/// assert_eq!(Beside::Core.share(&[1.0]), 0.47);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// They run on the other hardware thread of its core: a busy one leaves it 0.47 of its speed. Between 2245 and 1020
    /// iterations a second in figure 9 of the RUPER-LB paper.
    Core,
    /// They run on its own vCPU, which the scheduler shares fairly: nobody gets more than they ask for, the rest is shared
    /// equally.
    Vcpu,
}

impl Beside {
    /// The part of its speed that a worker keeps beside neighbours of these duties.
    pub fn share(self, duties: &[f64]) -> f64 {
        match self {
            Self::Core => 1.0 - 0.53 * duties.iter().sum::<f64>().min(1.0),
            Self::Vcpu => fair_share(duties.to_vec()),
        }
    }

    /// The share of each worker over time, where ranks have so many workers each.
    pub fn shares(self, workers: &[u32], neighbours: &[Neighbour]) -> PerWorker {
        PerWorker::new(workers, |worker| {
            let beside = neighbours.iter().filter(|neighbour| neighbour.is_beside(worker));
            let beside: Vec<&Neighbour> = beside.collect();
            let mut changes: Vec<f64> = beside.iter().flat_map(|there| [there.from_s, there.to_s]).collect();
            changes.retain(|change| change.is_finite());
            changes.sort_by(f64::total_cmp);
            let share = |seconds: f64| {
                let there = beside.iter().filter(|neighbour| neighbour.is_there(seconds));
                self.share(&there.map(|neighbour| neighbour.duty).collect::<Vec<_>>())
            };
            let begin = Series::constant(share(0.0));
            changes.into_iter().fold(begin, |series, change| series.then(change, share(change)))
        })
    }
}

/// The part of a vCPU for a process that always wants to run and shares it with processes of these duties.
///
/// The scheduler gives nobody more than they ask for, and shares the rest equally: whoever asks for less than an equal
/// part is served in full, smallest first.
///
/// ```
/// use virtual_cluster::neighbours::fair_share;
/// assert_eq!(fair_share(vec![1.0]), 0.5);
/// assert_eq!(fair_share(vec![0.2]), 0.8);
/// ```
pub fn fair_share(mut duties: Vec<f64>) -> f64 {
    duties.sort_by(f64::total_cmp);
    let (mut left, mut claimants) = (1.0, duties.len() + 1);
    for duty in duties {
        if duty > left / claimants as f64 {
            break;
        }
        left -= duty;
        claimants -= 1;
    }
    left / claimants as f64
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "the sums are exact, or are to be the same to the bit")]
mod tests {
    use super::*;
    use lb_strategies::pools::machine::SECOND;

    #[test]
    fn a_neighbour_takes_from_those_beside_it_while_it_is_there() {
        let neighbours = [
            Neighbour { worker: Some(1), from_s: 10.0, to_s: 20.0, ..Neighbour::always(Rank(1)) },
            Neighbour { from_s: 15.0, duty: 0.25, ..Neighbour::always(Rank(1)) },
        ];
        let shares = Beside::Vcpu.shares(&[2, 2], &neighbours);
        let share =
            |rank, number, seconds| shares.of(Worker { rank: Rank(rank), number }).at(seconds * SECOND).0;
        assert_eq!([share(0, 0, 15), share(0, 1, 15), share(1, 0, 14)], [1.0; 3]);
        assert_eq!([9, 10, 15, 20].map(|seconds| share(1, 1, seconds)), [1.0, 0.5, 0.375, 0.75]);
        assert_eq!(share(1, 0, 15), 0.75);
    }

    #[test]
    fn nobody_gets_more_than_they_ask_for() {
        assert_eq!(fair_share(vec![]), 1.0);
        assert_eq!(fair_share(vec![1.0, 1.0]), 1.0 / 3.0);
        assert_eq!(fair_share(vec![0.9, 0.1]), 0.45);
        assert!((Beside::Core.share(&[0.5, 0.7]) - 0.47).abs() < 1e-12, "a hardware thread is at most busy");
    }
}
