//! Defines a chunk that does nothing but migrate.

use caribou::bulk::Numbers;
use caribou::{Chunk, Ctx, Reducer, Target, Values};
use serde::{Deserialize, Serialize};

/// Types that can hold a chunk's numbers.
pub trait Holder: Numbers<f64> + From<Vec<f64>> + Send + 'static {}

impl<H: Numbers<f64> + From<Vec<f64>> + Send + 'static> Holder for H {}

/// Comes to `syncs` syncs, then ends the run.
#[derive(Serialize, Deserialize)]
#[serde(bound = "H: Holder")]
pub struct Nomad<H> {
    syncs: u64,
    #[serde(with = "caribou::bulk")]
    numbers: H,
}

impl<H: Holder> Nomad<H> {
    /// A chunk of about `bytes` bytes that comes to `syncs` syncs.
    pub fn new(syncs: u64, bytes: usize) -> Nomad<H> {
        Nomad { syncs, numbers: vec![1.0; bytes / size_of::<f64>()].into() }
    }
}

impl<H: Holder> Chunk for Nomad<H> {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        match self.syncs {
            0 => ctx.contribute(0, Reducer::Sum, vec![1u64], Target::Chunk(0)),
            _ => {
                self.syncs -= 1;
                ctx.at_sync();
            }
        }
    }

    fn receive(&mut self, (): (), ctx: &mut Ctx<'_, Self>) {
        ctx.exit();
    }

    fn reduced(_: u32, _: Values) {}

    fn state_bytes(&self) -> u64 {
        size_of_val(self.numbers.numbers()) as u64
    }
}
