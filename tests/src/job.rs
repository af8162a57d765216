//! Starts MPI jobs of our own programs.
//!
//! The variable `MPIRUN` names the launcher, which must be that of the MPI the programs were built with; `mpirun` unless
//! set. Without one, tests say so and pass.

use std::io::{BufRead, BufReader, Read};
use std::panic::resume_unwind;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::scratch::{Scratch, scratch};

/// A job that takes longer hangs, unless it is given another limit.
pub const JOB_TIMEOUT: Duration = Duration::from_secs(120);

/// Time that a launcher has to end its job.
const LAST_WORDS_MS: u32 = 5_000;

/// Jobs that run at a time. Most of them wait rather than compute; but all are pinned to the same vCPUs.
const AT_A_TIME: u32 = 4;

static RUNNING: Mutex<u32> = Mutex::new(0);
static ONE_HAS_ENDED: Condvar = Condvar::new();

/// The right to run a job, in as many of the places as it needs.
struct JobSlot(u32);

impl JobSlot {
    fn take(places: u32) -> JobSlot {
        let running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        let running = ONE_HAS_ENDED.wait_while(running, |running| *running + places > AT_A_TIME);
        *running.unwrap_or_else(PoisonError::into_inner) += places;
        JobSlot(places)
    }
}

impl Drop for JobSlot {
    fn drop(&mut self) {
        *RUNNING.lock().unwrap_or_else(PoisonError::into_inner) -= self.0;
        ONE_HAS_ENDED.notify_all();
    }
}

/// The launcher of a job, which is ended with its value if a test gives up before it has.
struct Launcher(Child);

impl Launcher {
    /// Its status, if it has ended.
    fn status(&mut self) -> Option<ExitStatus> {
        self.0.try_wait().expect("it can be asked")
    }

    /// Ends it, and so the processes of its job.
    fn end(&mut self) {
        signal("TERM", self.0.id());
        for _ in 0..LAST_WORDS_MS / 10 {
            if self.status().is_some() {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        // It may have ended by now.
        let _ = self.0.kill();
    }
}

impl Drop for Launcher {
    fn drop(&mut self) {
        if self.status().is_none() {
            self.end();
        }
    }
}

/// The command that starts `processes` of what follows; `None`, and a line that says so, where there is no launcher.
#[expect(clippy::print_stdout, reason = "a test that is skipped says so")]
#[expect(clippy::disallowed_methods, reason = "a variable names the program that starts jobs")]
pub fn launcher(processes: u32) -> Option<Command> {
    let name = std::env::var("MPIRUN").unwrap_or_else(|_| "mpirun".to_owned());
    let Ok(version) = Command::new(&name).arg("--version").output() else {
        println!("skipped: there is no {name} here");
        return None;
    };
    let mut command = Command::new(name);
    let version = String::from_utf8_lossy(&version.stdout);
    if version.contains("Open MPI") || version.contains("OpenRTE") {
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        // Bound to one vCPU each, ranks would be pinned whatever Caribou does.
        command.args(["--oversubscribe", "--bind-to", "none"]);
    }
    command.args(["-n", &processes.to_string()]);
    Some(command)
}

/// The results of all cases, each in a thread of its own.
///
/// # Panics
/// As the first case that does.
pub fn side_by_side<T: Send, R: Send>(
    cases: impl IntoIterator<Item = T>,
    run: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let run = &run;
    thread::scope(|scope| {
        let cases: Vec<_> = cases.into_iter().map(|case| scope.spawn(move || run(case))).collect();
        cases.into_iter().map(|case| case.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}

/// A job that is running.
pub struct Job {
    launcher: Launcher,
    lines: Receiver<String>,
    stderr: JoinHandle<String>,
    begin: Instant,
    limit: Duration,
    /// For the files that the launcher keeps while its job runs.
    ///
    /// The launchers of Open MPI share one folder otherwise, which each makes if it is missing and removes at its end if it
    /// is empty: two that start and end at once run into each other ("unable to create ...: File exists").
    _folder: Scratch,
    _turn: JobSlot,
}

/// The end of a job.
#[derive(Debug)]
pub struct JobResult {
    /// The launcher's status.
    pub status: ExitStatus,
    /// Its output from the last [`Job::line_with`] on.
    pub stdout: Vec<String>,
    /// All of it.
    pub stderr: String,
    /// From the start, or from the last [`Job::restart_clock`].
    pub took: Duration,
}

#[expect(clippy::disallowed_methods, reason = "a test has patience by the clock")]
fn now() -> Instant {
    Instant::now()
}

impl Job {
    /// Starts it, when it is its turn.
    ///
    /// # Panics
    /// If the launcher does not start.
    pub fn start(command: Command) -> Job {
        Job::start_in(JobSlot::take(1), command)
    }

    /// Starts it when no other job runs, and lets none start before its end: for what is told by times.
    ///
    /// # Panics
    /// If the launcher does not start.
    pub fn start_alone(command: Command) -> Job {
        Job::start_in(JobSlot::take(AT_A_TIME), command)
    }

    fn start_in(turn: JobSlot, mut command: Command) -> Job {
        let folder = scratch();
        std::fs::create_dir_all(&*folder).expect("a folder for the launcher");
        command.env("OMPI_MCA_orte_tmpdir_base", &folder);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the launcher starts");
        let stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut errors = child.stderr.take().expect("it is piped");
        let (sender, lines) = channel();
        thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let stderr = thread::spawn(move || {
            let mut bytes = Vec::new();
            // What cannot be read was not said.
            let _ = errors.read_to_end(&mut bytes);
            String::from_utf8_lossy(&bytes).into_owned()
        });
        Job {
            launcher: Launcher(child),
            lines,
            stderr,
            begin: now(),
            limit: JOB_TIMEOUT,
            _folder: folder,
            _turn: turn,
        }
    }

    /// Waits for a line with these words, passing over others.
    ///
    /// # Panics
    /// If none comes.
    pub fn line_with(&self, words: &str) -> String {
        let line =
            || self.lines.recv_timeout(JOB_TIMEOUT).unwrap_or_else(|_| panic!("no line with `{words}`"));
        std::iter::repeat_with(line).find(|line| line.contains(words)).expect("it does not end")
    }

    /// The process of each rank, from its line `rank R process P`.
    pub fn processes(&self, ranks: u32) -> Vec<u32> {
        let mut processes = vec![0; ranks as usize];
        for _ in 0..ranks {
            let line = self.line_with(" process ");
            let numbers: Vec<u32> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
            processes[numbers[0] as usize] = numbers[1];
        }
        processes
    }

    /// [`JobResult::took`] counts from now.
    pub fn restart_clock(&mut self) {
        self.begin = now();
    }

    /// A job that takes longer than this hangs.
    pub fn limit(mut self, limit: Duration) -> Job {
        self.limit = limit;
        self
    }

    /// Tells whether it is still running.
    pub fn is_running(&mut self) -> bool {
        self.launcher.status().is_none()
    }

    /// Waits for the end. A job that hangs is ended, which its status shows.
    pub fn wait(mut self) -> JobResult {
        let status = loop {
            if let Some(status) = self.launcher.status() {
                break status;
            }
            if self.begin.elapsed() > self.limit {
                self.launcher.end();
            }
            thread::sleep(Duration::from_millis(5));
        };
        let took = self.begin.elapsed();
        JobResult {
            status,
            stdout: self.lines.iter().collect(),
            stderr: self.stderr.join().unwrap_or_default(),
            took,
        }
    }
}

/// Sends a signal to a process of ours.
pub fn signal(name: &str, process: u32) {
    let sent = Command::new("kill").args([&format!("-{name}"), &process.to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()), "process {process} takes a {name}");
}

/// A process' memory, KiB.
pub fn resident_kib(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().split(' ').next()?.parse().ok()).unwrap_or(0)
}
