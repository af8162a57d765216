//! Tests that every transport keeps the promises of the trait [`Transport`].
//!
//! Each rank is a [`Party`]. It sends to every other rank a numbered series of packets of very different sizes, in
//! bursts, and takes arrivals singly or in bursts. Where packets travel as bytes, it writes and reads half of them
//! itself. A second series is freight, which is ordered only among itself. A driver (threads, one thread in turn, or
//! processes) steps the parties until all are done. Each party has then received every series whole and in order, and
//! closes its transport. A party that waits in vain names the missing packet.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use lb_strategies::virtual_time::{Erratic, Events, Post};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg32;
use serde::{Deserialize, Serialize};

use super::local::{Local, Wake};
use super::sim::SimTransport;
use super::{PacketHandler, Transport};
use crate::error::Error;
use crate::ids::Rank;
use crate::wire::codec::{Codec, SerdeCodec};

/// Length at which long packets are cut, bytes: shorter than in production, and longer than a batch.
const PIECE_BYTES: usize = 64 * 1024;
/// Number of packets from each rank to each other rank; one packet of freight follows every `FREIGHT_EVERY` packets.
const PACKETS: u64 = 3_000;
const FREIGHT_EVERY: u64 = 40;

/// Number of consecutive empty polls after which the awaited packet counts as lost: some seconds. Counting polls
/// instead of time tolerates a rank that gets no vCPU.
const LOOKS_MAX: u64 = 4_000_000;

/// The packets between the ranks under test.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Packet {
    /// Encoded in the packet.
    Text(String),
    /// Travels beside the packet if it is long.
    Numbers(#[serde(with = "crate::wire::bulk")] Vec<u8>),
    /// As `Numbers`; other packets may overtake it.
    Freight(#[serde(with = "crate::wire::bulk")] Vec<u8>),
    Nothing,
}

/// One rank under test.
pub(super) struct Party {
    me: Rank,
    /// The number of the next packet, to and from each rank.
    sent: Vec<u64>,
    got: Vec<u64>,
    /// The number of the next freight from each rank.
    got_freight: Vec<u64>,
    /// Number of empty polls since the last arrival.
    looks: u64,
    /// Number of packets to take before the party does something else.
    wants: u32,
    rng: Pcg32,
}

impl Party {
    pub(super) fn new(me: Rank, ranks: u32) -> Party {
        let numbers = || vec![0; ranks as usize];
        let rng = Pcg32::seed_from_u64(u64::from(me.0));
        Party { me, sent: numbers(), got: numbers(), got_freight: numbers(), looks: 0, wants: 0, rng }
    }

    /// Sends a burst, takes a burst, and is sometimes idle. True once everything was sent and everything has arrived.
    pub(super) fn step(&mut self, transport: &mut dyn Transport<Packet>) -> bool {
        for _ in 0..self.rng.random_range(0..20) {
            let to = Rank(self.rng.random_range(0..self.sent.len() as u32));
            if to != self.me && self.sent[to.index()] < PACKETS {
                let number = self.sent[to.index()];
                self.send(to, packet(self.me, number), transport);
                if number.is_multiple_of(FREIGHT_EVERY) {
                    let freight = freight(self.me, number / FREIGHT_EVERY);
                    transport.send(to, freight).expect("it can be encoded");
                }
                self.sent[to.index()] += 1;
            }
        }
        for _ in 0..self.rng.random_range(0..5) {
            let most = self.rng.random_range(1..100);
            self.wants = most;
            transport.poll_each(self).expect("it can be decoded");
            if self.wants == most {
                self.looks += 1;
                break;
            }
        }
        if self.rng.random_ratio(1, 10) {
            transport.idle();
            let _ = (transport.ready(), transport.congested(), transport.nap());
        }
        let me = self.me.index();
        let all = |numbers: &[u64], count| {
            numbers.iter().enumerate().all(|(rank, &number)| rank == me || number == count)
        };
        let done = all(&self.sent, PACKETS)
            && all(&self.got, PACKETS)
            && all(&self.got_freight, PACKETS / FREIGHT_EVERY);
        if done {
            transport.idle();
        }
        assert!(
            done || self.looks < LOOKS_MAX,
            "rank {me} waits in vain: of {PACKETS} packets from each other rank it has {:?}, of {} with freight {:?}",
            self.got,
            PACKETS / FREIGHT_EVERY,
            self.got_freight,
        );
        done
    }

    /// Sends a packet, or writes it where the transport sends bytes.
    fn send(&mut self, to: Rank, mut packet: Packet, transport: &mut dyn Transport<Packet>) {
        let codec = SerdeCodec::new(self.me);
        let mut write = |bytes: &mut Vec<u8>| codec.encode(&mut packet, bytes);
        let written = if self.rng.random() { transport.send_written(to, &mut write) } else { None };
        written.unwrap_or_else(|| transport.send(to, packet)).expect("it can be encoded");
    }

    /// Checks that an arrived packet is the next of its sender, and whole. True if the party takes more.
    fn heard(&mut self, from: Rank, arrived: &Packet) -> bool {
        let (number, expected): (_, fn(Rank, u64) -> Packet) = match arrived {
            Packet::Freight(_) => (&mut self.got_freight[from.index()], freight),
            _ => (&mut self.got[from.index()], packet),
        };
        self.looks = 0;
        assert!(*arrived == expected(from, *number), "from rank {from}, number {number}: {arrived:?}");
        *number += 1;
        self.wants -= 1;
        self.wants > 0
    }
}

impl PacketHandler<Packet> for Party {
    fn take(&mut self, from: Rank, packet: Packet) -> bool {
        self.heard(from, &packet)
    }

    fn read(&mut self, from: Rank, bytes: &[u8]) -> Option<Result<bool, Box<Error>>> {
        if self.rng.random() {
            return None;
        }
        let packet = SerdeCodec::new(self.me).decode(bytes, VecDeque::new());
        Some(packet.map(|packet| self.heard(from, &packet)).map_err(Box::new))
    }
}

/// The packet number `number` of `from`: mostly short, sometimes with numbers beside it or a long body. One packet of
/// each kind is too long for one message.
fn packet(from: Rank, number: u64) -> Packet {
    let text = |length: usize| Packet::Text(format!("{from} {number} {}", "x".repeat(length)));
    match number % 100 {
        17 => text(if number == 2_017 { 4 * PIECE_BYTES / 3 } else { 40_000 }),
        33 | 34 => {
            let bytes = if number == 2_033 { 2 * PIECE_BYTES as u64 } else { 60_000 };
            Packet::Numbers(bytes_of(from, number, bytes))
        }
        50 => Packet::Nothing,
        short => text(short as usize),
    }
}

/// The freight number `number` of `from`: in one message, in two messages, or in its frame.
fn freight(from: Rank, number: u64) -> Packet {
    let bytes = [100, 4 * PIECE_BYTES as u64 / 3, 60_000][(number % 3) as usize];
    Packet::Freight(bytes_of(from, number, bytes))
}

fn bytes_of(from: Rank, number: u64, bytes: u64) -> Vec<u8> {
    (0..bytes).map(|byte| (byte + number + u64::from(from.0)) as u8).collect()
}

#[test]
fn ranks_in_threads_conform() {
    let ranks = 4;
    let wakes: Vec<Wake> = (0..ranks).map(|_| Arc::new(|| {}) as Wake).collect();
    let done = AtomicU32::new(0);
    thread::scope(|scope| {
        for (rank, mut transport) in (0..).zip(Local::connect(wakes)) {
            let done = &done;
            scope.spawn(move || {
                let mut party = Party::new(Rank(rank), ranks);
                while !party.step(&mut transport) {
                    thread::yield_now();
                }
                done.fetch_add(1, Ordering::SeqCst);
                while done.load(Ordering::SeqCst) < ranks {
                    assert!(transport.poll().is_none(), "nothing comes twice");
                    transport.idle();
                    thread::sleep(Duration::from_millis(1));
                }
                transport.close(&|_| false);
            });
        }
    });
}

#[test]
fn simulated_ranks_conform() {
    for seed in 0..20 {
        let ranks = 3;
        let (mut transports, mail): (Vec<SimTransport<Packet>>, Vec<_>) =
            (0..ranks).map(|_| SimTransport::connect(None)).unzip();
        let (mut post, mut arrivals) = (Post::new(ranks, Erratic::new(seed)), Events::default());
        let mut parties: Vec<Party> = (0..ranks).map(|rank| Party::new(Rank(rank), ranks)).collect();
        for now_ns in (0..).step_by(500) {
            let step = |(party, transport): (&mut Party, &mut SimTransport<Packet>)| party.step(transport);
            let done: Vec<bool> = parties.iter_mut().zip(&mut transports).map(step).collect();
            for (from, mail) in (0..).map(Rank).zip(&mail) {
                for (to, packet) in mail.take_sent() {
                    arrivals.at(post.send(from, to, packet, now_ns), (from, to));
                }
            }
            match arrivals.pop() {
                Some((_, (from, to))) => {
                    mail[to.index()].arrives(from, post.take(from, to).expect("it is on its way"));
                }
                None if done.iter().all(|&done| done) => break,
                None => {}
            }
        }
    }
}

/// Tests ranks that are processes: the test starts itself again under `mpirun`, once for each kind of link.
#[cfg(feature = "mpi")]
mod processes {
    use super::{
        Codec, Error, LOOKS_MAX, PIECE_BYTES, Packet, Party, Rank, SerdeCodec, Transport, VecDeque, thread,
    };
    use crate::threads::clock::Clock;
    use crate::threads::sleep::Sleeper;
    use crate::transport::fair_poller::PACKETS_IN_A_ROW;
    use crate::transport::mpi::raw::{Communicator, abort};
    use crate::transport::mpi::{Links, Mpi};
    use crate::wire::bulk::Block;
    use crate::wire::codec::Encoded;
    use mpi::traits::CommunicatorCollectives;
    use std::cell::Cell;
    use std::panic;
    use std::process::Command;
    use std::time::Duration;

    /// A sleep that is longer than any wake-up takes.
    const SLEEP_MAX: Duration = Duration::from_secs(10);
    /// Number of rounds of closing after which a bye counts as lost: some seconds.
    const ROUNDS_MAX: u64 = 50_000;
    /// Time for the launcher to pass on the message of a process that ends the job.
    const LAST_WORDS: Duration = Duration::from_millis(500);

    /// Encodes packets by serde, some of them as freight.
    struct WithFreight(SerdeCodec<Packet>);

    impl Codec for WithFreight {
        type Packet = Packet;

        fn encode(&self, packet: &mut Packet, bytes: &mut Vec<u8>) -> Encoded {
            self.0.encode(packet, bytes)
        }

        fn is_freight(packet: &Packet) -> bool {
            matches!(packet, Packet::Freight(_))
        }

        fn decode(&self, bytes: &[u8], blocks: VecDeque<Block>) -> Result<Packet, Error> {
            self.0.decode(bytes, blocks)
        }
    }

    /// A message arrives before freight that was sent earlier.
    fn a_message_overtakes_freight(me: Rank, transport: &mut dyn Transport<Packet>) {
        const FREIGHT: usize = 64;
        if me == Rank(0) {
            for _ in 0..FREIGHT {
                transport.send(Rank(1), Packet::Freight(vec![7; 1 << 20])).expect("it takes all");
            }
            transport.send(Rank(1), Packet::Nothing).expect("it takes all");
        }
        let (mut freight, mut before) = (0, None);
        while me == Rank(1) && (freight < FREIGHT || before.is_none()) {
            match await_next(me, transport).expect("it can be decoded").1 {
                Packet::Freight(_) => freight += 1,
                _ => before = Some(freight),
            }
        }
        assert!(
            before.is_none_or(|before| before < FREIGHT),
            "a message that was sent behind {FREIGHT} packets of freight came behind them all"
        );
        let mut looks = 0;
        while !transport.idle() || transport.has_transfers() {
            assert!(transport.poll().is_none(), "nothing comes twice");
            looks += 1;
            assert!(looks < LOOKS_MAX, "rank {me} waits in vain for what it sent to leave");
            thread::yield_now();
        }
    }

    /// A busy sender does not starve others: all send to rank 0, which polls after everything has been sent.
    fn no_sender_is_starved(
        me: Rank,
        ranks: u32,
        transport: &mut dyn Transport<Packet>,
        meet: impl FnOnce(),
    ) {
        const WORDS: u32 = 1_000;
        if me != Rank(0) {
            (0..WORDS).for_each(|_| transport.send(Rank(0), Packet::Nothing).expect("it takes all"));
            assert!(transport.idle(), "there is room for all");
        }
        meet();
        let mut heard = vec![0; ranks as usize];
        while me == Rank(0) && heard.iter().sum::<u32>() < WORDS * (ranks - 1) {
            let (from, _) = await_next(me, transport).expect("it can be decoded");
            heard[from.index()] += 1;
            let ahead =
                heard[1..].iter().max().zip(heard[1..].iter().min()).map(|(most, least)| most - least);
            assert!(ahead < Some(2 * PACKETS_IN_A_ROW), "of each rank: {heard:?}");
        }
    }

    /// A sleeper gets all packets, also frames that waited for space: each frame is a separate batch.
    fn a_sleeper_is_woken_for_what_waited(me: Rank, links: &mut Links) {
        const ROUNDS: u32 = 100;
        const FRAMES: u32 = 400;
        let sleeper = Sleeper::new();
        sleeper.bind_to_thread();
        sleeper.share(links.sleep_state().expect("they share memory"));
        let mut transport = Mpi::new(links, WithFreight(SerdeCodec::new(me)), Clock::machine());
        let clock = Clock::machine();
        for _ in 0..ROUNDS {
            if me == Rank(0) {
                let frame = || Packet::Text("x".repeat(2_000));
                (0..FRAMES).for_each(|_| transport.send(Rank(1), frame()).expect("it takes all"));
                while !transport.idle() {
                    thread::yield_now();
                }
                await_next(me, &mut transport).expect("it can be decoded");
            }
            let mut heard = 0;
            while me == Rank(1) && heard < FRAMES {
                let asleep_ns = clock.now_ns();
                sleeper.park(Some(SLEEP_MAX), || transport.ready());
                let slept = Duration::from_nanos(clock.now_ns() - asleep_ns);
                assert!(slept < SLEEP_MAX, "nobody woke it, which has heard {heard} of {FRAMES} frames");
                while transport.poll().is_some() {
                    heard += 1;
                }
            }
            if me == Rank(1) {
                transport.send(Rank(0), Packet::Nothing).expect("it takes all");
                assert!(transport.idle(), "there is room for it");
            }
        }
        close(transport);
    }

    /// The next packet.
    fn await_next(me: Rank, transport: &mut dyn Transport<Packet>) -> Result<(Rank, Packet), Error> {
        for _ in 0..LOOKS_MAX {
            if let Some(arrived) = transport.poll() {
                return arrived;
            }
            thread::yield_now();
        }
        panic!("rank {me} waits in vain for a packet");
    }

    /// Closes the transport. Others may still need this process to receive their packets.
    fn close(mut transport: Mpi<'_, WithFreight>) {
        let rounds = Cell::new(0);
        transport.close(&|_| rounds.replace(rounds.get() + 1) > ROUNDS_MAX);
    }

    /// Makes a panic end the job: the process must not wait in `MPI_Finalize` for others, which wait for it.
    fn end_the_job_with_a_panic() {
        let say = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            say(panic);
            thread::sleep(LAST_WORDS);
            abort(1);
        }));
    }

    /// Rank 0 sends rank 1 noise. The run of rank 1 cannot end in order, and returns an error.
    fn what_is_no_frame_is_an_error_that_names_its_sender(me: Rank, links: &mut Links) {
        let noise = (me == Rank(0)).then(|| links.send_noise(1));
        let mut transport = Mpi::new(links, WithFreight(SerdeCodec::new(me)), Clock::machine());
        if me == Rank(1) {
            for _ in 0..2 {
                let error = await_next(me, &mut transport).expect_err("noise is no packet");
                assert!(matches!(error, Error::Wire { rank: Rank(1), .. }), "{error}");
                assert!(error.to_string().contains("the data from rank 0"), "{error}");
            }
        }
        close(transport);
        assert_eq!(links.are_closed(), me != Rank(1));
        drop(noise);
    }

    /// The test in one process, twice over the same links, because a run must leave nothing for the next.
    #[test]
    #[ignore = "it is a process of an MPI job: started by processes_conform"]
    fn a_process() {
        let (universe, _) =
            mpi::initialize_with_threading(mpi::Threading::Funneled).expect("MPI starts once a process");
        end_the_job_with_a_panic();
        let mut world = Communicator::duplicate(&universe.world()).expect("MPI works");
        world.cut_at(PIECE_BYTES);
        let (rank, ranks) = (Rank(world.rank()), world.size());
        let shared_memory = variable("SHARED_MEMORY").as_deref() == Some("on");
        let mut links = Links::connect(world, shared_memory).expect("they connect");
        assert_eq!(links.sleep_state().is_some(), shared_memory && ranks > 1);
        for _ in 0..2 {
            let codec = WithFreight(SerdeCodec::new(rank));
            let mut transport = Mpi::new(&mut links, codec, Clock::machine());
            let mut party = Party::new(rank, ranks);
            while !party.step(&mut transport) {
                thread::yield_now();
            }
            close(transport);
            assert!(links.are_closed(), "rank {rank} waits in vain for the bye of another");
        }
        if ranks > 1 {
            let mut transport = Mpi::new(&mut links, WithFreight(SerdeCodec::new(rank)), Clock::machine());
            a_message_overtakes_freight(rank, &mut transport);
            close(transport);
        }
        if shared_memory {
            a_sleeper_is_woken_for_what_waited(rank, &mut links);
            let mut transport = Mpi::new(&mut links, WithFreight(SerdeCodec::new(rank)), Clock::machine());
            no_sender_is_starved(rank, ranks, &mut transport, || universe.world().barrier());
            close(transport);
        }
        if !shared_memory {
            what_is_no_frame_is_an_error_that_names_its_sender(rank, &mut links);
        }
        drop(links);
        drop(universe);
    }

    #[test]
    fn processes_conform() {
        let mpirun = variable("MPIRUN").unwrap_or_else(|| "mpirun".into());
        let Ok(version) = Command::new(&mpirun).arg("--version").output() else {
            return println!("skipped: no {mpirun}");
        };
        let version = String::from_utf8_lossy(&version.stdout);
        let oversubscribe = version.contains("Open MPI") || version.contains("OpenRTE");
        let me = std::env::current_exe().expect("a test has a file");
        for (processes, shared_memory) in [("2", "on"), ("2", "off"), ("4", "on"), ("3", "off")] {
            let mut job = Command::new(&mpirun);
            job.args(["-n", processes]).args(oversubscribe.then_some("--oversubscribe")).arg(&me);
            // A panic must be printed before the job ends.
            job.args(["--ignored", "--exact", "--nocapture", "transport::conformance::processes::a_process"]);
            job.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
            let job = job.env("SHARED_MEMORY", shared_memory).output().expect("mpirun starts");
            let (out, err) = (String::from_utf8_lossy(&job.stdout), String::from_utf8_lossy(&job.stderr));
            assert!(
                job.status.success(),
                "{processes} processes, shared memory {shared_memory}\n{out}\n{err}"
            );
            assert!(out.matches("1 passed").count().to_string() == processes, "each ran the test: {out}");
        }
    }

    #[expect(clippy::disallowed_methods, reason = "a test asks how it was started")]
    fn variable(name: &str) -> Option<String> {
        std::env::var(name).ok()
    }
}
