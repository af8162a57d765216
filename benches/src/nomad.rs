//! A chunk that does nothing but move.

use caribou::{Chunk, Ctx, Reducer, Target, Values};
use serde::{Deserialize, Serialize};

/// Comes to so many syncs, then ends the run.
#[derive(Serialize, Deserialize)]
pub struct Nomad {
    syncs: u64,
    #[serde(with = "caribou::bulk")]
    numbers: Vec<f64>,
}

impl Nomad {
    /// A chunk of about so many bytes.
    pub fn new(syncs: u64, bytes: usize) -> Nomad {
        Nomad { syncs, numbers: vec![1.0; bytes / size_of::<f64>()] }
    }
}

impl Chunk for Nomad {
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
        (self.numbers.len() * size_of::<f64>()) as u64
    }
}
