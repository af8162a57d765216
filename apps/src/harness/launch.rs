//! How this process was started, and so what it says: of the processes of an MPI job only the first speaks for all.
//!
//! The others are silent but for errors that they alone may know.

use std::thread;
use std::time::Duration;

use caribou::{Config, Launch};

use crate::harness::error::Error;

/// How this process was started. `CARIBOU_PROCESSES=threads` makes each process one that runs, and speaks, by itself.
#[must_use]
pub fn this() -> Launch {
    // What is wrong with the environment is said where the configuration is used.
    Config::from_env().unwrap_or_default().launch()
}

/// The configuration, as the environment has it. Processes of a job that were started with other options than the first
/// make no run together.
///
/// # Errors
/// [`Error::Runtime`], naming the variable that is wrong.
pub fn config() -> Result<Config, Error> {
    let options: Vec<String> =
        std::env::args_os().skip(1).map(|option| option.to_string_lossy().into_owned()).collect();
    Ok(Config::from_env()?.agree("the command line", options.join(" ")))
}

/// Whether this process is the one to print `error`.
#[must_use]
pub fn tells(launch: Launch, error: &Error) -> bool {
    launch.speaks() || !error.is_known_to_all()
}

/// Waits a moment, before this process ends with an error that another one prints: a launcher ends the whole job when the
/// first process fails, and the one that speaks is to be heard before.
pub fn give_way() {
    thread::sleep(Duration::from_millis(200));
}

/// The most ranks of a process by itself: each pair of them is connected, so memory and time grow with their square,
/// and with twice as many a pool of a second takes minutes.
const RANKS_MAX_ALONE: u32 = 512;

/// The most workers of a process, threads each.
const WORKERS_MAX: u64 = 1024;

/// The ranks of a program: as many as were asked for; else one a process, or `alone` in a process by itself. Each is to
/// have so many workers.
///
/// # Errors
/// [`Error::Usage`] when another number of processes was started, or a process is to have too many ranks or workers.
pub fn ranks(launch: Launch, asked: Option<u32>, alone: u32, workers: u32) -> Result<u32, Error> {
    let ranks = number_of_ranks(launch, asked, alone)?;
    let here = if launch == Launch::Alone { ranks } else { 1 };
    if u64::from(here) * u64::from(workers) > WORKERS_MAX {
        return Err(Error::Usage(format!(
            "{workers} workers for each of {here} ranks: expected {WORKERS_MAX} workers at most in one process; \
             --workers or CARIBOU_WORKERS says how many"
        )));
    }
    Ok(ranks)
}

fn number_of_ranks(launch: Launch, asked: Option<u32>, alone: u32) -> Result<u32, Error> {
    match (launch, asked) {
        (Launch::Alone, asked) if asked.unwrap_or(alone) > RANKS_MAX_ALONE => {
            Err(Error::Usage(match asked {
                Some(ranks) => format!("--ranks {ranks}: expected {RANKS_MAX_ALONE} at most in one process"),
                None => format!(
                    "{alone} ranks: expected {RANKS_MAX_ALONE} at most in one process; --ranks or CARIBOU_RANKS says how many"
                ),
            }))
        }
        (Launch::Alone, asked) => Ok(asked.unwrap_or(alone)),
        (Launch::Together { processes, .. }, Some(ranks)) if ranks != processes => Err(Error::Usage(
            format!("--ranks {ranks}: {processes} processes were started, and each is one rank"),
        )),
        (Launch::Together { processes, .. }, _) => Ok(processes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAST: Launch = Launch::Together { process: 3, processes: 4 };

    #[test]
    fn each_process_is_a_rank_and_nothing_else_can_be_asked_for() {
        assert_eq!(ranks(Launch::Alone, None, 2, 1).unwrap(), 2);
        assert_eq!(ranks(Launch::Alone, Some(3), 2, 1).unwrap(), 3);
        assert_eq!(ranks(Launch::Alone, Some(512), 2, 1).unwrap(), 512);
        assert!(ranks(Launch::Alone, Some(513), 2, 1).unwrap_err().to_string().starts_with("--ranks 513"));
        assert!(ranks(Launch::Alone, None, 513, 1).unwrap_err().to_string().starts_with("513 ranks"));
        assert_eq!(ranks(LAST, None, 2, 1).unwrap(), 4);
        assert_eq!(ranks(LAST, Some(4), 2, 1).unwrap(), 4);
        assert!(ranks(LAST, Some(3), 2, 1).unwrap_err().to_string().contains("4 processes"));
    }

    #[test]
    fn a_process_has_a_thousand_workers_at_most() {
        assert_eq!(ranks(Launch::Alone, Some(2), 1, 512).unwrap(), 2);
        assert_eq!(ranks(LAST, None, 1, 1024).unwrap(), 4);
        for too_many in [ranks(Launch::Alone, Some(2), 1, 513), ranks(LAST, None, 1, 1025)] {
            assert!(too_many.unwrap_err().to_string().contains("1024 workers at most"));
        }
    }

    #[test]
    fn an_error_is_printed_once_unless_others_may_not_know_it() {
        let usage = Error::Usage("no".to_owned());
        let lost = Error::Runtime(caribou::Error::RankLost { rank: 1, why: "killed".to_owned() });
        assert!(tells(Launch::Alone, &usage) && tells(Launch::Alone, &lost));
        assert!(tells(Launch::Together { process: 0, processes: 4 }, &usage));
        assert!(!tells(LAST, &usage) && tells(LAST, &lost));
        assert!(tells(LAST, &Error::NotPinned { rank: 3 }));
    }
}
