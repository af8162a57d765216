//! Checks, before threads are started, that a process can have as many as were requested. A thread without memory for
//! its stack would end the process.

use rustix::process::{Resource, getrlimit};

use crate::error::Error;
use crate::text::counted;
use crate::warn::warn;

/// Maximum number of threads per process: hundreds per vCPU of a large host. A larger number is taken for a mistake.
const THREADS_MAX: u64 = 4096;
/// Maximum number of ranks per process: there is one ring per pair of ranks.
const RANKS_MAX: u32 = 1024;
/// Number of threads from which starting them takes a second or more.
const THREADS_MANY: u64 = 256;
/// Address space per thread, bytes: the stack size of std, the guard pages, and a signal stack.
const THREAD_BYTES: u64 = (2 << 20) + (64 << 10);

/// Refuses threads that cannot be started, and warns if their start takes long.
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

/// Checks that one process may have this number of ranks with this number of workers each.
///
/// A run checks this when it starts. A program that prints something first can check it earlier.
///
/// ```
/// assert!(caribou::machine::check_room(2, 4).is_ok());
/// assert!(caribou::machine::check_room(1, 100_000).unwrap_err().to_string().contains("at most 4096 threads"));
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

/// Address space that the process uses, bytes; 0 if the kernel does not report it.
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
    fn too_many_ranks_or_threads_are_refused_with_the_name_of_the_setting() {
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
    fn threads_that_exceed_the_address_space_are_refused_before_they_start() {
        assert_eq!(fit(3000, 1 << 30, 8 << 30), Ok(()));
        let why = fit(5000, 1 << 30, 8 << 30).expect_err("there is no room").to_string();
        assert!(why.starts_with("5000 threads: they need 11336 MiB of address space"), "{why}");
    }
}
