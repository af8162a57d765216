//! A busy neighbour: a real process that takes CPU time from one vCPU.
//!
//! It is this same program, started again with a hidden first argument, so nothing else has to be installed. A process and
//! not a thread, because the scheduler, `/proc` and the balancer should see what they would see of a stranger.
//!
//! It ends when it is killed, when its parent is gone (it looks at every period: a death signal would be bound to the
//! *thread* that started it), and in any case after [`LIFETIME_S`].

use std::ffi::CStr;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, getpid, getppid};
use rustix::thread::{CpuSet, sched_setaffinity, set_name};
use rustix::time::{ClockId, clock_gettime};

use crate::error::Error;

/// The hidden first argument that turns a program into a neighbour.
const ARGUMENT: &str = "--be-a-busy-neighbour";

/// The name by which the system, and a trace, know it.
const NAME: &CStr = c"busy-neighbour";

/// No neighbour lives longer, whatever became of the program that wanted it.
pub const LIFETIME_S: u64 = 3600;

/// One cycle of work and sleep; several scheduler slices long, and short beside an interval between syncs.
const PERIOD_NS: u64 = 20_000_000;

/// A running neighbour; dropping it ends the process.
#[derive(Debug)]
pub struct Neighbour {
    process: Child,
}

impl Neighbour {
    /// Starts a process that asks for `duty` (above 0, up to 1) of the CPU time of `vcpu`.
    ///
    /// # Errors
    /// [`Error::System`] when the process cannot be started.
    pub fn start(vcpu: usize, duty: f64) -> Result<Self, Error> {
        let failed = |source| Error::System { what: "cannot start a busy neighbour".to_owned(), source };
        let program = std::env::current_exe().map_err(failed)?;
        let mut command = Command::new(program);
        command.arg(ARGUMENT).arg(vcpu.to_string()).arg(duty.to_string());
        command.arg(getpid().as_raw_nonzero().to_string()).stdin(Stdio::null()).stdout(Stdio::null());
        Ok(Self { process: command.spawn().map_err(failed)? })
    }

    /// How the process ended, if it did before it was to.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.process.try_wait().ok().flatten()
    }

    /// The process's id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        // Both fail only when the process is gone already, which is what is wanted.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The first thing in every `main`: lives the life of a neighbour if this process was started as one.
#[must_use]
pub fn become_one_if_asked() -> Option<ExitCode> {
    // One that is no text is none of ours.
    let mut arguments = std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned());
    if arguments.next()? != ARGUMENT {
        return None;
    }
    let mut number = || arguments.next()?.parse::<f64>().ok();
    let (Some(vcpu), Some(duty), Some(parent)) = (number(), number(), number()) else {
        return Some(ExitCode::from(2));
    };
    Some(match Pid::from_raw(parent as i32) {
        Some(parent) => live(vcpu as usize, duty, parent),
        None => ExitCode::from(2),
    })
}

/// Burns `duty` of each period, in CPU time: beside a busy worker it then asks for that part of the vCPU, and the fair
/// share of the worker is what `disturbance` says. Measured in wall time it would count the worker's slices as its own.
fn live(vcpu: usize, duty: f64, parent: Pid) -> ExitCode {
    let mut set = CpuSet::new();
    set.set(vcpu);
    if sched_setaffinity(None, &set).is_err() {
        return ExitCode::FAILURE;
    }
    // Without it is called like the program.
    let _ = set_name(NAME);
    let busy_ns = (duty * PERIOD_NS as f64) as u64;
    let born_ns = now_ns(ClockId::Monotonic);
    let mut due_ns = born_ns;
    while getppid() == Some(parent) && due_ns - born_ns < LIFETIME_S * 1_000_000_000 {
        burn(busy_ns);
        // A period that took longer, because the vCPU was shared, is not made up for.
        let end_ns = now_ns(ClockId::Monotonic);
        due_ns = (due_ns + PERIOD_NS).max(end_ns);
        // A full-time neighbour never sleeps, not even for nothing: whoever sleeps goes to the end of the queue.
        if due_ns > end_ns {
            std::thread::sleep(Duration::from_nanos(due_ns - end_ns));
        }
    }
    ExitCode::SUCCESS
}

/// Spins until this thread has used `busy_ns` of CPU time.
pub(crate) fn burn(busy_ns: u64) {
    let end_ns = thread_cpu_ns() + busy_ns;
    while thread_cpu_ns() < end_ns {
        // Thousands of additions between two looks at the clock: a neighbour that computes, not one that makes system calls.
        std::hint::black_box((0..5_000_u64).fold(0, |sum, i| std::hint::black_box(sum ^ i)));
    }
}

/// CPU time of this thread.
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

    #[test]
    fn burning_takes_the_cpu_time_it_was_asked_for() {
        let before_ns = thread_cpu_ns();
        burn(5_000_000);
        let used_ns = thread_cpu_ns() - before_ns;
        assert!((5_000_000..15_000_000).contains(&used_ns), "{used_ns} ns");
    }

    #[test]
    fn one_that_was_killed_is_known_to_have_ended() {
        let process = Command::new("sleep").arg("60").spawn().unwrap();
        let mut neighbour = Neighbour { process };
        assert_eq!(neighbour.ended(), None);
        neighbour.process.kill().unwrap();
        while neighbour.ended().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn an_ordinary_program_does_not_become_a_neighbour() {
        assert!(become_one_if_asked().is_none());
    }
}
