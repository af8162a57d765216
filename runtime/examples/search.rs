//! Assigns jobs to workers at least cost, by branch and bound. Branches are spawned chunks, which start on idle ranks.
#![expect(clippy::print_stdout, reason = "it is a program")]

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use caribou::{Chunk, Config, Ctx, Reducer, Seed, Target};
use serde::{Deserialize, Serialize};

const JOBS: u64 = 9;

fn cost(worker: u64, job: u64) -> u64 {
    (worker * 7 + job * job * 5 + worker * job * 3) % 23
}

/// The jobs given to the first workers. A branch spawns one further branch for each job that the next worker may get.
#[derive(Serialize, Deserialize)]
struct Branch {
    jobs: Vec<u64>,
    cost: u64,
}

impl Chunk for Branch {
    type Index = Seed;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        // The least cost found on this rank.
        let best: &AtomicU64 = ctx.service();
        let (worker, mut found) = (self.jobs.len() as u64, u64::MAX);
        if worker == JOBS {
            best.fetch_min(self.cost, Relaxed);
            found = self.cost;
        }
        for job in (0..JOBS).filter(|job| !self.jobs.contains(job)) {
            let cost = self.cost + cost(worker, job);
            if cost < best.load(Relaxed) {
                ctx.spawn(Branch { jobs: [&self.jobs[..], &[job]].concat(), cost });
            }
        }
        // The spawned branches take part in the reduction, so the result waits for them.
        ctx.contribute(0, Reducer::Min, vec![found], Target::Exit);
        ctx.remove();
    }

    fn receive(&mut self, (): (), _: &mut Ctx<'_, Self>) {}
}

fn main() -> Result<(), caribou::Error> {
    let report = caribou::run(Config::from_env()?, |setup| {
        setup.service(AtomicU64::new(u64::MAX));
        setup.array(1, |_: Seed| Branch { jobs: Vec::new(), cost: 0 });
    })?;
    println!("the least cost is {}", report.value::<Vec<u64>>()?[0]);
    Ok(())
}
