//! Runs the plate as an array of chunks, one per block.
//!
//! A chunk sends its four edges, waits for as many halos, steps, and begins again. There is no barrier: a neighbour may
//! be one step ahead, and its halo waits in the runtime until this chunk is `ready` for it. In each iteration all
//! chunks add themselves to a sum. Chunk [0, 0] gets the sum and reports to the observers.

use caribou::{Chunk, Ctx, Reducer, Target, Values};
use serde::{Deserialize, Serialize};

use super::kernel::Block;
use super::plate::{Shape, Side};
use harness::arrays::Observers;
use harness::disturbance::slow::stretched;

/// The chunk that reports complete iterations.
const TIMEKEEPER: [u16; 2] = [0, 0];

/// One block of the plate, and the state of its computation.
#[derive(Debug, Serialize, Deserialize)]
pub struct Heat {
    block: Block,
    shape: Shape,
    /// Iterations to do in all.
    iterations: u32,
    /// Iterations done.
    step: u32,
    /// Halos still to come before the next step.
    missing: u8,
}

/// Messages between chunks.
#[derive(Debug, Serialize, Deserialize)]
pub enum Message {
    /// The cells beyond `side` of the receiver, after `step` iterations.
    Halo {
        /// The sender's iterations done.
        step: u32,
        /// The receiver's side.
        side: Side,
        /// The cells along it.
        #[serde(with = "caribou::bulk")]
        values: Vec<f64>,
    },
    /// A chunk without neighbours sends itself this message, to go on.
    GoOn,
    /// All chunks have done `step` iterations.
    Complete {
        /// Iterations done.
        step: u32,
        /// Chunks that have done them.
        chunks: u64,
    },
}

/// The cells of a chunk at the end, its part of the result.
#[derive(Debug, Serialize, Deserialize)]
pub struct Cells {
    /// The chunk.
    pub index: [u16; 2],
    /// Row by row.
    #[serde(with = "caribou::bulk")]
    pub cells: Vec<f64>,
}

impl Heat {
    /// The chunk `index` of the plate before the first iteration.
    #[must_use]
    pub fn new(shape: Shape, iterations: u32, index: [u16; 2]) -> Self {
        Self { block: Block::initial(shape.part(index)), shape, iterations, step: 0, missing: 0 }
    }

    /// Sends the edges, and counts the halos that will come.
    fn send_edges(&mut self, ctx: &mut Ctx<'_, Self>) {
        let here = ctx.index();
        for side in Side::ALL {
            match self.shape.neighbour(here, side) {
                Some(there) => {
                    let values = self.block.take_edge(side);
                    ctx.send(there, Message::Halo { step: self.step, side: side.opposite(), values });
                    self.missing += 1;
                }
                None => self.block.set_border(side),
            }
        }
        if self.missing == 0 {
            ctx.send(here, Message::GoOn);
        }
    }

    /// Makes one iteration, then comes to a sync if one is due and begins the next, or ends.
    fn advance(&mut self, ctx: &mut Ctx<'_, Self>) {
        stretched(ctx.slowness(), || self.block.step());
        self.step += 1;
        if self.step == self.iterations {
            let index = ctx.index();
            let cells = || Cells { index, cells: self.block.rows().flatten().copied().collect() };
            ctx.service::<Observers<Cells>>().deliver(ctx, cells);
        }
        ctx.contribute(self.step, Reducer::Sum, vec![1_u64], Target::Chunk(TIMEKEEPER));
        if self.step == self.iterations {
            return;
        }
        if ctx.sync_due(u64::from(self.step)) {
            ctx.at_sync_nowait();
        }
        self.send_edges(ctx);
    }
}

impl Chunk for Heat {
    type Index = [u16; 2];
    type Message = Message;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        if ctx.index() == TIMEKEEPER {
            ctx.service::<Observers<Cells>>().begin(ctx);
        }
        self.send_edges(ctx);
    }

    fn ready(&self, message: &Message) -> bool {
        match message {
            Message::Halo { step, .. } => *step == self.step,
            Message::GoOn | Message::Complete { .. } => true,
        }
    }

    fn receive(&mut self, message: Message, ctx: &mut Ctx<'_, Self>) {
        match message {
            Message::Halo { side, values, .. } => {
                self.block.set_halo(side, values);
                self.missing -= 1;
                if self.missing == 0 {
                    self.advance(ctx);
                }
            }
            Message::GoOn => self.advance(ctx),
            Message::Complete { step, chunks } => {
                assert_eq!(chunks, self.shape.chunks(), "every chunk is counted once in iteration {step}");
                ctx.service::<Observers<Cells>>().complete(ctx, step);
            }
        }
    }

    /// The chunk did not wait at the sync, so nothing has to start again.
    fn resume(&mut self, _ctx: &mut Ctx<'_, Self>) {}

    fn reduced(tag: u32, values: Values) -> Message {
        let Values::U64(sum) = values else { panic!("chunks contribute whole numbers") };
        Message::Complete { step: tag, chunks: sum[0] }
    }

    fn state_bytes(&self) -> u64 {
        self.block.state_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use caribou::testing::{Effects, probe};

    /// The chunk east of the corner in a plate of three by three, and its effects at its start.
    fn started() -> (Heat, Effects<Heat>) {
        let mut chunk = Heat::new(Shape::new(9, 3).unwrap(), 5, [0, 1]);
        let effects = probe(&mut chunk, [0, 1]).start();
        (chunk, effects)
    }

    fn halo(step: u32, side: Side) -> Message {
        Message::Halo { step, side, values: vec![1.0; 3] }
    }

    #[test]
    fn a_chunk_sends_each_neighbour_the_edge_that_touches_it() {
        let (_, effects) = started();
        let sent = effects.messages.iter().map(|(to, message)| match message {
            Message::Halo { step: 0, side, .. } => (*to, *side),
            other => panic!("{other:?}"),
        });
        let expected = [([1, 1], Side::North), ([0, 0], Side::East), ([0, 2], Side::West)];
        assert_eq!(sent.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_halo_of_a_neighbour_that_is_ahead_has_to_wait() {
        let (chunk, _) = started();
        assert!(chunk.ready(&halo(0, Side::West)));
        assert!(!chunk.ready(&halo(1, Side::West)));
    }

    #[test]
    fn the_last_halo_brings_the_step_its_contribution_and_the_next_edges() {
        let (mut chunk, _) = started();
        for side in [Side::South, Side::West] {
            assert!(probe(&mut chunk, [0, 1]).receive(halo(0, side)).messages.is_empty());
        }
        let effects = probe(&mut chunk, [0, 1]).receive(halo(0, Side::East));
        assert_eq!(effects.contributions, [(1, Values::U64(vec![1]))]);
        assert_eq!(effects.messages.len(), 3);
        assert!(chunk.ready(&halo(1, Side::West)) && !effects.at_sync);
    }

    #[test]
    fn at_a_sync_nobody_waits() {
        let (mut chunk, _) = started();
        for side in [Side::South, Side::West] {
            probe(&mut chunk, [0, 1]).receive(halo(0, side));
        }
        let effects = probe(&mut chunk, [0, 1]).period(1).receive(halo(0, Side::East));
        assert!(effects.at_sync && effects.messages.len() == 3);
        assert!(chunk.ready(&halo(1, Side::West)));
        assert!(probe(&mut chunk, [0, 1]).resume().messages.is_empty());
    }

    #[test]
    fn a_chunk_without_neighbours_keeps_itself_going() {
        let mut alone = Heat::new(Shape::new(3, 3).unwrap(), 5, [0, 0]);
        let effects = probe(&mut alone, [0, 0]).receive(Message::GoOn);
        assert!(matches!(effects.messages[..], [([0, 0], Message::GoOn)]));
    }
}
