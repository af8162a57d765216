//! Finds which processes ran on a rank's vCPUs while its workers waited for them. Linux only; elsewhere none is found.
//!
//! `/proc/PID/stat` has the CPU time of each process, in steps of 10 ms, and the vCPU on which it ran last. When a rank
//! has lost much time, this file is read for all processes. That takes about 10 us per process, and is limited to 1 %
//! of the time. Not found is time taken by the hypervisor, another container or a process that ended before a scan.

use std::sync::{Mutex, PoisonError};

use rustc_hash::FxHashMap;

use super::cpu::thread_cpu_ns;
use crate::measure::records::{Look, Sample, Taker};

/// Minimum part of the time that must be lost for a scan.
const SCAN_LOSS_MIN: f64 = 0.05;
/// Minimum part of the time that a process must have used to be listed.
const PROCESS_SHARE_MIN: f64 = 0.01;
/// Minimum time between scans, ns (long compared with steps of 10 ms), and its minimum ratio to the time of a scan.
const SCAN_INTERVAL_NS: u64 = 200_000_000;
const SCAN_INTERVAL_PER_COST: u64 = 100;
/// Maximum number of processes that a scan reads, and that it lists.
const PROCESSES_MAX: usize = 10_000;
const LISTED_MAX: usize = 8;
/// A step of CPU times, ns: `USER_HZ` is 100 on every Linux that has it.
const TICK_NS: u64 = 10_000_000;

/// The processes of the machine in the last scan.
#[derive(Default)]
pub(crate) struct ProcessScanner {
    seen: Mutex<Option<ProcessScan>>,
}

struct ProcessScan {
    at_ns: u64,
    /// CPU time of the scan.
    cost_ns: u64,
    /// CPU time by process number and start, because process numbers are used again.
    processes: FxHashMap<(u32, u64), u64>,
}

/// A process or a thread.
#[derive(Debug, PartialEq)]
struct Task {
    command: String,
    cpu_ns: u64,
    threads: u64,
    began: u64,
    vcpu: usize,
}

impl ProcessScanner {
    /// Makes the first scan.
    pub(crate) fn begin(&self, now_ns: u64) {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(ProcessScan::now(now_ns, |_, _| ()));
    }

    /// The processes that ran on these vCPUs since the last scan. None if little was lost in the sample, or if the last
    /// scan is too recent.
    pub(crate) fn scan(&self, sample: &Sample, vcpus: &[usize]) -> Option<Look> {
        let lost = sample.wait_ns as f64 > SCAN_LOSS_MIN * sample.wall_ns as f64;
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let before = seen.as_ref()?;
        let over_ns = sample.at_ns.saturating_sub(before.at_ns);
        if !lost
            || vcpus.is_empty()
            || over_ns < SCAN_INTERVAL_NS.max(SCAN_INTERVAL_PER_COST.saturating_mul(before.cost_ns))
        {
            return None;
        }
        let (now, mut takers) = before.again(sample.at_ns, vcpus);
        *seen = Some(now);
        takers.sort_unstable_by_key(|taker| (std::cmp::Reverse(taker.cpu_ns), taker.pid));
        takers.truncate(LISTED_MAX);
        Some(Look { at_ns: sample.at_ns, over_ns, takers })
    }
}

impl ProcessScan {
    /// Reads all processes except this one, and passes each to `see`.
    fn now(at_ns: u64, mut see: impl FnMut(u32, &Task)) -> ProcessScan {
        let begun_ns = thread_cpu_ns();
        let own = std::process::id();
        let numbers = numbers("/proc").filter(|&pid| pid != own).take(PROCESSES_MAX);
        let mut processes = FxHashMap::default();
        for pid in numbers {
            let Some(task) = read(&format!("/proc/{pid}/stat")) else { continue };
            see(pid, &task);
            processes.insert((pid, task.began), task.cpu_ns);
        }
        ProcessScan { at_ns, cost_ns: thread_cpu_ns().saturating_sub(begun_ns), processes }
    }

    /// Scans again. Returns the processes that have run on these vCPUs since this scan.
    fn again(&self, at_ns: u64, vcpus: &[usize]) -> (ProcessScan, Vec<Taker>) {
        let mut takers = Vec::new();
        let counts =
            |cpu_ns: u64| cpu_ns as f64 >= PROCESS_SHARE_MIN * at_ns.saturating_sub(self.at_ns) as f64;
        let now = ProcessScan::now(at_ns, |pid, task| {
            let had_ns = self.processes.get(&(pid, task.began)).copied().unwrap_or(0);
            let got_ns = task.cpu_ns.saturating_sub(had_ns);
            if counts(got_ns) {
                let cpu_ns = (got_ns as f64 * share_on(pid, task, vcpus)) as u64;
                takers.push(Taker { pid, command: task.command.clone(), cpu_ns });
            }
        });
        takers.retain(|taker| counts(taker.cpu_ns));
        (now, takers)
    }
}

/// The part of a process' time that it had on these vCPUs, estimated from the last vCPU of each of its threads.
fn share_on(pid: u32, task: &Task, vcpus: &[usize]) -> f64 {
    let here = |task: &Task| vcpus.contains(&task.vcpu);
    if task.threads <= 1 {
        return f64::from(u8::from(here(task)));
    }
    let path = format!("/proc/{pid}/task");
    let threads: Vec<Task> =
        numbers(&path).filter_map(|thread| read(&format!("{path}/{thread}/stat"))).collect();
    let sum_ns = |wanted: &dyn Fn(&Task) -> bool| {
        threads.iter().filter(|task| wanted(task)).map(|task| task.cpu_ns as f64).sum::<f64>()
    };
    sum_ns(&here) / sum_ns(&|_| true).max(1.0)
}

/// Entries of a directory whose names are numbers.
fn numbers(path: &str) -> impl Iterator<Item = u32> + use<> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn read(path: &str) -> Option<Task> {
    parse(&String::from_utf8_lossy(&std::fs::read(path).ok()?))
}

/// Parses `PID (COMMAND) STATE ...`. A command may have any characters, also blanks and brackets.
fn parse(stat: &str) -> Option<Task> {
    let (begin, end) = (stat.find('(')?, stat.rfind(')')?);
    let fields: Vec<&str> = stat.get(end + 1..)?.split_ascii_whitespace().collect();
    // Numbered as in proc(5), where the state is field 3.
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    Some(Task {
        command: stat.get(begin + 1..end)?.into(),
        cpu_ns: number(14)?.checked_add(number(15)?)?.saturating_mul(TICK_NS),
        threads: number(20)?,
        began: number(22)?,
        vcpu: number(39)? as usize,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "123 (a (b) c) R 1 1 1 0 -1 4194304 87 0 0 0 30 12 0 0 20 0 3 0 5555 1 2 3 \
                        1 1 1 1 1 0 0 0 0 0 0 0 17 7 0 0 0 0 0 0 0 0 0 0 0 0 0";

    #[test]
    fn a_line_of_proc_is_read_whatever_the_command() {
        let expected =
            Task { command: "a (b) c".into(), cpu_ns: 420_000_000, threads: 3, began: 5555, vcpu: 7 };
        assert_eq!(parse(LINE), Some(expected));
        for wrong in ["", "1 (x", "1 (x) R 1 2", ")("] {
            assert_eq!(parse(wrong), None, "{wrong:?}");
        }
    }

    fn sample(at_ns: u64, wait_ns: u64) -> Sample {
        Sample { at_ns, wall_ns: 1_000, wait_ns, ..Sample::default() }
    }

    #[test]
    fn no_scan_without_loss_or_too_early() {
        let takers = ProcessScanner::default();
        let every: Vec<usize> = (0..4096).collect();
        assert_eq!(takers.scan(&sample(1 << 40, 500), &every), None, "nobody has looked before");
        takers.begin(0);
        assert_eq!(takers.scan(&sample(1 << 40, 0), &every), None, "nothing is lost");
        assert_eq!(takers.scan(&sample(1, 500), &every), None, "too early");
        assert_eq!(takers.scan(&sample(1 << 40, 500), &[]), None, "workers are not pinned");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_process_that_runs_here_is_found_and_this_one_is_not() {
        let before = ProcessScan::now(0, |_, _| ());
        let mut busy = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        // Until the process has had ten steps of CPU time, however busy the machine is.
        let path = format!("/proc/{}/stat", busy.id());
        while read(&path).is_some_and(|stat| stat.cpu_ns < 10 * TICK_NS) {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let every: Vec<usize> = (0..4096).collect();
        let (_, takers) = before.again(1_000_000_000, &every);
        busy.kill().unwrap();
        busy.wait().unwrap();
        let found = takers.iter().find(|taker| taker.pid == busy.id());
        assert!(
            found.is_some_and(|taker| taker.cpu_ns >= 10 * TICK_NS && taker.command == "sh"),
            "{takers:?}"
        );
        assert!(takers.iter().all(|taker| taker.pid != std::process::id()));
    }
}
