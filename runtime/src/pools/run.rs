//! Runs pools: sets up their ranks in threads, in processes or in a simulation.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use lb_strategies::pool::PoolStrategy;

use crate::checkpoint::background::catching;
use crate::checkpoint::{Content, Saved, Store, offering_older};
use crate::config::{Config, wrong};
use crate::error::Error;
use crate::ids::{ROOT, Rank};
use crate::launch::Launch;
use crate::measure::speed::Speed;
use crate::pools::api::accumulator::Accumulator;
use crate::pools::api::pool::{Pool, PoolOutcome, Work, typed};
use crate::pools::core::image::WorkerImage;
use crate::pools::core::packet::{PoolPacket, PoolResult};
use crate::pools::core::work::{Accumulated, PoolWork};
use crate::pools::exec::checkpoint::RankCheckpoints;
use crate::pools::exec::rank::PoolRun;
use crate::pools::exec::simulation;
use crate::pools::report::PoolReport;
use crate::run::context::RankContext;
use crate::run::report::RunReport;
use crate::run::run_shape;
use crate::run::shape::{ReadyRank, Shape};
use crate::warn::print_line;
#[cfg(feature = "mpi")]
use crate::wire::codec::SerdeCodec;
use crate::wire::{self, WireError};

/// Executes `body` for all of `0..iterations` on all workers of all ranks, and merges their accumulators. Each index
/// counts exactly once in the result.
///
/// `body` gets ranges that take about 0.1 s each, or single iterations that take longer. `CARIBOU_LB` selects the
/// policy that hands out ranges. `init` makes the neutral value of merging, for each worker and for each range that may
/// be executed twice. Under `mpirun` every process calls this with the same arguments, and gets the same result.
/// [`Pool`] has more options.
///
/// All policies except two execute each index once. `leases` and `auto` do so too, unless they have the parameter
/// `replicate=on`: idle workers then execute copies of late ranges at the end. The copy that ends first counts, and the
/// accumulator of the other copy is dropped. So `body` must then have no effect except on its accumulator.
///
/// A pool takes about a millisecond to start and to end. For less work use a loop. Use one long pool instead of many
/// short ones.
///
/// ```
/// use caribou::random::stream;
/// use caribou::Config;
/// use rand::RngExt;
///
/// // Pi by throwing darts: each has random numbers of its own, so the answer does not depend on the worker that threw it.
/// let hits = caribou::pool(&Config::default(), 10_000, || 0, |hits: &mut u64, range| {
///     for dart in range {
///         let mut random = stream(42, dart);
///         let (x, y): (f64, f64) = (random.random(), random.random());
///         *hits += u64::from(x * x + y * y < 1.0);
///     }
/// })?;
/// let pi = 4.0 * hits.result as f64 / 10_000.0;
/// assert!((pi - 3.14159).abs() < 0.1);
/// # Ok::<(), caribou::Error>(())
/// ```
///
/// # Errors
/// If an iteration panics, a result cannot be encoded and decoded, or a process is killed: see [`Error`].
pub fn pool<A: Accumulator>(
    config: &Config,
    iterations: u64,
    init: impl Fn() -> A + Sync,
    body: impl Fn(&mut A, Range<u64>) + Sync,
) -> Result<PoolOutcome<A>, Error> {
    Pool::new(config, iterations).run(init, body)
}

impl Pool<'_> {
    /// Runs the pool; see [`pool`].
    ///
    /// # Errors
    /// As [`pool`].
    pub fn run<A: Accumulator>(
        &self,
        init: impl Fn() -> A + Sync,
        body: impl Fn(&mut A, Range<u64>) + Sync,
    ) -> Result<PoolOutcome<A>, Error> {
        self.run_by(init, body, |shape| run_shape(self.config, shape).map(|(run, _)| run))
    }

    /// Runs the pool in `runtime`, in a program that uses MPI itself. Collective.
    ///
    /// # Errors
    /// As [`pool`].
    #[cfg(feature = "mpi")]
    pub fn run_in<A: Accumulator>(
        &self,
        runtime: &mut crate::Runtime,
        init: impl Fn() -> A + Sync,
        body: impl Fn(&mut A, Range<u64>) + Sync,
    ) -> Result<PoolOutcome<A>, Error> {
        self.run_by(init, body, |shape| runtime.run_shape(self.config, shape).map(|(run, _)| run))
    }

    fn run_by<A, I, B>(
        &self,
        init: I,
        body: B,
        run: impl FnOnce(&PoolShape<'_, A, I, B>) -> Result<RunReport, Error>,
    ) -> Result<PoolOutcome<A>, Error>
    where
        A: Accumulator,
        I: Fn() -> A + Sync,
        B: Fn(&mut A, Range<u64>) + Sync,
    {
        let policy = self.config.balance_pools()?;
        if !policy.is_exact() {
            let why = format!(
                "`{}` assigns numbers of iterations without indices, which a pool needs: it is for simulations only",
                self.config.lb_spec(lb_strategies::Shape::Pools)
            );
            return Err(Error::Config { setting: "CARIBOU_LB".into(), why });
        }
        let config = self.config.with_chosen_checkpoint()?;
        let (work, restored, result) = (Work::new(self, init, body), OnceLock::new(), Mutex::new(None));
        let shape = PoolShape { pool: self, config, work, restored, policy, result };
        let report = match self.config.simulates()? {
            Some(seed) => shape.simulate(seed)?,
            None => run(&shape)?,
        };
        shape.config.finish_checkpoints();
        let result = shape.result.into_inner().unwrap_or_else(PoisonError::into_inner);
        let (result, whole): (A, PoolResult) =
            result.expect("a run that did not fail has delivered its result");
        let before = shape.work.done_before();
        Ok(PoolOutcome { result, report: self.report(before, whole, report) })
    }

    /// The report of the pool. `before` iterations were executed before a restart.
    fn report(&self, before: u64, whole: PoolResult, run: RunReport) -> PoolReport {
        PoolReport {
            run,
            lb: self.config.lb_spec(lb_strategies::Shape::Pools).into(),
            elapsed_ns: whole.workers.iter().map(|worker| worker.end_ns).max().unwrap_or(0),
            iterations: before + whole.iterations,
            cancelled: whole.cancelled,
            messages: whole.messages,
            decision: whole.said,
            workers: whole.workers,
        }
    }
}

/// Restarts the pool from this checkpoint. Only the process of rank 0 reads the accumulated value.
fn go_on<A, I, B>(
    work: &Work<'_, A, I, B>,
    path: &Path,
    config: &Config,
    is_of_root: bool,
) -> Result<(), String>
where
    A: Accumulator,
    I: Fn() -> A + Sync,
    B: Fn(&mut A, Range<u64>) + Sync,
{
    let saved = Saved::open(path).map_err(|why| offering_older(path, why))?;
    let (name, signature) = (path.display(), work.signature());
    if !matches!(&saved.manifest.content, Content::Pool(saved) if *saved == signature) {
        return Err(saved.of_another(&signature.text()));
    }
    saved.check_program(config.program_settings())?;
    let (mut all, mut done) = (None, Vec::new());
    for writer in 0..saved.files() {
        let bytes = saved.file(writer).map_err(|why| offering_older(path, why))?;
        let damaged = |why: WireError| format!("{name}/rank-{writer}: {why}");
        let images: Vec<WorkerImage> = wire::decode(&bytes).map_err(damaged)?;
        for image in images {
            done.extend(image.done);
            if is_of_root {
                (work as &dyn PoolWork).gather(&mut all, work.decode(&image.accumulated).map_err(damaged)?);
            }
        }
    }
    if is_of_root && all.is_none() {
        return Err(format!("{name} has no workers"));
    }
    work.go_on_from(done, all).map_err(|why| format!("{name}: {why}"))?;
    if config.launch().speaks() {
        print_line(&saved.announcement());
    }
    Ok(())
}

/// A pool with the user's functions.
struct PoolShape<'p, A, I, B> {
    pool: &'p Pool<'p>,
    /// The configuration with the chosen checkpoint of a restart.
    config: Config,
    work: Work<'p, A, I, B>,
    /// Set in a restarted pool after this process has read the checkpoint, or has failed to.
    restored: OnceLock<Result<(), String>>,
    policy: Arc<dyn PoolStrategy>,
    result: Mutex<Option<(A, PoolResult)>>,
}

impl<A, I, B> PoolShape<'_, A, I, B>
where
    A: Accumulator,
    I: Fn() -> A + Sync,
    B: Fn(&mut A, Range<u64>) + Sync,
{
    /// Runs the pool in one thread and virtual time.
    fn simulate(&self, seed: u64) -> Result<RunReport, Error> {
        self.restore(ROOT)?;
        let (ranks, workers) = self.pool.config.pool_size();
        let run = RunReport::of_simulation(seed, (ranks, workers), self.lb(self.pool.config));
        let facts = self.pool.facts(self.work.iterations(), vec![workers; ranks as usize]);
        let checkpoints = |rank| {
            let its = |store| RankCheckpoints::new(self.config.checkpoint.as_ref()?, store?, workers).into();
            self.store(rank).map(its)
        };
        let (accumulated, whole) =
            simulation::run(&self.work, self.pool.config, &facts, &*self.policy, checkpoints, seed)?;
        self.deliver(accumulated, whole);
        Ok(RunReport { workers_per_rank: facts.workers, ..run })
    }

    /// Reads the checkpoint of a restart, once in each process. If a rank cannot, its setup fails, and no rank runs.
    fn restore(&self, rank: Rank) -> Result<(), Error> {
        let Some(path) = &self.config.restart else { return Ok(()) };
        let is_of_root = rank == ROOT || self.config.launch() == Launch::Alone;
        // Reading merges accumulators, which is code of the program.
        let read = || catching(|| go_on(&self.work, path, &self.config, is_of_root));
        self.restored.get_or_init(read).clone().map_err(|why| wrong("CARIBOU_RESTART", why))
    }

    /// The store of this rank's checkpoints, if any are made.
    fn store(&self, rank: Rank) -> Result<Option<Arc<Store>>, Error> {
        let store = self.config.checkpoint.as_ref().map(|settings| Store::new(settings, rank).map(Arc::new));
        store.transpose().map_err(|why| wrong("CARIBOU_CHECKPOINT", why))
    }

    fn deliver(&self, accumulated: Accumulated, whole: PoolResult) {
        let result = (typed(accumulated), whole);
        self.result.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(result);
    }
}

impl<A, I, B> Shape for PoolShape<'_, A, I, B>
where
    A: Accumulator,
    I: Fn() -> A + Sync,
    B: Fn(&mut A, Range<u64>) + Sync,
{
    type Packet = PoolPacket;
    type Figures = ();
    type Rank<'s>
        = PoolOfRank<'s, A, I, B>
    where
        Self: 's;

    fn recorded(&self) -> lb_strategies::Shape {
        lb_strategies::Shape::Pools
    }

    #[cfg(feature = "mpi")]
    fn text(&self) -> String {
        self.config.going_on(format!("a pool of {} iterations", self.pool.iterations))
    }

    fn lb<'c>(&self, config: &'c Config) -> &'c str {
        config.lb_spec(lb_strategies::Shape::Pools)
    }

    fn size(&self, config: &Config) -> (u32, u32) {
        config.pool_size()
    }

    /// One sleeper per worker, and one for the communication thread.
    fn sleepers(&self, workers: u32) -> u32 {
        workers + 1
    }

    fn driver_thread_name(&self, rank: Rank) -> String {
        format!("caribou {rank} comm")
    }

    fn set_up(&self, rank: Rank, _ranks: u32) -> Result<PoolOfRank<'_, A, I, B>, Error> {
        self.restore(rank)?;
        Ok(PoolOfRank { shape: self, store: self.store(rank)? })
    }
}

struct PoolOfRank<'p, A, I, B> {
    shape: &'p PoolShape<'p, A, I, B>,
    store: Option<Arc<Store>>,
}

impl<A, I, B> ReadyRank for PoolOfRank<'_, A, I, B>
where
    A: Accumulator,
    I: Fn() -> A + Sync,
    B: Fn(&mut A, Range<u64>) + Sync,
{
    type Packet = PoolPacket;
    type Figures = ();
    #[cfg(feature = "mpi")]
    type Codec = SerdeCodec<PoolPacket>;

    #[cfg(feature = "mpi")]
    fn codec(&self, rank: Rank) -> SerdeCodec<PoolPacket> {
        SerdeCodec::new(rank)
    }

    fn run(self, seat: RankContext<'_, PoolPacket>) {
        let rank = seat.rank;
        let mut facts = self.shape.pool.facts(self.shape.work.iterations(), seat.plan.workers());
        let workers = seat.plan.placements[rank.index()].workers;
        let settings = self.shape.config.checkpoint.as_ref();
        let checkpoints =
            settings.zip(self.store).map(|(settings, store)| RankCheckpoints::new(settings, store, workers));
        if self.shape.policy.asks_for_clock_speed() {
            facts.clock_speeds[rank.index()] = Speed::measured(seat.config.slowness(rank)).turns_per_us();
        }
        let make = || self.shape.policy.rank(&facts, rank);
        let deliver = |accumulated, whole| self.shape.deliver(accumulated, whole);
        let work = &self.shape.work;
        let resizes = self.shape.policy.resizes();
        PoolRun { work, context: seat, checkpoints, resizes, make: &make, deliver: &deliver }.run();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::fs;
    use std::time::Duration;

    use super::*;
    use crate::checkpoint::Settings;

    #[test]
    fn what_was_accumulated_is_read_in_the_process_of_rank_0_only() {
        let dir = std::env::temp_dir().join(format!("caribou-pool-of-root-{}", std::process::id()));
        let settings = Settings::new(&dir).every(Duration::from_millis(1));
        let config = Config::default().simulate(1).ranks(2).checkpoint(settings);
        let body = |count: &mut u64, range: Range<u64>| {
            assert!(!range.contains(&300), "the power is off");
            *count += range.end - range.start;
        };
        assert!(pool(&config, 400, || 0, body).is_err());
        let path = crate::checkpoint::list(&dir).remove(0);
        let pool = Pool::new(&config, 400);
        let accumulated = |is_of_root| {
            let work = Work::new(&pool, || 0, body);
            go_on(&work, &path, &config, is_of_root).expect("it is whole");
            assert!(work.done_before() > 0);
            let restored = work.take_restored();
            restored.map(|restored| (work.done_before(), typed::<u64>(restored.accumulated)))
        };
        assert!(accumulated(true).is_some_and(|(done, count)| done == count));
        assert!(accumulated(false).is_none());
        fs::remove_dir_all(dir).expect("it is there");
    }
}
