//! Takes CPU time from one vCPU by a real process, a *busy neighbour*. The process is this same program, started again
//! with a hidden first argument, so nothing else has to be installed. It is a process and not a thread, because the
//! scheduler, `/proc` and the balancer should see it as a foreign process.
//!
//! A neighbour ends when it is killed, when its parent has ended, and in any case after [`LIFETIME_S`] seconds. It
//! checks for its parent once per period, because a death signal would depend on the *thread* that started the
//! neighbour.

use std::ffi::CStr;
use std::fs;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use lb_strategies::virtual_time::OnOff;
use rustix::process::{Pid, getpid, getppid};
use rustix::thread::{CpuSet, sched_setaffinity, set_name};
use rustix::time::{ClockId, clock_gettime};

use crate::error::Error;

/// The hidden first argument that turns a program into a neighbour.
const ARGUMENT: &str = "--be-a-busy-neighbour";

/// Its name in `/proc` and in traces.
const NAME: &CStr = c"busy-neighbour";

/// A neighbour ends after this time, s, even if its parent does not end it.
pub const LIFETIME_S: u64 = 3600;

/// One cycle of work and sleep, ns: longer than several scheduler slices, shorter than the time between two syncs.
const PERIOD_NS: u64 = 20_000_000;

/// A running neighbour; dropping it ends the process.
#[derive(Debug)]
pub struct Neighbour {
    process: Child,
    duty: f64,
    /// None for a neighbour that is busy all the time.
    schedule: Option<OnOff>,
    started: Instant,
}

/// A neighbour is judged only when it was to be busy for this time, because its process has to start first.
const JUDGED_AFTER: Duration = Duration::from_millis(500);

impl Neighbour {
    /// Starts a process that wants the part `duty` (above 0, at most 1) of the CPU time of `vcpu`. With a `seed` it
    /// does so only in the busy stretches of the schedule of that seed, which begins with the process.
    ///
    /// # Errors
    /// [`Error::System`] when the process cannot be started.
    pub fn start(vcpu: usize, duty: f64, seed: Option<u64>) -> Result<Self, Error> {
        let failed = |source| Error::System { what: "cannot start a busy neighbour".to_owned(), source };
        let program = std::env::current_exe().map_err(failed)?;
        let mut command = Command::new(program);
        command.arg(ARGUMENT).arg(vcpu.to_string()).arg(duty.to_string());
        command.arg(getpid().as_raw_nonzero().to_string());
        command.args(seed.map(|seed| seed.to_string()));
        // A stopped neighbour may outlive this program. It must not keep pipes open that others read to their end.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().map_err(failed)?;
        Ok(Self { process, duty, schedule: seed.map(OnOff::new), started: now() })
    }

    /// The exit status of the process, if it has ended.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.process.try_wait().ok().flatten()
    }

    /// True if a signal has stopped the process: now, or for so long that it wanted less than half of its CPU time. A
    /// quota on the whole container stops it too, without fault; under a quota only a stop now counts.
    pub(crate) fn was_stopped(&self) -> bool {
        let read = |file| fs::read_to_string(format!("/proc/{}/{file}", self.id())).unwrap_or_default();
        let age = now().duration_since(self.started);
        let busy = self.schedule.as_ref().map_or(age, |schedule| busy_before(schedule, age));
        let wanted_ns = self.duty * busy.as_nanos() as f64;
        let judged = busy >= JUDGED_AFTER && caribou::machine::cpu_quota().is_none();
        is_stopped(&read("stat"))
            || judged && asked_ns(&read("schedstat")).is_some_and(|ns| ns < wanted_ns / 2.0)
    }

    /// The process's id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        // Both calls fail only if the process has already ended, as intended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The part of `age` in which the schedule is busy.
fn busy_before(schedule: &OnOff, age: Duration) -> Duration {
    Duration::from_nanos(schedule.busy_before(age.as_nanos() as u64))
}

/// The state follows the name in brackets, and the name may contain brackets.
fn is_stopped(stat: &str) -> bool {
    stat.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with(['T', 't']))
}

/// Time in which a process ran or waited for its vCPU, ns; `None` where the kernel does not count it.
fn asked_ns(schedstat: &str) -> Option<f64> {
    let times = schedstat.split_whitespace().map(|time| time.parse::<f64>().ok());
    let ns: f64 = times.take(2).sum::<Option<f64>>()?;
    (ns > 0.0).then_some(ns)
}

/// Runs as a neighbour if this process was started as one. Every `main` calls this first.
#[must_use]
pub fn run_as_neighbour_if_requested() -> Option<ExitCode> {
    // An argument that is not UTF-8 differs from ours in any case.
    let mut arguments = std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned());
    if arguments.next()? != ARGUMENT {
        return None;
    }
    let mut number = || arguments.next()?.parse::<f64>().ok();
    let (Some(vcpu), Some(duty), Some(parent)) = (number(), number(), number()) else {
        return Some(ExitCode::from(2));
    };
    let seed = arguments.next().map(|seed| seed.parse()).transpose();
    Some(match (Pid::from_raw(parent as i32), seed) {
        (Some(parent), Ok(seed)) => live(vcpu as usize, duty, parent, seed.map(OnOff::new)),
        _ => ExitCode::from(2),
    })
}

/// Uses the part `duty` of each period, in CPU time. Beside a busy worker it then wants that part of the vCPU. In wall
/// time the worker's slices would count as its own. In the quiet stretches of its schedule, if any, the process sleeps.
fn live(vcpu: usize, duty: f64, parent: Pid, mut schedule: Option<OnOff>) -> ExitCode {
    let mut set = CpuSet::new();
    set.set(vcpu);
    if sched_setaffinity(None, &set).is_err() {
        return ExitCode::FAILURE;
    }
    // On failure the process keeps the name of the program.
    let _ = set_name(NAME);
    let busy_ns = (duty * PERIOD_NS as f64) as u64;
    let born_ns = now_ns(ClockId::Monotonic);
    let mut due_ns = born_ns;
    while getppid() == Some(parent) && due_ns - born_ns < LIFETIME_S * 1_000_000_000 {
        let age_ns = now_ns(ClockId::Monotonic) - born_ns;
        let (busy, change_ns) = schedule.as_mut().map_or((true, u64::MAX), |schedule| schedule.at(age_ns));
        let change_ns = born_ns.saturating_add(change_ns);
        if busy {
            burn_until(busy_ns, change_ns);
        }
        // A period that took longer, because the vCPU was shared, is not made up for.
        let end_ns = now_ns(ClockId::Monotonic);
        due_ns = (due_ns + PERIOD_NS).min(change_ns).max(end_ns);
        // A full-time neighbour never sleeps, not even for 0 ns: a thread that sleeps goes to the end of the run queue.
        if due_ns > end_ns {
            std::thread::sleep(Duration::from_nanos(due_ns - end_ns));
        }
    }
    ExitCode::SUCCESS
}

/// Spins until this thread has used `busy_ns` of CPU time.
pub(crate) fn burn(busy_ns: u64) {
    burn_until(busy_ns, u64::MAX);
}

/// Spins until this thread has used `busy_ns` of CPU time, or until `deadline_ns` of the monotonic clock.
fn burn_until(busy_ns: u64, deadline_ns: u64) {
    let end_ns = thread_cpu_ns() + busy_ns;
    while thread_cpu_ns() < end_ns && now_ns(ClockId::Monotonic) < deadline_ns {
        // Thousands of additions between two clock reads: the neighbour should compute, not make system calls.
        std::hint::black_box((0..5_000_u64).fold(0, |sum, i| std::hint::black_box(sum ^ i)));
    }
}

#[expect(clippy::disallowed_methods, reason = "processes live by the clock")]
fn now() -> Instant {
    Instant::now()
}

/// CPU time of this thread, ns.
pub(crate) fn thread_cpu_ns() -> u64 {
    now_ns(ClockId::ThreadCPUTime)
}

fn now_ns(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Signal, kill_process};

    #[test]
    fn burning_takes_the_cpu_time_it_was_asked_for() {
        let before_ns = thread_cpu_ns();
        burn(5_000_000);
        let used_ns = thread_cpu_ns() - before_ns;
        assert!((5_000_000..15_000_000).contains(&used_ns), "{used_ns} ns");
    }

    /// A neighbour that wants no CPU time.
    fn sleeper() -> Neighbour {
        let process = Command::new("sleep").arg("60").spawn().unwrap();
        Neighbour { process, duty: 1.0, schedule: None, started: now() }
    }

    #[test]
    fn one_that_is_stopped_or_was_is_known() {
        let mut neighbour = sleeper();
        assert!(!neighbour.was_stopped(), "nobody knows yet");
        let id = Pid::from_child(&neighbour.process);
        kill_process(id, Signal::STOP).unwrap();
        while !neighbour.was_stopped() {
            std::thread::sleep(Duration::from_millis(1));
        }
        kill_process(id, Signal::CONT).unwrap();
        neighbour.started -= 2 * JUDGED_AFTER;
        let counts = fs::read_to_string(format!("/proc/{}/schedstat", neighbour.id()));
        if asked_ns(&counts.unwrap_or_default()).is_some() && caribou::machine::cpu_quota().is_none() {
            assert!(neighbour.was_stopped(), "it did not want its vCPU");
        }
        assert!(is_stopped("7 (a) b) T 1 2") && !is_stopped("7 (x) T) R 1 2") && !is_stopped(""));
        assert_eq!(asked_ns("30 12 2\n").map(|ns| ns as u64), Some(42));
        assert!(asked_ns("0 0 0\n").or(asked_ns("")).is_none());
    }

    #[test]
    fn a_quiet_stretch_asks_for_nothing() {
        let mut neighbour = sleeper();
        let (_, quiet_ns) = OnOff::new(3).at(0);
        neighbour.schedule = Some(OnOff::new(3));
        neighbour.started -= Duration::from_nanos(quiet_ns) - JUDGED_AFTER / 2;
        assert!(!neighbour.was_stopped(), "it was to be quiet");
    }

    #[test]
    fn one_that_was_killed_is_known_to_have_ended() {
        let mut neighbour = sleeper();
        assert_eq!(neighbour.ended(), None);
        neighbour.process.kill().unwrap();
        while neighbour.ended().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn an_ordinary_program_does_not_become_a_neighbour() {
        assert!(run_as_neighbour_if_requested().is_none());
    }
}
