//! A ring of chunks that exchange messages with their neighbours, as halos of a stencil do, and nothing else.

use std::hint::black_box;

use caribou::{Chunk, Config, Ctx, Error, Halo, Halos, Placement, Reducer, Report, Target};
use serde::{Deserialize, Serialize};

use super::clock::thread_cpu_ns;

/// What the chunks of a ring do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Ring {
    /// Number of chunks, more than twice `reach`.
    pub(super) chunks: u32,
    /// Number of neighbours on each side to which a chunk sends in each iteration.
    pub(super) reach: u32,
    /// Number of 64-bit numbers in a message, which the receiver reads.
    pub(super) numbers: usize,
    /// Number of iterations before the clock starts.
    pub(super) warm: u64,
    /// Number of iterations on the clock.
    pub(super) timed: u64,
}

/// The time of the iterations on the clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Timed {
    /// From the start of the clock to its end, ns.
    pub(super) wall_ns: f64,
    /// CPU time of the first worker in between, ns.
    pub(super) cpu_ns: f64,
}

#[derive(Clone, Serialize, Deserialize)]
struct Numbers {
    #[serde(with = "caribou::bulk")]
    numbers: Vec<f64>,
}

#[derive(Serialize, Deserialize)]
struct Link {
    ring: Ring,
    halos: Halos<Numbers>,
    sum: f64,
    began: Option<[u64; 2]>,
}

impl Ring {
    /// Runs the ring.
    pub(super) fn run(self, config: Config, placement: Placement) -> Result<(Timed, Report), Error> {
        let config = config.workers(1);
        let report = caribou::run(config, move |setup| {
            setup.array_with(self.chunks, placement.clone(), move |_| Link {
                ring: self,
                halos: Halos::new(2 * self.reach),
                sum: 0.0,
                began: None,
            });
        })?;
        let times: Vec<u64> = report.value()?;
        Ok((Timed { wall_ns: times[0] as f64, cpu_ns: times[1] as f64 }, report))
    }
}

impl Chunk for Link {
    type Index = u32;
    type Message = Halo<Numbers>;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        let Ring { chunks, reach, numbers, .. } = self.ring;
        let me = ctx.index();
        for distance in 1..=reach {
            for (slot, to) in [(2 * distance - 2, me + distance), (2 * distance - 1, me + chunks - distance)]
            {
                let numbers = Numbers { numbers: vec![self.sum; numbers] };
                ctx.send(to % chunks, self.halos.halo(slot, numbers));
            }
        }
    }

    fn ready(&self, halo: &Halo<Numbers>) -> bool {
        self.halos.expects(halo)
    }

    fn receive(&mut self, halo: Halo<Numbers>, ctx: &mut Ctx<'_, Self>) {
        let Some(all) = self.halos.add(halo) else { return };
        self.sum = black_box(all.map(|halo| halo.numbers.iter().sum::<f64>()).sum::<f64>());
        let step = self.halos.step();
        let is_clock = ctx.index() == 0;
        if is_clock && step == self.ring.warm {
            self.began = Some([ctx.elapsed_ns(), thread_cpu_ns()]);
        }
        if step == self.ring.warm + self.ring.timed {
            let took =
                self.began.map_or([0, 0], |[wall, cpu]| [ctx.elapsed_ns() - wall, thread_cpu_ns() - cpu]);
            ctx.contribute(0, Reducer::Max, took.to_vec(), Target::Exit);
        } else if ctx.sync_due(step) {
            ctx.at_sync();
        } else {
            self.start(ctx);
        }
    }

    fn state_bytes(&self) -> u64 {
        64
    }
}
