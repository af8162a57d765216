//! Reads how much CPU time and memory the control groups of this process allow it.
//!
//! | | version 1 | version 2 |
//! |---|---|---|
//! | CPU quota | `cpu.cfs_quota_us` in each `cpu.cfs_period_us`; -1 for none | `cpu.max`; `max` for none |
//! | time for which the quota stopped threads | `throttled_time` of `cpu.stat`, ns | `throttled_usec`, us |
//! | memory | `memory.limit_in_bytes`, `memory.usage_in_bytes` | `memory.max`, `memory.current` |
//!
//! A limit of a group holds for all groups below it. So every level counts, from the process' group up to the visible
//! root. (In a container its own group is the root.) This module sets no limit and moves no thread.

mod levels;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::kept_files::KeptFiles;
use levels::Levels;
use rustix::process::{Resource, getrlimit};
use serde::{Deserialize, Serialize};

/// How long a thread's groups are remembered, ns: threads hardly ever move. The default period of a quota.
const MEMBERSHIP_AGE_MAX_NS: u64 = 100_000_000;

/// The contents of a file, if it can be read.
type Read<'r> = &'r dyn Fn(&Path) -> Option<String>;

fn read_file(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// CPU time that control groups allow this process, in vCPUs; none without a quota.
///
/// ```
/// assert!(caribou::machine::cpu_quota().is_none_or(|vcpus| vcpus > 0.0));
/// ```
#[must_use]
pub fn cpu_quota() -> Option<f64> {
    quota().map(|quota| quota.vcpus)
}

/// A CPU quota that this process shares with all processes of a group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Quota {
    /// CPU time per wall time, in vCPUs.
    pub(crate) vcpus: f64,
    /// The directory of the group.
    pub(crate) group: String,
}

/// The tightest quota of this process.
pub(crate) fn quota() -> Option<Quota> {
    of_process("cpu", &read_file)?.quota(&read_file)
}

/// The tightest quota of the calling thread.
pub(crate) fn quota_of_thread() -> Option<Quota> {
    let membership = read_file(Path::new("/proc/thread-self/cgroup"))?;
    Levels::of("cpu", &membership, &read_file(Path::new("/proc/self/mountinfo"))?)?.quota(&read_file)
}

/// The number of vCPUs that a quota can keep busy, rounded up; at least one.
///
/// A fractional quota is rounded up, as in the runtimes of Go and Java. Rounded down, 1.5 vCPUs would leave a third of
/// the quota unused. The price is that all workers are stopped for part of each period of the quota. This part is the
/// same for all workers, so balancing sees equal ranks.
pub(crate) fn vcpus_within(quota: Option<f64>, vcpus: usize) -> usize {
    quota.map_or(vcpus, |quota| vcpus.min(quota.ceil() as usize)).max(1)
}

/// Bytes of memory that this process can still get. This is the minimum of what the host has available, what control
/// groups leave, and what is left of the address space (`ulimit -v`). None if none of these is known.
///
/// ```
/// assert!(caribou::machine::available_memory().is_none_or(|bytes| bytes > 0));
/// ```
#[must_use]
pub fn available_memory() -> Option<u64> {
    memory(getrlimit(Resource::As).current, &read_file)
}

fn memory(address_space: Option<u64>, read: Read<'_>) -> Option<u64> {
    let told = |file: &str, name: &str| parse_kib(&read(Path::new(file))?, name);
    let host = told("/proc/meminfo", "MemAvailable:");
    let groups = of_process("memory", read).and_then(|levels| levels.memory(read));
    let limit =
        address_space.and_then(|limit| Some(limit.saturating_sub(told("/proc/self/status", "VmSize:")?)));
    [host, groups, limit].into_iter().flatten().min()
}

/// The number in a line of `/proc/meminfo` or `/proc/self/status`, bytes.
fn parse_kib(text: &str, name: &str) -> Option<u64> {
    let kib = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(kib.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

fn of_process(controller: &str, read: Read<'_>) -> Option<Levels> {
    let membership = read(Path::new("/proc/self/cgroup"))?;
    Levels::of(controller, &membership, &read(Path::new("/proc/self/mountinfo"))?)
}

/// The time for which quotas have stopped the groups of threads.
#[derive(Default)]
pub(crate) struct Throttling {
    /// The groups of the last reading. Most threads are in the same groups, and finding them takes long.
    known: Mutex<Option<Known>>,
}

struct Known {
    /// When the groups were last looked up, ns.
    asked_ns: u64,
    membership: Arc<str>,
    levels: Option<Levels>,
}

/// A reading of [`Throttling`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Throttled {
    /// The groups of the reading.
    membership: Arc<str>,
    total_ns: u64,
}

impl Throttling {
    /// The throttled time of the calling thread's groups. Takes about 3 us per group, and 20 us to look groups up.
    pub(super) fn read(&self, now_ns: u64, files: &KeptFiles) -> Throttled {
        self.read_by(now_ns, &read_file, &|path| files.read(path))
    }

    /// Reads with `read_kept` the files that are the same for all threads.
    fn read_by(&self, now_ns: u64, read: Read<'_>, read_kept: Read<'_>) -> Throttled {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = known.take_if(|known| now_ns.saturating_sub(known.asked_ns) < MEMBERSHIP_AGE_MAX_NS);
        let here = recent.unwrap_or_else(|| {
            let membership = read(Path::new("/proc/thread-self/cgroup")).unwrap_or_default();
            let same = known.take_if(|known| *known.membership == *membership);
            same.map(|known| Known { asked_ns: now_ns, ..known }).unwrap_or_else(|| {
                let mounts = read(Path::new("/proc/self/mountinfo")).unwrap_or_default();
                let levels = Levels::of("cpu", &membership, &mounts);
                Known { asked_ns: now_ns, membership: membership.into(), levels }
            })
        });
        let total_ns = here.levels.as_ref().map_or(0, |levels| levels.throttled_ns(read_kept));
        let throttled = Throttled { membership: here.membership.clone(), total_ns };
        *known = Some(here);
        throttled
    }
}

impl Throttled {
    /// The time for which the groups were throttled since an earlier reading, ns; 0 if that was of different groups.
    pub(crate) fn since(&self, before: &Throttled) -> u64 {
        let same = self.membership == before.membership;
        if same { self.total_ns.saturating_sub(before.total_ns) } else { 0 }
    }
}

#[cfg(test)]
mod tests;
