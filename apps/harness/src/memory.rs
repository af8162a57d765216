//! Checks before a run that a problem fits the memory. A process that runs out of memory later is killed.

use caribou::Launch;

use crate::error::Error;

/// Approximate bytes per chunk besides its own data: what runtime and allocator use, with a million chunks.
pub const CHUNK_BYTES: u64 = 800;

/// Refuses a problem that needs more memory than is available: `needed` bytes over all processes. `options` names its
/// options in the message. The number of processes per host is unknown here, so a problem is refused only if not even
/// one process fits.
///
/// # Errors
/// [`Error::Usage`], naming the options.
pub fn check(options: &str, needed: u64, launch: Launch) -> Result<(), Error> {
    let processes = match launch {
        Launch::Alone => 1,
        Launch::Together { processes, .. } => u64::from(processes.max(1)),
    };
    fits(options, needed / processes, caribou::machine::available_memory())
}

fn fits(options: &str, needed: u64, available: Option<u64>) -> Result<(), Error> {
    match available {
        Some(available) if needed > available => {
            let [needed, available] = gigabytes([needed, available]);
            Err(Error::Usage(format!(
                "{options}: a process needs {needed} of memory, and {available} are available"
            )))
        }
        _ => Ok(()),
    }
}

/// Formats both with as many digits as make them differ.
fn gigabytes(both: [u64; 2]) -> [String; 2] {
    let with = |digits| both.map(|bytes| format!("{:.digits$} GB", bytes as f64 / 1e9));
    (1..9).map(with).find(|[one, other]| one != other).unwrap_or_else(|| with(9))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_much_is_refused_with_what_is_needed_and_what_there_is() {
        let refused = fits("--grid 100000", 160_000_000_000, Some(24_000_000_000)).unwrap_err();
        let said = "--grid 100000: a process needs 160.0 GB of memory, and 24.0 GB are available";
        assert_eq!(refused.to_string(), said);
        let nearly = fits("--grid 3000", 144_000_000, Some(141_000_000)).unwrap_err().to_string();
        assert!(nearly.ends_with("needs 0.144 GB of memory, and 0.141 GB are available"), "{nearly}");
        assert!(fits("--grid 100000", 24, Some(24)).is_ok());
        assert!(fits("--grid 100000", u64::MAX, None).is_ok(), "nobody knows");
    }

    #[test]
    fn each_of_several_processes_has_its_part() {
        let all = u64::MAX / 2;
        assert!(check("--grid", all, Launch::Alone).is_err());
        let many = Launch::Together { process: 0, processes: u32::MAX };
        assert!(check("--grid", 1 << 40, many).is_ok());
    }
}
