//! Parses the options for disturbances (busy neighbours, CPU quotas, slow ranks) and computes which of them act in
//! which iterations. A *neighbour* is a busy process on the vCPU of a rank. The *injector* applies the disturbances
//! during a run. This file does no IO; its submodules do.

pub(crate) mod injector;
pub mod neighbour;
pub(crate) mod quota;
pub mod slow;
mod workers;

use serde::Serialize;

const NEIGHBOUR_FORM: &str = "expected RANK[:FROM-TO][:DUTY] or RANK:random:SEED";

/// `RANK[:FROM-TO][:DUTY]`: a busy process beside a rank, during some iterations. `RANK:random:SEED`: a process that is
/// busy and quiet in turns, for random times.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NeighbourSpec {
    /// The neighbour runs on the vCPU of this rank's worker 0.
    pub rank: u32,
    /// Starts when this many iterations are complete.
    pub from: u32,
    /// Ends when this many iterations are complete; `None` for the whole run.
    pub to: Option<u32>,
    /// The part of the vCPU that the neighbour wants, above 0 and at most 1.
    pub duty: f64,
    /// The seed of its [schedule](lb_strategies::virtual_time::OnOff), which begins when the process starts; `None` for
    /// a neighbour that is always busy.
    pub seed: Option<u64>,
}

/// `RANK:PERCENT`: a limit on the CPU time of a rank's workers, for the whole run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QuotaSpec {
    /// The rank.
    pub rank: u32,
    /// The part of its vCPUs that the workers may use, above 0 and below 1.
    pub share: f64,
}

/// `RANK:FACTOR`: a rank that computes more slowly, for the whole run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SlowSpec {
    /// The rank.
    pub rank: u32,
    /// The slowdown, from 1 to 100.
    pub factor: f64,
}

/// All disturbances of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Disturbances {
    /// Busy neighbours.
    pub neighbours: Vec<NeighbourSpec>,
    /// CPU quotas.
    pub quotas: Vec<QuotaSpec>,
    /// Slow ranks.
    pub slowed: Vec<SlowSpec>,
}

/// Iterations `from..to` in which the same disturbances act.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Window {
    /// First iteration.
    pub from: u32,
    /// One past the last iteration.
    pub to: u32,
    /// The disturbances that act, in words.
    pub label: String,
    /// True if any disturbance acts.
    pub disturbed: bool,
    /// True if a neighbour has a random schedule. Iteration times then never settle.
    #[serde(skip)]
    pub random: bool,
}

impl NeighbourSpec {
    /// Reads `RANK[:FROM-TO][:DUTY]` or `RANK:random:SEED`.
    ///
    /// ```
    /// use harness::disturbance::NeighbourSpec;
    /// let spec = NeighbourSpec::parse("1:100-300:50%")?;
    /// assert_eq!((spec.rank, spec.from, spec.to, spec.duty), (1, 100, Some(300), 0.5));
    /// assert_eq!(NeighbourSpec::parse("1:random:7")?.seed, Some(7));
    /// # Ok::<(), String>(())
    /// ```
    ///
    /// # Errors
    /// A sentence that names the wrong part.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = text.split(':');
        let rank = parse_rank(parts.next().unwrap_or_default())?;
        let mut spec = Self { rank, from: 0, to: None, duty: 1.0, seed: None };
        let mut rest: Vec<&str> = parts.collect();
        if let Some((from, to)) = rest.first().and_then(|part| part.split_once('-')) {
            let iteration = |text: &str| {
                text.parse::<u32>()
                    .map_err(|_| format!("`{text}` is not a whole number, expected FROM-TO as in 100-300"))
            };
            (spec.from, spec.to) = (iteration(from)?, Some(iteration(to)?));
            if spec.to <= Some(spec.from) {
                return Err(format!("the window {from}-{to} is empty"));
            }
            rest.remove(0);
        }
        match rest[..] {
            [] => {}
            ["random", seed] if spec.to.is_none() => spec.seed = Some(parse_seed(seed)?),
            ["random"] => return Err(NEIGHBOUR_FORM.to_owned()),
            [duty] => spec.duty = parse_share(duty)?,
            _ => return Err(NEIGHBOUR_FORM.to_owned()),
        }
        Ok(spec)
    }

    /// True if the neighbour runs during `iteration`.
    #[must_use]
    pub fn acts(&self, iteration: u32) -> bool {
        self.from <= iteration && self.to.is_none_or(|to| iteration < to)
    }
}

impl QuotaSpec {
    /// Reads `RANK:PERCENT`.
    ///
    /// # Errors
    /// A sentence that names the wrong part.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (rank, percent) = rank_and_number(text, "expected RANK:PERCENT as in 1:50")?;
        match percent.trim_end_matches('%').parse::<f64>() {
            Ok(value) if (10.0..100.0).contains(&value) => Ok(Self { rank, share: value / 100.0 }),
            _ => Err(format!(
                "`{percent}` is not a quota, expected a percentage from 10 up to, not including, 100"
            )),
        }
    }
}

impl SlowSpec {
    /// Reads `RANK:FACTOR`.
    ///
    /// # Errors
    /// A sentence that names the wrong part.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (rank, factor) = rank_and_number(text, "expected RANK:FACTOR as in 1:1.5")?;
        match factor.parse::<f64>() {
            Ok(factor) if (1.0..=100.0).contains(&factor) => Ok(Self { rank, factor }),
            _ => Err(format!("`{factor}` is not a factor, expected a number from 1 to 100")),
        }
    }
}

impl Disturbances {
    /// True if a disturbance acts on vCPUs: a neighbour or a quota.
    #[must_use]
    pub fn need_vcpus(&self) -> bool {
        !(self.neighbours.is_empty() && self.quotas.is_empty())
    }

    /// True if there is no disturbance.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.need_vcpus() && self.slowed.is_empty()
    }

    /// Cuts the run where neighbours start or end, in order and without gaps. Labels name quotas only if `quotas_held`.
    #[must_use]
    pub fn windows(&self, iterations: u32, quotas_held: bool) -> Vec<Window> {
        let ends = self.neighbours.iter().flat_map(|spec| [Some(spec.from), spec.to]).flatten();
        let mut cuts: Vec<u32> = ends.chain([0, iterations]).filter(|&cut| cut <= iterations).collect();
        cuts.sort_unstable();
        cuts.dedup();
        cuts.windows(2).map(|cut| self.window(cut[0], cut[1], quotas_held)).collect()
    }

    fn window(&self, from: u32, to: u32, quotas_held: bool) -> Window {
        let mut acting: Vec<String> = Vec::new();
        for spec in self.neighbours.iter().filter(|spec| spec.acts(from)) {
            let duty =
                if spec.duty < 1.0 { format!(" at {:.0} %", 100.0 * spec.duty) } else { String::new() };
            let random = spec.seed.map_or_else(String::new, |seed| format!(" at random, seed {seed}"));
            acting.push(format!("neighbour on rank {}{duty}{random}", spec.rank));
        }
        for spec in self.quotas.iter().filter(|_| quotas_held) {
            acting.push(format!("rank {} under a quota of {:.0} %", spec.rank, 100.0 * spec.share));
        }
        for spec in &self.slowed {
            acting.push(format!("rank {} {} times slower", spec.rank, spec.factor));
        }
        let disturbed = !acting.is_empty();
        let random = self.neighbours.iter().any(|spec| spec.seed.is_some());
        let label = if disturbed { acting.join(", ") } else { "quiet".to_owned() };
        Window { from, to, label, disturbed, random }
    }
}

fn rank_and_number<'t>(text: &'t str, expected: &str) -> Result<(u32, &'t str), String> {
    let (rank, number) = text.split_once(':').ok_or(expected)?;
    Ok((parse_rank(rank)?, number))
}

fn parse_rank(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("`{text}` is not a rank, expected a number from 0"))
}

fn parse_seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is not a seed, expected a whole number from 0 to 2^64 - 1"))
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
        Disturbances { neighbours, ..Disturbances::default() }
    }

    #[test]
    fn every_part_of_a_neighbour_but_the_rank_may_be_left_out() {
        let whole = NeighbourSpec { rank: 1, from: 0, to: None, duty: 1.0, seed: None };
        assert_eq!(NeighbourSpec::parse("1"), Ok(whole.clone()));
        assert_eq!(
            NeighbourSpec::parse("1:5-9"),
            Ok(NeighbourSpec { from: 5, to: Some(9), ..whole.clone() })
        );
        assert_eq!(NeighbourSpec::parse("1:0.25"), Ok(NeighbourSpec { duty: 0.25, ..whole.clone() }));
        assert_eq!(NeighbourSpec::parse("1:25%"), Ok(NeighbourSpec { duty: 0.25, ..whole.clone() }));
        let random = |seed| Ok(NeighbourSpec { seed: Some(seed), ..whole.clone() });
        assert_eq!(NeighbourSpec::parse("1:random:7"), random(7));
        assert_eq!(NeighbourSpec::parse("1:random:18446744073709551615"), random(u64::MAX));
    }

    #[test]
    fn a_run_with_a_random_neighbour_is_one_window() {
        let windows = neighbours(&["1:random:7"]).windows(500, true);
        let [Window { from: 0, to: 500, label, disturbed: true, random: true }] = &windows[..] else {
            panic!("{windows:?}");
        };
        assert_eq!(label, "neighbour on rank 1 at random, seed 7");
    }

    #[test]
    fn a_bad_neighbour_or_quota_is_refused_with_the_part_that_is_wrong() {
        for (text, hint) in [
            ("x", "`x` is not a rank"),
            ("1:9-5", "empty"),
            ("1:a-5", "`a` is not a whole number"),
            ("1:1.5", "`1.5` is not a duty"),
            ("1:0", "`0` is not a duty"),
            ("1:NaN", "`NaN` is not a duty"),
            ("1:1-2:1:1", "expected RANK"),
            ("1:random", "or RANK:random:SEED"),
            ("1:random:", "`` is not a seed"),
            ("1:random:x", "`x` is not a seed"),
            ("1:random:-1", "`-1` is not a seed"),
            ("1:random:18446744073709551616", "is not a seed"),
            ("1:random:7:0.5", "or RANK:random:SEED"),
            ("1:5-9:random:7", "or RANK:random:SEED"),
            ("1:random-7", "`random` is not a whole number"),
            ("x:random:7", "`x` is not a rank"),
        ] {
            assert!(NeighbourSpec::parse(text).unwrap_err().contains(hint), "{text}");
        }
        for text in ["1", "1:0", "1:100", "x:50", "1:NaN"] {
            assert!(QuotaSpec::parse(text).is_err(), "{text}");
        }
        assert_eq!(QuotaSpec::parse("1:50%"), Ok(QuotaSpec { rank: 1, share: 0.5 }));
        for text in ["1", "1:0.5", "1:101", "x:2", "1:NaN"] {
            assert!(SlowSpec::parse(text).is_err(), "{text}");
        }
        assert_eq!(SlowSpec::parse("1:1.5"), Ok(SlowSpec { rank: 1, factor: 1.5 }));
    }

    #[test]
    fn a_quota_and_a_slow_rank_are_there_all_along() {
        let quotas = vec![QuotaSpec { rank: 1, share: 0.5 }];
        let slowed = vec![SlowSpec { rank: 0, factor: 1.5 }];
        let disturbed = Disturbances { quotas, slowed, ..Disturbances::default() };
        assert_eq!(
            disturbed.windows(10, true)[0].label,
            "rank 1 under a quota of 50 %, rank 0 1.5 times slower"
        );
        assert_eq!(disturbed.windows(10, false)[0].label, "rank 0 1.5 times slower");
    }

    #[test]
    fn windows_cover_the_run_without_gaps() {
        let windows = neighbours(&["1:100-300", "0:200-900"]).windows(500, true);
        let cuts: Vec<_> = windows.iter().map(|window| (window.from, window.to, window.disturbed)).collect();
        assert_eq!(cuts, [(0, 100, false), (100, 200, true), (200, 300, true), (300, 500, true)]);
        assert_eq!(windows[1].label, "neighbour on rank 1");
    }
}
