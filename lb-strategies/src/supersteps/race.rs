//! The time of a group of workers that race for its jobs.
//!
//! Each worker begins with its own job and goes on with the next in a circle; whoever finishes a job makes the others
//! drop it. In dlb-jr.txt (section 3.2, eq. 8 and 9) all begin with the same job, so that a group of equals takes as
//! long as one of them for all jobs; here it takes as long as each for its own, and copies cost only where somebody is
//! late.

/// Seconds until all jobs of a group are finished and everybody knows.
///
/// `seconds[worker][job]` is what a worker takes for a whole job, above 0; `word` how long the word that a job is
/// finished takes to the others, s. Takes O(workers^3).
///
/// ```
/// use lb_strategies::supersteps::race;
/// // The first finishes its own job after 1 s, and that of the second, which is slow, after 2 s.
/// assert_eq!(race(&[vec![1.0, 1.0], vec![10.0, 10.0]], 0.0), 2.0);
/// assert_eq!(race(&[vec![1.0, 1.0], vec![1.0, 1.0]], 0.0), 1.0, "equals do their own");
/// ```
pub fn race(seconds: &[Vec<f64>], word: f64) -> f64 {
    let workers = seconds.len();
    // Who finished each job, and when.
    let mut finished: Vec<Option<(usize, f64)>> = vec![None; workers];
    // The job in the hands of each worker, and since when.
    let mut hands: Vec<Option<(usize, f64)>> = (0..workers).map(|worker| Some((worker, 0.0))).collect();
    let knows = |finished: &[Option<(usize, f64)>], worker: usize, job: usize| {
        finished[job].map_or(f64::INFINITY, |(by, at)| if by == worker { at } else { at + word })
    };
    loop {
        let ends = |worker: usize| {
            let (job, since) = hands[worker]?;
            Some(((since + seconds[worker][job]).min(knows(&finished, worker, job)), worker, job))
        };
        let Some((now, worker, job)) =
            (0..workers).filter_map(ends).min_by(|one, other| one.0.total_cmp(&other.0))
        else {
            break;
        };
        finished[job].get_or_insert((worker, now));
        let mut next = (1..=workers).map(|step| (worker + step) % workers);
        hands[worker] = next.find(|&other| knows(&finished, worker, other) > now).map(|other| (other, now));
    }
    let all = (0..workers).flat_map(|worker| (0..workers).map(move |job| (worker, job)));
    all.map(|(worker, job)| knows(&finished, worker, job)).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_cost_nothing_among_equals_and_save_what_one_is_late() {
        assert_eq!(Some(race(&vec![vec![2.0; 4]; 4], 0.1)), Some(2.1));
        let mut one_late = vec![vec![1.0; 4]; 4];
        one_late[3] = vec![100.0; 4];
        assert_eq!(Some(race(&one_late, 0.0)), Some(2.0));
        assert_eq!(Some(race(&[vec![3.0]], 0.5)), Some(3.0), "alone");
    }

    #[test]
    fn the_word_takes_its_time() {
        // The first is through with both after 2 s; the other hears of it then.
        assert_eq!(Some(race(&[vec![1.0, 1.0], vec![9.0, 9.0]], 0.25)), Some(2.25));
    }
}
