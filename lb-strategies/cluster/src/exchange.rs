//! Computes when all workers have the parts of a step (results that each worker computed), for five kinds of exchange.
//!
//! The first three are also in production (`caribou::supersteps::Exchange`). Programs with MPI use the last two, as in
//! Al-Ameedi and Fanfakh (2021). A worker's link carries one message at a time in each direction, and both directions
//! at once.

/// How the parts of a step reach all workers.
///
/// ```
/// use virtual_cluster::{Exchange, Part, Wire};
/// // Two workers that are through after 1 s and 2 s, 10 MB each, 1 ms and 1 GB/s.
/// let parts = [1.0, 2.0].map(|at_s| (at_s, 1e7));
/// let parts = [0, 1].map(|by| Part { by, at_s: parts[by].0, bytes: parts[by].1 });
/// let wire = Wire { delay_s: 1e-3, bytes_per_s: 1e9 };
/// let arrivals = Exchange::Direct.arrival_times(&parts, wire, 2);
/// assert!((arrivals[0] - 2.011).abs() < 1e-9);
/// assert_eq!(arrivals[1], 2.0, "the second is the last itself");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Exchange {
    /// Each worker sends its part to all others.
    #[default]
    Direct,
    /// Each worker passes parts to the next one, like `MPI_Sendrecv` in P - 1 rounds.
    Ring,
    /// All parts go to the first worker, which sends all together to each worker.
    Gather,
    /// `MPI_Send` to each other worker, then `MPI_Recv` from it. A link is never used in both directions at once.
    Blocking,
    /// `MPI_Allgatherv` by doubling: in each of log2 P rounds, each worker gets twice as much as in the round before.
    Doubling,
}

/// The result of one worker.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part {
    /// The worker.
    pub by: usize,
    /// When the worker had computed it, s.
    pub at_s: f64,
    /// Size of the part.
    pub bytes: f64,
}

/// The link of a worker.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wire {
    /// The time of a message without content, s.
    pub delay_s: f64,
    /// Rate in each direction.
    pub bytes_per_s: f64,
}

impl Exchange {
    /// When each of `workers` workers has all parts, s. O(parts x workers); [`Direct`](Self::Direct) has a further
    /// logarithm.
    pub fn arrival_times(self, parts: &[Part], wire: Wire, workers: usize) -> Vec<f64> {
        let Wire { delay_s, bytes_per_s } = wire;
        let seconds = |bytes: f64| bytes / bytes_per_s;
        let last = parts.iter().map(|part| part.at_s).fold(0.0, f64::max);
        let all: f64 = parts.iter().map(|part| seconds(part.bytes)).sum();
        let rounds = workers.saturating_sub(1) as f64;
        let everywhere = |time: f64| vec![time; workers];
        if workers <= 1 {
            return everywhere(last);
        }
        match self {
            Self::Direct if all == 0.0 => direct_without_bytes(parts, delay_s, workers),
            Self::Direct => direct(parts, wire, workers),
            Self::Ring => {
                let mut arrivals = vec![0.0_f64; workers];
                for part in parts {
                    for hops in 0..workers {
                        let to = (part.by + hops) % workers;
                        let at = part.at_s + hops as f64 * (delay_s + seconds(part.bytes));
                        arrivals[to] = arrivals[to].max(at);
                    }
                }
                arrivals
            }
            Self::Gather => {
                let others = parts.iter().filter(|part| part.by != 0);
                let first = others.clone().map(|part| part.at_s).fold(f64::INFINITY, f64::min);
                let taken = first + delay_s + others.map(|part| seconds(part.bytes)).sum::<f64>();
                let together = parts.iter().filter(|part| part.by != 0).map(|part| part.at_s + delay_s);
                let together =
                    together.chain([taken, last]).filter(|time| time.is_finite()).fold(0.0, f64::max);
                let to = |to: usize| if to == 0 { together } else { together + delay_s + to as f64 * all };
                (0..workers).map(to).collect()
            }
            Self::Blocking => everywhere(last + 2.0 * rounds * delay_s + 2.0 * rounds * all / workers as f64),
            Self::Doubling => {
                let doublings = f64::from(workers.next_power_of_two().ilog2());
                everywhere(last + doublings * delay_s + rounds * all / workers as f64)
            }
        }
    }
}

/// The same as [`direct`] for parts that take no time on a link, in O(parts + workers): a worker has its own parts at once, and
/// the last part of the others after the delay.
fn direct_without_bytes(parts: &[Part], delay_s: f64, workers: usize) -> Vec<f64> {
    // The last part of all, and the last one of any other worker.
    let (mut last, mut other): (Option<Part>, Option<Part>) = (None, None);
    for &part in parts {
        match last {
            Some(known) if known.at_s >= part.at_s => {
                if known.by != part.by && other.is_none_or(|other| other.at_s < part.at_s) {
                    other = Some(part);
                }
            }
            Some(known) if known.by == part.by => last = Some(part),
            _ => (last, other) = (Some(part), last),
        }
    }
    let mut arrivals: Vec<f64> = (0..workers)
        .map(|to| if last.is_some_and(|last| last.by == to) { other } else { last })
        .map(|part| part.map_or(0.0, |part| part.at_s + delay_s))
        .collect();
    for part in parts {
        arrivals[part.by] = arrivals[part.by].max(part.at_s);
    }
    arrivals
}

fn direct(parts: &[Part], Wire { delay_s, bytes_per_s }: Wire, workers: usize) -> Vec<f64> {
    let mut arrivals = vec![0.0_f64; workers];
    // The times until which each link is busy with sending and with receiving.
    let (mut sent, mut taken) = (vec![0.0_f64; workers], vec![0.0_f64; workers]);
    let mut messages = Vec::with_capacity(parts.len() * workers);
    let mut order: Vec<&Part> = parts.iter().collect();
    order.sort_by(|one, other| one.at_s.total_cmp(&other.at_s));
    for part in order {
        let length = part.bytes / bytes_per_s;
        // Each worker begins with the next one, so that not all send to the first worker at once.
        for to in (1..workers).map(|step| (part.by + step) % workers) {
            sent[part.by] = sent[part.by].max(part.at_s) + length;
            messages.push((sent[part.by] + delay_s, length, to));
        }
        arrivals[part.by] = arrivals[part.by].max(part.at_s);
    }
    messages.sort_by(|one, other| one.0.total_cmp(&other.0));
    for (at, length, to) in messages {
        taken[to] = (taken[to] + length).max(at);
        arrivals[to] = arrivals[to].max(taken[to]);
    }
    arrivals
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIRE: Wire = Wire { delay_s: 1e-3, bytes_per_s: 1e6 };

    const WIRE_OF_HALF_A_SECOND: Wire = Wire { delay_s: 0.5, bytes_per_s: 1e6 };

    /// When the last worker has all parts, if all have computed 1 kB at the same time.
    fn last(exchange: Exchange, workers: usize) -> f64 {
        let parts: Vec<Part> = (0..workers).map(|by| Part { by, at_s: 1.0, bytes: 1e3 }).collect();
        let arrivals = exchange.arrival_times(&parts, WIRE, workers);
        assert_eq!(arrivals.len(), workers);
        (arrivals.into_iter().fold(0.0, f64::max) * 1e6).round() / 1e6
    }

    #[test]
    fn each_way_has_its_rounds_and_the_bytes_that_pass_a_link() {
        // Of four: three messages out and in; three hops; 3 in, then 3 times all 4 out; 3 out and 3 in; two rounds.
        let ways =
            [Exchange::Direct, Exchange::Ring, Exchange::Gather, Exchange::Blocking, Exchange::Doubling];
        let times: Vec<f64> = ways.iter().map(|way| last(*way, 4)).collect();
        assert_eq!(times, [1.004, 1.006, 1.017, 1.012, 1.005]);
        assert!(ways.iter().all(|way| Some(last(*way, 1)) == Some(1.0)), "alone nothing is sent");
    }

    #[test]
    fn parts_without_bytes_arrive_as_if_they_passed_the_links() {
        // Ties, several parts of one worker, and workers without a part.
        for of in
            [vec![(0, 1.0), (1, 3.0), (2, 3.0)], vec![(1, 5.0), (1, 4.0), (0, 4.5)], vec![(2, 1.0)], vec![]]
        {
            let parts: Vec<Part> = of.iter().map(|&(by, at_s)| Part { by, at_s, bytes: 0.0 }).collect();
            assert_eq!(
                direct_without_bytes(&parts, 0.5, 4),
                direct(&parts, WIRE_OF_HALF_A_SECOND, 4),
                "{parts:?}"
            );
        }
    }

    #[test]
    fn nobody_has_all_before_the_last_is_through() {
        let parts = [0.0, 5.0, 1.0].map(|at_s| Part { by: (at_s as usize) % 3, at_s, bytes: 0.0 });
        for way in
            [Exchange::Direct, Exchange::Ring, Exchange::Gather, Exchange::Blocking, Exchange::Doubling]
        {
            let arrivals = way.arrival_times(&parts, WIRE, 3);
            assert!(arrivals.iter().all(|&at| at >= 5.0), "{way:?}: {arrivals:?}");
        }
    }
}
