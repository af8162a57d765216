//! Policies for pools, each with a fault: they are to be told of by name.

use std::ops::Range;

use caribou::lb::pool::{Input, Machine, Nanos, Output, Pool, PoolRank, PoolStrategy};
use caribou::lb::{Entry, Rank};

/// Gives nobody an order.
pub const MUTE: Entry<dyn PoolStrategy> = entry("mute", |_| Ok(Box::new(Faulty(Fault::Mute))));
/// Releases all workers, and does not end.
pub const ENDLESS: Entry<dyn PoolStrategy> = entry("endless", |_| Ok(Box::new(Faulty(Fault::Endless))));

/// Sends to a rank that is not there.
pub const AFAR: Entry<dyn PoolStrategy> = entry("afar", |_| Ok(Box::new(Faulty(Fault::Afar))));
/// Sends to itself.
pub const ECHO: Entry<dyn PoolStrategy> = entry("echo", |_| Ok(Box::new(Faulty(Fault::Echo))));
/// Panics when a machine is dropped.
pub const DROPS: Entry<dyn PoolStrategy> = entry("drops", |_| Ok(Box::new(Faulty(Fault::Drops))));

type Build = fn(&caribou::lb::Parameters) -> Result<Box<dyn PoolStrategy>, caribou::lb::ParseError>;

const fn entry(name: &'static str, build: Build) -> Entry<dyn PoolStrategy> {
    Entry { name, summary: "is at fault", parameters: &[], build }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    Mute,
    Endless,
    Afar,
    Echo,
    Drops,
}

struct Faulty(Fault);

impl PoolStrategy for Faulty {
    fn name(&self) -> &'static str {
        "faulty"
    }

    fn rank(&self, pool: &Pool, rank: Rank) -> Machine {
        // Worker 0 of rank 0 executes everything.
        let all = if rank == Rank(0) { 0..pool.iterations } else { 0..0 };
        Machine::new(FaultyRank { rank, fault: self.0, all, open: pool.workers_of(rank) })
    }
}

struct FaultyRank {
    rank: Rank,
    fault: Fault,
    all: Range<u64>,
    /// Workers that have not been released.
    open: u32,
}

impl PoolRank for FaultyRank {
    type Message = ();

    fn step(&mut self, _now: Nanos, input: Input<()>, out: &mut Vec<Output<()>>) {
        let Input::Wants { worker } = input else { return };
        match self.fault {
            Fault::Mute => return,
            Fault::Afar => out.push(Output::Send { to: Rank(4000), message: () }),
            Fault::Echo => out.push(Output::Send { to: self.rank, message: () }),
            Fault::Endless | Fault::Drops => {}
        }
        if !self.all.is_empty() {
            let range = std::mem::take(&mut self.all);
            return out.push(Output::Run { worker, range, copy: false });
        }
        out.push(Output::Release { worker });
        self.open -= 1;
        if self.open == 0 && self.fault != Fault::Endless {
            out.push(Output::Closed);
        }
    }
}

impl Drop for FaultyRank {
    fn drop(&mut self) {
        assert!(self.fault != Fault::Drops, "it falls");
    }
}
