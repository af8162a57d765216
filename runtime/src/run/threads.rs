//! Runs all ranks as threads of this process.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::thread;

use super::Finished;
use super::context::{RankContext, panicked, thread_refused};
use super::outcome::Outcome;
use super::recording::{RunName, Session};
use super::report::RunReport;
use super::resize::ResizeRequests;
use super::shape::{ReadyRank, Shape};
use super::watchdog::Watchdog;
use crate::config::Config;
use crate::error::Error;
use crate::ids::{ROOT, Rank};
use crate::measure::cpu_limits::{Change, CpuLimitsWatch};
use crate::measure::topology;
use crate::measure::topology::plan::{Plan, plan};
use crate::panics::panic_message;
use crate::threads::barrier::FallibleBarrier;
use crate::threads::clock::Clock;
use crate::threads::limits::check_can_start_threads;
use crate::threads::team::Team;
use crate::trace::End;
use crate::transport::handle::TransportHandle;
use crate::transport::local::{Local, Wake};

/// The state that all ranks of a process share while they start.
struct Process<'p, S> {
    config: &'p Config,
    shape: &'p S,
    plan: Plan,
    watch: CpuLimitsWatch,
    ranks: u32,
    /// Opens when all ranks are set up, and the run begins.
    begin: FallibleBarrier,
    clock: OnceLock<Clock>,
    outcome: Arc<Outcome>,
    session: Arc<Session>,
}

/// Runs each rank in a separate thread.
pub(super) fn run<S: Shape>(config: &Config, shape: &S) -> Result<Finished<S>, Error> {
    let (ranks, workers) = shape.size(config);
    check_can_start_threads(ranks, workers)?;
    let plan = plan(&vec![topology::rank_resources(Some(workers)); ranks as usize], config.pin)?;
    let session = Session::begin(config, shape.recorded(), shape.lb(config), &plan, RunName::new(config)?);
    let resizes = session.resizes().clone();
    let process = Process {
        config,
        shape,
        session,
        plan,
        watch: CpuLimitsWatch::start(follow_limits(ranks, workers, resizes)),
        ranks,
        begin: FallibleBarrier::new(ranks),
        clock: OnceLock::new(),
        outcome: Arc::default(),
    };
    tracing::info!(lb = shape.lb(config), "{}", process.plan);
    let _monitor = process.session.start_monitor(config, ROOT)?;
    let watched = process.session.clone();
    let _watchdog = Watchdog::start(config, &process.outcome, move || watched.running());
    let teams: Vec<Arc<Team>> = (0..ranks).map(|_| Arc::new(Team::new(shape.sleepers(workers)))).collect();
    let wake = |team: &Arc<Team>| {
        let team = team.clone();
        Arc::new(move || {
            team.sleepers[0].wake();
        }) as Wake
    };
    let all = &teams[..];
    let transports = Local::connect(teams.iter().map(wake).collect());
    let figures = thread::scope(|scope| {
        let process = &process;
        let start = |(rank, transport): (Rank, Local<S::Packet>)| {
            let run = move || process.run_rank(rank, all[rank.index()].clone(), transport);
            let life = move || {
                catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
                    process.fail(panicked(rank, &*panic));
                    // No thread is left to notify the other ranks.
                    all.iter().for_each(|team| team.stop());
                    S::Figures::default()
                })
            };
            let builder = thread::Builder::new().name(process.shape.driver_thread_name(rank));
            let started = builder.spawn_scoped(scope, life);
            started.inspect_err(|why| process.fail(thread_refused(rank, why))).ok()
        };
        // All threads are started before the first is joined.
        let started: Vec<_> = (0..).map(Rank).zip(transports).map(start).collect();
        let join = |rank: thread::ScopedJoinHandle<'_, S::Figures>| {
            rank.join().unwrap_or_else(|panic| {
                let why = panic_message(&*panic);
                process.fail(Error::System { what: "a rank's thread".into(), why });
                S::Figures::default()
            })
        };
        started.into_iter().flatten().map(join).collect()
    });
    let elapsed_ns = process.outcome.elapsed_ns();
    let failed = process.outcome.error();
    let failure = failed.as_ref().map(ToString::to_string);
    let profiles = process.session.end(&End { elapsed_ns, failed: failure, ..End::default() });
    if let Some(error) = failed {
        return Err(error);
    }
    let record = process.session.record();
    let report = RunReport { wall_ns: elapsed_ns, record, profiles, ..RunReport::default() };
    Ok((report.placed(&process.plan), figures))
}

/// Requests a different number of active ranks when the number of vCPUs that the process may use changes.
fn follow_limits(ranks: u32, workers: u32, resizes: Arc<ResizeRequests>) -> impl FnMut(Change) {
    let mut last = ranks;
    move |change| {
        let active = change.active_ranks(ranks, workers);
        if std::mem::replace(&mut last, active) != active {
            // A run that cannot be resized goes on as it is.
            let _ = resizes.ask(active);
        }
    }
}

impl<S: Shape> Process<'_, S> {
    /// The main function of a rank, on the thread that drives its transport.
    fn run_rank(&self, rank: Rank, team: Arc<Team>, transport: Local<S::Packet>) -> S::Figures {
        let ready = match self.shape.set_up(rank, self.ranks) {
            Ok(ready) => ready,
            Err(error) => {
                self.fail(error);
                return S::Figures::default();
            }
        };
        if !self.begin.wait() {
            return S::Figures::default();
        }
        ready.run(RankContext {
            config: self.config,
            rank,
            plan: &self.plan,
            watch: &self.watch,
            team,
            clock: self.clock.get_or_init(Clock::machine).clone(),
            outcome: self.outcome.clone(),
            run_recording: &self.session,
            transport: (self.ranks > 1).then(|| TransportHandle::Threads(transport)),
        })
    }

    /// Sets the error. If the run has not begun, it does not begin.
    fn fail(&self, error: Error) {
        self.outcome.fail(error);
        self.begin.fail();
    }
}
