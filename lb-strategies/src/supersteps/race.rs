//! Computes the time of a group of workers that compute copies of each other's jobs.
//!
//! Each worker begins with its own job, and continues with the next in a circle. When one worker finishes a job, the
//! others stop computing it. In Dobber et al. (2008, section 3.2, eq. 8 and 9), all workers begin with the same job.
//! There a group of equal workers takes as long as one worker that computes all jobs in turn. Here it takes as long as
//! one job, because each worker finishes its own and starts no copy.

/// Seconds until all jobs of a group are finished and all workers have the message of it.
///
/// `seconds[worker][job]` is the time of a worker for a whole job. `word` is the time, s, of the message to the others
/// that a job is finished. O(workers^3).
///
/// # Panics
/// If a worker lacks the time for a job, or a time is NaN. There are as many jobs as workers.
///
/// ```
/// use lb_strategies::supersteps::race;
/// // The first finishes its own job after 1 s, and that of the second, which is slow, after 2 s.
/// assert_eq!(race(&[vec![1.0, 1.0], vec![10.0, 10.0]], 0.0), 2.0);
/// assert_eq!(race(&[vec![1.0, 1.0], vec![1.0, 1.0]], 0.0), 1.0, "equals do their own");
/// ```
pub fn race(seconds: &[Vec<f64>], word: f64) -> f64 {
    Race::run(&vec![0.0; seconds.len()], word, |worker, job, since| since + seconds[worker][job]).end()
}

/// The course of a race that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Race {
    /// The first worker that finished each job, and the time.
    pub finished: Vec<(usize, f64)>,
    /// The attempts of workers, in the order of their ends.
    pub attempts: Vec<Attempt>,
    notify_s: f64,
}

/// The time in which a worker computes a job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attempt {
    /// The worker.
    pub worker: usize,
    /// The job.
    pub job: usize,
    /// When the worker began.
    pub since: f64,
    /// When the worker finished the job or stopped computing it.
    pub until: f64,
    /// When the worker would have finished the job alone.
    pub end: f64,
}

impl Race {
    /// Runs a race of workers that begin at these times. `ends` returns the time at which a worker finishes a job that
    /// it begins at a time. `word` is the time of the message that a job is finished. O(workers^3).
    pub fn run(begins: &[f64], word: f64, mut ends: impl FnMut(usize, usize, f64) -> f64) -> Self {
        let workers = begins.len();
        let mut finished: Vec<Option<(usize, f64)>> = vec![None; workers];
        let mut attempts = Vec::with_capacity(workers);
        let mut attempt = |worker, job, since| {
            let end = ends(worker, job, since);
            Attempt { worker, job, since, until: end, end }
        };
        let knows = |finished: &[Option<(usize, f64)>], worker: usize, job: usize| {
            finished[job].map_or(f64::INFINITY, |(by, at)| if by == worker { at } else { at + word })
        };
        // A worker that has finished a job needs no message, even if another was first. No worker does a job twice.
        let mut through = vec![vec![false; workers]; workers];
        let mut hands: Vec<Option<Attempt>> =
            (0..workers).map(|worker| Some(attempt(worker, worker, begins[worker]))).collect();
        loop {
            let over = |hand: &Attempt| Attempt {
                until: hand.end.min(knows(&finished, hand.worker, hand.job)).max(hand.since),
                ..*hand
            };
            let over =
                hands.iter().flatten().map(over).min_by(|one, other| one.until.total_cmp(&other.until));
            let Some(done) = over else { break };
            let Attempt { worker, job, until: now, .. } = done;
            if done.end <= now {
                finished[job].get_or_insert((worker, now));
                through[worker][job] = true;
            }
            attempts.push(done);
            let mut circle = (1..=workers).map(|step| (worker + step) % workers);
            let next = circle.find(|&other| !through[worker][other] && knows(&finished, worker, other) > now);
            hands[worker] = next.map(|job| attempt(worker, job, now));
        }
        let finished = finished.into_iter().map(|job| job.expect("somebody finished it")).collect();
        Self { finished, attempts, notify_s: word }
    }

    /// When a worker has the message that a job is finished.
    pub fn knows(&self, worker: usize, job: usize) -> f64 {
        let (by, at) = self.finished[job];
        if by == worker { at } else { at + self.notify_s }
    }

    /// When all workers have the messages of all jobs.
    pub fn end(&self) -> f64 {
        let workers = self.finished.len();
        let all = (0..workers).flat_map(|worker| (0..workers).map(move |job| (worker, job)));
        all.map(|(worker, job)| self.knows(worker, job)).fold(0.0, f64::max)
    }
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
    fn dropped_jobs_and_late_workers_are_reported() {
        let race = Race::run(&[0.0, 5.0], 0.5, |_, _, since| since + 2.0);
        // The first worker does both jobs. The second begins the next job when it gets the message.
        assert_eq!(race.finished, [(0, 2.0), (0, 4.0)]);
        assert_eq!(Some(race.end()), Some(4.5));
        let late = Attempt { worker: 1, job: 1, since: 5.0, until: 5.0, end: 7.0 };
        assert_eq!(race.attempts.last(), Some(&late));
    }

    #[test]
    fn jobs_without_units_are_over_at_once() {
        let race = Race::run(&[0.0; 4], 0.5, |_, _, since| since);
        assert_eq!(Some(race.end()), Some(0.5));
        assert_eq!(race.attempts.len(), 16, "nobody does a job twice");
    }

    #[test]
    fn the_word_takes_its_time() {
        // The first worker finishes both jobs after 2 s, and the message takes 0.25 s.
        assert_eq!(Some(race(&[vec![1.0, 1.0], vec![9.0, 9.0]], 0.25)), Some(2.25));
    }
}
