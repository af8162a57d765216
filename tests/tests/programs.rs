//! Programs as a user writes them, on the public interface alone, wherever they may run: by `jobs.rs` also in jobs.
//!
//! Some 100 seeds each by default; `SEEDS=1000` simulates as many, `SEED=7` that one.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use caribou::lb::Rank;
use caribou::supersteps::{Job, Parts, Supersteps, Then};
use caribou::testing::probe;
use caribou::{
    Array, Chunk, Combine, Config, Ctx, Error, Grid, Halo, Halos, Index, Launch, Placement, Reducer, ReplyTo,
    Section, Seed, Target, Values,
};
use caribou_tests::{run_array, run_array_with, seeds, whole_number, with_timeout};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The value that a program gives, everywhere the same; among others by each seed of a sweep of the `usual` length.
fn given<T>(program: impl Fn(Config) -> Result<T, Error> + Clone + Send + 'static, usual: u64) -> T
where
    T: DeserializeOwned + Send + PartialEq + std::fmt::Debug + 'static,
{
    // Programs that come to syncs have them; some threads below balance in windows, as by default.
    let at_syncs = Config::default().period(20);
    let config = at_syncs.clone().with_env().expect("the variables are those of a test");
    if let Launch::Together { process, .. } = config.launch() {
        return program(config).unwrap_or_else(|error| panic!("process {process}: {error}"));
    }
    let alone = program(at_syncs.clone()).unwrap_or_else(|error| panic!("alone: {error}"));
    let threads = [(2, 1), (1, 3), (3, 2)].into_iter().flat_map(|(ranks, workers)| {
        [false, true].map(|wire| at_syncs.clone().ranks(ranks).workers(workers).wire_always(wire))
    });
    let in_windows = [(2, 1), (3, 2)].map(|(ranks, workers)| Config::default().ranks(ranks).workers(workers));
    let simulated = seeds(usual, "--test programs").map(|seed| at_syncs.clone().ranks(3).simulate(seed));
    for config in threads.chain(in_windows).chain(simulated) {
        let what = format!("{config:?}");
        let program = program.clone();
        assert_eq!(with_timeout(&what, move || program(config)).as_ref(), Ok(&alone), "{what}");
    }
    alone
}

/// Places for as many queens, one in each column. A chunk tries all rows of the next column, and leaves the rest to others.
#[derive(Serialize, Deserialize)]
struct Queens {
    placed: Vec<u8>,
    found: u64,
}

const QUEENS: u8 = 8;
/// Columns that chunks fill before they search alone.
const SPREAD: usize = 3;

#[derive(Serialize, Deserialize)]
enum Found {
    Some(u64),
    All,
}

impl Queens {
    fn may_stand(&self, row: u8) -> bool {
        let apart = |(distance, &other): (u8, &u8)| other != row && other.abs_diff(row) != distance;
        (1..).zip(self.placed.iter().rev()).all(apart)
    }

    fn solutions(&mut self) -> u64 {
        if self.placed.len() == usize::from(QUEENS) {
            return 1;
        }
        let mut solutions = 0;
        for row in 0..QUEENS {
            if self.may_stand(row) {
                self.placed.push(row);
                solutions += self.solutions();
                self.placed.pop();
            }
        }
        solutions
    }
}

impl Chunk for Queens {
    type Index = u64;
    type Message = Found;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        if ctx.index() == 1 {
            ctx.send_at_quiescence(1, Found::All);
        } else if self.placed.len() == SPREAD {
            let solutions = self.solutions();
            ctx.send(1, Found::Some(solutions));
            return ctx.remove();
        }
        for row in (0..QUEENS).filter(|&row| self.may_stand(row)) {
            let placed = [&self.placed[..], &[row]].concat();
            ctx.insert(ctx.index() * u64::from(QUEENS) + u64::from(row), Queens { placed, found: 0 });
        }
    }

    fn receive(&mut self, found: Found, ctx: &mut Ctx<'_, Self>) {
        match found {
            Found::Some(solutions) => self.found += solutions,
            Found::All => ctx.exit_with(&self.found),
        }
    }
}

#[test]
fn eight_queens_stand_in_92_ways() {
    let program = |config| {
        run_array_with(config, vec![1], Placement::Hash, |_| Queens { placed: Vec::new(), found: 0 })?
            .value::<u64>()
    };
    assert_eq!(given(program, 100), 92);
}

/// The same, where a rank that has nothing to do takes some of what others have spawned.
#[derive(Serialize, Deserialize)]
struct SpreadQueens(Queens);

impl Chunk for SpreadQueens {
    type Index = Seed;
    type Message = Found;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        let first = Seed::first(0);
        if ctx.index() == first {
            ctx.send_at_quiescence(first, Found::All);
        } else if self.0.placed.len() == SPREAD {
            let solutions = self.0.solutions();
            ctx.send(first, Found::Some(solutions));
            return ctx.remove();
        }
        for row in (0..QUEENS).filter(|&row| self.0.may_stand(row)) {
            let placed = [&self.0.placed[..], &[row]].concat();
            ctx.spawn(SpreadQueens(Queens { placed, found: 0 }));
        }
    }

    fn receive(&mut self, found: Found, ctx: &mut Ctx<'_, Self>) {
        match found {
            Found::Some(solutions) => self.0.found += solutions,
            Found::All => ctx.exit_with(&self.0.found),
        }
    }
}

#[test]
fn eight_queens_are_spread_over_ranks_that_have_nothing_to_do() {
    let program = |config| {
        let report = run_array(config, 1, |_: Seed| SpreadQueens(Queens { placed: Vec::new(), found: 0 }))?;
        assert_eq!(report.undelivered.messages, 0, "{}", report.undelivered);
        report.value::<u64>()
    };
    assert_eq!(given(program, 100), 92);
}

/// An integral by Simpson's rule, halved where that is not exact enough. The halves answer to the whole.
#[derive(Serialize, Deserialize)]
struct Interval {
    ends: (f64, f64),
    tolerance: f64,
    answers: Vec<(u64, f64)>,
    reply: ReplyTo<(u64, f64)>,
}

fn curve(x: f64) -> f64 {
    1.0 / (1e-3 + x * x)
}

fn simpson(a: f64, b: f64) -> f64 {
    (b - a) / 6.0 * (curve(a) + 4.0 * curve(f64::midpoint(a, b)) + curve(b))
}

impl Chunk for Interval {
    type Index = u64;
    /// The interval that answers, and its integral.
    type Message = (u64, f64);

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        let ((a, b), me) = (self.ends, ctx.index());
        let middle = f64::midpoint(a, b);
        let fine = simpson(a, middle) + simpson(middle, b);
        if (fine - simpson(a, b)).abs() < 15.0 * self.tolerance {
            ctx.reply(&self.reply, (me, fine));
            return ctx.remove();
        }
        let (tolerance, reply) = (self.tolerance / 2.0, ctx.reply_to_self());
        for (half, ends) in [(2 * me, (a, middle)), (2 * me + 1, (middle, b))] {
            ctx.insert(half, Interval { ends, tolerance, answers: Vec::new(), reply: reply.clone() });
        }
    }

    fn receive(&mut self, answer: (u64, f64), ctx: &mut Ctx<'_, Self>) {
        self.answers.push(answer);
        if self.answers.len() == 2 {
            let whole = self.answers.iter().map(|(_, integral)| integral).sum::<f64>();
            ctx.reply(&self.reply, (ctx.index(), whole));
            ctx.remove();
        }
    }
}

#[test]
fn an_integral_is_the_same_to_the_last_bit() {
    let program = |config| {
        let (ends, tolerance) = ((-1.0, 1.0), 1e-6);
        let make = move |_| Interval { ends, tolerance, answers: Vec::new(), reply: ReplyTo::run() };
        run_array_with(config, vec![1], Placement::Hash, make)?.value::<(u64, f64)>()
    };
    let (root, integral) = given(program, 100);
    let width = 1e-3f64.sqrt();
    let exact = 2.0 / width * (1.0 / width).atan();
    assert_eq!(root, 1);
    assert!((integral - exact).abs() < 1e-5, "{integral}, exactly {exact}");
}

/// Answers with each number that it is asked for, to the addressee of the reply.
#[derive(Serialize, Deserialize)]
struct Oracle;

impl Chunk for Oracle {
    type Index = [u16; 2];
    type Message = (u64, ReplyTo<u64>);

    fn receive(&mut self, (number, reply): (u64, ReplyTo<u64>), ctx: &mut Ctx<'_, Self>) {
        ctx.reply(&reply, number + ctx.index().pack());
    }
}

#[derive(Serialize, Deserialize)]
struct Seeker {
    oracle: Array<Oracle>,
    heard: u64,
}

impl Chunk for Seeker {
    type Index = u32;
    type Message = u64;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        if ctx.index() == 0 {
            let all = ReplyTo::section(ctx.array(), &Section::new(0..6));
            ctx.send_to(self.oracle, [0, 0], (10, all));
            ctx.send_to(self.oracle, [0, 1], (100, ReplyTo::chunk(ctx.array(), 5)));
        }
    }

    fn receive(&mut self, number: u64, ctx: &mut Ctx<'_, Self>) {
        self.heard += number;
        // 10 to all six, 101 to the last; what that has heard then comes out.
        if ctx.index() == 5 && self.heard == 111 {
            ctx.send_to(self.oracle, [0, 0], (self.heard, ReplyTo::run()));
        }
    }
}

#[test]
fn an_answer_goes_to_a_chunk_a_section_or_out_of_the_run() {
    let program = |config| {
        let report = caribou::run(config, |setup| {
            let oracle = setup.array([1, 2], |_: [u16; 2]| Oracle);
            setup.array(6, move |_| Seeker { oracle, heard: 0 });
        })?;
        report.value::<u64>()
    };
    assert_eq!(given(program, 100), 111);
}

/// Sends itself messages for later, and migrates before they are due.
#[derive(Serialize, Deserialize)]
struct Sleeper {
    round: u32,
    heard: BTreeSet<(u32, u64)>,
    /// All ranks count time from the same moment.
    one_clock: bool,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Alarm {
    Rings { round: u32, number: u64, due_ns: u64 },
    Never,
}

const SLEEPERS: u32 = 7;
const NIGHTS: u32 = 5;
const DELAYS: [Duration; 4] =
    [Duration::from_micros(500), Duration::from_micros(50), Duration::ZERO, Duration::from_micros(50)];

impl Sleeper {
    fn finish_if_done(&self, ctx: &mut Ctx<'_, Self>) {
        let heard = self.heard.len() as u64;
        if heard == u64::from(NIGHTS) * DELAYS.len() as u64 && self.round == NIGHTS {
            ctx.contribute(0, Reducer::Sum, vec![heard], Target::Exit);
        }
    }
}

impl Chunk for Sleeper {
    type Index = u32;
    type Message = Alarm;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        for (number, delay) in (0..).zip(DELAYS) {
            let due_ns = ctx.elapsed_ns() + delay.as_nanos() as u64;
            ctx.send_after(delay, Alarm::Rings { round: self.round, number, due_ns });
        }
        if self.round == 0 {
            ctx.send_after(Duration::MAX, Alarm::Never);
        }
        ctx.at_sync();
    }

    fn resume(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.round += 1;
        if self.round < NIGHTS {
            return self.start(ctx);
        }
        self.finish_if_done(ctx);
    }

    fn receive(&mut self, alarm: Alarm, ctx: &mut Ctx<'_, Self>) {
        let Alarm::Rings { round, number, due_ns } = alarm else { panic!("some 584 years have passed") };
        assert!(!self.one_clock || ctx.elapsed_ns() >= due_ns, "{number} of round {round} comes early");
        assert!(self.heard.insert((round, number)), "{number} of round {round} comes twice");
        assert!(
            number != 3 || self.heard.contains(&(round, 1)),
            "of two with one delay the second comes first"
        );
        self.finish_if_done(ctx);
    }
}

#[test]
fn what_a_chunk_sends_itself_for_later_follows_it_and_comes_once() {
    let program = |config: Config| {
        let one_clock = !matches!(config.launch(), Launch::Together { .. });
        let make = move |_| Sleeper { round: 0, heard: BTreeSet::new(), one_clock };
        let report = run_array(config.lb("rotate")?, SLEEPERS, make)?;
        assert_eq!(report.undelivered.messages, 0, "what is not due is dropped by exit");
        report.value::<Vec<u64>>()
    };
    assert_eq!(given(program, 100), [u64::from(SLEEPERS * NIGHTS) * DELAYS.len() as u64]);
}

#[test]
fn a_test_of_a_handler_sees_what_it_sends_for_later() {
    let mut sleeper = Sleeper { round: NIGHTS, heard: BTreeSet::new(), one_clock: true };
    let effects = probe(&mut sleeper, 3).start();
    let (delays, alarms): (Vec<_>, Vec<_>) = effects.after.into_iter().unzip();
    assert_eq!((&delays[..], effects.messages.len()), (&DELAYS[..], 0));
    assert_eq!(alarms[3], Alarm::Rings { round: NIGHTS, number: 3, due_ns: 50_000 });
}

/// Sends itself one message for later after the other.
#[derive(Serialize, Deserialize)]
struct Snoozer {
    rung: u64,
}

#[derive(Serialize, Deserialize)]
enum Morning {
    Rings,
    Quiet,
    Tell,
}

const SNOOZES: u64 = 4;

impl Chunk for Snoozer {
    type Index = u32;
    type Message = Morning;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        if ctx.index() == 0 {
            ctx.send_at_quiescence(0, Morning::Quiet);
        }
        // For longer than it takes to find that nothing else is left to do.
        ctx.send_after(Duration::from_millis(8), Morning::Rings);
    }

    fn receive(&mut self, morning: Morning, ctx: &mut Ctx<'_, Self>) {
        match morning {
            Morning::Rings => {
                self.rung += 1;
                if self.rung < SNOOZES {
                    ctx.send_after(Duration::from_millis(8), Morning::Rings);
                }
            }
            Morning::Quiet => ctx.broadcast(&Morning::Tell),
            Morning::Tell => ctx.contribute(0, Reducer::Sum, vec![self.rung], Target::Exit),
        }
    }
}

#[test]
fn quiescence_waits_for_what_is_not_due_yet() {
    let program = |config| run_array(config, 4, |_| Snoozer { rung: 0 })?.value::<Vec<u64>>();
    assert_eq!(given(program, 100), [4 * SNOOZES]);
}

/// As many things as its index says, removed where it is odd; all are to be numbered through.
#[derive(Serialize, Deserialize)]
struct Shelf {
    step: u64,
}

impl Chunk for Shelf {
    type Index = u32;
    type Message = u64;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        ctx.contribute(0, Reducer::Sum, vec![u64::from(ctx.index())], Target::Scan);
    }

    fn reduced(_: u32, values: Values) -> u64 {
        whole_number(values)
    }

    fn receive(&mut self, first: u64, ctx: &mut Ctx<'_, Self>) {
        if self.step == 0 && ctx.index() % 2 == 1 {
            return ctx.remove();
        }
        self.step += 1;
        if self.step == 1 {
            return ctx.at_sync();
        }
        ctx.contribute(
            1,
            Reducer::Gather,
            Values::part(&(first, format!("shelf {}", ctx.index()))),
            Target::Exit,
        );
    }
}

#[test]
fn a_scan_numbers_things_through_and_a_gather_brings_them_out() {
    let program = |config: Config| {
        run_array_with(config.lb("rotate")?, 9, Placement::Hash, |_| Shelf { step: 0 })?
            .gathered::<u32, (u64, String)>()
    };
    let shelves = given(program, 100);
    let expected = [(0, 0), (2, 0), (4, 2), (6, 6), (8, 12)];
    assert_eq!(shelves, expected.map(|(shelf, first)| (shelf, (first, format!("shelf {shelf}")))));
}

/// A block that its program moves on by a rank at each sync.
#[derive(Serialize, Deserialize)]
struct Block {
    swarms: Array<Swarm>,
    syncs: u32,
}

/// The particles of a block, which go where it goes.
#[derive(Default, Serialize, Deserialize)]
struct Swarm {
    syncs: u32,
    /// Syncs after which it was on the rank of its block, and on the one that the program wants.
    right: [u64; 2],
}

const SYNCS: u32 = 3;

impl Chunk for Block {
    type Index = [u16; 2];
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        ctx.migrate_to(Rank((ctx.rank().0 + 1) % ctx.ranks()));
        ctx.at_sync();
    }

    fn resume(&mut self, ctx: &mut Ctx<'_, Self>) {
        ctx.send_to(self.swarms, ctx.index(), ctx.rank());
        self.syncs += 1;
        if self.syncs < SYNCS {
            self.start(ctx);
        }
    }

    fn receive(&mut self, (): (), _: &mut Ctx<'_, Self>) {}
}

impl Chunk for Swarm {
    type Index = [u16; 2];
    type Message = Rank;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        ctx.at_sync();
    }

    fn resume(&mut self, _: &mut Ctx<'_, Self>) {
        self.syncs += 1;
    }

    fn receive(&mut self, block: Rank, ctx: &mut Ctx<'_, Self>) {
        let [x, y] = ctx.index();
        let first = u32::from(4 * x + y) * ctx.ranks() / 16;
        let wanted = Rank((first + self.syncs) % ctx.ranks());
        self.right[0] += u64::from(block == ctx.rank());
        self.right[1] += u64::from(wanted == ctx.rank());
        if self.syncs < SYNCS {
            return ctx.at_sync();
        }
        ctx.contribute(0, Reducer::Sum, self.right.to_vec(), Target::Exit);
    }
}

#[test]
fn chunks_go_where_their_program_wants_and_take_those_along_that_are_kept_with_them() {
    for lb in ["program", "rotate", "refine"] {
        let program = move |config: Config| {
            let report = caribou::run(config.period(20).lb(lb)?, |setup| {
                let swarms = setup.array([4, 4], |_| Swarm::default());
                setup.array_beside(swarms, [4, 4], move |_| Block { swarms, syncs: 0 });
            })?;
            report.value::<Vec<u64>>()
        };
        assert_eq!(given(program, 100), [48, 48], "{lb}");
    }
}

/// The lowest height with the index of its hill, and how often each height occurs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Survey {
    lowest: (u64, u32),
    counts: BTreeMap<u64, u64>,
}

impl Survey {
    fn of(height: u64, hill: u32) -> Survey {
        Survey { lowest: (height, hill), counts: BTreeMap::from([(height, 1)]) }
    }
}

impl Combine for Survey {
    fn combine(&mut self, other: Survey) {
        self.lowest = self.lowest.min(other.lowest);
        for (height, count) in other.counts {
            *self.counts.entry(height).or_default() += count;
        }
    }
}

const HILLS: u32 = 12;
/// Rounds of two reductions each; every second ends with a sync.
const ROUNDS: u32 = 6;
const LAST_TAG: u32 = 2 * ROUNDS - 1;

#[derive(Serialize, Deserialize)]
struct Hill {
    round: u32,
    syncs: bool,
}

impl Hill {
    fn height(me: u32, tag: u32) -> u64 {
        u64::from((me * 7 + tag * 3) % 10)
    }

    /// The survey of those that are there in its round: the last leaves after the first, and has a successor.
    fn expected(tag: u32) -> Survey {
        let last = if tag < 2 { HILLS - 1 } else { HILLS };
        let mut surveys = (0..HILLS - 1).chain([last]).map(|hill| Survey::of(Hill::height(hill, tag), hill));
        let mut first = surveys.next().expect("there are hills");
        surveys.for_each(|survey| first.combine(survey));
        first
    }
}

impl Chunk for Hill {
    type Index = u32;
    type Message = (u32, Survey);

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        for tag in [2 * self.round, 2 * self.round + 1] {
            let survey = Survey::of(Hill::height(ctx.index(), tag), ctx.index());
            let target = if tag == LAST_TAG { Target::Exit } else { Target::All };
            ctx.contribute(tag, Reducer::Own, Values::own(&survey), target);
        }
    }

    fn reduced(tag: u32, values: Values) -> (u32, Survey) {
        (tag, values.combined())
    }

    fn receive(&mut self, (tag, survey): (u32, Survey), ctx: &mut Ctx<'_, Self>) {
        assert_eq!(survey, Hill::expected(tag), "under tag {tag}");
        // The first of its round; or the successor hears of the round before its own.
        if tag != 2 * self.round + 1 {
            return;
        }
        if self.round == 0 && ctx.index() == HILLS - 1 {
            ctx.insert(HILLS, Hill { round: 1, syncs: self.syncs });
            return ctx.remove();
        }
        self.round += 1;
        if self.syncs && self.round.is_multiple_of(2) { ctx.at_sync() } else { self.start(ctx) }
    }
}

#[test]
fn a_type_of_ones_own_is_reduced_while_its_chunks_migrate() {
    let program = |config: Config| {
        run_array_with(config.lb("rotate")?, HILLS, Placement::Hash, |_| Hill { round: 0, syncs: true })?
            .combined::<Survey>()
    };
    assert_eq!(given(program, 100), Hill::expected(LAST_TAG));
}

#[test]
fn ranks_without_chunks_reduce_what_they_do_not_know() {
    let program = |config: Config| {
        let report = caribou::run(config, |setup| {
            // On nobody's way to rank 0 but its own; on that rank nobody knows the type.
            let away = Placement::by(|hill: u32, ranks| if ranks == 1 { 0 } else { 1 + hill % (ranks - 1) });
            setup.array_without_sync(HILLS, away, |_| Hill { round: 0, syncs: false });
        })?;
        report.combined::<Survey>()
    };
    assert_eq!(given(program, 20), Hill::expected(LAST_TAG));
}

/// A block of a matrix, which a vector is multiplied with again and again. Row sections add up the product, column
/// sections find its largest element; the diagonal holds the vector.
#[derive(Serialize, Deserialize)]
struct MatrixBlock {
    row: Section<MatrixBlock>,
    column: Section<MatrixBlock>,
    step: u64,
    /// Products that the diagonal has heard of.
    products: u64,
    digest: u64,
    /// It was compared with a guest: of the diagonal only.
    paired: bool,
    /// It numbers its reductions itself.
    numbers: bool,
}

#[derive(Serialize, Deserialize)]
enum MatrixMessage {
    Vector { step: u64, part: Vec<u64> },
    Product(Vec<u64>),
    Largest(Largest),
    Before(u64),
}

/// The largest element, combined as a type of its own.
#[derive(Serialize, Deserialize)]
struct Largest(u64);

impl Combine for Largest {
    fn combine(&mut self, other: Largest) {
        self.0 = self.0.max(other.0);
    }
}

const BLOCKS: u16 = 4;
/// Rows and columns of a block.
const SIDE: u64 = 3;
const PRODUCTS: u64 = 7;
const MODULUS: u64 = 1_000_003;
const PRODUCT: u32 = 0;
const LARGEST: u32 = 1;
const PAIR: u32 = 2;
/// The column of the guests' indices: one comes to each block of the diagonal.
const GUESTS: u16 = 100;

/// The element of the matrix.
fn element(row: u64, column: u64) -> u64 {
    (row * 31 + column * 17 + row * column) % 97
}

impl MatrixBlock {
    fn new([row, column]: [u16; 2], numbers: bool) -> MatrixBlock {
        MatrixBlock {
            row: Section::new((0..BLOCKS).map(|column| [row, column])),
            // In another order than its chunks come in.
            column: Section::new((0..BLOCKS).rev().map(|row| [row, column])),
            step: 0,
            products: 0,
            digest: 0,
            paired: row != column,
            numbers,
        }
    }

    /// The section of this step's reduction.
    fn now(&self, section: &Section<MatrixBlock>) -> Section<MatrixBlock> {
        if self.numbers { section.once(self.step) } else { section.clone() }
    }

    fn pair(diagonal: u16) -> Section<MatrixBlock> {
        Section::new([[diagonal, diagonal], [diagonal, GUESTS]])
    }

    fn product([row, column]: [u16; 2], part: &[u64]) -> Vec<u64> {
        let at = |block: u16, place: u64| u64::from(block) * SIDE + place;
        let one = |i| (0..).zip(part).map(|(j, x)| element(at(row, i), at(column, j)) * x).sum::<u64>();
        (0..SIDE).map(one).collect()
    }
}

impl Chunk for MatrixBlock {
    type Index = [u16; 2];
    type Message = MatrixMessage;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        let [row, column] = ctx.index();
        if column == GUESTS {
            let pair = MatrixBlock::pair(row);
            ctx.contribute_in(&pair, PAIR, Reducer::Sum, vec![3u64], Target::Scan);
        } else if row == column {
            ctx.multicast(&self.column, &MatrixMessage::Vector { step: 0, part: vec![1; SIDE as usize] });
        }
    }

    fn resume(&mut self, _: &mut Ctx<'_, Self>) {}

    fn ready(&self, message: &MatrixMessage) -> bool {
        match message {
            MatrixMessage::Vector { step, .. } => *step == self.step && (*step < PRODUCTS || self.paired),
            _ => true,
        }
    }

    fn reduced(tag: u32, values: Values) -> MatrixMessage {
        match (tag, values) {
            (LARGEST, values) => MatrixMessage::Largest(values.combined()),
            (PRODUCT, Values::U64(product)) => MatrixMessage::Product(product),
            (PAIR, Values::U64(before)) => MatrixMessage::Before(before[0]),
            other => panic!("nothing like {other:?} is contributed"),
        }
    }

    fn receive(&mut self, message: MatrixMessage, ctx: &mut Ctx<'_, Self>) {
        let [row, column] = ctx.index();
        match message {
            MatrixMessage::Vector { step: PRODUCTS, .. } => {
                ctx.contribute(0, Reducer::Sum, vec![self.digest], Target::Exit);
            }
            MatrixMessage::Vector { part, .. } => {
                let product = MatrixBlock::product([row, column], &part);
                let largest = product.iter().copied().max().expect("it has elements");
                let root = Target::Chunk([row, row]);
                ctx.contribute_in(&self.now(&self.row), PRODUCT, Reducer::Sum, product, root);
                let largest = Values::own(&Largest(largest));
                ctx.contribute_in(&self.now(&self.column), LARGEST, Reducer::Own, largest, Target::All);
                if self.step == 2 && row == column {
                    ctx.insert([row, GUESTS], MatrixBlock::new([row, GUESTS], self.numbers));
                    let own = vec![u64::from(row) + 5];
                    ctx.contribute_in(&MatrixBlock::pair(row), PAIR, Reducer::Sum, own, Target::Scan);
                }
            }
            MatrixMessage::Largest(Largest(largest)) => {
                self.digest = (self.digest * 7 + largest) % MODULUS;
                self.step += 1;
                if self.step.is_multiple_of(2) {
                    ctx.at_sync();
                }
            }
            MatrixMessage::Product(product) => {
                // The largest of its column may come before or after.
                let part = product.into_iter().map(|x| x % MODULUS).collect();
                self.products += 1;
                let step = self.products;
                ctx.multicast(&self.column, &MatrixMessage::Vector { step, part });
            }
            MatrixMessage::Before(sum) if column == GUESTS => {
                assert_eq!(sum, u64::from(row) + 5, "the diagonal comes before its guest");
                ctx.remove();
            }
            MatrixMessage::Before(sum) => {
                assert_eq!(sum, 0, "nobody comes before the diagonal");
                self.paired = true;
            }
        }
    }
}

/// The same without chunks.
fn digest() -> u64 {
    let mut vector = vec![1; usize::from(BLOCKS) * SIDE as usize];
    let mut digests = vec![0; usize::from(BLOCKS)];
    for _ in 0..PRODUCTS {
        let mut sums = vec![0; vector.len()];
        for (column, part) in (0..BLOCKS).zip(vector.chunks(SIDE as usize)) {
            let products = (0..BLOCKS).map(|row| MatrixBlock::product([row, column], part));
            let products: Vec<u64> = products.flatten().collect();
            let largest = products.iter().max().expect("it has elements");
            let digest = &mut digests[usize::from(column)];
            *digest = (*digest * 7 + largest) % MODULUS;
            sums.iter_mut().zip(&products).for_each(|(sum, x)| *sum += x);
        }
        vector = sums.into_iter().map(|x| x % MODULUS).collect();
    }
    u64::from(BLOCKS) * digests.iter().sum::<u64>()
}

#[test]
fn rows_and_columns_of_a_matrix_reduce_while_its_blocks_migrate() {
    for numbers in [false, true] {
        let program = move |config: Config| {
            let block = move |index| MatrixBlock::new(index, numbers);
            run_array_with(config.lb("rotate")?, [BLOCKS, BLOCKS], Placement::Hash, block)?
                .value::<Vec<u64>>()
        };
        assert_eq!(given(program, 100), [digest()]);
    }
}

/// A sum that diverges in one chunk.
#[derive(Serialize, Deserialize)]
struct Diverging {
    sum: f64,
}

impl Chunk for Diverging {
    type Index = u32;
    type Message = f64;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        ctx.send((ctx.index() + 1) % 5, self.sum);
    }

    fn receive(&mut self, term: f64, ctx: &mut Ctx<'_, Self>) {
        self.sum += term;
        match ctx.index() {
            3 if self.sum > 100.0 => ctx.fail(format!("its sum is {}", self.sum)),
            _ => self.start(ctx),
        }
    }
}

#[test]
fn an_error_of_the_program_ends_it_everywhere_with_its_words() {
    let program = |config| {
        let result = run_array_with(config, 5, Placement::Hash, |_| Diverging { sum: 1.0 });
        match result {
            Err(Error::Program { chunk, why, .. }) => Ok((chunk, why.starts_with("its sum is 1"))),
            Err(other) => Err(other),
            Ok(report) => panic!("{report:?}"),
        }
    };
    assert_eq!(given(program, 100), ("Diverging[3] of array 0".to_owned(), true));
}

/// One of a row of coarse cells, over which a front runs. Where the front is, two cells of another array refine it for three
/// steps.
#[derive(Serialize, Deserialize)]
struct Coarse {
    fine: Array<Fine>,
    step: u64,
}

/// The part of the finer grid that a coarse cell always has, or half a cell more.
#[derive(Serialize, Deserialize)]
struct Fine {
    step: u64,
    born: u64,
    value: u64,
    totals: BTreeMap<u64, Vec<u64>>,
}

#[derive(Serialize, Deserialize)]
enum FineMessage {
    /// To half a cell, from its coarse one.
    Fill(u64),
    /// To a part that is always there: all are in that belong to this step.
    Step(u64),
    Total(u64, Vec<u64>),
}

const COARSE: u32 = 8;
const REFINED_STEPS: u64 = 11;
const FINE_LIFE: u64 = 3;

fn front_is_at(cell: u32, step: u64) -> bool {
    (u64::from(cell) + 3 * step).is_multiple_of(4)
}

fn half_cell(cell: u32, step: u64, half: u32) -> u32 {
    100 * step as u32 + 2 * cell + half
}

/// Number and sum of the fine cells in a step.
fn fine_total(step: u64) -> Vec<u64> {
    let mut total = vec![u64::from(COARSE), u64::from(COARSE) * step];
    for born in (1..=step).filter(|born| born + FINE_LIFE > step) {
        for cell in (0..COARSE).filter(|&cell| front_is_at(cell, born)) {
            total[0] += 2;
            total[1] += (0..2).map(|half| u64::from(half_cell(cell, born, half)) * step).sum::<u64>();
        }
    }
    total
}

impl Coarse {
    fn advance(&mut self, ctx: &mut Ctx<'_, Self>) {
        let (me, fine) = (ctx.index(), self.fine);
        self.step += 1;
        if front_is_at(me, self.step) {
            // The second is a child of the first, which has not yet come either.
            let halves = [0, 1].map(|half| half_cell(me, self.step, half));
            ctx.insert_into(fine, halves[0], Fine::new(self.step), me);
            ctx.insert_into(fine, halves[1], Fine::new(self.step), halves[0]);
            for half in halves {
                ctx.send_to(fine, half, FineMessage::Fill(half.into()));
            }
        }
        ctx.send_to(fine, me, FineMessage::Step(self.step));
        ctx.contribute(self.step as u32, Reducer::Sum, vec![self.step], Target::All);
        come_to_sync(self.step, me.is_multiple_of(2), ctx);
    }
}

/// After each second step.
fn come_to_sync<C: Chunk>(step: u64, waits: bool, ctx: &mut Ctx<'_, C>) {
    match (step % 2, waits) {
        _ if step == REFINED_STEPS => {}
        (0, true) => ctx.at_sync(),
        (0, false) => ctx.at_sync_nowait(),
        _ => {}
    }
}

impl Chunk for Coarse {
    type Index = u32;
    type Message = (u32, u64);

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.advance(ctx);
    }

    fn resume(&mut self, _: &mut Ctx<'_, Self>) {}

    fn reduced(tag: u32, values: Values) -> (u32, u64) {
        (tag, whole_number(values))
    }

    fn receive(&mut self, (step, sum): (u32, u64), ctx: &mut Ctx<'_, Self>) {
        assert_eq!((u64::from(step), sum), (self.step, u64::from(COARSE) * self.step));
        if self.step < REFINED_STEPS {
            self.advance(ctx);
        }
    }
}

impl Fine {
    fn new(born: u64) -> Fine {
        Fine { step: born, born, value: 1, totals: BTreeMap::new() }
    }

    fn contribute(&mut self, ctx: &mut Ctx<'_, Self>) {
        let target = if self.step == REFINED_STEPS { Target::Chunk(0) } else { Target::All };
        ctx.contribute(self.step as u32, Reducer::Sum, vec![1, self.value * self.step], target);
        if self.born > 0 && self.step + 1 == self.born + FINE_LIFE {
            ctx.remove();
        } else {
            // A cell that is to leave waits, so that none leaves in between.
            come_to_sync(self.step, self.born > 0 || ctx.index().is_multiple_of(2), ctx);
        }
    }
}

impl Chunk for Fine {
    type Index = u32;
    type Message = FineMessage;

    fn resume(&mut self, _: &mut Ctx<'_, Self>) {}

    fn reduced(tag: u32, values: Values) -> FineMessage {
        let Values::U64(total) = values else { panic!("nothing like {values:?} is contributed") };
        FineMessage::Total(tag.into(), total)
    }

    fn receive(&mut self, message: FineMessage, ctx: &mut Ctx<'_, Self>) {
        match message {
            FineMessage::Fill(value) => {
                self.value = value;
                self.contribute(ctx);
            }
            FineMessage::Step(step) => {
                self.step = step;
                self.contribute(ctx);
            }
            FineMessage::Total(step, total) if self.born == 0 => {
                self.totals.insert(step, total);
                if ctx.index() == 0 && self.totals.len() as u64 == REFINED_STEPS {
                    ctx.exit_with(&self.totals);
                }
            }
            // An older one may come that others were told of when this one was on its way.
            FineMessage::Total(step, _) if step < self.step => {}
            FineMessage::Total(..) => {
                self.step += 1;
                self.contribute(ctx);
            }
        }
    }
}

#[test]
fn cells_of_another_array_refine_a_grid_while_both_migrate_and_are_counted() {
    let program = |config: Config| {
        let report = caribou::run(config.lb("rotate")?, |setup| {
            let fine = setup.array(COARSE, |_| Fine::new(0));
            setup.array(COARSE, move |_| Coarse { fine, step: 0 });
        })?;
        report.value::<BTreeMap<u64, Vec<u64>>>()
    };
    assert_eq!(given(program, 100), (1..=REFINED_STEPS).map(|step| (step, fine_total(step))).collect());
}

/// Players add up what they hold, in all and by teams, and hear from the umpires how to go on.
#[derive(Serialize, Deserialize)]
struct Player {
    umpires: Array<Umpire>,
    round: u32,
    holds: u64,
}

/// One hears the sum of each round; all hear what the teams have, and count.
#[derive(Default, Serialize, Deserialize)]
struct Umpire {
    players: Option<Array<Player>>,
    sums: Vec<u64>,
    teams: u32,
    counted: u64,
    syncs: u32,
}

#[derive(Serialize, Deserialize)]
enum Whistle {
    Players(Array<Player>),
    Round(u64),
    Team(u64),
    Counted(u64),
}

const PLAYERS: u32 = 9;
const UMPIRES: u32 = 4;
const GAME_ROUNDS: u32 = 6;
const ROUND: u32 = 1;
const TEAM: u32 = 2;
const COUNTED: u32 = 3;

impl Player {
    fn play(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.round += 1;
        let (me, umpires) = (ctx.index(), self.umpires);
        ctx.contribute(ROUND, Reducer::Sum, vec![self.holds], Target::chunk_of(umpires, UMPIRES - 1));
        let team = Section::new((0..PLAYERS).filter(|player| player % 3 == me % 3));
        ctx.contribute_in(&team, TEAM, Reducer::Max, vec![self.holds], Target::all_of(umpires));
        if self.round.is_multiple_of(2) && self.round < GAME_ROUNDS {
            ctx.at_sync();
        }
    }
}

impl Chunk for Player {
    type Index = u32;
    type Message = u64;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        if ctx.index() == 0 {
            ctx.broadcast_to(self.umpires, &Whistle::Players(ctx.array()));
        }
        self.play(ctx);
    }

    fn resume(&mut self, _: &mut Ctx<'_, Self>) {}

    fn receive(&mut self, sum: u64, ctx: &mut Ctx<'_, Self>) {
        self.holds = (self.holds * 5 + sum) % 1000;
        self.play(ctx);
    }
}

impl Chunk for Umpire {
    type Index = u32;
    type Message = Whistle;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        ctx.at_sync_nowait();
    }

    fn resume(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.syncs += 1;
        if self.syncs < (GAME_ROUNDS - 1) / 2 {
            ctx.at_sync_nowait();
        }
    }

    fn ready(&self, whistle: &Whistle) -> bool {
        self.players.is_some() || !matches!(whistle, Whistle::Round(_))
    }

    fn reduced(tag: u32, values: Values) -> Whistle {
        match (tag, values) {
            (ROUND, Values::U64(sum)) => Whistle::Round(sum[0]),
            (TEAM, Values::U64(most)) => Whistle::Team(most[0]),
            (COUNTED, Values::U64(counted)) => Whistle::Counted(counted[0]),
            other => panic!("nothing like {other:?} is contributed"),
        }
    }

    fn receive(&mut self, whistle: Whistle, ctx: &mut Ctx<'_, Self>) {
        match whistle {
            Whistle::Players(players) => self.players = Some(players),
            Whistle::Round(sum) => {
                self.sums.push(sum);
                if let (true, Some(players)) = (self.sums.len() < GAME_ROUNDS as usize, self.players) {
                    ctx.broadcast_to(players, &sum);
                }
            }
            Whistle::Team(most) => {
                self.teams += 1;
                self.counted += most;
            }
            Whistle::Counted(counted) => return ctx.exit_with(&(self.sums.clone(), counted)),
        }
        let (last, sums) = (UMPIRES - 1, self.sums.len() as u32);
        if self.teams == 3 * GAME_ROUNDS && (ctx.index() != last || sums == GAME_ROUNDS) {
            self.teams = 0;
            ctx.contribute(COUNTED, Reducer::Sum, vec![self.counted], Target::Chunk(last));
        }
    }
}

/// The same without chunks.
fn played() -> (Vec<u64>, u64) {
    let mut holds: Vec<u64> = (0..PLAYERS).map(u64::from).collect();
    let (mut sums, mut counted) = (Vec::new(), 0);
    for _ in 0..GAME_ROUNDS {
        let sum: u64 = holds.iter().sum();
        counted += (0..3).filter_map(|team| holds[team..].iter().step_by(3).max()).sum::<u64>();
        holds.iter_mut().for_each(|holds| *holds = (*holds * 5 + sum) % 1000);
        sums.push(sum);
    }
    (sums, u64::from(UMPIRES) * counted)
}

#[test]
fn chunks_of_another_array_hear_of_reductions_over_an_array_and_over_sections() {
    let program = |config: Config| {
        let report = caribou::run(config.lb("rotate")?, |setup| {
            let umpires = setup.array(UMPIRES, |_| Umpire::default());
            // The first of each team is on another rank.
            let player = move |player: u32| Player { umpires, round: 0, holds: player.into() };
            setup.array_with(PLAYERS, Placement::RoundRobin, player);
        })?;
        report.value::<(Vec<u64>, u64)>()
    };
    assert_eq!(given(program, 100), played());
}

/// Heat in a bar whose ends are kept at 0 and 1, in supersteps.
struct Bar;

const CELLS: u64 = 30;

impl Supersteps for Bar {
    type Unit = f64;
    type Edge = f64;
    type Part = Vec<f64>;
    type Shared = (u64, Vec<f64>);

    fn units(&self) -> u64 {
        CELLS
    }

    fn begin(&self) -> Self::Shared {
        (0, Vec::new())
    }

    fn unit(&self, number: u64) -> f64 {
        number as f64 / 7.0
    }

    fn edge(&self, heat: &f64) -> Option<f64> {
        Some(*heat)
    }

    fn compute(&self, job: Job<'_, Self>) -> Vec<f64> {
        let mut left = job.before.copied().unwrap_or(0.0);
        for cell in 0..job.data.len() {
            let right = job.data.get(cell + 1).or(job.after).copied().unwrap_or(1.0);
            let old = job.data[cell];
            job.data[cell] = 0.5 * old + 0.25 * (left + right);
            left = old;
        }
        job.data.to_vec()
    }

    fn combine(&self, (steps, heat): &mut Self::Shared, parts: Parts<'_, Vec<f64>>) -> Then {
        *heat = parts.flat_map(|(_, part)| part.iter().copied()).collect();
        *steps += 1;
        if *steps == 100 { Then::End } else { Then::Step }
    }

    fn collects(&self) -> bool {
        true
    }
}

#[test]
fn a_bar_in_supersteps_ends_the_same_to_the_last_bit_under_every_policy() {
    let program = |config: Config| -> Result<Vec<Vec<f64>>, Error> {
        let outcome = |policy: &str| {
            let outcome = caribou::supersteps(&config.clone().lb(policy)?, Bar)?;
            assert_eq!((outcome.report.steps, &outcome.shared.1), (100, &outcome.units), "{policy}");
            Ok(outcome.units)
        };
        ["equal", "load-factor", "des", "replicate", "dlb-jr", "adaptive"].into_iter().map(outcome).collect()
    };
    let outcomes = given(program, 50);
    assert!(outcomes[0].len() == CELLS as usize && outcomes.iter().all(|one| *one == outcomes[0]));
}

/// A chunk that tells all its neighbours its index, and knows what each is to say on which side.
#[derive(Serialize, Deserialize)]
struct Tile {
    grid: Grid<[u16; 2]>,
    halos: Halos<[u16; 2]>,
    heard: u64,
}

const GREETINGS: u64 = 3;

impl Chunk for Tile {
    type Index = [u16; 2];
    type Message = Halo<[u16; 2]>;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        for neighbour in self.grid.neighbours(ctx.index()) {
            ctx.send(neighbour.index, self.halos.halo(neighbour.their_slot, ctx.index()));
        }
    }

    fn resume(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.start(ctx);
    }

    fn ready(&self, halo: &Halo<[u16; 2]>) -> bool {
        self.halos.expects(halo)
    }

    fn receive(&mut self, halo: Halo<[u16; 2]>, ctx: &mut Ctx<'_, Self>) {
        let Some(come) = self.halos.add_with_slots(halo).map(Vec::from_iter) else { return };
        let around = self.grid.neighbours(ctx.index()).map(|neighbour| (neighbour.slot, neighbour.index));
        assert!(around.eq(come.iter().copied()), "{:?} in {:?} hears {come:?}", ctx.index(), self.grid);
        self.heard += come.len() as u64;
        match self.halos.step() {
            GREETINGS => ctx.contribute(0, Reducer::Sum, vec![self.heard], Target::Exit),
            _ => ctx.at_sync(),
        }
    }
}

#[test]
fn tiles_of_any_grid_hear_each_neighbour_on_its_side() {
    let plate = Grid::new([3, 4]);
    let grids = [
        (plate, 4 * 3 + 6 * 5 + 2 * 8),
        (plate.periodic(), 12 * 8),
        (plate.periodic_along(1), 8 * 5 + 4 * 8),
        (Grid::new([2, 1]), 2),
        (Grid::new([2, 1]).periodic(), 2 * 8),
        (Grid::new([1, 1]).periodic(), 8),
    ];
    for (grid, pairs) in grids {
        let program = move |config: Config| {
            let tile = move |index| Tile { grid, halos: Halos::of(grid.neighbours(index)), heard: 0 };
            run_array(config.lb("rotate")?, grid, tile)?.value::<Vec<u64>>()
        };
        assert_eq!(given(program, 10), [GREETINGS * pairs], "{grid:?}");
    }
}

/// A page whose checksum is added to those before it, then to those of its half of the book.
#[derive(Serialize, Deserialize)]
struct Page {
    before: Option<u64>,
}

const PAGES: u32 = 10;

impl Page {
    fn checksum(page: u32) -> u64 {
        (u64::MAX / 3).wrapping_mul(2 * u64::from(page) + 1)
    }

    fn half(page: u32) -> impl Iterator<Item = u32> {
        (0..PAGES).filter(move |other| (page < PAGES / 2) == (*other < PAGES / 2))
    }
}

impl Chunk for Page {
    type Index = u32;
    type Message = u64;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        ctx.contribute(0, Reducer::WrappingSum, vec![Page::checksum(ctx.index())], Target::Scan);
    }

    fn reduced(_: u32, values: Values) -> u64 {
        whole_number(values)
    }

    fn receive(&mut self, sum: u64, ctx: &mut Ctx<'_, Self>) {
        let Some(before) = self.before else {
            self.before = Some(sum);
            let half = Section::new(Page::half(ctx.index()));
            let own = vec![Page::checksum(ctx.index())];
            return ctx.contribute_in(&half, 1, Reducer::WrappingSum, own, Target::All);
        };
        ctx.contribute(2, Reducer::Gather, Values::part(&(before, sum)), Target::Exit);
    }
}

#[test]
fn checksums_go_around_in_scans_and_in_sections() {
    let program = |config: Config| {
        run_array_with(config, PAGES, Placement::Hash, |_| Page { before: None })?
            .gathered::<u32, (u64, u64)>()
    };
    let sum = |pages: &mut dyn Iterator<Item = u32>| pages.map(Page::checksum).fold(0, u64::wrapping_add);
    let expected = (0..PAGES).map(|page| (page, (sum(&mut (0..page)), sum(&mut Page::half(page)))));
    assert_eq!(given(program, 20), expected.collect::<Vec<_>>());
}
