//! Finds the threads of this process that are a rank's workers, and the vCPU of worker 0, for the disturbance injector.
//!
//! Threads are found in `/proc` by name, and a vCPU by the thread's affinity mask. It cannot be computed here, because
//! the runtime pins by the CPU masks of all processes of a host. Threads are named `caribou RANK.WORKER`. Under MPI the
//! main thread of a program of arrays is worker 0 of the process's rank and keeps its own name.

use std::fs;

use caribou::Launch;
use rustix::process::{Pid, getpid};
use rustix::thread::{CpuSet, sched_getaffinity};

/// The workers of `rank` that exist by now, ordered by number. A rank of another process has none here.
#[must_use]
pub(crate) fn of_rank(rank: u32, launch: Launch) -> Vec<Pid> {
    let prefix = format!("caribou {rank}.");
    let mut workers: Vec<(u32, Pid)> = threads()
        .filter_map(|(name, thread)| Some((name.trim_end().strip_prefix(&prefix)?.parse().ok()?, thread)))
        .collect();
    let is_main = |process| process == rank && workers.iter().all(|&(worker, _)| worker != 0);
    if matches!(launch, Launch::Together { process, .. } if is_main(process)) {
        workers.push((0, getpid()));
    }
    workers.sort_unstable_by_key(|&(worker, _)| worker);
    workers.into_iter().map(|(_, thread)| thread).collect()
}

/// The vCPU of worker 0 of `rank`; `None` while that worker is not pinned to one vCPU.
#[must_use]
pub(crate) fn first_vcpu(rank: u32, launch: Launch) -> Option<usize> {
    let mask = sched_getaffinity(Some(*of_rank(rank, launch).first()?)).ok()?;
    let mut vcpus = (0..CpuSet::MAX_CPU).filter(|&vcpu| mask.is_set(vcpu));
    vcpus.next().filter(|_| vcpus.next().is_none())
}

/// All threads of this process, with their names.
fn threads() -> impl Iterator<Item = (String, Pid)> {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    tasks.filter_map(|task| {
        let name = fs::read_to_string(task.path().join("comm")).ok()?;
        Some((name, Pid::from_raw(task.file_name().to_str()?.parse().ok()?)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::thread::sched_setaffinity;
    use std::sync::mpsc;

    /// Runs `look` while a thread with this name exists that has run `first`. Returns when `/proc` no longer lists it.
    fn beside(name: &str, first: impl FnOnce() + Send + 'static, look: impl FnOnce()) {
        let (ready, is_ready) = mpsc::channel();
        let (stop, stopped) = mpsc::channel::<()>();
        let life = move || {
            first();
            ready.send(()).unwrap();
            stopped.recv().is_ok()
        };
        let worker = std::thread::Builder::new().name(name.to_owned()).spawn(life).unwrap();
        is_ready.recv().unwrap();
        look();
        drop(stop);
        worker.join().unwrap();
        // A thread that was joined is listed until the kernel has reaped it.
        while threads().any(|(listed, _)| listed.trim_end() == name) {
            std::thread::yield_now();
        }
    }

    #[test]
    fn workers_are_found_by_their_thread_names_in_order() {
        beside(
            "caribou 7.1",
            || {},
            || {
                beside(
                    "caribou 7.0",
                    || {},
                    || {
                        let name = |worker: &Pid| {
                            let task = format!("/proc/self/task/{}/comm", worker.as_raw_nonzero());
                            fs::read_to_string(task).unwrap()
                        };
                        let names: Vec<String> = of_rank(7, Launch::Alone).iter().map(name).collect();
                        assert_eq!(names, ["caribou 7.0\n", "caribou 7.1\n"]);
                        assert!(of_rank(77, Launch::Alone).is_empty());
                    },
                );
                assert_eq!(of_rank(7, Launch::Alone).len(), 1);
            },
        );
    }

    #[test]
    fn the_main_thread_is_worker_0_of_the_rank_that_a_process_is() {
        let launch = Launch::Together { process: 8, processes: 9 };
        beside(
            "caribou 8.1",
            || {},
            || {
                assert_eq!(of_rank(8, launch).len(), 2);
                assert_eq!(of_rank(8, launch)[0], getpid());
            },
        );
        assert!(of_rank(5, launch).is_empty());
    }

    #[test]
    fn a_worker_has_a_vcpu_when_it_is_pinned_to_one() {
        let allowed = sched_getaffinity(None).unwrap();
        let last = (0..CpuSet::MAX_CPU).rfind(|&vcpu| allowed.is_set(vcpu)).unwrap();
        let pin = move || {
            let mut mask = CpuSet::new();
            mask.set(last);
            sched_setaffinity(None, &mask).unwrap();
        };
        beside("caribou 9.0", pin, || assert_eq!(first_vcpu(9, Launch::Alone), Some(last)));
        if allowed.count() > 1 {
            beside("caribou 9.0", || {}, || assert_eq!(first_vcpu(9, Launch::Alone), None));
        }
        assert_eq!(first_vcpu(9, Launch::Alone), None);
    }
}
