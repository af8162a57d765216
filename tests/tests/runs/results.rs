//! The result of a program does not depend on where its chunks are, which strategy moves them, how many threads run them, or
//! whether what they send is encoded.
//!
//! The program uses everything that chunks can do to each other: halos on a torus, a multicast along each row, a
//! broadcast, three reductions in flight, a second array that answers, guests that are inserted, live through syncs and
//! are removed. All of it goes into each cell's state through a hash, so one message lost, doubled, or handled in the
//! wrong step changes the result.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use caribou::config::Period;
use caribou::{Array, Chunk, Config, Ctx, Error, Grid, Placement, Reducer, Report, Section, Target, Values};
use caribou_tests::with_timeout;
use serde::{Deserialize, Serialize};

const ROWS: u16 = 4;
const COLUMNS: u16 = 5;
const TORUS: Grid<[u16; 2]> = Grid::new([ROWS, COLUMNS]).periodic();
const STEPS: u64 = 12;
const PERIOD: u64 = 3;
/// Steps that a guest stays.
const STAY: u64 = 4;
/// The first row of guests' indices.
const GUESTS: u16 = 100;
/// Reductions in every step.
const SUM: u32 = 0;
const MIN: u32 = 1;
const MAX: u32 = 2;
const KINDS: u32 = 3;
/// The last reduction.
const GATHER: u32 = u32::MAX;

/// A member of the torus, or a guest of one.
#[derive(Serialize, Deserialize)]
struct Cell {
    step: u64,
    state: u64,
    /// Messages of this step: their number, and a hash that does not depend on their order.
    heard: u32,
    heard_hash: u64,
    row: Section<Cell>,
    clerk: Array<Clerk>,
    host: Option<[u16; 2]>,
}

#[derive(Serialize, Deserialize)]
enum Message {
    Halo {
        step: u64,
        side: u64,
        state: u64,
    },
    Row {
        step: u64,
        state: u64,
    },
    News {
        step: u64,
        state: u64,
    },
    Audited {
        step: u64,
        total: u64,
    },
    /// To a guest, once a step.
    Visit {
        step: u64,
    },
    /// From a guest.
    Thanks {
        step: u64,
        state: u64,
    },
    Reduced {
        tag: u32,
        values: Values,
    },
}

/// The result: every cell's state.
type States = Vec<(u64, Vec<u8>)>;

#[derive(Clone, Default)]
struct Output(Arc<Mutex<States>>);

/// An avalanche of 64 bits (the finaliser of splitmix64).
fn hash(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// The cell that has a guest from this step on.
fn host_of(step: u64) -> Option<[u16; 2]> {
    let has_guest = step.is_multiple_of(2) && step + STAY < STEPS;
    has_guest.then(|| [(step % u64::from(ROWS)) as u16, (step % u64::from(COLUMNS)) as u16])
}

/// The steps from which on guests are here in `step`.
fn arrivals(step: u64) -> impl Iterator<Item = u64> {
    (step.saturating_sub(STAY - 1)..=step).filter(|&arrival| host_of(arrival).is_some())
}

impl Cell {
    fn new(index: [u16; 2], clerk: Array<Clerk>, host: Option<[u16; 2]>) -> Cell {
        let row = Section::new((0..COLUMNS).map(|column| [index[0], column]));
        let state = hash(u64::from(index[0]) << 16 | u64::from(index[1]));
        Cell { step: 0, state, heard: 0, heard_hash: 0, row, clerk, host }
    }

    fn begin(&mut self, ctx: &mut Ctx<'_, Self>) {
        let (step, state, [row, column]) = (self.step, self.state, ctx.index());
        for neighbour in TORUS.faces([row, column]) {
            let side = neighbour.their_slot.into();
            ctx.send(neighbour.index, Message::Halo { step, side, state });
        }
        if column == 0 {
            ctx.multicast(&self.row, &Message::Row { step, state });
        }
        if u64::from(row * COLUMNS + column) == step {
            ctx.broadcast(&Message::News { step, state });
        }
        ctx.send_to(self.clerk, u32::from(row), Account { step, column, state });
        if host_of(step) == Some([row, column]) {
            let guest = [GUESTS, step as u16];
            let arrived = Cell { step, ..Cell::new(guest, self.clerk, Some([row, column])) };
            ctx.insert(guest, arrived);
        }
        for arrival in arrivals(step).filter(|&arrival| host_of(arrival) == Some([row, column])) {
            ctx.send([GUESTS, arrival as u16], Message::Visit { step });
        }
        self.contribute(ctx);
        // A heavy row that wanders: strategies that balance have something to do at every sync.
        let heavy = (u64::from(row) + step / PERIOD).is_multiple_of(u64::from(ROWS));
        ctx.charge(if heavy { 300_000 } else { 20_000 } + 5_000 * u64::from(column));
    }

    fn contribute(&self, ctx: &mut Ctx<'_, Self>) {
        let tag = |kind| self.step as u32 * KINDS + kind;
        let state = self.state;
        ctx.contribute(tag(SUM), Reducer::Sum, vec![state >> 16, 1], Target::All);
        ctx.contribute(tag(MIN), Reducer::Min, vec![state as i64, (state >> 7) as i64], Target::All);
        ctx.contribute(tag(MAX), Reducer::Max, vec![(state >> 12) as f64], Target::All);
    }

    /// Number of messages that a cell gets in this step; the reductions are those of the step before.
    fn expected(&self, me: [u16; 2]) -> u32 {
        let guests = arrivals(self.step).filter(|&arrival| host_of(arrival) == Some(me)).count() as u32;
        let reductions = if self.step > 0 { KINDS } else { 0 };
        4 + 1 + 1 + 1 + guests + reductions
    }

    fn hear(&mut self, what: u64, state: u64, ctx: &mut Ctx<'_, Self>) {
        self.heard += 1;
        self.heard_hash = self.heard_hash.wrapping_add(hash(state ^ hash(what)));
        if self.heard < self.expected(ctx.index()) {
            return;
        }
        self.state = hash(self.state ^ self.heard_hash);
        (self.heard, self.heard_hash) = (0, 0);
        self.step += 1;
        if self.step == STEPS {
            ctx.contribute(GATHER, Reducer::Gather, self.state.to_le_bytes().to_vec(), Target::Chunk([0, 0]));
        } else if ctx.sync_due(self.step) {
            ctx.at_sync();
        } else {
            self.begin(ctx);
        }
    }

    fn visit(&mut self, host: [u16; 2], ctx: &mut Ctx<'_, Self>) {
        ctx.send(host, Message::Thanks { step: self.step, state: self.state });
        self.contribute(ctx);
        ctx.charge(10_000);
        self.state = hash(self.state);
        self.step += 1;
        let arrival = u64::from(ctx.index()[1]);
        if self.step == arrival + STAY {
            ctx.remove();
        } else if ctx.sync_due(self.step) {
            ctx.at_sync();
        }
    }

    /// The number that a reduction adds to the state; the number of contributions is known.
    fn digest(tag: u32, values: &Values) -> u64 {
        match values {
            Values::U64(sum) => {
                let step = u64::from(tag / KINDS);
                let members = u64::from(ROWS * COLUMNS) + arrivals(step).count() as u64;
                assert_eq!(sum[1], members, "contributions to the sum of step {step}");
                sum[0]
            }
            Values::I64(least) => (least[0] ^ least[1].rotate_left(9)) as u64,
            Values::F64(largest) => largest[0] as u64,
            Values::Gathered(_) | Values::Own(_) => panic!("the gather comes last"),
        }
    }
}

impl Chunk for Cell {
    type Index = [u16; 2];
    type Message = Message;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        if self.host.is_none() {
            self.begin(ctx);
        }
    }

    fn resume(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.start(ctx);
    }

    fn ready(&self, message: &Message) -> bool {
        match message {
            Message::Halo { step, .. }
            | Message::Row { step, .. }
            | Message::Audited { step, .. }
            | Message::Visit { step }
            | Message::Thanks { step, .. } => *step == self.step,
            Message::News { step, .. } => self.host.is_some() || *step == self.step,
            Message::Reduced { tag: GATHER, .. } => true,
            Message::Reduced { tag, .. } => self.host.is_some() || u64::from(tag / KINDS) + 1 == self.step,
        }
    }

    fn receive(&mut self, message: Message, ctx: &mut Ctx<'_, Self>) {
        match (message, self.host) {
            (Message::Visit { .. }, Some(host)) => self.visit(host, ctx),
            // What everybody hears is not for guests.
            (_, Some(_)) => {}
            (Message::Halo { side, state, .. }, _) => self.hear(side, state, ctx),
            (Message::Row { state, .. }, _) => self.hear(4, state, ctx),
            (Message::News { state, .. }, _) => self.hear(5, state, ctx),
            (Message::Audited { total, .. }, _) => self.hear(6, total, ctx),
            (Message::Thanks { state, .. }, _) => self.hear(7, state, ctx),
            (Message::Reduced { tag: GATHER, values: Values::Gathered(states) }, _) => {
                *ctx.service::<Output>().0.lock().expect("nobody panics with it") = states;
                ctx.exit();
            }
            (Message::Reduced { tag, values }, _) => {
                self.hear(u64::from(8 + tag % KINDS), Cell::digest(tag, &values), ctx);
            }
            (Message::Visit { .. }, None) => panic!("only guests are visited"),
        }
    }

    fn reduced(tag: u32, values: Values) -> Message {
        Message::Reduced { tag, values }
    }
}

/// Adds up the states of a row.
#[derive(Default, Serialize, Deserialize)]
struct Clerk {
    step: u64,
    heard: u16,
    total: u64,
    /// The cells' array, once one of them has written.
    cells: Option<Array<Cell>>,
}

/// From a cell to the clerk of its row.
#[derive(Serialize, Deserialize)]
struct Account {
    step: u64,
    column: u16,
    state: u64,
}

impl Chunk for Clerk {
    type Index = u32;
    type Message = Account;

    fn resume(&mut self, _: &mut Ctx<'_, Self>) {}

    fn ready(&self, account: &Account) -> bool {
        account.step == self.step
    }

    fn receive(&mut self, account: Account, ctx: &mut Ctx<'_, Self>) {
        self.heard += 1;
        self.total = self.total.wrapping_add(hash(account.state ^ u64::from(account.column)));
        if self.heard < COLUMNS {
            return;
        }
        let (step, total, row) = (self.step, self.total, ctx.index() as u16);
        let cells = self.cells.expect("setup says where the cells are");
        for column in 0..COLUMNS {
            ctx.send_to(cells, [row, column], Message::Audited { step, total });
        }
        *self = Clerk { step: step + 1, heard: 0, total: 0, cells: self.cells };
        ctx.charge(10_000);
        if ctx.sync_due(self.step) && self.step < STEPS {
            ctx.at_sync();
        }
    }
}

fn run(config: Config, placement: Placement) -> Result<(States, Report), Error> {
    let output = Output::default();
    let service = output.clone();
    let report = with_timeout(&format!("{config:?}, {placement:?}"), move || {
        caribou::run(config, |setup| {
            setup.service(service.clone());
            let cells = Arc::new(std::sync::OnceLock::new());
            let known = cells.clone();
            let clerk = setup.array_with(u32::from(ROWS), placement.clone(), move |_| Clerk {
                cells: known.get().copied(),
                ..Clerk::default()
            });
            let array =
                setup.array_with(TORUS, placement.clone(), move |index| Cell::new(index, clerk, None));
            cells.set(array).expect("set once");
        })
    })?;
    let states = std::mem::take(&mut *output.0.lock().expect("the run is over"));
    Ok((states, report))
}

fn config(ranks: u32, workers: u32, lb: &str) -> Config {
    let config = Config::default().ranks(ranks).workers(workers).period(PERIOD);
    config.lb(lb).expect("the strategy is in the table")
}

/// The result on one rank, where nothing moves.
fn reference() -> States {
    let (states, _) = run(config(1, 1, "none"), Placement::Block).expect("it ends");
    assert_eq!(states.len(), usize::from(ROWS * COLUMNS), "guests have gone when states are gathered");
    states
}

#[test]
fn results_do_not_depend_on_strategy_ranks_workers_or_wire() {
    let reference = reference();
    for entry in lb_strategies::ARRAYS.iter() {
        for (ranks, workers, wire) in (1..=4)
            .flat_map(|ranks| (1..=2).map(move |workers| (ranks, workers)))
            .flat_map(|(ranks, workers)| [false, true].map(|wire| (ranks, workers, wire)))
        {
            let place = format!("{}, {ranks} ranks x {workers} workers, wire {wire}", entry.name);
            let config = config(ranks, workers, entry.name).wire_always(wire);
            let (states, report) =
                run(config, Placement::Block).unwrap_or_else(|error| panic!("{place}: {error}"));
            assert_eq!(states, reference, "{place}");
            let moved: u64 = report.syncs.iter().map(|sync| sync.moved).sum();
            let moves = ranks > 1 && !matches!(entry.name, "none" | "program");
            assert_eq!(moved > 0, moves, "{place}: {moved} chunks moved");
        }
    }
}

#[test]
fn results_do_not_depend_on_windows() {
    let reference = reference();
    let mut all_moved = 0;
    let in_groups = ["hierarchical,group=2,every=1,between=0,tolerance=0"];
    for lb in lb_strategies::ARRAYS.iter().map(|entry| entry.name).chain(in_groups) {
        for (ranks, workers, wire) in [(1, 2, true), (2, 1, false), (2, 2, true), (3, 1, true), (4, 2, false)]
        {
            let place = format!("{lb}, {ranks} ranks x {workers} workers, wire {wire}");
            let config = config(ranks, workers, lb).wire_always(wire);
            let windows = config.balance(Period::Every(Duration::from_micros(20)));
            let (states, report) =
                run(windows, Placement::Block).unwrap_or_else(|error| panic!("{place}: {error}"));
            assert_eq!(states, reference, "{place}");
            all_moved += report.sync_totals.moved;
        }
    }
    assert!(all_moved > 0, "chunks have moved");
}

#[test]
fn results_do_not_depend_on_where_chunks_start() {
    let reference = reference();
    let last = Placement::by(|_: [u16; 2], ranks| ranks - 1);
    let diagonal = Placement::by(|[row, column]: [u16; 2], ranks| u32::from(row * 3 + column) % ranks);
    for placement in [Placement::Block, Placement::RoundRobin, Placement::Hash, last, diagonal] {
        for (ranks, lb) in (1..=4).flat_map(|ranks| ["none", "random", "refine"].map(|lb| (ranks, lb))) {
            let (states, _) = run(config(ranks, 1, lb), placement.clone())
                .unwrap_or_else(|error| panic!("{placement:?}, {ranks} ranks, {lb}: {error}"));
            assert_eq!(states, reference, "{placement:?}, {ranks} ranks, {lb}");
        }
    }
}
