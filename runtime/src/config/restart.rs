//! Chooses the checkpoint from which a run is restarted.

use std::cmp::Ordering;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::{Config, wrong};
use crate::checkpoint::{Saved, Settings, chosen, finish, newest_whole, offering_older};
use crate::error::Error;
use crate::warn::{print_line, warn};

impl Config {
    /// As [`restart`](Self::restart), for a process with several runs. The run that wrote the checkpoint is restarted.
    /// Earlier runs are repeated without checkpoints, and later runs begin anew.
    pub(super) fn restart_process(self, dir: impl Into<PathBuf>) -> Config {
        Config { restarts_process: true, ..self.restart(dir) }
    }

    /// This configuration, with the checkpoint from which the run is restarted. Must be called once for each run of the
    /// process that makes checkpoints or is restarted.
    pub(crate) fn with_chosen_checkpoint(&self) -> Result<Config, Error> {
        static RUNS: AtomicU32 = AtomicU32::new(0);
        self.warn_of_spot();
        if self.checkpoint.is_none() && self.restart.is_none() {
            return Ok(self.clone());
        }
        let run = RUNS.fetch_add(1, Relaxed);
        let program = || self.program.clone();
        let checkpoint =
            self.checkpoint.clone().map(|settings| Settings { run, program: program(), ..settings });
        let restart = self.restart.as_ref().map_or(Ok(None), |dir| self.chosen(dir));
        let restart = restart.map_err(|why| wrong("CARIBOU_RESTART", why))?;
        let config = Config { checkpoint, restart, ..self.clone() };
        let mut config = if config.restarts_process { config.of_run(run)? } else { config };
        if let (Some(settings), Some(path)) = (&mut config.checkpoint, &config.restart) {
            // If the manifest cannot be read, the ranks report the error later.
            settings.elapsed_before_ns = Some(Saved::open(path).map_or(0, |saved| saved.manifest.elapsed_ns));
        }
        Ok(config)
    }

    /// Marks that the run has its result. In a job only the first process does this.
    pub(crate) fn finish_checkpoints(&self) {
        if let Some(settings) = self.checkpoint.as_ref().filter(|_| self.launch().speaks()) {
            finish(&settings.dir);
        }
    }

    /// Warns once that the metadata service is not polled, because the run makes no checkpoints.
    fn warn_of_spot(&self) {
        static TOLD: Once = Once::new();
        let would_be_asked = !self.spot.is_none() && self.simulate.is_none();
        if would_be_asked && self.checkpoint.is_none() && self.launch().speaks() {
            TOLD.call_once(|| {
                warn("CARIBOU_SPOT has no effect without CARIBOU_CHECKPOINT: no metadata service is polled");
            });
        }
    }

    /// The checkpoint that the setting `dir` of a restart names; none if the run begins anew.
    fn chosen(&self, dir: &Path) -> Result<Option<PathBuf>, String> {
        match &self.checkpoint {
            _ if dir != Path::new("auto") => chosen(dir).map(Some),
            Some(settings) => self.newest_whole(&settings.dir),
            None => Err("auto continues from the directory of CARIBOU_CHECKPOINT, which is not set".into()),
        }
    }

    /// The newest undamaged checkpoint of a directory; none if there is no checkpoint. Warns of damaged checkpoints.
    /// Fails if all are damaged or the directory cannot be read, because a new run would remove checkpoints that could
    /// be repaired.
    fn newest_whole(&self, dir: &Path) -> Result<Option<PathBuf>, String> {
        if let Err(why) = fs::read_dir(dir)
            && why.kind() != ErrorKind::NotFound
        {
            return Err(format!("{} cannot be read: {why}", dir.display()));
        }
        let (whole, damaged) = newest_whole(dir);
        let speaks = self.launch().speaks();
        match (&whole, damaged.first()) {
            (Some(_), _) => {
                damaged
                    .iter()
                    .filter(|_| speaks)
                    .for_each(|why| warn(&format!("damaged checkpoint skipped: {why}")));
            }
            (None, Some(first)) => {
                let dir = dir.display();
                return Err(format!(
                    "all checkpoints of {dir} are damaged or unreadable, repair or remove them: {first}"
                ));
            }
            (None, None) if speaks => {
                print_line(&format!(
                    "caribou: starts from the beginning, because {} has no checkpoint",
                    dir.display()
                ));
            }
            (None, None) => {}
        }
        Ok(whole)
    }

    /// The configuration of run number `run` of the process, compared with the run of the checkpoint.
    fn of_run(self, run: u32) -> Result<Config, Error> {
        let Some(path) = &self.restart else { return Ok(self) };
        let saved = Saved::open(path).map_err(|why| wrong("CARIBOU_RESTART", offering_older(path, why)))?;
        Ok(match run.cmp(&saved.manifest.run) {
            Ordering::Equal => self,
            Ordering::Greater => Config { restart: None, ..self },
            Ordering::Less => {
                if self.launch().speaks() {
                    let (path, its) = (path.display(), saved.manifest.run);
                    print_line(&format!(
                        "caribou: run {run} of this process is repeated, because {path} is of run {its}"
                    ));
                }
                self.without_checkpoints()
            }
        })
    }

    /// The description of a program, with the checkpoint of its restart.
    pub(crate) fn going_on(&self, program: String) -> String {
        match &self.restart {
            Some(checkpoint) => format!("{program} that continues from {}", checkpoint.display()),
            None => program,
        }
    }
}
