//! Runs a benchmark of two processes. Started without a launcher, the benchmark starts itself again as a job.

use std::process::{Command, ExitCode};

use caribou::{Config, Launch};

/// The exit code of a launcher that cannot run here, as of `tools/hosts`.
const SKIPPED: i32 = 77;

/// Runs `measure` in both processes of a job. Started without a launcher, starts this program again with the same
/// arguments, by `mpirun -bind-to core -n 2`, or by the launcher and options in `MPIRUN`, which then binds as it likes.
///
/// # Panics
/// If it was started as a job of more or fewer processes, or the environment is wrong.
pub fn of_two(measure: impl FnOnce()) -> ExitCode {
    match Config::from_env().expect("the environment is right").launch() {
        Launch::Together { processes: 2, .. } => measure(),
        Launch::Together { .. } => panic!("this is a benchmark of two processes"),
        Launch::Alone => return start_under_mpirun(),
    }
    ExitCode::SUCCESS
}

#[expect(clippy::print_stderr, reason = "a benchmark reports to who started it")]
fn start_under_mpirun() -> ExitCode {
    #[expect(clippy::disallowed_methods, reason = "a benchmark asks which launcher to use")]
    let mpirun = std::env::var("MPIRUN").unwrap_or_else(|_| "mpirun -bind-to core".into());
    let me = std::env::current_exe().expect("a benchmark has a file");
    let mut words = mpirun.split_whitespace();
    let mut job = Command::new(words.next().unwrap_or("mpirun"));
    job.args(words).args(["-n", "2"]).arg(me).args(std::env::args_os().skip(1));
    job.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    match job.status() {
        Ok(status) if status.success() || status.code() == Some(SKIPPED) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("skipped: {mpirun} does not start: {why}");
            ExitCode::SUCCESS
        }
    }
}
