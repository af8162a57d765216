//! Parts that do not fit together are refused with an error that names them, on every rank count.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use caribou::config::Pin;
use caribou::lb::pool::PoolStrategy;
use caribou::lb::{Assignment, Rank, Snapshot, Strategy};
use caribou::lb::{Entry, POOLS, Parameter};
use caribou::{Chunk, Combine, Config, Ctx, Error, Reducer, Report, Section, Setup, Target, Values};
use caribou_tests::{at_syncs, run_array_in_time, with_timeout};
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

fn config(ranks: u32) -> Config {
    at_syncs(ranks, "rotate")
}

/// The oddity of the last chunk's contribution.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Oddity {
    Tag,
    Reducer,
    Target,
    Length,
    Type,
    BitsOfFloats,
}

#[derive(Serialize, Deserialize)]
struct Voter(Oddity);

impl Chunk for Voter {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        let odd = ctx.index() == 5;
        let (sum, all) = (Reducer::Sum, Target::All);
        match self.0 {
            Oddity::Tag => ctx.contribute(u32::from(odd), sum, vec![1u64], all),
            Oddity::Reducer => {
                ctx.contribute(0, if odd { Reducer::Max } else { sum }, vec![1u64], all);
            }
            Oddity::Target => {
                ctx.contribute(0, sum, vec![1u64], if odd { Target::Chunk(0) } else { all });
            }
            Oddity::Length => ctx.contribute(0, sum, vec![1u64; if odd { 2 } else { 1 }], all),
            Oddity::Type if odd => ctx.contribute(0, sum, vec![1i64], all),
            Oddity::Type => ctx.contribute(0, sum, vec![1u64], all),
            Oddity::BitsOfFloats => ctx.contribute(0, Reducer::And, vec![1.0], all),
        }
    }

    fn receive(&mut self, (): (), ctx: &mut Ctx<'_, Self>) {
        ctx.exit();
    }

    fn reduced(_: u32, _: Values) {}
}

#[test]
fn contributions_that_do_not_agree_are_refused() {
    use Oddity::{BitsOfFloats, Length, Reducer, Tag, Target, Type};
    for oddity in [Tag, Reducer, Target, Length, Type, BitsOfFloats] {
        for ranks in [1, 3] {
            let what = format!("{oddity:?} on {ranks} ranks");
            let result = run_array_in_time(&what, config(ranks), 6, move |_| Voter(oddity));
            let Err(Error::Reduction { array, why, .. }) = &result else { panic!("{what}: {result:?}") };
            assert_eq!(array, "array 0 `Voter`", "{what}");
            assert!(why.starts_with("reduction 0"), "{what}: {why}");
            // Ranks that are of one mind each disagree where their parts meet.
            assert!(ranks > 1 || why.contains("; detected at the contribution of Voter["), "{what}: {why}");
        }
    }
}

/// A value that does not combine, for one reason or another.
#[derive(Serialize, Deserialize)]
struct Stubborn(Faulty<true>);

impl Combine for Stubborn {
    fn combine(&mut self, _: Stubborn) {
        panic!("it stays as it is");
    }
}

#[derive(Serialize, Deserialize)]
struct Meek(u8);

impl Combine for Meek {
    fn combine(&mut self, _: Meek) {}
}

/// The trouble with the last chunk's contribution of a type of its own.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Trouble {
    Panics,
    DoesNotDecode,
    OtherType,
    Scan,
}

#[derive(Serialize, Deserialize)]
struct Party(Trouble);

impl Chunk for Party {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        let last = ctx.index() == 5;
        let fault = if last { Fault::ChunkDoesNotDecode } else { Fault::Nowhere };
        let (values, target) = match self.0 {
            Trouble::Panics => (Values::own(&Stubborn(Faulty(Fault::Nowhere))), Target::Exit),
            Trouble::DoesNotDecode => (Values::own(&Stubborn(Faulty(fault))), Target::Exit),
            Trouble::OtherType if last => (Values::own(&Stubborn(Faulty(fault))), Target::Exit),
            Trouble::OtherType => (Values::own(&Meek(0)), Target::Exit),
            Trouble::Scan => (Values::own(&Meek(0)), Target::Scan),
        };
        // Of those that do not decode there must be one alone that meets the faulty one, and nobody before.
        if !matches!(self.0, Trouble::DoesNotDecode) || last || ctx.index() == 0 {
            ctx.contribute(7, Reducer::Own, values, target);
        }
    }

    fn receive(&mut self, (): (), _: &mut Ctx<'_, Self>) {}
}

#[test]
fn values_that_do_not_combine_end_the_run_with_their_type_and_tag() {
    for (trouble, said) in [
        (Trouble::Panics, "`Stubborn` panicked when it was combined: it stays as it is"),
        (Trouble::DoesNotDecode, "it cannot be read"),
        (Trouble::OtherType, "contributions must be of one type"),
    ] {
        for (ranks, wire) in [(1, false), (1, true), (3, false), (3, true)] {
            let what = format!("{trouble:?} on {ranks} ranks, wire {wire}");
            let result =
                run_array_in_time(&what, config(ranks).wire_always(wire), 6, move |_| Party(trouble));
            let Err(Error::Reduction { array, why, .. }) = &result else { panic!("{what}: {result:?}") };
            assert_eq!(array, "array 0 `Party`", "{what}");
            assert!(why.starts_with("reduction 0: ") && why.contains(said), "{what}: {why}");
            let of_tag = why.contains("Stubborn` under tag 7 do not combine");
            assert!(of_tag || matches!(trouble, Trouble::OtherType), "{what}: {why}");
        }
    }
}

#[test]
fn values_of_ones_own_are_not_scanned() {
    let result = run_array_in_time("a scan", config(2), 6, |_| Party(Trouble::Scan));
    let Err(Error::HandlerPanicked { panic, .. }) = &result else { panic!("{result:?}") };
    assert!(panic.contains("a scan cannot use Reducer::Own"), "{panic}");
}

/// The fault in the last chunk's contribution to a reduction over a section.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Slip {
    Stranger,
    NamedTwice,
    Tag,
    Length,
}

#[derive(Serialize, Deserialize)]
struct Clerk(Slip);

impl Chunk for Clerk {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        let (sum, all, one) = (Reducer::Sum, Target::All, vec![1u64]);
        let everybody = Section::new(0..6);
        if ctx.index() != 5 {
            return ctx.contribute_in(&everybody, 7, sum, one, all);
        }
        match self.0 {
            Slip::Stranger => ctx.contribute_in(&Section::new(0..5), 7, sum, one, all),
            Slip::NamedTwice => ctx.contribute_in(&Section::new((0..6).chain([3])), 7, sum, one, all),
            Slip::Tag => ctx.contribute_in(&everybody, 8, sum, one, all),
            Slip::Length => ctx.contribute_in(&everybody, 7, sum, vec![1u64; 2], all),
        }
    }

    fn reduced(_: u32, _: Values) {}

    fn receive(&mut self, (): (), _: &mut Ctx<'_, Self>) {}
}

#[test]
fn contributions_to_a_section_that_do_not_fit_are_refused() {
    for (slip, said) in [
        (
            Slip::Stranger,
            "5 contributes to a reduction over a section that does not contain it: 0, 1, 2, ...",
        ),
        (Slip::NamedTwice, "the section of a reduction contains 3 twice"),
        (Slip::Tag, "some are for Sum under tag"),
        (Slip::Length, "contributions must be of one type and length"),
    ] {
        for (ranks, wire) in [(1, false), (3, false), (3, true)] {
            let what = format!("{slip:?} on {ranks} ranks, wire {wire}");
            let result = run_array_in_time(&what, config(ranks).wire_always(wire), 6, move |_| Clerk(slip));
            match &result {
                Err(Error::HandlerPanicked { chunk, panic: why, .. }) => {
                    assert!(chunk.starts_with("Clerk[5]") && why == said, "{what}: {why}");
                }
                Err(Error::Reduction { array, why, .. }) => {
                    assert_eq!(array, "array 0 `Clerk`", "{what}");
                    let of = "reduction 0 over a section of 6 chunks: ";
                    assert!(why.starts_with(of) && why.contains(said), "{what}: {why}");
                }
                other => panic!("{what}: {other:?}"),
            }
        }
    }
}

/// The fault in serialisation.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    Nowhere,
    ChunkDoesNotEncode,
    ChunkDoesNotDecode,
    MessageDoesNotEncode,
    MessageDoesNotDecode,
    MessageIsNotReadToItsEnd,
    ChunkPanicsInEncoding,
    ChunkPanicsInDecoding,
    MessagePanicsInEncoding,
    MessagePanicsInDecoding,
}

/// A value whose serde implementation has a fault.
struct Faulty<const OF_CHUNK: bool>(Fault);

impl<const OF_CHUNK: bool> Serialize for Faulty<OF_CHUNK> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match (self.0, OF_CHUNK) {
            (Fault::ChunkDoesNotEncode, true) | (Fault::MessageDoesNotEncode, false) => {
                Err(S::Error::custom("it does not want to"))
            }
            (Fault::ChunkDoesNotDecode, true) | (Fault::MessageDoesNotDecode, false) => {
                1u8.serialize(serializer)
            }
            (Fault::MessageIsNotReadToItsEnd, false) => [0u8, 1, 2].serialize(serializer),
            (Fault::ChunkPanicsInEncoding, true) | (Fault::MessagePanicsInEncoding, false) => {
                panic!("it falls")
            }
            (Fault::ChunkPanicsInDecoding, true) | (Fault::MessagePanicsInDecoding, false) => {
                2u8.serialize(serializer)
            }
            _ => 0u8.serialize(serializer),
        }
    }
}

impl<'de, const OF_CHUNK: bool> Deserialize<'de> for Faulty<OF_CHUNK> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u8::deserialize(deserializer)? {
            0 => Ok(Faulty(Fault::Nowhere)),
            2 => panic!("it falls"),
            _ => Err(D::Error::custom("it cannot be read")),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Parcel(Faulty<true>);

#[derive(Serialize, Deserialize)]
enum Letter {
    /// With a text, so that its bytes are counted when it is sent.
    Sealed(Faulty<false>, String),
}

impl Letter {
    fn with(fault: Fault) -> Letter {
        Letter::Sealed(Faulty(fault), String::new())
    }
}

impl Chunk for Parcel {
    type Index = u32;
    type Message = Letter;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        if ctx.index() == 1 {
            ctx.send(0, Letter::with(self.0.0));
        }
        ctx.at_sync();
    }

    fn resume(&mut self, ctx: &mut Ctx<'_, Self>) {
        ctx.send(1 - ctx.index(), Letter::with(Fault::Nowhere));
    }

    fn receive(&mut self, _: Letter, ctx: &mut Ctx<'_, Self>) {
        ctx.exit();
    }
}

/// Only the second chunk, on the last rank, has the fault: the first rank has to hear of it.
fn send_parcels(fault: Fault, ranks: u32, wire: bool) -> Result<Report, Error> {
    let config = config(ranks).wire_always(wire);
    run_array_in_time(&format!("{fault:?}, wire {wire}"), config, 2, move |index| {
        Parcel(Faulty(if index == 1 { fault } else { Fault::Nowhere }))
    })
}

/// The error names the array and index of what could not be encoded or decoded; where nothing is encoded, nothing fails.
fn is_refused_on_the_wire(fault: Fault) {
    send_parcels(fault, 2, false).unwrap_or_else(|error| panic!("{fault:?}, never encoded: {error}"));
    is_refused_on(2, fault);
}

fn is_refused_on(ranks: u32, fault: Fault) {
    let result = send_parcels(fault, ranks, true);
    let Err(Error::Wire { what, why, .. }) = &result else { panic!("{fault:?}: {result:?}") };
    assert!(!why.is_empty() && what.contains("Parcel["), "{fault:?}: {what}: {why}");
}

#[test]
fn what_panics_when_it_is_encoded_or_decoded_is_named_with_its_type() {
    for (fault, place, said) in [
        (
            Fault::ChunkPanicsInEncoding,
            "Parcel[1] of array 0",
            "`Parcel` panicked when it was encoded: it falls",
        ),
        (
            Fault::ChunkPanicsInDecoding,
            "Parcel[1] of array 0",
            "`Parcel` panicked when it was decoded: it falls",
        ),
        (
            Fault::MessagePanicsInEncoding,
            "a message to Parcel[0] of array 0",
            "`Letter` panicked when it was encoded: it falls",
        ),
        (
            Fault::MessagePanicsInDecoding,
            "a message to Parcel[0] of array 0",
            "`Letter` panicked when it was decoded: it falls",
        ),
    ] {
        send_parcels(fault, 2, false).unwrap_or_else(|error| panic!("{fault:?}, never encoded: {error}"));
        let result = send_parcels(fault, 2, true);
        let Err(Error::Wire { what, why, .. }) = &result else { panic!("{fault:?}: {result:?}") };
        assert_eq!((what.as_str(), why.as_str()), (place, said), "{fault:?}");
    }
}

/// A message that can be encoded once.
struct Brittle(bool);

impl Serialize for Brittle {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        assert!(!self.0, "it breaks");
        ().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Brittle {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <()>::deserialize(deserializer).map(|()| Brittle(true))
    }
}

/// The second, on another rank than rank 0, sends a message that waits for quiescence there.
#[derive(Serialize, Deserialize)]
struct Patient;

impl Chunk for Patient {
    type Index = u32;
    type Message = Brittle;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        if ctx.index() == 1 {
            ctx.send_at_quiescence(0, Brittle(false));
        }
    }

    fn receive(&mut self, _: Brittle, ctx: &mut Ctx<'_, Self>) {
        ctx.exit();
    }
}

#[test]
fn a_message_at_quiescence_that_panics_when_it_is_encoded_is_named_by_its_receiver() {
    // Encoded when it is sent, and again to leave.
    let result = run_array_in_time("brittle", config(2).wire_always(true), 2, |_| Patient);
    let error = result.expect_err("it breaks").to_string();
    let said = "a message to Patient[0] of array 0 cannot cross the wire: `Brittle` panicked when it was encoded: it breaks";
    assert!(error.ends_with(said), "{error}");
}

/// Says to all what cannot be said.
#[derive(Serialize, Deserialize)]
struct Herald {
    to_some: bool,
    panics: bool,
}

impl Chunk for Herald {
    type Index = u32;
    type Message = Letter;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        let fault = if self.panics { Fault::MessagePanicsInEncoding } else { Fault::MessageDoesNotEncode };
        let letter = Letter::with(fault);
        match self.to_some {
            false => ctx.broadcast(&letter),
            true => ctx.multicast(&Section::new([0]), &letter),
        }
    }

    fn receive(&mut self, _: Letter, _: &mut Ctx<'_, Self>) {}
}

#[test]
fn what_cannot_be_said_to_many_ends_the_run_with_an_error_that_names_it() {
    let ways = [(false, "a broadcast"), (true, "a multicast")];
    let faults = [
        (false, "`Letter` cannot be encoded: it does not want to"),
        (true, "`Letter` panicked when it was encoded: it falls"),
    ];
    for ((to_some, what), (panics, said)) in ways.into_iter().flat_map(|way| faults.map(|fault| (way, fault)))
    {
        let result = run_array_in_time(what, config(1), 1, move |_| Herald { to_some, panics });
        let Err(Error::Program { chunk, why, .. }) = &result else { panic!("{what}: {result:?}") };
        assert_eq!(chunk, "Herald[0] of array 0");
        assert_eq!(*why, format!("{what} cannot cross the wire: {said}"));
    }
}

#[test]
fn messages_within_a_rank_cross_the_wire_too_where_all_is_to_be_encoded() {
    let faults = [Fault::MessageDoesNotEncode, Fault::MessageDoesNotDecode, Fault::MessageIsNotReadToItsEnd];
    faults.into_iter().for_each(|fault| is_refused_on(1, fault));
}

#[test]
fn what_round_trips_crosses_the_wire() {
    for wire in [false, true] {
        send_parcels(Fault::Nowhere, 2, wire).expect("it ends");
    }
}

#[test]
fn a_chunk_that_does_not_encode_is_refused() {
    is_refused_on_the_wire(Fault::ChunkDoesNotEncode);
}

#[test]
fn a_chunk_that_does_not_decode_is_refused() {
    is_refused_on_the_wire(Fault::ChunkDoesNotDecode);
}

#[test]
fn a_message_that_is_not_read_to_its_end_is_refused() {
    is_refused_on_the_wire(Fault::MessageIsNotReadToItsEnd);
}

#[test]
fn a_message_that_does_not_encode_is_refused() {
    is_refused_on_the_wire(Fault::MessageDoesNotEncode);
}

#[test]
fn a_message_that_does_not_decode_is_refused() {
    is_refused_on_the_wire(Fault::MessageDoesNotDecode);
}

/// Writes to the first chunk, then waits.
#[derive(Serialize, Deserialize)]
struct Member;

impl Chunk for Member {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        ctx.send(0, ());
    }

    fn receive(&mut self, (): (), _: &mut Ctx<'_, Self>) {}
}

/// As `Member`, but another type.
#[derive(Serialize, Deserialize)]
struct Stranger;

impl Chunk for Stranger {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        ctx.send(0, ());
    }

    fn receive(&mut self, (): (), _: &mut Ctx<'_, Self>) {}
}

/// Runs a setup that is told how often it was called before. It is refused in one of these words: which rank is called
/// first differs.
fn set_up_differently(what: &str, ranks: u32, words: &[&str], setup: fn(&mut Setup, u32)) {
    let calls = Arc::new(AtomicU32::new(0));
    let setup = move |described: &mut Setup| setup(described, calls.fetch_add(1, SeqCst));
    let result = with_timeout(what, move || caribou::run(config(ranks), setup));
    let Err(Error::SetupDiffers { rank, what: why }) = result else { panic!("{what}: {result:?}") };
    assert!((1..ranks).contains(&rank.0), "{what}: rank {rank}");
    assert!(words.contains(&why.as_str()), "{what}: {why}");
}

#[test]
fn ranks_that_set_up_different_populations_are_refused() {
    let words = [
        "array 0 `Member`: 7 chunks, but 6 chunks on rank 0",
        "array 0 `Member`: 6 chunks, but 7 chunks on rank 0",
    ];
    set_up_differently("populations", 2, &words, |setup, call| {
        setup.array(6 + call, |_| Member);
    });
}

#[test]
fn ranks_that_set_up_different_types_are_refused() {
    let words = [
        "array 0 `Member`: chunks of type `Stranger`, but chunks of type `Member` on rank 0",
        "array 0 `Stranger`: chunks of type `Member`, but chunks of type `Stranger` on rank 0",
    ];
    set_up_differently("types", 2, &words, |setup, call| {
        match call {
            0 => drop(setup.array(6, |_| Member)),
            _ => drop(setup.array(6, |_| Stranger)),
        };
    });
}

#[test]
fn ranks_that_set_up_more_arrays_are_refused() {
    // Three ranks: the odd one also writes to a rank that knows nothing of its array.
    for _ in 0..20 {
        let words = ["2 arrays, but 1 array on rank 0", "1 array, but 2 arrays on rank 0"];
        set_up_differently("arrays", 3, &words, |setup, call| {
            setup.array(6, |_| Member);
            if call == 2 {
                setup.array_with(6, caribou::Placement::RoundRobin, |_| Stranger);
            }
        });
    }
}

#[test]
fn ranks_that_set_up_other_indices_are_refused() {
    set_up_differently("indices", 2, &["array 0 `Member`: other indices"], |setup, call| {
        setup.array((0..6).map(|index| index * (call + 1)).collect::<Vec<u32>>(), |_| Member);
    });
}

#[test]
fn ranks_that_place_chunks_otherwise_are_refused() {
    use caribou::Placement;
    let words = [
        "array 0 `Member`: placement RoundRobin, but placement Block on rank 0",
        "array 0 `Member`: placement Block, but placement RoundRobin on rank 0",
    ];
    set_up_differently("placements", 2, &words, |setup, call| {
        setup.array_with(6, [Placement::Block, Placement::RoundRobin][call as usize].clone(), |_| Member);
    });
    let words = ["array 0 `Member`: its placement returns other ranks"];
    set_up_differently("functions", 2, &words, |setup, call| {
        setup.array_with(6, Placement::by(move |index: u32, ranks| (index + call) % ranks), |_| Member);
    });
}

#[test]
fn ranks_of_which_one_syncs_an_array_and_the_other_does_not_are_refused() {
    let words = [
        "array 0 `Member`: in syncs, but without syncs on rank 0",
        "array 0 `Member`: without syncs, but in syncs on rank 0",
    ];
    set_up_differently("syncs", 2, &words, |setup, call| {
        match call {
            0 => drop(setup.array(6, |_| Member)),
            _ => drop(setup.array_without_sync(6, caribou::Placement::Block, |_| Member)),
        };
    });
}

#[test]
fn an_index_that_is_in_use_is_refused() {
    /// Inserts its neighbour, which is there already, or has another one do so.
    #[derive(Clone, Copy, Debug, Serialize, Deserialize)]
    enum Twin {
        Own,
        Others,
    }
    impl Chunk for Twin {
        type Index = u32;
        type Message = ();
        fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
            if ctx.index() == 0 {
                match self {
                    Twin::Own => ctx.insert(3, Twin::Own),
                    Twin::Others => ctx.insert_into(ctx.array(), 3, Twin::Others, 1),
                }
            }
        }
        fn receive(&mut self, (): (), _: &mut Ctx<'_, Self>) {}
    }
    let configs = [(1, 1), (2, 1), (1, 2)];
    for ((ranks, workers), twin) in
        configs.into_iter().flat_map(|config| [(config, Twin::Own), (config, Twin::Others)])
    {
        let result = run_array_in_time("a twin", config(ranks).workers(workers), 4, move |_| twin);
        let last = Rank(ranks - 1);
        let twin = Error::IndexInUse { chunk: "Twin[3] of array 0".into(), rank: last, by: Rank(0) };
        assert_eq!(result.expect_err("there are two"), twin, "{ranks} ranks x {workers} workers");
        assert!(
            twin.to_string().starts_with(&format!("rank 0 inserted Twin[3] of array 0, but rank {last} has"))
        );
    }
}

#[test]
fn an_index_that_is_twice_in_an_extent_is_refused() {
    for config in [config(1), config(3), config(2).simulate(7)] {
        let run = || {
            caribou::run(config, |setup| {
                setup.array(2, |_| Member);
                setup.array(vec![4, 7, 9, 7], |_| Member);
            })
        };
        let result = with_timeout("twice", run);
        let Err(Error::Config { setting, why }) = result else { panic!("{result:?}") };
        assert_eq!(setting, "the extent of array 1 `Member`");
        assert!(why.contains("it contains index 7 twice"), "{why}");
    }
}

/// Answers in a way that no strategy may.
#[derive(Clone, Copy, Debug)]
enum Mistake {
    TooShort,
    NoSuchRank,
    Pinned,
    Panic,
}

impl Strategy for Mistake {
    fn name(&self) -> &'static str {
        "mine"
    }

    fn assign(&self, snapshot: &Snapshot) -> Assignment {
        let mut ranks = Assignment::current(snapshot).ranks;
        match self {
            Mistake::TooShort => drop(ranks.pop()),
            Mistake::NoSuchRank => ranks[1] = Rank(77),
            Mistake::Pinned => ranks[0] = Rank(1),
            Mistake::Panic => panic!("no idea"),
        }
        Assignment { ranks }
    }
}

/// Comes to a sync; the first of them is pinned.
#[derive(Serialize, Deserialize)]
struct Syncer(bool);

impl Chunk for Syncer {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        ctx.at_sync();
    }

    fn resume(&mut self, ctx: &mut Ctx<'_, Self>) {
        ctx.exit();
    }

    fn receive(&mut self, (): (), _: &mut Ctx<'_, Self>) {}

    fn migratable(&self) -> bool {
        !self.0
    }
}

#[test]
fn a_strategy_that_fails_is_named_and_no_chunk_is_blamed() {
    for (mistake, what) in [
        (Mistake::TooShort, "it assigned 3 chunks, expected 4"),
        (Mistake::NoSuchRank, "it assigned Syncer[1] of array 0 to rank 77, but there are 2 ranks"),
        (Mistake::Pinned, "it assigned Syncer[0] of array 0 to rank 1, but the chunk is not migratable"),
        (Mistake::Panic, "it panicked: no idea"),
    ] {
        for config in [config(2), config(2).simulate(3)] {
            let result = run_array_in_time(&format!("{mistake:?}"), config.strategy(mistake), 4, |index| {
                Syncer(index == 0)
            });
            let error = Error::StrategyFailed { strategy: "mine".into(), sync: 0, why: what.into() };
            assert_eq!(result.expect_err("the strategy fails"), error);
        }
    }
}

#[test]
fn a_strategy_of_ones_own_is_selected_by_name_and_listed() {
    const MINE: Entry<dyn Strategy> = Entry {
        name: "mine",
        summary: "makes a mistake",
        parameters: &[Parameter { name: "length", default: "1", meaning: "0: too short" }],
        build: |parameters| {
            let short = parameters.integer("length")? == 0;
            Ok(Box::new(if short { Mistake::TooShort } else { Mistake::NoSuchRank }))
        },
    };
    let offered = || Config::default().ranks(2).period(20).register_strategy(MINE);
    let result =
        run_array_in_time("mine", offered().lb("mine,length=0").expect("it is registered"), 4, |_| {
            Syncer(false)
        });
    let Err(Error::StrategyFailed { why, .. }) = &result else { panic!("{result:?}") };
    assert!(why.contains("3 chunks, expected 4"), "{why}");
    let said = |spec| offered().lb(spec).map(|_| ()).expect_err("it is no strategy").to_string();
    assert!(said("mina").contains("did you mean \"mine\"?"), "{}", said("mina"));
    assert!(said("mine,lenght=0").contains("did you mean \"length\"?"));
    assert!(Config::default().lb("mine").is_err(), "it is known only where it is registered");
}

#[test]
fn a_policy_of_ones_own_for_pools_is_selected_by_name() {
    const OURS: Entry<dyn PoolStrategy> =
        Entry { name: "ours", summary: "equal shares", parameters: &[], build: |_| POOLS.parse("static") };
    let config =
        Config::default().workers(1).register_pool_strategy(OURS).lb("ours").expect("it is registered");
    let outcome = caribou::pool(&config, 10, || 0, |count: &mut u64, range| *count += range.count() as u64);
    let outcome = outcome.expect("it ends");
    assert_eq!((outcome.result, outcome.report.lb.as_str()), (10, "ours"));
}

#[test]
fn settings_that_cannot_be_kept_are_refused_before_anything_starts() {
    let too_many = caribou::machine::vcpus().len() as u32 + 1;
    let run = move || caribou::run(config(too_many).pin(Pin::On), |_| panic!("nothing is set up"));
    let result = with_timeout("pinning", run);
    let Err(Error::Config { setting, why }) = result else { panic!("{result:?}") };
    assert!(setting == "CARIBOU_PIN" && why.contains("vCPUs"), "{setting}: {why}");
    let pairs = [("CARIBOU_LP", "CARIBOU_LB?"), ("CARIBOU_RANKS", "whole number"), ("CARIBOU_LB", "refine")];
    for (name, hint) in pairs {
        let result = Config::from_variables([(name.to_owned(), "refin".to_owned())]);
        let Err(Error::Config { setting, why }) = result else { panic!("{name}: {result:?}") };
        assert!(setting == name && why.contains(hint), "{setting}: {why}");
    }
}
