//! Finds how this process was started: alone, or as one of several by a launcher such as `mpirun` or `srun`.
//!
//! Launchers set environment variables, which this module reads. MPI would be more reliable, but must be started before
//! it can answer, and a program without MPI must not pay for that.

/// The way a process was started.
///
/// ```
/// use caribou::Launch;
/// let first = Launch::Together { process: 0, processes: 4 };
/// assert!(first.speaks() && Launch::Alone.speaks());
/// assert!(!Launch::Together { process: 3, processes: 4 }.speaks());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launch {
    /// Without a launcher, or as the only process.
    Alone,
    /// As one of several processes of a launcher.
    Together {
        /// Its number, which is its rank.
        process: u32,
        /// Number of processes.
        processes: u32,
    },
}

impl Launch {
    /// True if this process prints results for all processes: the only process, or the first of several. Only its
    /// report has the syncs. [`Config::launch`](crate::Config::launch) describes what else differs between processes.
    pub fn speaks(&self) -> bool {
        matches!(self, Launch::Alone | Launch::Together { process: 0, .. })
    }
}

/// The variables in which launchers pass a process its number and the number of processes.
const LAUNCHERS: [(&str, &str); 4] = [
    // Open MPI, also under Slurm.
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    // MPICH and derived libraries, by Hydra or by Slurm's PMI-2.
    ("PMI_RANK", "PMI_SIZE"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
    // Slurm with PMIx.
    ("PMIX_RANK", "SLURM_NTASKS"),
];

/// The variables in which launchers pass a process its number on its host.
const LOCAL_NUMBERS: [&str; 4] =
    ["OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "MV2_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"];

#[expect(clippy::disallowed_methods, reason = "launchers' variables are read here, Caribou's own in Config")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Reads in the environment how this process was started.
pub(crate) fn found() -> Launch {
    from_env_vars(variable)
}

/// False if a variable of a launcher shows that this process is not the first of its host.
pub(crate) fn is_first_of_host() -> bool {
    is_first(variable)
}

fn is_first(variable: impl Fn(&str) -> Option<String>) -> bool {
    let number = |name: &&str| variable(name)?.trim().parse::<u32>().ok();
    LOCAL_NUMBERS.iter().find_map(number).is_none_or(|number| number == 0)
}

fn from_env_vars(variable: impl Fn(&str) -> Option<String>) -> Launch {
    let number = |name: &str| variable(name)?.trim().parse::<u32>().ok();
    let launcher = |(rank, size): (&str, &str)| Some((number(rank)?, number(size)?));
    match LAUNCHERS.into_iter().find_map(launcher) {
        Some((process, processes)) if process < processes => Launch::Together { process, processes },
        _ => Launch::Alone,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_are_recognised_by_what_they_set() {
        let with = |set: &[(&str, &str)]| {
            from_env_vars(|name| {
                set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
            })
        };
        let third = Launch::Together { process: 2, processes: 4 };
        assert_eq!(with(&[("OMPI_COMM_WORLD_RANK", "2"), ("OMPI_COMM_WORLD_SIZE", "4")]), third);
        assert_eq!(with(&[("PMI_RANK", "2"), ("PMI_SIZE", "4")]), third);
        assert_eq!(with(&[("PMIX_RANK", "2"), ("SLURM_NTASKS", "4")]), third);
        assert_eq!(with(&[("SLURM_NTASKS", "4"), ("SLURM_PROCID", "2")]), Launch::Alone, "a batch script");
        assert_eq!(with(&[("PMI_RANK", "x"), ("PMI_SIZE", "4")]), Launch::Alone);
    }

    #[test]
    fn the_first_process_of_a_host_is_told_from_the_others() {
        let with = |set: Option<(&str, &str)>| {
            is_first(|name| set.filter(|(key, _)| *key == name).map(|(_, value)| value.to_owned()))
        };
        assert!(with(None) && with(Some(("OMPI_COMM_WORLD_LOCAL_RANK", "0"))));
        assert!(!with(Some(("OMPI_COMM_WORLD_LOCAL_RANK", "1"))) && !with(Some(("MPI_LOCALRANKID", "3"))));
    }
}
