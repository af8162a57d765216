//! The effects of a migration on a chunk, and the rules that decide whether it happens.

use std::sync::{Arc, Mutex};

use caribou::{Chunk, Config, Ctx, Load, Reducer, Report, Target, Values};
use caribou_tests::{at_syncs, run_array, with_timeout};
use serde::{Deserialize, Serialize};

/// Syncs of every run here.
const SYNCS: u32 = 4;

/// One thing that a chunk went through, with its index and where that is known the rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Runs { rank: u32, address: usize, decoded: bool },
    Departs,
    Arrives,
}

/// The events of all chunks, each in its order.
type Diary = Arc<Mutex<Vec<(u32, Event)>>>;

/// Comes to some syncs and keeps a diary.
#[derive(Serialize, Deserialize)]
struct Nomad {
    me: u32,
    syncs: u32,
    pinned: bool,
    load: Declared,
    #[serde(with = "caribou::bulk")]
    numbers: Vec<f64>,
    /// True if this is not the chunk that was made, but one decoded from its bytes.
    #[serde(skip, default = "yes")]
    decoded: bool,
    /// The diary of the run, which hooks without a context write to as well.
    #[serde(skip, default = "diary")]
    diary: Diary,
}

/// The way in which a chunk declares its load.
#[derive(Clone, Copy, Serialize, Deserialize)]
enum Declared {
    Nothing,
    Load(u64),
    Charge(u64),
    /// Charges, and says something else when asked: the charge counts.
    Both(u64),
}

thread_local! {
    /// Set on every rank's thread by the first chunk that runs there: a chunk that was decoded finds its diary here.
    static DIARY: std::cell::RefCell<Diary> = std::cell::RefCell::default();
}

fn yes() -> bool {
    true
}

fn diary() -> Diary {
    DIARY.with_borrow(Clone::clone)
}

impl Nomad {
    fn new(me: u32, diary: &Diary) -> Nomad {
        let numbers = vec![f64::from(me); 1000];
        Nomad {
            me,
            syncs: 0,
            pinned: false,
            load: Declared::Nothing,
            numbers,
            decoded: false,
            diary: diary.clone(),
        }
    }

    fn note(&self, event: Event) {
        self.diary.lock().expect("nobody panics with it").push((self.me, event));
    }
}

impl Chunk for Nomad {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        DIARY.set(ctx.service::<Diary>().clone());
        let (rank, address) = (ctx.rank().0, self.numbers.as_ptr().addr());
        self.note(Event::Runs { rank, address, decoded: self.decoded });
        assert!(self.numbers.iter().all(|number| number.to_bits() == f64::from(self.me).to_bits()));
        if self.syncs == SYNCS {
            return ctx.contribute(0, Reducer::Sum, vec![1u64], Target::Chunk(0));
        }
        match self.load {
            Declared::Charge(ticks) => (0..10).for_each(|_| ctx.charge(ticks / 10)),
            Declared::Both(ticks) => ctx.charge(ticks),
            Declared::Nothing | Declared::Load(_) => {}
        }
        self.syncs += 1;
        ctx.at_sync();
    }

    fn receive(&mut self, (): (), ctx: &mut Ctx<'_, Self>) {
        ctx.exit();
    }

    fn reduced(_: u32, _: Values) {}

    fn load(&self) -> Load {
        match self.load {
            Declared::Load(ticks) => Load::Ticks(ticks),
            Declared::Both(_) => Load::Ticks(77_000_000),
            Declared::Nothing | Declared::Charge(_) => Load::Measured,
        }
    }

    fn migratable(&self) -> bool {
        !self.pinned
    }

    fn on_depart(&mut self) {
        self.note(Event::Departs);
    }

    fn on_arrive(&mut self) {
        self.note(Event::Arrives);
    }
}

/// Runs `chunks` nomads; returns each one's diary, and the report.
fn wander(
    config: Config,
    chunks: u32,
    make: impl Fn(Nomad) -> Nomad + Send + Sync + Clone + 'static,
) -> (Vec<Vec<Event>>, Report) {
    let diary = Diary::default();
    let service = diary.clone();
    let report = with_timeout(&format!("{config:?}"), move || {
        caribou::run(config, |setup| {
            let (diary, make) = (service.clone(), make.clone());
            setup.service(service.clone());
            setup.array(chunks, move |index| make(Nomad::new(index, &diary)));
        })
    })
    .expect("it ends");
    let mut diaries = vec![Vec::new(); chunks as usize];
    for (chunk, event) in std::mem::take(&mut *diary.lock().expect("the run is over")) {
        diaries[chunk as usize].push(event);
    }
    (diaries, report)
}

/// The ranks that a chunk ran on, one for each time it started or resumed.
fn ranks(diary: &[Event]) -> Vec<u32> {
    let rank = |event: &Event| if let Event::Runs { rank, .. } = event { Some(*rank) } else { None };
    diary.iter().filter_map(rank).collect()
}

fn addresses(diary: &[Event]) -> Vec<usize> {
    let address = |event: &Event| if let Event::Runs { address, .. } = event { Some(*address) } else { None };
    diary.iter().filter_map(address).collect()
}

#[test]
fn under_rotate_every_chunk_moves_one_rank_on_at_every_sync() {
    let (diaries, report) = wander(at_syncs(3, "rotate"), 6, |nomad| nomad);
    for (chunk, diary) in (0..).zip(&diaries) {
        let first = chunk / 2;
        let expected: Vec<u32> = (0..=SYNCS).map(|sync| (first + sync) % 3).collect();
        assert_eq!(ranks(diary), expected, "chunk {chunk}");
    }
    let moved: Vec<u64> = report.syncs.iter().map(|sync| sync.moved).collect();
    assert_eq!(moved, [6; SYNCS as usize]);
}

#[test]
fn pinned_chunks_stay_where_they_are() {
    for lb in ["rotate", "random", "greedy", "refine"] {
        let (diaries, report) = wander(at_syncs(3, lb), 9, |nomad| {
            let pinned = nomad.me.is_multiple_of(2);
            // Everything heavy is on rank 0: every strategy has something to move.
            let load = Declared::Charge(if nomad.me < 3 { 900_000 } else { 10_000 });
            Nomad { pinned, load, ..nomad }
        });
        for (chunk, diary) in (0..).zip(&diaries).filter(|(chunk, _)| chunk % 2 == 0) {
            assert_eq!(ranks(diary), [chunk / 3; SYNCS as usize + 1], "{lb}, chunk {chunk}");
            assert!(!diary.contains(&Event::Departs) && !diary.contains(&Event::Arrives), "{lb}");
        }
        assert!(report.syncs.iter().any(|sync| sync.moved > 0), "{lb}: the others move");
    }
}

#[test]
fn a_chunk_that_moves_departs_then_arrives_once_and_then_resumes() {
    for wire in [false, true] {
        let (diaries, _) = wander(at_syncs(2, "rotate").wire_always(wire), 4, |nomad| nomad);
        for diary in diaries {
            let kinds: Vec<Event> = diary
                .into_iter()
                .map(|event| match event {
                    Event::Runs { .. } => Event::Runs { rank: 0, address: 0, decoded: false },
                    hook => hook,
                })
                .collect();
            let runs = Event::Runs { rank: 0, address: 0, decoded: false };
            let mut expected = vec![runs];
            (0..SYNCS).for_each(|_| expected.extend([Event::Departs, Event::Arrives, runs]));
            assert_eq!(kinds, expected, "wire {wire}");
        }
    }
}

#[test]
fn numbers_stay_in_their_place_when_a_chunk_moves_within_a_process() {
    let (diaries, _) = wander(at_syncs(2, "rotate"), 4, |nomad| nomad);
    for diary in diaries {
        assert_eq!(ranks(&diary).windows(2).filter(|pair| pair[0] != pair[1]).count(), SYNCS as usize);
        let first = addresses(&diary)[0];
        assert_eq!(
            addresses(&diary),
            [first; SYNCS as usize + 1],
            "the pointer moves, not what it points to"
        );
    }
}

#[test]
fn a_chunk_is_encoded_only_when_it_leaves_the_process_or_seems_to() {
    for wire in [false, true] {
        let (diaries, _) = wander(at_syncs(2, "rotate").wire_always(wire), 4, |nomad| nomad);
        for diary in diaries {
            let decoded = diary.iter().filter_map(|event| match event {
                Event::Runs { decoded, .. } => Some(*decoded),
                _ => None,
            });
            let expected: Vec<bool> = (0..=SYNCS).map(|sync| wire && sync > 0).collect();
            assert_eq!(decoded.collect::<Vec<_>>(), expected, "wire {wire}");
        }
    }
}

/// Chunks on each rank after the first sync.
fn after_one_sync(ranks: u32, lb: &str, chunks: u32, declare: fn(u32) -> Declared) -> Vec<u32> {
    let config = at_syncs(ranks, lb).measure(false);
    let (_, report) = wander(config, chunks, move |nomad| Nomad { load: declare(nomad.me), ..nomad });
    report.syncs[0].chunks_per_rank.clone()
}

#[test]
fn declared_loads_decide_where_chunks_go() {
    // Eight chunks of two on rank 0, eight of one on rank 1: two of the heavy ones have to go.
    fn ticks(chunk: u32) -> u64 {
        if chunk < 8 { 2_000_000 } else { 1_000_000 }
    }
    let ways: [fn(u32) -> Declared; 3] = [
        |chunk| Declared::Charge(ticks(chunk)),
        |chunk| Declared::Load(ticks(chunk)),
        |chunk| Declared::Both(ticks(chunk)),
    ];
    for lb in ["refine", "comm"] {
        for declare in ways {
            assert_eq!(after_one_sync(2, lb, 16, declare), [6, 10], "{lb}");
        }
    }
}

#[test]
fn equal_declared_loads_move_nobody() {
    assert_eq!(after_one_sync(4, "refine", 16, |_| Declared::Load(1_000_000)), [4; 4]);
}

/// Comes to a sync and goes on, in the same handler, to give away all it holds.
#[derive(Serialize, Deserialize)]
struct Giver {
    numbers: Vec<f64>,
}

impl Chunk for Giver {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        ctx.at_sync_nowait();
        self.numbers.clear();
    }

    fn receive(&mut self, (): (), _: &mut Ctx<'_, Self>) {}

    fn resume(&mut self, ctx: &mut Ctx<'_, Self>) {
        if ctx.index() == 0 {
            ctx.exit();
        }
    }

    fn state_bytes(&self) -> u64 {
        size_of_val(&self.numbers[..]) as u64
    }
}

#[test]
fn what_a_chunk_holds_counts_as_it_was_when_it_came_to_the_sync() {
    let report = run_array(at_syncs(2, "rotate").simulate(1), 4, |_| Giver { numbers: vec![0.0; 1 << 17] });
    // 4 MiB at 4 GB/s: without them moving four chunks would cost 20 us.
    let needed_ns = report.expect("it ends").syncs[0].needed_ns;
    assert!(needed_ns > 1_000_000, "{needed_ns} ns");
}

#[test]
fn a_sync_says_what_the_phase_would_have_been_without_the_moves_before_it() {
    // Chunks 0 to 7 are on rank 0.
    let heavy = |chunk: u32| if chunk < 8 { 2_000_000 } else { 1_000_000 };
    let declare = move |nomad: Nomad| Nomad { load: Declared::Load(heavy(nomad.me)), ..nomad };
    let (_, report) = wander(at_syncs(2, "refine").measure(false), 16, declare);
    let [first, second, ..] = &report.syncs[..] else { panic!("there are several") };
    assert_eq!(first.makespan_unmoved_ns, 0, "no sync was before the first");
    assert_eq!((second.makespan_unmoved_ns, second.makespan_before_ns), (16_000_000, 12_000_000));
    let totals = report.sync_totals;
    assert_eq!(
        (totals.syncs, totals.moved),
        (u64::from(SYNCS), report.syncs.iter().map(|sync| sync.moved).sum())
    );
}

#[test]
fn bytes_that_a_migration_has_carried_decide_from_then_on() {
    for wire in [false, true] {
        let (_, report) = wander(at_syncs(2, "rotate").wire_always(wire).lb_reports(true), 4, |nomad| nomad);
        let reported: Vec<u64> = report
            .syncs
            .iter()
            .map(|sync| sync.reported.as_ref().expect("reports are kept").chunks[0].load.bytes)
            .collect();
        let said = size_of::<Nomad>() as u64;
        assert_eq!(reported[0], said, "nothing has moved yet");
        let carries = |bytes: u64| (8_000..8_500).contains(&bytes);
        for (sync, &bytes) in report.syncs.iter().zip(&reported).skip(1) {
            assert_eq!(
                carries(bytes),
                wire,
                "1000 numbers of 8 bytes, which the type's size ({said}) lacks: {bytes}"
            );
            assert_eq!(carries(sync.moved_bytes / sync.moved), wire, "{} bytes moved", sync.moved_bytes);
        }
    }
}
