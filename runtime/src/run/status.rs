//! Collects the status of a run from its recordings while it runs, for the [`monitor`](crate::monitor).

use std::sync::Arc;

use lb_strategies::Shape;
use litemap::LiteMap;

use super::recording::Session;
use crate::config::Config;
use crate::error::Error;
use crate::ids::{ROOT, Rank, WorkerId};
use crate::monitor::{KindStatus, Monitor, RankStatus, RunningStatus, Status, WorkerStatus};
use crate::trace::activity_board::Running;
use crate::trace::recording::Recording;
use crate::trace::records::{Name, RunRecord};
use crate::trace::{Activity, Profile};
use crate::warn::warn;

impl Session {
    /// Starts the monitor, if the configuration names an address. In a job, the process of rank R listens on the port
    /// plus R. For port 0 a warning names the port that was chosen.
    pub(crate) fn start_monitor(
        self: &Arc<Session>,
        config: &Config,
        rank: Rank,
    ) -> Result<Option<Monitor>, Error> {
        let Some(address) = &config.monitor else { return Ok(None) };
        let session = self.clone();
        let collect = Arc::new(move || session.status(rank));
        let resizes = self.resizes().clone();
        let resize = Arc::new(move |ranks| resizes.ask(ranks));
        let address = with_rank(address, rank);
        let monitor = Monitor::start(&address, rank, collect, resize)?;
        let listens = monitor.address();
        if address.rsplit(':').next() == Some("0") {
            warn(&format!("CARIBOU_MONITOR: rank {rank} serves the state of the run on {listens}"));
        }
        Ok(Some(monitor))
    }

    /// The status of the ranks of this process. `process` is the rank of the process, and 0 if it has several ranks.
    fn status(&self, process: Rank) -> Status {
        let mut recordings: Vec<Arc<Recording>> = self.recordings().clone();
        recordings.sort_unstable_by_key(|rank| rank.rank());
        let elapsed_ns = self.elapsed_ns();
        let mut kinds = LiteMap::new();
        let ranks = recordings.iter().map(|rank| rank_status(rank, self.run(), elapsed_ns, &mut kinds));
        let mut ranks: Vec<RankStatus> = ranks.collect();
        for Running { rank, worker, what, kind, long_ns } in self.running() {
            if let Some(status) = ranks.iter_mut().find(|status| status.rank == rank.0) {
                let worker = worker.map_or(status.workers.len() as u32, |worker| worker.0);
                status.running.push(RunningStatus { worker, what, kind, long_ns });
            }
        }
        // Only rank 0 has the syncs, if it is in this process.
        let syncs = recordings.first().map(|rank| rank.syncs_so_far()).unwrap_or_default();
        let run = self.run();
        let counts = recordings.first().filter(|rank| run.shape == Shape::Supersteps && rank.rank() == ROOT);
        Status {
            run_id: run.run_id.clone(),
            program: run.arguments.first().cloned().unwrap_or_default(),
            lb: run.lb.clone(),
            elapsed_ns,
            shape: run.shape,
            iterations_total: recordings.first().and_then(|rank| rank.iterations_total.get().copied()),
            ranks_total: run.ranks,
            ranks_active: (process == ROOT).then(|| self.resizes().active()),
            ranks,
            kinds: kinds.into_iter().map(|(_, kind)| kind).collect(),
            syncs: syncs.latest.into(),
            syncs_total: syncs.total,
            moved_total: syncs.moved,
            steps: counts.map(|rank| rank.steps_so_far()),
            finished: self.ended().is_some(),
            failed: self.ended().cloned().flatten(),
            ..Status::default()
        }
    }
}

fn rank_status(
    recording: &Recording,
    run: &RunRecord,
    elapsed_ns: u64,
    kinds: &mut LiteMap<String, KindStatus>,
) -> RankStatus {
    let names = recording.names();
    let sample = recording.last_sample();
    let worker = |worker| {
        // Copied, so that the worker does not wait while the rows are added up.
        let profile = recording.profile(worker).clone();
        add_kinds(&profile, &names, recording.array_names(), kinds);
        worker_status(worker, &profile, elapsed_ns)
    };
    let workers: Vec<WorkerStatus> = (0..recording.workers()).map(WorkerId).map(worker).collect();
    RankStatus {
        rank: recording.rank().0,
        host: run.hosts.get(recording.rank().index()).cloned().unwrap_or_default(),
        messages: workers.iter().map(|worker| worker.handlers).sum(),
        chunks: sample.map_or(0, |sample| sample.chunks),
        waiting_bytes: recording.waiting.bytes(),
        waiting_bytes_max: recording.waiting.bytes_max(),
        iterations: recording.iterations(),
        workers,
        sample,
        running: Vec::new(),
    }
}

fn worker_status(worker: WorkerId, profile: &Profile, elapsed_ns: u64) -> WorkerStatus {
    let mut status = WorkerStatus { worker: worker.0, wall_ns: elapsed_ns, ..WorkerStatus::default() };
    for row in &profile.rows {
        match row.activity {
            Activity::Kind(_) | Activity::Iterations => {
                status.cpu_ns += row.total_ns();
                status.handlers += row.calls();
            }
            Activity::Idle => status.idle_ns += row.total_ns(),
            Activity::Runtime(_) => status.runtime_ns += row.total_ns(),
            Activity::Lost => status.lost_ns += row.total_ns(),
        }
    }
    status
}

fn add_kinds(profile: &Profile, names: &[Name], arrays: &[String], kinds: &mut LiteMap<String, KindStatus>) {
    for row in &profile.rows {
        let name = match row.activity {
            Activity::Kind(kind) => match names.get(kind.0 as usize) {
                Some(Name { array: Some(array), text }) => {
                    format!("{}::{text}", arrays.get(array.index()).map_or("", String::as_str))
                }
                _ => continue,
            },
            Activity::Iterations => "iterations".into(),
            _ => continue,
        };
        let kind = kinds.entry(name.clone()).or_insert(KindStatus { name, ..KindStatus::default() });
        kind.cpu_ns += row.total_ns();
        kind.calls += row.calls();
        kind.longest_ns = kind.longest_ns.max(row.longest_ns());
    }
}

/// The address with the port of this rank. If the address is invalid, the listener reports that.
fn with_rank(address: &str, rank: Rank) -> String {
    let (host, port) = address.rsplit_once(':').unwrap_or(("", address));
    match port.parse::<u32>() {
        Ok(port) if port > 0 && rank != ROOT => format!("{host}:{}", port.saturating_add(rank.0)),
        _ => address.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_process_has_a_port_of_its_own() {
        assert_eq!(with_rank("9000", Rank(0)), "9000");
        assert_eq!(with_rank("9000", Rank(3)), ":9003");
        assert_eq!(with_rank("host:9000", Rank(1)), "host:9001");
        assert_eq!(with_rank("[::1]:9000", Rank(1)), "[::1]:9001");
        assert_eq!(with_rank("host:0", Rank(1)), "host:0");
    }
}
