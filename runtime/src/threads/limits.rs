//! Checks that a process has room for the threads that were asked for: before they are started, since a thread that
//! finds no memory for its stack ends the process.

use rustix::process::{Resource, getrlimit};

use crate::error::Error;
use crate::text::counted;
use crate::warn::warn;

/// Threads of one process, at most: hundreds a vCPU of a large host. More are a slip of the finger.
const THREADS_MAX: u64 = 4096;
/// Ranks of one process, at most: there is a ring between every two of them.
const RANKS_MAX: u32 = 1024;
/// Starting so many threads takes a second or more.
const THREADS_MANY: u64 = 256;
/// Address space of a thread: its stack, as std makes them, what guards it, and a stack for signals.
const THREAD_BYTES: u64 = (2 << 20) + (64 << 10);

/// Refuses what cannot be started, and warns of what takes long.
pub(crate) fn check_can_start_threads(ranks: u32, workers: u32) -> Result<(), Error> {
    check_room(ranks, workers)?;
    let threads = u64::from(ranks) * u64::from(workers);
    if let Some(limit) = getrlimit(Resource::As).current {
        fit(threads, address_space_used(), limit)?;
    }
    if threads >= THREADS_MANY {
        warn(&format!("{}: starting so many threads takes a while", text(ranks, workers)));
    }
    Ok(())
}

/// Refuses more ranks, of so many workers each, than one process can be meant to have, as a run does when it starts: for a
/// program that has more to say before.
///
/// ```
/// assert!(caribou::check_room(2, 4).is_ok());
/// assert!(caribou::check_room(1, 100_000).unwrap_err().to_string().contains("at most 4096 threads"));
/// ```
///
/// # Errors
/// [`Error::Config`], naming the number that is too large.
pub fn check_room(ranks: u32, workers: u32) -> Result<(), Error> {
    let threads = u64::from(ranks) * u64::from(workers);
    let wrong = |setting: &str, most: &str| {
        Err(Error::Config {
            setting: setting.into(),
            why: format!("{} are too many for one process: at most {most}", text(ranks, workers)),
        })
    };
    if ranks > RANKS_MAX {
        return wrong("ranks", &format!("{RANKS_MAX} ranks"));
    }
    if threads > THREADS_MAX {
        return wrong("workers", &format!("{THREADS_MAX} threads"));
    }
    Ok(())
}

fn fit(threads: u64, used_bytes: u64, limit_bytes: u64) -> Result<(), Error> {
    let needed_bytes = used_bytes.saturating_add(threads * THREAD_BYTES);
    if needed_bytes <= limit_bytes {
        return Ok(());
    }
    let why = format!(
        "they need {} MiB of address space, of which this process may have {} MiB (`ulimit -v`)",
        needed_bytes >> 20,
        limit_bytes >> 20
    );
    Err(Error::System { what: format!("{threads} threads"), why })
}

fn text(ranks: u32, workers: u32) -> String {
    let (ranks, workers) =
        (counted(ranks as usize, "rank", "ranks"), counted(workers as usize, "worker", "workers"));
    format!("{ranks} x {workers}")
}

/// Bytes; none where the kernel does not say.
fn address_space_used() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmSize:"));
    let kib: Option<u64> = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
    kib.unwrap_or(0) << 10
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_process_can_be_meant_to_have_is_refused_by_name() {
        assert_eq!(check_room(1, 4096), Ok(()));
        for (ranks, workers, expected) in [
            (
                1,
                100_000,
                "workers: 1 rank x 100000 workers are too many for one process: at most 4096 threads",
            ),
            (5000, 1, "ranks: 5000 ranks x 1 worker are too many for one process: at most 1024 ranks"),
            (u32::MAX, u32::MAX, "ranks: "),
        ] {
            let why = check_room(ranks, workers).expect_err("too many").to_string();
            assert!(why.starts_with(expected), "{why}");
        }
    }

    #[test]
    fn threads_that_find_no_address_space_are_refused_before_they_are_started() {
        assert_eq!(fit(3000, 1 << 30, 8 << 30), Ok(()));
        let why = fit(5000, 1 << 30, 8 << 30).expect_err("there is no room").to_string();
        assert!(why.starts_with("5000 threads: they need 11336 MiB of address space"), "{why}");
    }
}
