//! Decides which process of an MPI job prints, and checks that all processes were started with the same options. The
//! first process prints. Each other process prints only errors that it alone may have.

use std::thread;
use std::time::Duration;

use caribou::{Config, Launch};

use crate::error::Error;

/// How this process was started. With `CARIBOU_PROCESSES=threads` each process runs, and prints, by itself.
#[must_use]
pub fn current() -> Launch {
    // [`config`] reports errors in the environment.
    Config::from_env().unwrap_or_default().launch()
}

/// The configuration from the environment. A run refuses to start if processes of the job have different options.
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

/// Checks that all processes of the job print a text instead of running. A process that runs would wait for this one.
///
/// # Errors
/// [`Error::Runtime`] if another process was started with other options or settings.
pub fn agree_to_print(launch: Launch) -> Result<(), Error> {
    let Launch::Together { processes: processes @ 2.., .. } = launch else { return Ok(()) };
    meet(asked_for("help or a list")?, processes)
}

/// Checks that the run was disturbed as requested in all processes, because its figures are worthless otherwise.
/// `failed` is the error of this process, if any.
///
/// # Errors
/// [`Error::Runtime`] if another process was not disturbed as requested.
pub fn agree_on_disturbances(launch: Launch, failed: Option<&Error>) -> Result<(), Error> {
    let Launch::Together { processes: processes @ 2.., .. } = launch else { return Ok(()) };
    let how = failed.map_or("as requested".to_owned(), Error::to_string);
    meet(asked_for("a run")?.agree("how the run was disturbed", how), processes)
}

/// Connects the processes and compares their settings.
fn meet(config: Config, processes: u32) -> Result<(), Error> {
    // No run begins, because there are fewer processes than ranks.
    match caribou::run(config.without_checkpoints().lb("none")?.ranks(processes + 1), |_| {}) {
        Err(caribou::Error::Config { .. }) => Ok(()),
        met => Ok(met.map(drop)?),
    }
}

/// True if this process prints `error`.
#[must_use]
pub fn prints(launch: Launch, error: &Error) -> bool {
    launch.speaks() || !error.is_known_to_all()
}

/// Waits 200 ms, before this process ends with an error that another process prints. A launcher ends the whole job when
/// one process fails, and the error must be printed before that.
pub fn wait_for_printer() {
    thread::sleep(Duration::from_millis(200));
}

/// The number of ranks, each with `workers` workers: the number of processes in a job, else `asked`, else `alone`.
///
/// # Errors
/// [`Error::Usage`] if `asked` is not the number of processes, or if ranks and workers are too many for one process.
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
