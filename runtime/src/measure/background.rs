//! Reads the system's statistics of a worker's thread and its vCPU. They exist on Linux only.
//!
//! | source | gives | resolution | costs |
//! |---|---|---|---|
//! | `/proc/thread-self/schedstat` | CPU time, and time runnable but not running | ns | 2 us |
//! | `/proc/stat` | idle and stolen time of a vCPU | 10 ms | 18 us |

use std::fs::File;
use std::path::Path;

use super::kept_files::KeptFiles;

/// A tick of `/proc/stat`, ns: `USER_HZ` is 100 on every Linux with this file.
const STAT_TICK_NS: u64 = 10_000_000;

/// A thread's open `schedstat`, which any thread may read.
pub(crate) struct SchedStat(File);

/// CPU time and run-queue wait of a thread since it began, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scheduled {
    pub(crate) cpu_ns: u64,
    pub(crate) wait_ns: u64,
}

impl SchedStat {
    /// The statistics of the calling thread; none if the kernel does not keep them.
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

/// CPU time, wait and number of time slices. A kernel without these statistics writes zeros, also for a running thread.
fn parse_schedstat(text: &str) -> Option<Scheduled> {
    let mut fields = text.split_ascii_whitespace().map(str::parse);
    let (cpu_ns, wait_ns, slices) = (fields.next()?.ok()?, fields.next()?.ok()?, fields.next()?.ok()?);
    (slices > 0).then_some(Scheduled { cpu_ns, wait_ns })
}

/// Idle and stolen time of a vCPU since boot, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct VcpuTimes {
    pub(crate) idle_ns: u64,
    pub(crate) steal_ns: u64,
}

impl VcpuTimes {
    /// The idle and stolen time since an earlier reading.
    pub(crate) fn since(self, before: VcpuTimes) -> VcpuTimes {
        VcpuTimes {
            idle_ns: self.idle_ns.saturating_sub(before.idle_ns),
            steal_ns: self.steal_ns.saturating_sub(before.steal_ns),
        }
    }
}

/// A reading of `/proc/stat`.
pub(crate) struct ProcStat(String);

impl ProcStat {
    /// Reads the file; empty if it does not exist.
    pub(super) fn read(files: &KeptFiles) -> ProcStat {
        ProcStat(files.read(Path::new("/proc/stat")).unwrap_or_default())
    }

    /// The times of a vCPU; none if it is not online.
    pub(crate) fn vcpu(&self, vcpu: usize) -> Option<VcpuTimes> {
        parse_stat(&self.0, vcpu)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedstat_is_cpu_wait_and_slices() {
        assert_eq!(parse_schedstat("756642 12 2\n"), Some(Scheduled { cpu_ns: 756_642, wait_ns: 12 }));
        assert_eq!(parse_schedstat("nonsense"), None);
        assert_eq!(parse_schedstat("0 0 0\n"), None, "nothing was accounted");
    }

    #[test]
    fn stat_finds_the_vcpu_by_its_whole_name() {
        let text = "cpu  9 9 9 9 9 9 9 9\ncpu1 1 0 2 30 4 0 0 5 0 0\ncpu10 9 9 9 9 9 9 9 9\n";
        let times = VcpuTimes { idle_ns: 340_000_000, steal_ns: 50_000_000 };
        assert_eq!(parse_stat(text, 1), Some(times));
        assert_eq!(parse_stat(text, 2), None);
    }
}
