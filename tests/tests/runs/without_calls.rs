//! The default: chunks are balanced while they run, and the program calls nothing for it.

use std::time::{Duration, Instant};

use caribou::{Chunk, Config, Ctx};
use caribou_tests::with_timeout;
use serde::{Deserialize, Serialize};

const CHUNKS: u32 = 16;
/// Work of a step, ns on a vCPU of speed 1.
const STEP_NS: u64 = 200_000;

/// A chunk that works in steps, and knows no sync.
#[derive(Serialize, Deserialize)]
struct Walker {
    steps: u32,
    /// It gives up after this step.
    steps_max: u32,
    /// The rank that it started on.
    home: u32,
    has_moved: bool,
}

impl Walker {
    /// Works: in a simulated run by saying so, else for as long as the slowness of the rank makes it.
    fn work(&self, ctx: &mut Ctx<'_, Self>) {
        if *ctx.service::<Simulated>() == Simulated(true) {
            // The chunks that start on rank 1 have three times as much to do: a rank with a third of a vCPU.
            return ctx.charge(STEP_NS * if self.home == 1 { 3 } else { 1 });
        }
        let long = Duration::from_nanos(STEP_NS).mul_f64(ctx.slowness());
        let begin = Instant::now();
        while begin.elapsed() < long {
            std::hint::spin_loop();
        }
    }
}

/// Whether the run is simulated.
#[derive(Clone, Copy, PartialEq)]
struct Simulated(bool);

impl Chunk for Walker {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.home = ctx.rank().0;
        ctx.send(ctx.index(), ());
    }

    fn receive(&mut self, (): (), ctx: &mut Ctx<'_, Self>) {
        self.work(ctx);
        self.steps += 1;
        if self.has_moved || self.steps == self.steps_max {
            return ctx.exit_with(&self.has_moved);
        }
        ctx.send(ctx.index(), ());
    }

    fn resume(&mut self, _: &mut Ctx<'_, Self>) {
        unreachable!("there is no sync");
    }

    fn on_arrive(&mut self) {
        self.has_moved = true;
    }
}

/// Whether a chunk was moved before it gave up, and the number of moves in the report.
fn walk(config: Config, steps_max: u32) -> (bool, u64) {
    let simulated = Simulated(config.is_simulated());
    let report = with_timeout(&format!("{config:?}"), move || {
        caribou::run(config, move |setup| {
            setup.service(simulated);
            setup.array(CHUNKS, move |_| Walker { steps: 0, steps_max, home: 0, has_moved: false });
        })
    });
    let report = report.expect("nothing is wrong");
    (report.value().expect("a chunk gave it"), report.sync_totals.moved)
}

#[test]
fn by_default_chunks_leave_a_slow_rank_though_the_program_calls_nothing() {
    let slow = || Config::default().ranks(2).workers(1).slowed(1, 3.0);
    let (has_moved, moves) = walk(slow(), 5_000);
    assert!(has_moved && moves > 0, "{moves} moves");
    assert_eq!(walk(slow().period(20), 100), (false, 0), "at syncs, to which nobody comes");
}

#[test]
fn by_default_chunks_leave_a_rank_with_more_work_in_every_order_of_events() {
    for seed in 0..20 {
        let config = || Config::default().ranks(2).workers(1).simulate(seed);
        let (has_moved, moves) = walk(config(), 5_000);
        assert!(has_moved && moves > 0, "seed {seed}: {moves} moves");
        assert_eq!(walk(config().period(20), 1_000), (false, 0), "seed {seed}");
    }
}
