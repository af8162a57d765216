//! Runs the grid as an array of chunks, one per block.
//!
//! A chunk sends its four edges, waits for as many halos, steps, and begins again. There is no barrier: a neighbour may
//! be one step ahead, and its halo waits in the runtime until this chunk is `ready` for it. Edges are sent once more
//! after the last step, because a chunk's energy depends on its neighbours. In each step all chunks add themselves to a
//! sum. Chunk [0, 0] gets the sum and reports to the observers.

use caribou::{Chunk, Ctx, Halo, Halos, Reducer, Target, Values};
use caribou_apps::stencil2d::plate::Side;
use harness::arrays::Observers;
use harness::disturbance::slow::stretched;
use serde::{Deserialize, Serialize};

use super::block::{Block, Rim};
use super::picture::sample;
use super::problem::Problem;
use super::waves::BlockResult;

/// The chunk that reports complete steps.
const TIMEKEEPER: [u16; 2] = [0, 0];

/// One block of the grid, and the state of its computation.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Wave {
    problem: Problem,
    /// True if results are compared.
    compared: bool,
    block: Block,
    halos: Halos<Rim>,
    /// The energy before the first step.
    energy: f64,
}

/// Messages between chunks.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Message {
    /// The cells beyond a side of the receiver; the slot is the side's number. A lone chunk sends itself a border.
    Edge(Halo<Rim>),
    /// All chunks have done `step` steps.
    Complete {
        /// Steps done.
        step: u32,
        /// Chunks that have done them.
        chunks: u64,
    },
}

impl Wave {
    /// The chunk `index` before the first step.
    pub(crate) fn new(problem: Problem, compared: bool, index: [u16; 2]) -> Self {
        let (shape, pulses) = (problem.shape, problem.pulses);
        let part = shape.part(index);
        let block = Block::new(part, pulses.fill(shape.grid(), part));
        // A chunk without neighbours sends itself a message, to go on.
        let expected = shape.chunk_grid().faces(index).count().max(1) as u32;
        Self { problem, compared, block, halos: Halos::new(expected), energy: 0.0 }
    }

    /// Sends the edges.
    fn send_edges(&mut self, ctx: &mut Ctx<'_, Self>) {
        let (here, shape) = (ctx.index(), self.problem.shape);
        for side in Side::ALL {
            match shape.neighbour(here, side) {
                Some(there) => {
                    let slot = side.opposite() as u32;
                    ctx.send(there, Message::Edge(self.halos.halo(slot, self.block.take_edge(side))));
                }
                None => self.block.set_border(side),
            }
        }
        if shape.chunks() == 1 {
            let border = self.block.take_edge(Side::North);
            ctx.send(here, Message::Edge(self.halos.halo(Side::North as u32, border)));
        }
    }

    /// Makes the next step when all halos are here, and comes to a sync if one is due; or ends.
    fn advance(&mut self, ctx: &mut Ctx<'_, Self>) {
        let (courant, done) = (self.problem.courant(), self.halos.step() as u32 - 1);
        if done == self.problem.iterations {
            let here = ctx.index();
            return ctx.service::<Observers<BlockResult>>().deliver(ctx, || self.told(here));
        }
        if done == 0 {
            self.energy = self.block.energy(courant);
        }
        stretched(ctx.slowness(), || self.block.step(courant));
        let done = done + 1;
        ctx.contribute(done, Reducer::Sum, vec![1_u64], Target::Chunk(TIMEKEEPER));
        if done < self.problem.iterations && ctx.sync_due(done.into()) {
            ctx.at_sync_nowait();
        }
        self.send_edges(ctx);
    }

    fn told(&self, index: [u16; 2]) -> BlockResult {
        let (shape, cells) = (self.problem.shape, self.block.cells());
        BlockResult {
            index,
            energies: [self.energy, self.block.energy(self.problem.courant())],
            pixels: sample(shape.grid(), shape.part(index), cells),
            cells: if self.compared { cells.to_vec() } else { Vec::new() },
        }
    }
}

impl Chunk for Wave {
    type Index = [u16; 2];
    type Message = Message;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        if ctx.index() == TIMEKEEPER {
            ctx.service::<Observers<BlockResult>>().begin(ctx);
        }
        self.send_edges(ctx);
    }

    fn ready(&self, message: &Message) -> bool {
        match message {
            Message::Edge(halo) => self.halos.expects(halo),
            Message::Complete { .. } => true,
        }
    }

    fn receive(&mut self, message: Message, ctx: &mut Ctx<'_, Self>) {
        match message {
            Message::Edge(halo) => {
                let Some(rims) = self.halos.add_with_slots(halo) else { return };
                for (slot, rim) in rims {
                    self.block.set_halo(Side::ALL[slot as usize], rim);
                }
                self.advance(ctx);
            }
            Message::Complete { step, chunks } => {
                let expected = self.problem.shape.chunks();
                assert_eq!(chunks, expected, "every chunk is counted once in step {step}");
                ctx.service::<Observers<BlockResult>>().complete(ctx, step);
            }
        }
    }

    /// The chunk did not wait at the sync, so nothing has to start again.
    fn resume(&mut self, _ctx: &mut Ctx<'_, Self>) {}

    fn reduced(tag: u32, values: Values) -> Message {
        let Values::U64(sum) = values else { panic!("chunks contribute whole numbers") };
        Message::Complete { step: tag, chunks: sum[0] }
    }

    fn waits_for(&self) -> Option<String> {
        Some(self.halos.to_string())
    }

    fn state_bytes(&self) -> u64 {
        self.block.state_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::tests::problem;
    use caribou::testing::{Effects, probe};

    const HERE: [u16; 2] = [0, 1];

    /// The chunk east of the corner in a grid of three by three, and its effects at its start.
    fn started() -> (Wave, Effects<Wave>) {
        let mut chunk = Wave::new(Problem { iterations: 2, ..problem(9, 3) }, false, HERE);
        let effects = probe(&mut chunk, HERE).start();
        (chunk, effects)
    }

    /// The message of a neighbour that has done `step` steps.
    fn edge(step: u64, side: Side) -> Message {
        let mut neighbour = Halos::new(1);
        for _ in 0..step {
            let _ = neighbour.add(neighbour.halo(0, Rim::default()));
        }
        Message::Edge(neighbour.halo(side as u32, Rim(vec![1.0; 3])))
    }

    /// Delivers all edges of a step, and returns the effects of the last one.
    fn edges(chunk: &mut Wave, step: u64) -> Effects<Wave> {
        for side in [Side::West, Side::South] {
            let effects = probe(chunk, HERE).receive(edge(step, side));
            assert!(effects.messages.is_empty() && effects.contributions.is_empty());
        }
        probe(chunk, HERE).period(1).receive(edge(step, Side::East))
    }

    #[test]
    fn a_chunk_sends_each_neighbour_the_edge_that_touches_it() {
        let (chunk, effects) = started();
        let part = chunk.problem.shape.part(HERE);
        let cells = chunk.problem.pulses.fill(9, part);
        let sent: Vec<_> =
            effects.messages.into_iter().map(|(to, message)| (to, message_rim(message))).collect();
        let column = |at: usize| cells.iter().copied().skip(at).step_by(3).collect();
        let expected = [([1, 1], cells[6..].to_vec()), ([0, 0], column(0)), ([0, 2], column(2))];
        assert_eq!(sent, expected);
    }

    fn message_rim(message: Message) -> Vec<f64> {
        let Message::Edge(halo) = message else { panic!("{message:?}") };
        halo.value.0
    }

    #[test]
    fn the_halo_of_a_neighbour_that_is_ahead_has_to_wait() {
        let (chunk, _) = started();
        assert!(chunk.ready(&edge(0, Side::West)));
        assert!(!chunk.ready(&edge(1, Side::West)));
    }

    #[test]
    fn the_last_halo_brings_the_step_its_contribution_a_sync_and_the_next_edges() {
        let (mut chunk, _) = started();
        let effects = edges(&mut chunk, 0);
        assert_eq!(effects.contributions, [(1, Values::U64(vec![1]))]);
        assert!(effects.at_sync && effects.messages.len() == 3);
        assert!(chunk.ready(&edge(1, Side::West)));
    }

    #[test]
    fn the_last_step_has_no_sync_but_an_exchange_for_the_energy() {
        let (mut chunk, _) = started();
        edges(&mut chunk, 0);
        let effects = edges(&mut chunk, 1);
        assert_eq!(effects.contributions, [(2, Values::U64(vec![1]))]);
        assert!(!effects.at_sync && effects.messages.len() == 3);
    }
}
