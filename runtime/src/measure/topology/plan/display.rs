//! Formats a plan as one line for people: `2 hosts, 4 ranks x 2 workers, pinned: a 0-1 2-3, b 0-1 2-3`.
//!
//! If the list is too long for a line, only the vCPUs of each host are listed, or else only their number.

use std::fmt;
use std::fmt::Write as _;

use super::{Plan, RankPlacement};

/// Maximum length of a line with lists.
const LINE_CHARS_MAX: usize = 160;

/// The separator between pinned ranks and others.
const BETWEEN: &str = "; ";

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (hosts, ranks) = (count(self.hosts.len(), "host"), count(self.placements.len(), "rank"));
        let head = format!("{hosts}, {ranks} x {}, ", self.worker_counts());
        let crowd = self.oversubscribed_text();
        let quota = self.quota.map_or(String::new(), |vcpus| format!("{BETWEEN}quota of {vcpus:.2} vCPUs"));
        let room = LINE_CHARS_MAX.saturating_sub(head.len() + BETWEEN.len() + crowd.len() + quota.len());
        let lists = [self.by_rank(), self.by_host()];
        let pinned = lists.into_iter().find(|list| list.len() <= room).unwrap_or_else(|| self.in_total());
        let between = if pinned.is_empty() || crowd.is_empty() { "" } else { BETWEEN };
        write!(f, "{head}{pinned}{between}{crowd}{quota}")
    }
}

impl Plan {
    /// `2 workers`, or `1 to 3 workers` if ranks differ.
    fn worker_counts(&self) -> String {
        let counts = || self.placements.iter().map(|seats| seats.workers as usize);
        let (least, most) = (counts().min().unwrap_or(0), counts().max().unwrap_or(0));
        if least == most { count(most, "worker") } else { format!("{least} to {}", count(most, "worker")) }
    }

    /// The text about ranks that are not pinned, if there are any.
    fn oversubscribed_text(&self) -> String {
        let crowded = self.placements.iter().filter(|seats| seats.oversubscribed);
        let workers: usize = crowded.map(|seats| seats.workers as usize).sum();
        if workers > 0 {
            format!(
                "not pinned: {} on {}",
                count(workers, "worker"),
                count(self.oversubscribed_vcpus, "vCPU")
            )
        } else if self.pinned().next().is_none() {
            "not pinned".into()
        } else {
            String::new()
        }
    }

    fn pinned(&self) -> impl Iterator<Item = (&RankPlacement, &[usize])> {
        self.placements.iter().filter_map(|seats| Some((seats, seats.vcpus.as_deref()?)))
    }

    /// The pinned vCPUs of each host, one list per rank.
    fn by_host_and_rank(&self) -> Vec<Vec<&[usize]>> {
        let mut lists = vec![Vec::new(); self.hosts.len()];
        for (seats, vcpus) in self.pinned() {
            lists[seats.host as usize].push(vcpus);
        }
        lists
    }

    fn by_rank(&self) -> String {
        self.list(|ranks| ranks.iter().map(|vcpus| compact(vcpus)).collect::<Vec<_>>().join(" "))
    }

    fn by_host(&self) -> String {
        self.list(|ranks| compact(&ranks.concat()))
    }

    fn list(&self, of_host: impl Fn(&[&[usize]]) -> String) -> String {
        let ranks = self.by_host_and_rank();
        let hosts = self.hosts.iter().zip(&ranks).filter(|(_, ranks)| !ranks.is_empty());
        let lists: Vec<String> = hosts.map(|(host, ranks)| format!("{host} {}", of_host(ranks))).collect();
        if lists.is_empty() { String::new() } else { format!("pinned: {}", lists.join(", ")) }
    }

    fn in_total(&self) -> String {
        let vcpus: usize = self.pinned().map(|(_, vcpus)| vcpus.len()).sum();
        if vcpus == 0 { String::new() } else { format!("pinned to {}", count(vcpus, "vCPU")) }
    }
}

/// `1 rank`, `2 ranks`.
pub(super) fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Numbers in the notation of the kernel, such as `0-3,8`.
pub(crate) fn compact(vcpus: &[usize]) -> String {
    let mut vcpus = vcpus.to_vec();
    vcpus.sort_unstable();
    let mut text = String::new();
    for range in vcpus.chunk_by(|one, next| one + 1 == *next) {
        let comma = if text.is_empty() { "" } else { "," };
        let (first, last) = (range[0], range[range.len() - 1]);
        let range = if first == last { first.to_string() } else { format!("{first}-{last}") };
        write!(text, "{comma}{range}").expect("a string takes what is written to it");
    }
    text
}
