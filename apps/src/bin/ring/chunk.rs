//! Runs a ring of chunks that pass tokens on.
//!
//! When every chunk has started, chunk 0 starts the clock and launches the tokens. A token that has made its last hop
//! reports to chunk 0, which stops the clock when all tokens have reported. Nothing migrates, so chunk 0 stays on rank
//! 0 with its stopwatch.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use caribou::{Chunk, Config, Ctx, Placement, Reducer, Target, Values};
use serde::{Deserialize, Serialize};

use crate::kernel;
use crate::options::{Options, Outcome, PlacementOption};

/// The chunk that measures the time and counts the tokens.
const TIMEKEEPER: u32 = 0;

/// One chunk of the ring.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RingNode {
    next: u32,
    chunks: u64,
    hops: u32,
    payload: usize,
    work: u32,
    /// The chunks at which tokens start; only the timekeeper has these.
    starts: Vec<u32>,
    /// Tokens that have arrived; only the timekeeper counts.
    arrived: usize,
}

/// A message between chunks.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Message {
    /// Every chunk has started; with the number of chunks.
    Begin(u64),
    /// A token starts here.
    Launch,
    /// A token with a load that fits the message.
    Small {
        /// Hops to go.
        left: u32,
        /// The load.
        load: u64,
    },
    /// A token with a separate load. A process sends the load without copying it first.
    Large {
        /// Hops to go.
        left: u32,
        /// The load.
        #[serde(with = "caribou::bulk")]
        load: Arc<Vec<u8>>,
    },
    /// A token has made its last hop.
    Arrived,
}

/// The time at which the tokens were launched, and at which the last one arrived, in nanoseconds since the run began.
#[derive(Debug, Default)]
struct Stopwatch {
    begin_ns: AtomicU64,
    end_ns: AtomicU64,
}

impl RingNode {
    fn new(options: &Options, index: u32) -> Self {
        let starts = (0..options.tokens).map(|token| options.start_of(token));
        Self {
            next: (index + 1) % options.chunks,
            chunks: u64::from(options.chunks),
            hops: options.hops,
            payload: options.payload,
            work: options.work,
            starts: if index == TIMEKEEPER { starts.collect() } else { Vec::new() },
            arrived: 0,
        }
    }

    fn launch(&self, ctx: &mut Ctx<'_, Self>) {
        let left = self.hops - 1;
        let token = match self.payload {
            0..=8 => Message::Small { left, load: 0 },
            bytes => Message::Large { left, load: Arc::new(vec![0; bytes]) },
        };
        ctx.send(self.next, token);
    }
}

impl Chunk for RingNode {
    type Index = u32;
    type Message = Message;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        ctx.contribute(0, Reducer::Sum, vec![1_u64], Target::Chunk(TIMEKEEPER));
    }

    fn receive(&mut self, message: Message, ctx: &mut Ctx<'_, Self>) {
        match message {
            Message::Small { left: 0, .. } | Message::Large { left: 0, .. } => {
                kernel::run(self.work);
                ctx.send(TIMEKEEPER, Message::Arrived);
            }
            // The load changes at every hop, so that no hop can be optimised away.
            Message::Small { left, load } => {
                kernel::run(self.work);
                ctx.send(self.next, Message::Small { left: left - 1, load: load + 1 });
            }
            Message::Large { left, load } => {
                kernel::run(self.work);
                ctx.send(self.next, Message::Large { left: left - 1, load });
            }
            Message::Launch => self.launch(ctx),
            Message::Begin(chunks) => {
                assert_eq!(chunks, self.chunks, "every chunk starts once");
                ctx.service::<Arc<Stopwatch>>().begin_ns.store(ctx.elapsed_ns(), SeqCst);
                for &start in &self.starts {
                    ctx.send(start, Message::Launch);
                }
            }
            Message::Arrived => {
                self.arrived += 1;
                if self.arrived == self.starts.len() {
                    ctx.service::<Arc<Stopwatch>>().end_ns.store(ctx.elapsed_ns(), SeqCst);
                    ctx.exit();
                }
            }
        }
    }

    fn reduced(_: u32, values: Values) -> Message {
        let Values::U64(sum) = values else { panic!("chunks contribute whole numbers") };
        Message::Begin(sum[0])
    }
}

/// Runs the ring. All processes of a job call this. Only the first process gets the time, because the timekeeper stays
/// there.
///
/// # Errors
/// The error of the runtime.
pub(crate) fn run(config: Config, options: &Options) -> Result<Outcome, caribou::Error> {
    let config = options.configure(config);
    let placement = match options.placement {
        PlacementOption::Block => Placement::Block,
        PlacementOption::RoundRobin => Placement::RoundRobin,
    };
    let stopwatch = Arc::new(Stopwatch::default());
    let report = caribou::run(config.clone(), |setup| {
        setup.service(Arc::clone(&stopwatch));
        let options = options.clone();
        setup.array_with(options.chunks, placement.clone(), move |index| RingNode::new(&options, index));
    })?;
    let elapsed_ns = stopwatch.end_ns.load(SeqCst).saturating_sub(stopwatch.begin_ns.load(SeqCst));
    Ok(options.outcome(&config, elapsed_ns, &report))
}
