//! Reductions of steps that only some chunks take part in, and chunks without parents, by seed: the number of contributions to
//! each step is exactly that of the chunks that take part in it, while chunks migrate, come, leave the reductions and go.
//!
//! They migrate at syncs, or in windows while an array that moves at syncs only lives beside them, and stays.

use std::collections::BTreeMap;
use std::time::Duration;

use caribou::config::Period;
use caribou::{Array, Chunk, Ctx, Error, Placement, Reducer, Report, Target, Values};
use caribou_tests::{simulated, whole_number};
use serde::{Deserialize, Serialize};

use super::seeds;

const FIRST: u32 = 6;
const STEPS: u64 = 12;
/// After this step the chunks of even index contribute to none.
const LAST_OF_EVEN: u64 = 8;
/// In these steps each of the first chunks inserts one, and a guest.
const INSERTS: [u64; 2] = [3, 6];
const GUESTS: u32 = FIRST * INSERTS.len() as u32;
const GUEST: u32 = 1000;

/// Takes part in some steps. It comes to a sync every third one, and goes when it is through.
#[derive(Serialize, Deserialize)]
struct Member {
    step: u64,
    guests: Array<Guest>,
    judge: Array<Judge>,
    guests_stay: bool,
}

/// A chunk of an array that begins empty: it contributes once, comes to a sync, and goes.
#[derive(Serialize, Deserialize)]
struct Guest {
    judge: Array<Judge>,
    /// Tells whether it never migrates.
    stays: bool,
}

/// Hears all results.
#[derive(Serialize, Deserialize)]
struct Judge {
    by_step: BTreeMap<u64, u64>,
    guests: u64,
}

#[derive(Serialize, Deserialize)]
struct Heard {
    tag: u32,
    chunks: u64,
}

fn takes_part(index: u32, step: u64) -> bool {
    let is_out = index.is_multiple_of(2) && step > LAST_OF_EVEN;
    !is_out && !(u64::from(index) + step).is_multiple_of(3) && step != 5
}

/// The first step of a chunk.
fn first_step(index: u32) -> u64 {
    match index {
        first if first < FIRST => 0,
        later => INSERTS[(later / 100 - 1) as usize] + 1,
    }
}

fn expected() -> BTreeMap<u64, u64> {
    let later =
        (1..=INSERTS.len() as u32).flat_map(|which| (0..FIRST).map(move |parent| 100 * which + parent));
    let all: Vec<u32> = (0..FIRST).chain(later).collect();
    let count =
        |step| all.iter().filter(|&&index| first_step(index) <= step && takes_part(index, step)).count();
    (0..STEPS).map(|step| (step, count(step) as u64)).filter(|&(_, chunks)| chunks > 0).collect()
}

impl Member {
    fn go_on(&mut self, ctx: &mut Ctx<'_, Self>) {
        ctx.send(ctx.index(), ());
    }
}

impl Chunk for Member {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.go_on(ctx);
    }

    fn receive(&mut self, (): (), ctx: &mut Ctx<'_, Self>) {
        let (me, step) = (ctx.index(), self.step);
        if takes_part(me, step) {
            let judge = Target::chunk_of(self.judge, 0);
            ctx.contribute_at(step, step as u32, Reducer::Sum, vec![1u64], judge);
        } else if step <= LAST_OF_EVEN || !me.is_multiple_of(2) {
            ctx.abstain_until(step + 1);
        } else {
            ctx.leave_reductions();
        }
        if let Some(which) = INSERTS.iter().position(|&inserts| inserts == step && me < FIRST) {
            let which = which as u32;
            let Member { guests, judge, guests_stay, .. } = *self;
            ctx.insert(100 * (which + 1) + me, Member { step: step + 1, guests, judge, guests_stay });
            ctx.insert_root(guests, which * FIRST + me, Guest { judge, stays: guests_stay });
        }
        self.step += 1;
        match self.step {
            STEPS => ctx.remove(),
            step if step % 3 == 0 => ctx.at_sync(),
            _ => self.go_on(ctx),
        }
    }
}

impl Chunk for Guest {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        ctx.contribute(GUEST, Reducer::Sum, vec![1u64], Target::chunk_of(self.judge, 0));
        ctx.at_sync();
    }

    fn resume(&mut self, ctx: &mut Ctx<'_, Self>) {
        ctx.remove();
    }

    fn receive(&mut self, (): (), _: &mut Ctx<'_, Self>) {}

    fn on_arrive(&mut self) {
        assert!(!self.stays, "a chunk that moves at syncs only has moved in a window");
    }
}

impl Chunk for Judge {
    type Index = u32;
    type Message = Heard;

    fn reduced(tag: u32, values: Values) -> Heard {
        Heard { tag, chunks: whole_number(values) }
    }

    fn receive(&mut self, heard: Heard, ctx: &mut Ctx<'_, Self>) {
        match heard.tag {
            GUEST => self.guests += heard.chunks,
            step => assert_eq!(self.by_step.insert(step.into(), heard.chunks), None, "step {step} twice"),
        }
        if self.guests == u64::from(GUESTS) && self.by_step.len() == expected().len() {
            ctx.exit_with(&self.by_step);
        }
    }
}

fn simulate(seed: u64, period: Period) -> Result<Report, Error> {
    let lb = ["none", "rotate", "random"][(seed % 3) as usize];
    let config = simulated(seed)
        .ranks(1 + (seed % 5) as u32)
        .balance(period)
        .mail_limit([u64::MAX, 1, 300][(seed / 3 % 3) as usize])
        .wire_always(seed % 2 == 1)
        .lb(lb)?;
    let guests_stay = !matches!(period, Period::Steps(_));
    caribou::run(config, move |setup| {
        let judge =
            setup.array_without_sync(1, Placement::Block, |_| Judge { by_step: BTreeMap::new(), guests: 0 });
        let guests = setup.array_at_syncs(0, Placement::Hash, |_| unreachable!("there are none"));
        let member = move |_| Member { step: 0, guests, judge, guests_stay };
        setup.array_with(FIRST, Placement::RoundRobin, member);
    })
}

/// Checks all seeds. Returns the number of moves.
fn check(period: Period) -> u64 {
    let mut moved = 0;
    for seed in seeds(200) {
        let report = simulate(seed, period);
        let report = report.expect("it ends");
        let by_step: BTreeMap<u64, u64> = report.value().expect("the judge has heard all");
        assert_eq!(by_step, expected());
        assert_eq!(report.undelivered.messages, 0);
        moved += report.sync_totals.moved;
    }
    moved
}

#[test]
fn those_that_take_part_in_a_step_are_counted_and_no_others() {
    check(Period::Steps(20));
}

#[test]
fn they_are_counted_in_windows_beside_chunks_that_move_at_syncs_only() {
    assert!(check(Period::Every(Duration::from_micros(1))) >= caribou_tests::expected(1, 200), "chunks move");
}
