//! Models neighbours: processes beside a worker, when they are present, and the time that they take from the worker.

use lb_strategies::Rank;
use lb_strategies::pools::machine::{Nanos, SECOND};
use lb_strategies::virtual_time::on_off::OnOff;
use lb_strategies::virtual_time::vcpus::{Vcpus, Worker};

/// A process that computes beside one worker, or one process beside each worker of a rank.
///
/// ```
/// use lb_strategies::Rank;
/// use virtual_cluster::{Neighbour, Presence};
/// let presence = Presence::Between { from_s: 600.0, to_s: 4200.0 };
/// let hour = Neighbour { presence, ..Neighbour::always(Rank(1)) };
/// assert_eq!((hour.worker, hour.duty), (None, 1.0));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Neighbour {
    /// The rank beside which it computes.
    pub rank: Rank,
    /// The worker of the rank; with `None`, each worker of the rank has such a neighbour.
    pub worker: Option<u32>,
    /// The time in which it is present.
    pub presence: Presence,
    /// The part of a vCPU that it wants while it is present, 0 to 1.
    pub duty: f64,
}

/// The time in which a neighbour is present.
///
/// ```
/// use virtual_cluster::Presence;
/// let mut minute = Presence::Between { from_s: 60.0, to_s: 120.0 };
/// assert_eq!(minute.at(0), (false, 60_000_000_000));
/// assert_eq!(minute.at(60_000_000_000), (true, 120_000_000_000));
/// assert_eq!(minute.at(120_000_000_000), (false, u64::MAX));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Presence {
    /// Once, between two times.
    Between {
        /// Time at which it comes, s.
        from_s: f64,
        /// Time at which it leaves, s; may be infinite.
        to_s: f64,
    },
    /// Repeatedly, at random.
    Random(OnOff),
}

impl Neighbour {
    /// A neighbour beside each worker of `rank`, present forever, that wants all the CPU time it can get.
    pub fn always(rank: Rank) -> Self {
        let presence = Presence::Between { from_s: 0.0, to_s: f64::INFINITY };
        Self { rank, worker: None, presence, duty: 1.0 }
    }

    fn is_beside(&self, worker: Worker) -> bool {
        self.rank == worker.rank && self.worker.is_none_or(|number| number == worker.number)
    }
}

impl Presence {
    /// Whether the neighbour is present at `now`, and until when this holds (`Nanos::MAX` for forever).
    pub fn at(&mut self, now: Nanos) -> (bool, Nanos) {
        match self {
            Self::Between { from_s, to_s } => {
                // A float beyond the range of the integer becomes its greatest value.
                let [from, to] = [*from_s, *to_s].map(|seconds| (seconds * SECOND as f64).round() as Nanos);
                match now {
                    _ if now < from => (false, from),
                    _ if now < to => (true, to),
                    _ => (false, Nanos::MAX),
                }
            }
            Self::Random(schedule) => schedule.at(now),
        }
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
    /// They run on the other hardware thread of the worker's core. A busy one leaves the worker 0.47 of its speed:
    /// between 2245 and 1020 iterations per second in figure 9 of the RUPER-LB paper.
    Core,
    /// They run on the worker's vCPU, which the scheduler shares fairly. No process gets more than it wants, and the
    /// rest is divided equally.
    Vcpu,
}

impl Beside {
    /// The part of its speed that a worker keeps beside neighbours that want these parts of a vCPU.
    pub fn share(self, duties: &[f64]) -> f64 {
        match self {
            Self::Core => 1.0 - 0.53 * duties.iter().sum::<f64>().min(1.0),
            Self::Vcpu => fair_share(duties.to_vec()),
        }
    }

    /// The share of each worker over time.
    pub fn shares(self, neighbours: &[Neighbour]) -> NeighbourShares {
        let mut by_rank = neighbours.to_vec();
        by_rank.sort_by_key(|neighbour| neighbour.rank);
        NeighbourShares { beside: self, by_rank }
    }
}

/// The part of its speed that each worker keeps beside neighbours, as a function of time.
///
/// A part is computed when it is read, because the schedule of a random neighbour has no end.
/// O(log neighbours + neighbours of the rank).
///
/// ```
/// use lb_strategies::{Rank, virtual_time::OnOff};
/// use virtual_cluster::{Beside, Neighbour, Presence, Vcpus, Worker};
/// let random = Neighbour { presence: Presence::Random(OnOff::new(7)), ..Neighbour::always(Rank(0)) };
/// let mut shares = Beside::Vcpu.shares(&[random]);
/// let worker = Worker { rank: Rank(0), number: 0 };
/// let (share, until) = shares.speed(worker, 0);
/// assert_eq!((share, shares.speed(worker, until).0), (1.0, 0.5));
/// ```
#[derive(Clone, Debug)]
pub struct NeighbourShares {
    beside: Beside,
    /// In the order of ranks.
    by_rank: Vec<Neighbour>,
}

impl Vcpus for NeighbourShares {
    fn speed(&mut self, worker: Worker, now: Nanos) -> (f64, Nanos) {
        let (mut duties, mut until) = (Vec::new(), Nanos::MAX);
        let first = self.by_rank.partition_point(|neighbour| neighbour.rank < worker.rank);
        let of_rank = self.by_rank[first..].iter_mut().take_while(|neighbour| neighbour.rank == worker.rank);
        for neighbour in of_rank.filter(|neighbour| neighbour.is_beside(worker)) {
            let (is_there, holds_until) = neighbour.presence.at(now);
            if is_there {
                duties.push(neighbour.duty);
            }
            until = until.min(holds_until);
        }
        (self.beside.share(&duties), until)
    }
}

/// The part of a vCPU for a process that always wants to run, beside processes that want these parts.
///
/// The scheduler gives no process more than it wants, and divides the rest equally. Processes that want less than an
/// equal part get all they want, smallest first.
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
    fn between(from_s: f64, to_s: f64) -> Presence {
        Presence::Between { from_s, to_s }
    }

    #[test]
    fn a_neighbour_takes_from_those_beside_it_while_it_is_there() {
        let always = Neighbour::always(Rank(1));
        let neighbours = [
            Neighbour { worker: Some(1), presence: between(10.0, 20.0), ..always.clone() },
            Neighbour { presence: between(15.0, f64::INFINITY), duty: 0.25, ..always },
        ];
        let mut shares = Beside::Vcpu.shares(&neighbours);
        let mut share =
            |rank, number, seconds| shares.speed(Worker { rank: Rank(rank), number }, seconds * SECOND).0;
        assert_eq!([share(0, 0, 15), share(0, 1, 15), share(1, 0, 14)], [1.0; 3]);
        assert_eq!([9, 10, 15, 20].map(|seconds| share(1, 1, seconds)), [1.0, 0.5, 0.375, 0.75]);
        assert_eq!(share(1, 0, 15), 0.75);
    }

    #[test]
    fn a_random_neighbour_follows_its_schedule_beside_another() {
        let mut schedule = OnOff::new(7);
        let random = Presence::Random(schedule.clone());
        let always = Neighbour::always(Rank(0));
        let mut shares = Beside::Vcpu.shares(&[Neighbour { presence: random, ..always.clone() }, always]);
        let mut now = 0;
        for _ in 0..100 {
            let (busy, until) = schedule.at(now);
            let share = if busy { 1.0 / 3.0 } else { 0.5 };
            assert_eq!(shares.speed(Worker { rank: Rank(0), number: 0 }, now), (share, until));
            now = until;
        }
    }

    #[test]
    fn nobody_gets_more_than_they_ask_for() {
        assert_eq!(fair_share(vec![]), 1.0);
        assert_eq!(fair_share(vec![1.0, 1.0]), 1.0 / 3.0);
        assert_eq!(fair_share(vec![0.9, 0.1]), 0.45);
        assert!((Beside::Core.share(&[0.5, 0.7]) - 0.47).abs() < 1e-12, "a hardware thread is at most busy");
    }
}
