//! The start of this process, which decides what it prints: of the processes of an MPI job only the first prints.
//!
//! The others are silent but for errors that they alone may know.

use std::thread;
use std::time::Duration;

use caribou::{Config, Launch};

use crate::error::Error;

/// The way this process was started. `CARIBOU_PROCESSES=threads` makes each process one that runs, and speaks, by itself.
#[must_use]
pub fn current() -> Launch {
    // What is wrong with the environment is said where the configuration is used.
    Config::from_env().unwrap_or_default().launch()
}

/// The configuration, as the environment has it. Processes of a job that were started with other options than the first
/// make no run together.
///
/// # Errors
/// [`Error::Runtime`], naming the variable that is wrong.
pub fn config() -> Result<Config, Error> {
    asked_for("a run")
}

fn asked_for(what: &str) -> Result<Config, Error> {
    let options: Vec<String> =
        std::env::args_os().skip(1).map(|option| option.to_string_lossy().into_owned()).collect();
    Ok(Config::from_env()?.agree("what is asked for", what).agree("the command line", options.join(" ")))
}

/// Makes sure that all processes of the job were asked for a text instead of a run: one that ran would wait for this one.
///
/// # Errors
/// [`Error::Runtime`] where another one was started with other options or settings.
pub fn agree_to_print(launch: Launch) -> Result<(), Error> {
    let Launch::Together { processes: processes @ 2.., .. } = launch else { return Ok(()) };
    meet(asked_for("help or a list")?, processes)
}

/// Makes sure that a run was disturbed in all processes as it was asked to be: figures of another are worth nothing. Where that
/// was not so `failed` says why.
///
/// # Errors
/// [`Error::Runtime`] where it was not so in another.
pub fn agree_on_disturbances(launch: Launch, failed: Option<&Error>) -> Result<(), Error> {
    let Launch::Together { processes: processes @ 2.., .. } = launch else { return Ok(()) };
    let how = failed.map_or("as it was asked to be".to_owned(), Error::to_string);
    meet(asked_for("a run")?.agree("how the run was disturbed", how), processes)
}

/// Lets the processes meet and compare their settings.
fn meet(config: Config, processes: u32) -> Result<(), Error> {
    // With this number of ranks no run begins.
    match caribou::run(config.without_checkpoints().lb("none")?.ranks(processes + 1), |_| {}) {
        Err(caribou::Error::Config { .. }) => Ok(()),
        met => Ok(met.map(drop)?),
    }
}

/// Tells if this process is the one to print `error`.
#[must_use]
pub fn prints(launch: Launch, error: &Error) -> bool {
    launch.speaks() || !error.is_known_to_all()
}

/// Waits a moment, before this process ends with an error that another one prints: a launcher ends the whole job when the
/// first process fails, and the one that speaks is to be heard before.
pub fn wait_for_printer() {
    thread::sleep(Duration::from_millis(200));
}

/// The ranks of a program: as many as were asked for; else one per process, or `alone` in a process by itself. Each is to
/// have `workers` workers.
///
/// # Errors
/// [`Error::Usage`] when another number of processes was started, or the ranks or workers of a process are more than the
/// runtime has room for.
pub fn ranks(launch: Launch, asked: Option<u32>, alone: u32, workers: u32) -> Result<u32, Error> {
    let (ranks, here) = match launch {
        Launch::Alone => (asked.unwrap_or(alone), asked.unwrap_or(alone)),
        Launch::Together { processes, .. } => (processes, 1),
    };
    if let Some(other) = asked.filter(|&asked| asked != ranks) {
        return Err(Error::Usage(format!(
            "--ranks {other}: {ranks} processes were started, and each is one rank"
        )));
    }
    caribou::machine::check_room(here, workers).map_err(|error| match error {
        caribou::Error::Config { why, .. } => Error::Usage(format!("--ranks, --workers: {why}")),
        other => other.into(),
    })?;
    Ok(ranks)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAST: Launch = Launch::Together { process: 3, processes: 4 };

    #[test]
    fn each_process_is_a_rank_and_nothing_else_can_be_asked_for() {
        assert_eq!(ranks(Launch::Alone, None, 2, 1).unwrap(), 2);
        assert_eq!(ranks(Launch::Alone, Some(3), 2, 1).unwrap(), 3);
        assert_eq!(ranks(LAST, None, 2, 1).unwrap(), 4);
        assert_eq!(ranks(LAST, Some(4), 2, 1).unwrap(), 4);
        assert!(ranks(LAST, Some(3), 2, 1).unwrap_err().to_string().contains("4 processes"));
    }

    #[test]
    fn a_process_has_as_many_ranks_and_workers_as_the_runtime_lets_it() {
        assert_eq!(ranks(Launch::Alone, Some(2), 1, 2048).unwrap(), 2);
        assert_eq!(ranks(LAST, None, 1, 4096).unwrap(), 4);
        let said = |refused: Result<u32, Error>| refused.unwrap_err().to_string();
        assert_eq!(
            said(ranks(Launch::Alone, Some(2), 1, 2049)),
            "--ranks, --workers: 2 ranks x 2049 workers are too many for one process: at most 4096 threads"
        );
        assert!(said(ranks(LAST, None, 1, 4097)).contains("1 rank x 4097 workers"));
        for too_many in [ranks(Launch::Alone, Some(1025), 1, 1), ranks(Launch::Alone, None, 1025, 1)] {
            assert!(said(too_many).contains("at most 1024 ranks"));
        }
    }

    #[test]
    fn an_error_is_printed_once_unless_others_may_not_know_it() {
        let usage = Error::Usage("no".to_owned());
        let lost =
            Error::Runtime(caribou::Error::RankLost { rank: caribou::lb::Rank(1), why: "killed".to_owned() });
        assert!(prints(Launch::Alone, &usage) && prints(Launch::Alone, &lost));
        assert!(prints(Launch::Together { process: 0, processes: 4 }, &usage));
        assert!(!prints(LAST, &usage) && prints(LAST, &lost));
        assert!(prints(LAST, &Error::NotPinned { rank: 3 }));
        let config = |setting: &str| {
            Error::Runtime(caribou::Error::Config { setting: setting.to_owned(), why: "no".to_owned() })
        };
        assert!(!prints(LAST, &config("CARIBOU_LB")));
        assert!(prints(LAST, &config("CARIBOU_PROCESSES")), "others may not be there");
    }
}
