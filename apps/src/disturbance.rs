//! What is done to a run on purpose: busy neighbours and CPU quotas, and how much a perfect balancer could win back.
//!
//! Pure: it parses the two options and does the arithmetic. The processes are in `neighbour`, the cgroups in `quota`.

use lb_strategies::cluster::neighbours::fair_share;
use serde::Serialize;

/// `RANK[:FROM-TO][:DUTY]`: a busy process beside a rank, during some iterations.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NeighbourSpec {
    /// Whose vCPU it shares.
    pub rank: u32,
    /// Starts when this many iterations are complete.
    pub from: u32,
    /// Ends when this many iterations are complete; `None` for the whole run.
    pub to: Option<u32>,
    /// The part of the vCPU it asks for, above 0 and up to 1.
    pub duty: f64,
}

/// `RANK:PERCENT`: a limit on the CPU time of a rank's workers, for the whole run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QuotaSpec {
    /// Whose workers are limited.
    pub rank: u32,
    /// The part of its vCPUs they may use, above 0 and below 1.
    pub share: f64,
}

/// Everything done to a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Disturbances {
    /// Busy neighbours.
    pub neighbours: Vec<NeighbourSpec>,
    /// CPU quotas.
    pub quotas: Vec<QuotaSpec>,
}

/// Iterations `from..to` in which the same disturbances act.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Window {
    /// First iteration.
    pub from: u32,
    /// One past the last iteration.
    pub to: u32,
    /// What acts, in words.
    pub label: String,
    /// Whether anything acts at all.
    pub disturbed: bool,
}

impl NeighbourSpec {
    /// Reads `RANK[:FROM-TO][:DUTY]`.
    ///
    /// ```
    /// use caribou_apps::disturbance::NeighbourSpec;
    /// let spec = NeighbourSpec::parse("1:100-300:50%")?;
    /// assert_eq!((spec.rank, spec.from, spec.to, spec.duty), (1, 100, Some(300), 0.5));
    /// # Ok::<(), String>(())
    /// ```
    ///
    /// # Errors
    /// A sentence that says which part was not understood.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = text.split(':');
        let rank = parse_rank(parts.next().unwrap_or_default())?;
        let mut spec = Self { rank, from: 0, to: None, duty: 1.0 };
        let mut rest: Vec<&str> = parts.collect();
        if let Some((from, to)) = rest.first().and_then(|part| part.split_once('-')) {
            let iteration = |text: &str| {
                text.parse::<u32>()
                    .map_err(|_| format!("`{text}` is not an iteration, expected FROM-TO as in 100-300"))
            };
            (spec.from, spec.to) = (iteration(from)?, Some(iteration(to)?));
            if spec.to <= Some(spec.from) {
                return Err(format!("the window {from}-{to} is empty"));
            }
            rest.remove(0);
        }
        match rest[..] {
            [] => {}
            [duty] => spec.duty = parse_share(duty)?,
            _ => return Err("expected RANK[:FROM-TO][:DUTY]".to_owned()),
        }
        Ok(spec)
    }

    /// Whether it runs during `iteration`.
    #[must_use]
    pub fn acts(&self, iteration: u32) -> bool {
        self.from <= iteration && self.to.is_none_or(|to| iteration < to)
    }
}

impl QuotaSpec {
    /// Reads `RANK:PERCENT`.
    ///
    /// # Errors
    /// A sentence that says which part was not understood.
    pub fn parse(text: &str) -> Result<Self, String> {
        let Some((rank, percent)) = text.split_once(':') else {
            return Err("expected RANK:PERCENT as in 1:50".to_owned());
        };
        let percent = percent.trim_end_matches('%');
        match percent.parse::<f64>() {
            Ok(value) if (10.0..100.0).contains(&value) => {
                Ok(Self { rank: parse_rank(rank)?, share: value / 100.0 })
            }
            _ => Err(format!(
                "`{percent}` is not a quota, expected a percentage from 10 up to, not including, 100"
            )),
        }
    }
}

impl Disturbances {
    /// Whether nothing is done to the run.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.neighbours.is_empty() && self.quotas.is_empty()
    }

    /// What a rank can use of its vCPUs during an iteration, between 0 and 1, when it always wants all of them.
    ///
    /// The neighbours sit on the vCPU of the rank's first worker; the scheduler shares it fairly.
    #[must_use]
    pub fn share(&self, rank: u32, iteration: u32, workers: u32) -> f64 {
        let acting = self.neighbours.iter().filter(|spec| spec.rank == rank && spec.acts(iteration));
        let first_vcpu = fair_share(acting.map(|spec| spec.duty).collect());
        let workers = f64::from(workers.max(1));
        let beside_neighbours = (workers - 1.0 + first_vcpu) / workers;
        let quotas = self.quotas.iter().filter(|spec| spec.rank == rank);
        quotas.map(|spec| spec.share).fold(beside_neighbours, f64::min)
    }

    /// The run cut where neighbours come or go, in order, without gaps.
    #[must_use]
    pub fn windows(&self, iterations: u32) -> Vec<Window> {
        let ends = self.neighbours.iter().flat_map(|spec| [Some(spec.from), spec.to]).flatten();
        let mut cuts: Vec<u32> = ends.chain([0, iterations]).filter(|&cut| cut <= iterations).collect();
        cuts.sort_unstable();
        cuts.dedup();
        cuts.windows(2).map(|cut| self.window(cut[0], cut[1])).collect()
    }

    /// The best part of the time without balancing that any balancer could save: 0.333 for one full-time neighbour on one
    /// of two ranks during the whole run.
    ///
    /// With equal work on every rank an iteration lasts as long as its weakest rank needs; at best it lasts as if all
    /// capacity were one: `sum(work) / sum(capacity)`. Both are summed over the windows.
    #[must_use]
    pub fn possible_gain(&self, iterations: u32, ranks: u32, workers: u32) -> f64 {
        let (mut unbalanced, mut best) = (0.0, 0.0);
        for window in self.windows(iterations) {
            let length = f64::from(window.to - window.from);
            let shares: Vec<f64> = (0..ranks).map(|rank| self.share(rank, window.from, workers)).collect();
            unbalanced += length / shares.iter().copied().fold(1.0, f64::min);
            best += length * f64::from(ranks) / shares.iter().sum::<f64>();
        }
        if unbalanced > 0.0 { 1.0 - best / unbalanced } else { 0.0 }
    }

    fn window(&self, from: u32, to: u32) -> Window {
        let mut acting: Vec<String> = Vec::new();
        for spec in self.neighbours.iter().filter(|spec| spec.acts(from)) {
            let duty =
                if spec.duty < 1.0 { format!(" at {:.0} %", 100.0 * spec.duty) } else { String::new() };
            acting.push(format!("neighbour on rank {}{duty}", spec.rank));
        }
        for spec in &self.quotas {
            acting.push(format!("rank {} under a quota of {:.0} %", spec.rank, 100.0 * spec.share));
        }
        let disturbed = !acting.is_empty();
        let label = if disturbed { acting.join(", ") } else { "quiet".to_owned() };
        Window { from, to, label, disturbed }
    }
}

fn parse_rank(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("`{text}` is not a rank, expected a number from 0"))
}

fn parse_share(text: &str) -> Result<f64, String> {
    let value = match text.strip_suffix('%') {
        Some(percent) => percent.parse::<f64>().map(|percent| percent / 100.0),
        None => text.parse::<f64>(),
    };
    match value {
        Ok(value) if value > 0.0 && value <= 1.0 => Ok(value),
        _ => Err(format!("`{text}` is not a duty, expected 0.5 or 50%")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn neighbours(specs: &[&str]) -> Disturbances {
        let neighbours = specs.iter().map(|spec| NeighbourSpec::parse(spec).unwrap()).collect();
        Disturbances { neighbours, quotas: Vec::new() }
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn every_part_of_a_neighbour_but_the_rank_may_be_left_out() {
        let whole = NeighbourSpec { rank: 1, from: 0, to: None, duty: 1.0 };
        assert_eq!(NeighbourSpec::parse("1"), Ok(whole.clone()));
        assert_eq!(
            NeighbourSpec::parse("1:5-9"),
            Ok(NeighbourSpec { from: 5, to: Some(9), ..whole.clone() })
        );
        assert_eq!(NeighbourSpec::parse("1:0.25"), Ok(NeighbourSpec { duty: 0.25, ..whole.clone() }));
        assert_eq!(NeighbourSpec::parse("1:25%"), Ok(NeighbourSpec { duty: 0.25, ..whole }));
    }

    #[test]
    fn a_bad_neighbour_or_quota_is_refused_with_the_part_that_is_wrong() {
        for (text, hint) in [
            ("x", "`x` is not a rank"),
            ("1:9-5", "empty"),
            ("1:a-5", "`a` is not an iteration"),
            ("1:1.5", "`1.5` is not a duty"),
            ("1:0", "`0` is not a duty"),
            ("1:NaN", "`NaN` is not a duty"),
            ("1:1-2:1:1", "expected RANK"),
        ] {
            assert!(NeighbourSpec::parse(text).unwrap_err().contains(hint), "{text}");
        }
        for text in ["1", "1:0", "1:100", "x:50", "1:NaN"] {
            assert!(QuotaSpec::parse(text).is_err(), "{text}");
        }
        assert_eq!(QuotaSpec::parse("1:50%"), Ok(QuotaSpec { rank: 1, share: 0.5 }));
    }

    #[test]
    fn a_light_neighbour_gets_what_it_asks_for_and_a_heavy_one_half() {
        for (duties, ours) in [
            (vec![], 1.0),
            (vec![1.0], 0.5),
            (vec![0.5], 0.5),
            (vec![0.2], 0.8),
            (vec![1.0, 1.0], 1.0 / 3.0),
            (vec![1.0, 0.2], 0.4),
        ] {
            assert!(close(fair_share(duties.clone()), ours), "{duties:?}");
        }
    }

    #[test]
    fn the_bound_is_that_of_the_paper_for_one_full_time_neighbour() {
        for (ranks, bound) in [(2, 1.0 / 3.0), (4, 3.0 / 7.0), (8, 7.0 / 15.0), (32, 31.0 / 63.0)] {
            assert!(close(neighbours(&["1"]).possible_gain(500, ranks, 1), bound), "{ranks} ranks");
        }
        assert!(close(neighbours(&["0"]).possible_gain(500, 1, 1), 0.0));
        assert!(close(neighbours(&[]).possible_gain(500, 2, 1), 0.0));
    }

    #[test]
    fn the_bound_counts_only_the_iterations_with_a_neighbour() {
        // 100 quiet iterations of 1, 100 noisy ones of 2 without balancing and of 4/3 with.
        let bound = neighbours(&["1:50-150"]).possible_gain(200, 2, 1);
        assert!(close(bound, 1.0 - (100.0 + 100.0 * 4.0 / 3.0) / 300.0));
    }

    #[test]
    fn a_quota_counts_like_a_neighbour_of_the_same_share() {
        let quota = Disturbances { quotas: vec![QuotaSpec { rank: 1, share: 0.5 }], ..Default::default() };
        assert!(close(quota.possible_gain(10, 2, 1), 1.0 / 3.0));
        assert!(quota.windows(10)[0].label.contains("quota of 50 %"));
    }

    #[test]
    fn a_second_worker_softens_a_neighbour() {
        assert!(close(neighbours(&["1"]).share(1, 0, 2), 0.75));
    }

    #[test]
    fn windows_cover_the_run_without_gaps() {
        let windows = neighbours(&["1:100-300", "0:200-900"]).windows(500);
        let cuts: Vec<_> = windows.iter().map(|window| (window.from, window.to, window.disturbed)).collect();
        assert_eq!(cuts, [(0, 100, false), (100, 200, true), (200, 300, true), (300, 500, true)]);
        assert_eq!(windows[1].label, "neighbour on rank 1");
    }
}
