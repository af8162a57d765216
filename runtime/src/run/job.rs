//! Runs this process as one rank of an MPI job: connects the processes, detects lost ones, and makes runs.
//!
//! A [`Job`] outlives its runs, with its communicator, links and liveness. `caribou::run` keeps a job for MPI's world
//! until its thread ends. A [`Runtime`] is a job over a communicator of a program that uses MPI itself.
//!
//! # A run
//! 1. Every process sets up its rank, and sends its result and the resources of its rank ([`SetupMessage`]). If one
//!    process has an error, all return it. Otherwise each makes the same plan of ranks on vCPUs from the same messages.
//! 2. All clocks are aligned with rank 0's clock.
//! 3. The calling thread becomes worker 0, or the communication thread of a pool. No other thread calls MPI.
//! 4. When all processes have sent their byes (see [`transport::mpi`](crate::transport::mpi)), they exchange figures.
//!
//! # When a process is lost
//! The links to a lost process will never be drained. The run therefore ends with [`Error::RankLost`] without byes, and
//! the job is *broken*: further runs fail at once. At its end the process calls `MPI_Abort`, because `MPI_Finalize`
//! would wait for the lost process. If a handler does not return within [`GRACE`], the process ends anyway.

mod clocks;

use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use litemap::LiteMap;
use mpi::environment::Universe;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator as _, CommunicatorCollectives as _, Destination as _, Source as _};
use serde::{Deserialize, Serialize};

use self::clocks::ClockAlignment;
use super::Finished;
use super::report::RunReport;
use super::shape::{ReadyRank, Shape};
use crate::config::Config;
use crate::error::Error;
use crate::ids::{ROOT, Rank};
use crate::launch::{self, Launch};
use crate::liveness::{
    ContactInfo, Listener, Liveness, LossKind, Lost, PING_TIMEOUT_NS, PeerEvent, Pinger, Tree,
};
use crate::measure::cpu_limits::CpuLimitsWatch;
use crate::measure::topology::plan::{Plan, RankResources, plan};
use crate::measure::topology::{self, SavedMask, host_name};
use crate::run::context::{RankContext, panicked};
use crate::run::outcome::Outcome;
use crate::run::recording::{RunName, Session};
use crate::run::watchdog::{ProgressCheck, Watchdog, sample_interval};
use crate::threads::clock::monotonic_ns;
use crate::threads::elided_mutex::Restore;
use crate::threads::limits::check_can_start_threads;
use crate::threads::team::Team;
use crate::trace::End as TraceEnd;
use crate::transport::handle::TransportHandle;
use crate::transport::mpi::raw::{
    Alarm, Communicator, MpiError, abort, end_process, is_finalized, is_initialised, is_main_thread,
    may_have_threads,
};
use crate::transport::mpi::{Links, Mpi};
use crate::warn;
use crate::wire;

/// How long the process waits for its workers after a loss.
const GRACE: Duration = Duration::from_secs(5);

/// Time for a launcher to pass on the message with which the job ends; the launcher may share its vCPU with the job.
const OUTPUT_FLUSH_TIME: Duration = Duration::from_millis(500);

/// Time within which MPI usually starts. Longer starts are of very large jobs, or because a process is missing.
const LONG_START: Duration = Duration::from_secs(10);

/// Tag of the message that the first process refuses too. No run has begun that could use it.
const REFUSED: i32 = 0;

/// How long a process polls its connections before it finalizes MPI, ns.
const FINAL_PROGRESS_NS: u64 = 20_000_000;

/// Runs Caribou inside a program that uses MPI itself.
///
/// All processes of the communicator create a `Runtime`, and call [`run`](Self::run) together. The communicator is
/// duplicated and remains the program's; between runs the program may use MPI. MPI must have been initialised with
/// `Threading::Funneled` or more, and all calls must be on the thread that initialised it.
///
/// ```no_run
/// # #[derive(serde::Serialize, serde::Deserialize)] struct Strip;
/// # impl caribou::Chunk for Strip {
/// #     type Index = u32; type Message = ();
/// #     fn start(&mut self, ctx: &mut caribou::Ctx<'_, Self>) { ctx.exit() }
/// #     fn receive(&mut self, _: (), _: &mut caribou::Ctx<'_, Self>) {}
/// # }
/// use caribou::{Config, Runtime};
/// let (universe, _) = mpi::initialize_with_threading(mpi::Threading::Funneled).expect("MPI starts once");
/// let world = universe.world();
/// let config = Config::from_env()?;
/// let mut runtime = Runtime::with_communicator(&world, &config)?;
/// let report = runtime.run(&config, |setup| { setup.array(64, |_| Strip); })?;
/// // `world` is as before, and the program goes on with it.
/// # Ok::<(), caribou::Error>(())
/// ```
pub struct Runtime {
    job: Job,
}

impl Runtime {
    /// Connects the processes of `communicator`. Collective: all of them must call it. Of `config` only the setting of
    /// [shared memory](Config::shared_memory) is used.
    ///
    /// # Errors
    /// [`Error::System`] when MPI was not initialised for this thread, or fails.
    pub fn with_communicator(
        communicator: &impl mpi::traits::Communicator,
        config: &Config,
    ) -> Result<Runtime, Error> {
        let duplicate = Communicator::duplicate(communicator).map_err(|why| broken(&why))?;
        Ok(Runtime { job: Job::connect(duplicate, config)? })
    }

    /// As [`run`](Self::run), for any shape of program.
    pub(crate) fn run_shape<S: Shape>(&mut self, config: &Config, shape: &S) -> Result<Finished<S>, Error> {
        self.job.run(config, shape)
    }

    /// The rank of this process.
    pub fn rank(&self) -> u32 {
        self.job.rank.0
    }

    /// Number of ranks.
    pub fn ranks(&self) -> u32 {
        self.job.ranks
    }
}

/// MPI's world, until the thread that uses it ends.
struct World {
    job: Option<Job>,
    /// None if the program initialised MPI itself. The program then also finalises MPI.
    universe: Option<Universe>,
}

thread_local! {
    static WORLD: RefCell<Option<World>> = const { RefCell::new(None) };
}

/// Runs as one rank of MPI's world.
pub(crate) fn run_in_world<S: Shape>(config: &Config, shape: &S) -> Result<Finished<S>, Error> {
    WORLD.with(|world| {
        let Ok(mut world) = world.try_borrow_mut() else {
            return Err(system("a run", "another run is in progress in this process"));
        };
        if world.is_none() {
            *world = Some(warn_if_slow(|| World::start(config))?);
        }
        let job = world.as_mut().and_then(|world| world.job.as_mut());
        job.expect("it was just started").run(config, shape)
    })
}

impl World {
    fn start(config: &Config) -> Result<World, Error> {
        if is_finalized() {
            return Err(system("MPI", "this process has finalized it already"));
        }
        let initialised = mpi::initialize_with_threading(mpi::Threading::Funneled);
        let universe = initialised.map(|(universe, _)| universe);
        // Checked before any collective call, which other processes may never reach.
        check_thread()?;
        check_launcher(launch::found(), SimpleCommunicator::world().size())?;
        let job = Communicator::duplicate(&SimpleCommunicator::world())
            .map_err(|why| broken(&why))
            .and_then(|communicator| Job::connect(communicator, config))
            .unwrap_or_else(|error| abort_with(&error));
        Ok(World { job: Some(job), universe })
    }
}

impl Drop for World {
    /// Called at the end of the thread. If `main` calls `run`, this is the end of the process.
    fn drop(&mut self) {
        if is_finalized() {
            // The program has finalized MPI already, so nothing can be freed.
            let _kept = ManuallyDrop::new(self.job.take());
            return;
        }
        drop(self.job.take());
        if self.universe.is_some() {
            warm_up_links(&SimpleCommunicator::world());
        }
        drop(self.universe.take());
    }
}

/// Warns if the start of MPI takes long. MPI waits for all processes, and one of them may have ended.
fn warn_if_slow<T>(start: impl FnOnce() -> T) -> T {
    // Processes 0 and 1 warn, in case one of them is the missing one.
    if !matches!(launch::found(), Launch::Together { process: 0 | 1, processes: 2.. }) {
        return start();
    }
    let (started, waits) = mpsc::channel::<()>();
    let say = move || {
        if waits.recv_timeout(LONG_START) == Err(RecvTimeoutError::Timeout) {
            warn::warn("still waiting for the other processes to start MPI: has one ended without a run?");
        }
    };
    // If the thread cannot be started, there is no warning.
    let _ = thread::Builder::new().name("caribou start".into()).spawn(say);
    let value = start();
    drop(started);
    value
}

/// Makes sure that MPI has a complete connection from each process to each before MPI is finalized.
///
/// MPICH 4.0 closes a connection only while the other side polls it, and the other side may already wait for the
/// launcher (<https://github.com/pmodels/mpich/pull/6596>). A connection that is incomplete would then hang both sides.
/// So all connections are used now, and polled for a moment.
fn warm_up_links(world: &SimpleCommunicator) {
    let mut heard = vec![0u8; world.size() as usize];
    let said = heard.clone();
    // After the second round every process has seen that its bytes of the first arrived. The third brings
    // acknowledgements.
    for _ in 0..3 {
        world.all_to_all_into(&said[..], &mut heard[..]);
    }
    let begun_ns = monotonic_ns();
    while monotonic_ns() - begun_ns < FINAL_PROGRESS_NS {
        let _ = world.any_process().immediate_probe();
    }
}

/// The current run, for the thread that is notified when a rank is lost.
#[derive(Default)]
struct WatchedRun {
    run: Option<CurrentRun>,
    lost: Option<Lost>,
    /// A rank was lost during a run.
    broken: bool,
    alarm: Alarm,
}

struct CurrentRun {
    outcome: Arc<Outcome>,
    team: Weak<Team>,
}

/// The connected processes of a communicator.
pub(crate) struct Job {
    /// Dropped first, because a process that leaves must notify the others before it finalizes MPI, which waits for
    /// all. None if the process cannot reach its parent. It is then not notified of losses.
    liveness: Option<Liveness>,
    rank: Rank,
    ranks: u32,
    links: Links,
    watched: Arc<Mutex<WatchedRun>>,
}

impl Drop for Job {
    fn drop(&mut self) {
        if self.is_broken() && !is_finalized() {
            // When a process ends the job, launchers drop output that they have not passed on yet.
            thread::sleep(OUTPUT_FLUSH_TIME);
            abort(1);
        }
    }
}

/// The message that each process sends at the beginning of a run.
#[derive(Serialize, Deserialize)]
struct SetupMessage {
    /// The name of the run, from rank 0.
    name: Option<RunName>,
    place: RankResources,
    shape: String,
    /// Settings that must be the same in all processes: names and values.
    agreed: Vec<(String, String)>,
    failed: Option<Error>,
}

/// The message that each process sends at the end of a run.
#[derive(Serialize, Deserialize)]
struct EndMessage<F> {
    figures: F,
    elapsed_ns: u64,
    failed: Option<Error>,
}

impl Job {
    fn connect(communicator: Communicator, config: &Config) -> Result<Job, Error> {
        check_thread()?;
        let (rank, ranks) = (Rank(communicator.rank()), communicator.size());
        let links = Links::connect(communicator, config.shared_memory).map_err(|why| broken(&why))?;
        let alarm = links.communicator().alarm();
        let watched = Arc::new(Mutex::new(WatchedRun { alarm, ..WatchedRun::default() }));
        let liveness = watch(rank, ranks, &links, &watched)?;
        Ok(Job { rank, ranks, links, watched, liveness })
    }

    fn is_broken(&self) -> bool {
        self.links.communicator().has_given_up() || self.lock().broken
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, WatchedRun> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn run<S: Shape>(&mut self, config: &Config, shape: &S) -> Result<Finished<S>, Error> {
        // After a panic here, such as a panic of the log, the other ranks are still in the run.
        catch_unwind(AssertUnwindSafe(|| self.run_together(config, shape))).unwrap_or_else(|panic| {
            self.lock().broken = true;
            Err(panicked(self.rank, &*panic))
        })
    }

    fn run_together<S: Shape>(&mut self, config: &Config, shape: &S) -> Result<Finished<S>, Error> {
        if let Some(lost) = self.lock().lost {
            return Err(lost.error());
        }
        if self.is_broken() {
            return Err(system(
                "a run",
                "an earlier run of this process failed, and other processes may still be in that run",
            ));
        }
        let (_mask, _owner) = (SavedMask::of_this_thread(), Restore::later());
        let (plan, name, ready) = self.agree(config, shape, shape.set_up(self.rank, self.ranks))?;
        if self.rank.0 == 0 {
            tracing::info!(lb = shape.lb(config), "{plan}");
        }
        let begin = ClockAlignment::measure(&self.links, &plan).map_err(|why| self.failed(&why))?;
        let session = Session::begin(config, shape.recorded(), shape.lb(config), &plan, name);
        let _monitor = match session.start_monitor(config, self.rank) {
            Ok(monitor) => monitor,
            Err(why) => {
                tracing::warn!(rank = self.rank.0, %why, "the monitor of this rank cannot be started");
                None
            }
        };
        let (figures, outcome) = self.go(config, shape, &plan, ready, &begin, &session);
        let (elapsed_ns, failed) = (outcome.elapsed_ns(), outcome.error());
        let end_alone = |failed: Option<&Error>| {
            let failed = failed.map(ToString::to_string);
            session.end(&TraceEnd { elapsed_ns, failed, ..TraceEnd::default() })
        };
        if let Some(error) = failed.clone().filter(|_| outcome.lost()) {
            end_alone(Some(&error));
            return Err(error);
        }
        let end = ClockAlignment::measure(&self.links, &plan).map_err(|why| self.failed(&why));
        let end = end.inspect_err(|error| drop(end_alone(failed.as_ref().or(Some(error)))))?;
        let clocks = clocks::offsets(&begin, &end);
        let said = TraceEnd {
            elapsed_ns,
            failed: failed.as_ref().map(ToString::to_string),
            clocks: clocks.clone(),
            ..TraceEnd::default()
        };
        let profiles = session.end(&said);
        let mine = EndMessage { figures, elapsed_ns, failed };
        let mut all: Vec<EndMessage<S::Figures>> = self.exchange(&mine)?;
        // Only this process has the fields of its figures that serde skips. One rank's error is the run's.
        let own = mine.failed.clone();
        all[self.rank.index()] = mine;
        if let Some(error) = own.or_else(|| all.iter().find_map(|rank| rank.failed.clone())) {
            return Err(error);
        }
        let report = RunReport {
            wall_ns: all.iter().map(|rank| rank.elapsed_ns).max().unwrap_or(0),
            clocks,
            record: session.record(),
            profiles,
            ..RunReport::default()
        };
        Ok((report.placed(&plan), all.into_iter().map(|rank| rank.figures).collect()))
    }

    /// Sets up the run with all other processes. Returns the placement of ranks, or why there is no run.
    fn agree<T>(
        &mut self,
        config: &Config,
        shape: &impl Shape,
        set_up: Result<T, Error>,
    ) -> Result<(Plan, RunName, T), Error> {
        let asked = config.ranks.filter(|&ranks| ranks != self.ranks).map(|ranks| {
            let why = format!("{ranks} ranks were requested, but {} processes were started", self.ranks);
            Error::Config { setting: "CARIBOU_RANKS".into(), why }
        });
        let place = topology::rank_resources(config.workers);
        let room = config.workers.and_then(|workers| check_can_start_threads(1, workers).err());
        // A run that will not begin leaves no directory for its trace.
        let named = (self.rank.0 == 0 && asked.is_none()).then(|| RunName::new(config)).transpose();
        let unnamed = named.as_ref().err().cloned();
        let failed = set_up.as_ref().err().cloned().or(asked).or(room).or(unnamed);
        let agreed = config.agreed(shape.lb(config));
        let name = named.ok().flatten();
        let all: Vec<SetupMessage> =
            self.exchange(&SetupMessage { name, place, shape: shape.text(), agreed, failed })?;
        // Checked first, because a difference in settings may cause a failure or a different program.
        for (rank, hello) in (0..).map(Rank).zip(&all) {
            let differs = hello.agreed.iter().zip(&all[0].agreed).find(|(its, first)| its != first);
            if let Some(((setting, its), (_, first))) = differs {
                return Err(Error::SettingDiffers {
                    rank,
                    setting: setting.clone(),
                    its: its.clone(),
                    first: first.clone(),
                });
            }
        }
        if let Some(error) = all.iter().find_map(|hello| hello.failed.clone()) {
            return Err(error);
        }
        if let Some((rank, _)) = (0..).map(Rank).zip(&all).find(|(_, hello)| hello.shape != all[0].shape) {
            let [its, first] = [rank, ROOT].map(|rank| all[rank.index()].shape.clone());
            return Err(Error::ProgramDiffers { rank, its, first });
        }
        let name = all[0].name.clone().expect("rank 0 names the run");
        let places: Vec<RankResources> = all.into_iter().map(|hello| hello.place).collect();
        Ok((plan(&places, config.pin)?, name, set_up?))
    }

    /// The error of a collective operation that failed.
    fn failed(&self, why: &MpiError) -> Error {
        self.lock().lost.map_or_else(|| broken(why), Lost::error)
    }

    fn exchange<T: Serialize + serde::de::DeserializeOwned>(&self, mine: &T) -> Result<Vec<T>, Error> {
        let wrong = |why: wire::WireError| system("the setup data of the processes", &why.to_string());
        let bytes = wire::encode(mine).map_err(wrong)?;
        let said = self.links.communicator().allgather(&bytes).map_err(|why| self.failed(&why))?;
        said.iter().map(|bytes| wire::decode(bytes).map_err(wrong)).collect()
    }

    /// Runs the rank.
    fn go<'s, S: Shape + 's>(
        &mut self,
        config: &Config,
        shape: &'s S,
        plan: &Plan,
        ready: S::Rank<'s>,
        begin: &ClockAlignment,
        session: &Arc<Session>,
    ) -> (S::Figures, Arc<Outcome>) {
        let outcome: Arc<Outcome> = Arc::default();
        let (watched, inquirer) = (session.clone(), self.liveness.as_ref().map(Liveness::pinger));
        let mut standing = ProgressCheck::after(config.watchdog, sample_interval(config));
        let _watchdog = Watchdog::start(config, &outcome, move || {
            if standing.add_sample(watched.begun()) {
                inquirer.iter().for_each(Pinger::ping);
            }
            watched.running()
        });
        let team = Arc::new(Team::new(shape.sleepers(plan.placements[self.rank.index()].workers)));
        if let Some(bed) = self.links.sleep_state() {
            team.sleepers[0].share(bed);
        }
        let going = CurrentRun { outcome: outcome.clone(), team: Arc::downgrade(&team) };
        let lost = {
            let mut watched = self.lock();
            watched.run = Some(going);
            watched.lost
        };
        if let Some(lost) = lost {
            self.lock().broken = true;
            outcome.lose(lost.error());
            team.stop();
        }
        let clock = begin.clock();
        let codec = ready.codec(self.rank);
        let transport =
            (self.ranks > 1).then(|| TransportHandle::boxed(Mpi::new(&mut self.links, codec, clock.clone())));
        // The process is one rank, which stays active whatever its CPU limits are.
        let (rank, outcome_of_run, watch) = (self.rank, outcome.clone(), &CpuLimitsWatch::start(drop));
        let seat = RankContext {
            config,
            rank,
            plan,
            watch,
            team,
            clock,
            outcome: outcome_of_run,
            run_recording: session,
            transport,
        };
        let figures = catch_unwind(AssertUnwindSafe(|| ready.run(seat))).unwrap_or_else(|panic| {
            if !self.links.are_closed() {
                resume_unwind(panic);
            }
            // A drop at the end of the run panicked, and all ranks return this error.
            outcome.fail(panicked(rank, &*panic));
            S::Figures::default()
        });
        self.lock().run = None;
        (figures, outcome)
    }
}

/// Checks that this thread may call MPI.
fn check_thread() -> Result<(), Error> {
    if !is_main_thread() {
        return Err(system("MPI", "it was initialised by another thread: call run from that thread"));
    }
    if !may_have_threads() {
        let why = "it was initialised without threads: use initialize_with_threading(Threading::Funneled)";
        return Err(system("MPI", why));
    }
    Ok(())
}

/// Refuses a job of one process if the launcher started several, because every process would do all the work.
fn check_launcher(launch: Launch, processes: i32) -> Result<(), Error> {
    match launch {
        Launch::Together { processes: several, .. } if processes == 1 && several > 1 => {
            let why = format!(
                "the launcher started {several} processes, but each is alone: the program was built for another MPI than the \
                 launcher's"
            );
            Err(system("MPI", &why))
        }
        _ => Ok(()),
    }
}

/// What the other processes need to know of a process to watch it.
#[derive(Serialize, Deserialize)]
struct PeerInfo {
    process: u32,
    host: String,
    /// The addresses to which its children in the tree of ranks connect. None for a rank without children.
    invitation: Option<ContactInfo>,
}

impl PeerInfo {
    /// The process as text by which a person can find it.
    fn name(&self, rank: Rank) -> String {
        format!("rank {rank} (process {} on host {})", self.process, self.host)
    }
}

/// Starts the detection of lost processes.
fn watch(
    rank: Rank,
    ranks: u32,
    links: &Links,
    watched: &Arc<Mutex<WatchedRun>>,
) -> Result<Option<Liveness>, Error> {
    if ranks == 1 {
        return Ok(None);
    }
    let tree = Tree::of(ranks);
    let opened = tree.is_inner(rank).then(Listener::open).and_then(|opened| {
        let warn =
            |why: &_| tracing::warn!(rank = rank.0, %why, "this rank cannot listen, so it does not watch other ranks");
        opened.inspect_err(warn).ok()
    });
    let (door, invitation) = opened.unzip();
    let mine = PeerInfo { process: std::process::id(), host: host_name(), invitation };
    let said = links.communicator().allgather(&wire::encode(&mine).unwrap_or_default());
    let said = said.map_err(|why| broken(&why))?;
    let introduction = |rank: Rank| wire::decode::<PeerInfo>(&said[rank.index()]).ok();
    let parent = tree.parent(rank).and_then(introduction).and_then(|parent| parent.invitation);
    if parent.is_none() && (rank != ROOT || door.is_none()) {
        return Ok(None);
    }
    let neighbours = tree.parent(rank).into_iter().chain(tree.children(rank));
    let name = |rank| introduction(rank).map_or_else(|| format!("rank {rank}"), |its| its.name(rank));
    let names: LiteMap<Rank, String> = neighbours.map(|rank| (rank, name(rank))).collect();
    let on_news = {
        let watched = watched.clone();
        Box::new(move |news| match news {
            PeerEvent::Lost(lost) => lose(&watched, lost),
            PeerEvent::Silent(of) => warn::warn(&format!(
                "{} has not answered rank {rank} for {} s: its process is stopped, or its host is overloaded",
                names.get(&of).map_or("", String::as_str),
                PING_TIMEOUT_NS / 1_000_000_000
            )),
            PeerEvent::Answers(of) => warn::warn(&format!("rank {of} answers rank {rank} again")),
        })
    };
    let liveness = Liveness::start(tree, rank, parent.as_ref(), door, on_news);
    Ok(liveness
        .inspect_err(|why| tracing::warn!(rank = rank.0, %why, "other ranks do not watch this rank"))
        .ok())
}

/// Ends the current run, if there is one, because a rank is lost.
fn lose(watched: &Arc<Mutex<WatchedRun>>, lost: Lost) {
    let mut state = watched.lock().unwrap_or_else(PoisonError::into_inner);
    // No rank leaves properly before all have sent their figures, which happens after the run.
    let going = state.run.as_ref();
    if let Some(CurrentRun { outcome, team }) = going {
        outcome.lose(lost.error());
        if let Some(team) = team.upgrade() {
            team.stop();
        }
        let outcome = Arc::downgrade(outcome);
        let last_word = move || {
            thread::sleep(GRACE);
            if outcome.upgrade().is_some() {
                print_error(&lost.error());
                end_process();
            }
        };
        // If the thread cannot be started, the process ends when its handler returns.
        let _ = thread::Builder::new().name("caribou last".into()).spawn(last_word);
    }
    state.broken |= going.is_some() || lost.kind == LossKind::Died;
    state.lost.get_or_insert(lost);
    state.alarm.raise();
}

/// Ends the job, because this process failed at a collective operation, in which all others wait.
fn abort_with(error: &Error) -> ! {
    print_error(error);
    thread::sleep(OUTPUT_FLUSH_TIME);
    abort(1)
}

/// Prints an error of a process that ends at once.
fn print_error(error: &Error) {
    warn::print_line(&format!("error: {error}"));
}

/// Ends the job before MPI is started, see [`Launch::refuse`](crate::Launch::refuse). Returns if MPI was started.
pub(crate) fn refuse(process: u32, complaint: &str, code: u8) {
    if is_initialised() {
        return;
    }
    if process == 0 {
        warn::print_line(complaint);
    }
    // Other processes wait in this call for this process, and some launchers never end them.
    let universe = ManuallyDrop::new(mpi::initialize());
    let world = universe.as_ref().map(Universe::world);
    if process == 0 {
        for other in
            world.iter().flat_map(|world| (1..world.size()).map(|other| world.process_at_rank(other)))
        {
            other.send_with_tag::<[u8]>(&[], REFUSED);
        }
    } else if world.is_some_and(|world| first_refuses(&world)) {
        // The first process has printed the complaint, and ends the job.
        thread::sleep(OUTPUT_FLUSH_TIME);
    } else {
        warn::print_line(complaint);
    }
    thread::sleep(OUTPUT_FLUSH_TIME);
    abort(code)
}

/// Waits up to a second for the message that the first process refuses too.
fn first_refuses(world: &SimpleCommunicator) -> bool {
    let ticks = 0..2 * OUTPUT_FLUSH_TIME.as_millis();
    ticks.into_iter().any(|_| {
        thread::sleep(Duration::from_millis(1));
        world.process_at_rank(0).immediate_probe_with_tag(REFUSED).is_some()
    })
}

impl Lost {
    fn error(self) -> Error {
        let why = match self.kind {
            LossKind::Died => "its process was killed, has crashed or has exited",
            LossKind::Left => "its process has ended while others were still in the run",
        };
        Error::RankLost { rank: self.rank, why: why.into() }
    }
}

fn broken(why: &MpiError) -> Error {
    system("MPI", &why.to_string())
}

fn system(what: &str, why: &str) -> Error {
    Error::System { what: what.into(), why: why.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_mpi_takes_for_a_job_of_its_own_is_refused() {
        let third = Launch::Together { process: 2, processes: 3 };
        assert!(check_launcher(third, 1).is_err_and(|why| why.to_string().contains("another MPI")));
        for (launch, processes) in
            [(third, 3), (Launch::Alone, 1), (Launch::Together { process: 0, processes: 1 }, 1)]
        {
            assert_eq!(check_launcher(launch, processes), Ok(()));
        }
    }
}
