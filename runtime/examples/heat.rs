//! Computes the heat in a ring-shaped bar by chunks that exchange values with neighbours: the README's first program.
#![expect(clippy::print_stdout, reason = "it is a program")]

use caribou::{Chunk, Config, Ctx, Halo, Halos, Reducer, Target};
use serde::{Deserialize, Serialize};

/// One strip of a ring-shaped bar, which takes on the heat of its neighbours.
#[derive(Serialize, Deserialize)]
struct Strip {
    heat: f64,
    halos: Halos<f64>,
}

const STRIPS: u32 = 64;

impl Chunk for Strip {
    type Index = u32;
    type Message = Halo<f64>;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        let me = ctx.index();
        ctx.send((me + 1) % STRIPS, self.halos.halo(0, self.heat));
        ctx.send((me + STRIPS - 1) % STRIPS, self.halos.halo(1, self.heat));
    }

    // A neighbour may be one step ahead; the runtime keeps its message until we catch up.
    fn ready(&self, halo: &Halo<f64>) -> bool {
        self.halos.expects(halo)
    }

    fn receive(&mut self, halo: Halo<f64>, ctx: &mut Ctx<'_, Self>) {
        let Some(heats) = self.halos.add(halo) else { return };
        self.heat = 0.5 * self.heat + 0.25 * heats.sum::<f64>();
        match self.halos.step() {
            100 => ctx.contribute(0, Reducer::Max, vec![self.heat], Target::Exit),
            _ => self.start(ctx),
        }
    }
}

fn main() -> Result<(), caribou::Error> {
    let config = Config::from_env()?;
    // Of several processes only the first prints.
    let speaks = config.launch().speaks();
    let report = caribou::run(config, |setup| {
        setup.array(STRIPS, |i| Strip { heat: f64::from(i), halos: Halos::new(2) });
    })?;
    if speaks {
        println!("{} at most; {} chunks moved", report.value::<Vec<f64>>()?[0], report.sync_totals.moved);
    }
    Ok(())
}
