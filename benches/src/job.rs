//! A benchmark of two processes: started plainly, it starts itself again as a job.

use std::process::{Command, ExitCode};

use caribou::{Config, Launch};

/// The status by which a launcher says that it cannot run here: that of `tools/hosts`.
const SKIPPED: i32 = 77;

/// Lets the two processes of a job `measure`; started plainly, starts this program again with the same arguments as a job of
/// two: by `mpirun -bind-to core`, or what `MPIRUN` says instead, a launcher and its options, which then binds as it likes.
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
