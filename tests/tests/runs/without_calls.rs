//! The default: chunks are balanced while they run, and the program calls nothing for it.

use std::time::Duration;

use caribou::config::Period;
use caribou::{Chunk, Config, Ctx, Halo, Halos, Placement, Reducer, Target};
use caribou_tests::{run_array_with_service, with_timeout};
use serde::{Deserialize, Serialize};

const CHUNKS: u32 = 16;
/// Work of a step, ns on a vCPU of speed 1.
const STEP_NS: u64 = 200_000;

/// A chunk of a ring that works in steps, each after those of its neighbours, and knows no sync.
#[derive(Serialize, Deserialize)]
struct Walker {
    halos: Halos<f64>,
    /// It gives up after this step.
    steps_max: u64,
    /// The rank that it started on.
    home: u32,
    has_moved: bool,
}

impl Walker {
    fn new(steps_max: u64) -> Walker {
        Walker { halos: Halos::new(2), steps_max, home: 0, has_moved: false }
    }

    fn greet(&self, ctx: &mut Ctx<'_, impl Chunk<Index = u32, Message = Halo<f64>>>) {
        let me = ctx.index();
        ctx.send((me + 1) % CHUNKS, self.halos.halo(0, 0.0));
        ctx.send((me + CHUNKS - 1) % CHUNKS, self.halos.halo(1, 0.0));
    }

    /// Works: in a simulated run by saying so, else for as long as the slowness of the rank makes it.
    fn work(&self, ctx: &mut Ctx<'_, Self>) {
        if *ctx.service::<Simulated>() == Simulated(true) {
            // The chunks that start on rank 1 have three times as much to do: a rank with a third of a vCPU.
            return ctx.charge(STEP_NS * if self.home == 1 { 3 } else { 1 });
        }
        let done_ns = ctx.elapsed_ns() + (STEP_NS as f64 * ctx.slowness()) as u64;
        while ctx.elapsed_ns() < done_ns {
            std::hint::spin_loop();
        }
    }
}

/// Whether the run is simulated.
#[derive(Clone, Copy, PartialEq)]
struct Simulated(bool);

impl Chunk for Walker {
    type Index = u32;
    type Message = Halo<f64>;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.home = ctx.rank().0;
        self.greet(ctx);
    }

    fn ready(&self, halo: &Halo<f64>) -> bool {
        self.halos.expects(halo)
    }

    fn receive(&mut self, halo: Halo<f64>, ctx: &mut Ctx<'_, Self>) {
        if self.halos.add(halo).is_none() {
            return;
        }
        self.work(ctx);
        if self.has_moved || self.halos.step() == self.steps_max {
            return ctx.exit_with(&self.has_moved);
        }
        self.greet(ctx);
    }

    fn resume(&mut self, _: &mut Ctx<'_, Self>) {
        unreachable!("there is no sync");
    }

    fn on_arrive(&mut self) {
        self.has_moved = true;
    }
}

/// Whether a chunk was moved before it gave up, and the number of moves in the report.
fn walk(config: Config, steps_max: u64) -> (bool, u64) {
    let simulated = Simulated(config.is_simulated());
    let report = with_timeout(&format!("{config:?}"), move || {
        run_array_with_service(config, simulated, CHUNKS, move |_| Walker::new(steps_max))
    });
    let report = report.expect("nothing is wrong");
    (report.value().expect("a chunk gave it"), report.sync_totals.moved)
}

#[test]
fn by_default_chunks_leave_a_slow_rank_though_the_program_calls_nothing() {
    let slow = || Config::default().ranks(2).workers(1).slowed(1, 3.0);
    let (has_moved, moves) = walk(slow(), 1_000);
    assert!(has_moved && moves > 0, "{moves} moves");
    assert_eq!(walk(slow().period(20), 100), (false, 0), "at syncs, to which nobody comes");
}

#[test]
fn by_default_chunks_leave_a_rank_with_more_work_in_every_order_of_events() {
    for seed in 0..20 {
        let config = || Config::default().ranks(2).workers(1).simulate(seed);
        let (has_moved, moves) = walk(config(), 2_000);
        assert!(has_moved && moves > 0, "seed {seed}: {moves} moves");
        assert_eq!(walk(config().period(20), 1_000), (false, 0), "seed {seed}");
    }
}

/// A chunk of a ring that comes to syncs when they are due.
#[derive(Serialize, Deserialize)]
struct Pilgrim {
    walker: Walker,
    syncs: u32,
}

impl Chunk for Pilgrim {
    type Index = u32;
    type Message = Halo<f64>;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.walker.home = ctx.rank().0;
        self.walker.greet(ctx);
    }

    fn ready(&self, halo: &Halo<f64>) -> bool {
        self.walker.halos.expects(halo)
    }

    fn receive(&mut self, halo: Halo<f64>, ctx: &mut Ctx<'_, Self>) {
        let walker = &mut self.walker;
        if walker.halos.add(halo).is_none() {
            return;
        }
        ctx.charge(STEP_NS * if walker.home == 1 { 3 } else { 1 });
        if walker.halos.step() == walker.steps_max {
            let sums = vec![u64::from(walker.has_moved), u64::from(self.syncs)];
            return ctx.contribute(0, Reducer::Sum, sums, Target::Exit);
        }
        if ctx.sync_due(walker.halos.step()) {
            return ctx.at_sync();
        }
        self.walker.greet(ctx);
    }

    fn resume(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.syncs += 1;
        self.walker.greet(ctx);
    }

    fn on_arrive(&mut self) {
        self.walker.has_moved = true;
    }
}

#[test]
fn an_array_that_moves_at_syncs_only_makes_auto_mean_syncs_and_stays_in_windows() {
    for seed in 0..5 {
        let run = |config: Config| -> Vec<u64> {
            let report = with_timeout(&format!("{config:?}"), move || {
                caribou::run(config, |setup| {
                    let new = |_| Pilgrim { walker: Walker::new(400), syncs: 0 };
                    setup.array_at_syncs(CHUNKS, Placement::Block, new);
                })
            });
            report.expect("nothing is wrong").value().expect("they gave it")
        };
        let config = || Config::default().ranks(2).workers(1).simulate(seed);
        let [moved, syncs] = run(config())[..] else { panic!("two sums were contributed") };
        assert!(moved > 0 && syncs >= 10 * u64::from(CHUNKS), "seed {seed}: {moved} {syncs}");
        let windows = config().balance(Period::Every(Duration::from_millis(5)));
        assert_eq!(run(windows), [0, 0], "seed {seed}");
    }
}
