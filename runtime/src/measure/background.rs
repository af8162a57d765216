//! Reads what the system says about a worker's thread, its vCPU and its quota. Linux only; elsewhere nothing is known.
//!
//! | source | gives | resolution | costs |
//! |---|---|---|---|
//! | `/proc/thread-self/schedstat` | CPU time, time runnable but not running | ns | 2 us |
//! | `/proc/stat` | idle and stolen time of a vCPU | 10 ms | 15 us |
//! | `cpu.stat` of the cgroup | time a quota kept the group from running | us | 10 us |

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

/// A tick of `/proc/stat`: `USER_HZ` is 100 on every Linux that has it.
const STAT_TICK_NS: u64 = 10_000_000;

/// A thread's `schedstat`, kept open: any thread may read it.
pub(crate) struct SchedStat(File);

/// CPU time and run-queue wait of a thread since it began, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scheduled {
    pub(crate) cpu_ns: u64,
    pub(crate) wait_ns: u64,
}

impl SchedStat {
    /// That of the calling thread; none where the kernel does not keep it.
    pub(crate) fn of_this_thread() -> Option<SchedStat> {
        let file = File::open("/proc/thread-self/schedstat").ok()?;
        let stat = SchedStat(file);
        stat.read().is_some().then_some(stat)
    }

    #[cfg(unix)]
    pub(crate) fn read(&self) -> Option<Scheduled> {
        use std::os::unix::fs::FileExt;
        let mut bytes = [0; 96];
        let length = self.0.read_at(&mut bytes, 0).ok()?;
        parse_schedstat(std::str::from_utf8(&bytes[..length]).ok()?)
    }

    #[cfg(not(unix))]
    pub(crate) fn read(&self) -> Option<Scheduled> {
        None
    }
}

fn parse_schedstat(text: &str) -> Option<Scheduled> {
    let mut fields = text.split_ascii_whitespace().map(str::parse);
    Some(Scheduled { cpu_ns: fields.next()?.ok()?, wait_ns: fields.next()?.ok()? })
}

/// Idle and stolen time of a vCPU since boot, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct VcpuTimes {
    pub(crate) idle_ns: u64,
    pub(crate) steal_ns: u64,
}

impl VcpuTimes {
    /// What has been added since an earlier reading.
    pub(crate) fn since(self, before: VcpuTimes) -> VcpuTimes {
        VcpuTimes {
            idle_ns: self.idle_ns.saturating_sub(before.idle_ns),
            steal_ns: self.steal_ns.saturating_sub(before.steal_ns),
        }
    }
}

/// `/proc/stat` for some vCPUs, in the order asked.
pub(crate) fn vcpu_times(vcpus: &[usize]) -> Option<Vec<VcpuTimes>> {
    let mut text = String::new();
    File::open("/proc/stat").ok()?.read_to_string(&mut text).ok()?;
    vcpus.iter().map(|&vcpu| parse_stat(&text, vcpu)).collect()
}

fn parse_stat(text: &str, vcpu: usize) -> Option<VcpuTimes> {
    let name = format!("cpu{vcpu}");
    let line = text.lines().find(|line| line.split(' ').next() == Some(&name))?;
    let ticks: Vec<u64> =
        line.split_ascii_whitespace().skip(1).map_while(|field| field.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal
    let idle_ns = (ticks.get(3)? + ticks.get(4)?) * STAT_TICK_NS;
    Some(VcpuTimes { idle_ns, steal_ns: ticks.get(7)? * STAT_TICK_NS })
}

/// Time a CPU quota has kept the calling thread's cgroup from running, ns; none where there is no quota to read.
pub(crate) fn throttled_ns() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/thread-self/cgroup").ok()?;
    groups.lines().find_map(|line| {
        let stat = std::fs::read_to_string(stat_path(line)?).ok()?;
        parse_throttled(&stat)
    })
}

/// The `cpu.stat` of one line of `/proc/self/cgroup`: `0::/path` (v2) or `4:cpu,cpuacct:/path` (v1).
fn stat_path(line: &str) -> Option<PathBuf> {
    let mut fields = line.splitn(3, ':');
    let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
    let mount = match controllers {
        "" => "/sys/fs/cgroup",
        _ if controllers.split(',').any(|name| name == "cpu") => "/sys/fs/cgroup/cpu",
        _ => return None,
    };
    Some(PathBuf::from(format!("{mount}{path}/cpu.stat")))
}

fn parse_throttled(stat: &str) -> Option<u64> {
    stat.lines().find_map(|line| match line.split_once(' ')? {
        ("throttled_usec", value) => Some(value.parse::<u64>().ok()? * 1000),
        ("throttled_time", value) => value.parse().ok(),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedstat_is_cpu_wait_and_slices() {
        assert_eq!(parse_schedstat("756642 12 2\n"), Some(Scheduled { cpu_ns: 756_642, wait_ns: 12 }));
        assert_eq!(parse_schedstat("nonsense"), None);
    }

    #[test]
    fn stat_finds_the_vcpu_by_its_whole_name() {
        let text = "cpu  9 9 9 9 9 9 9 9\ncpu1 1 0 2 30 4 0 0 5 0 0\ncpu10 9 9 9 9 9 9 9 9\n";
        let times = VcpuTimes { idle_ns: 340_000_000, steal_ns: 50_000_000 };
        assert_eq!(parse_stat(text, 1), Some(times));
        assert_eq!(parse_stat(text, 2), None);
    }

    #[test]
    fn both_versions_of_cgroups_are_understood() {
        assert_eq!(stat_path("0::/a"), Some("/sys/fs/cgroup/a/cpu.stat".into()));
        assert_eq!(stat_path("4:cpu,cpuacct:/b"), Some("/sys/fs/cgroup/cpu/b/cpu.stat".into()));
        assert_eq!(stat_path("4:cpuset:/b"), None);
        assert_eq!(parse_throttled("nr_throttled 3\nthrottled_usec 7\n"), Some(7000));
        assert_eq!(parse_throttled("nr_throttled 3\nthrottled_time 7\n"), Some(7));
    }
}
