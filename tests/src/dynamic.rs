//! Programs whose chunks come and go, each beside a serial reference of its whole result: a mesh that is refined where it is
//! hot, animals that are born and die, and a search by branch and bound.

mod agents;
mod distances;
mod grazing;
mod heat;
mod patches;
mod tours;

use caribou::{Config, Error};

/// A program and its serial reference; each result as text.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// Its name.
    pub name: &'static str,
    /// Runs it. Messages that no chunk has received are an error.
    pub run: fn(Config) -> Result<String, Error>,
    /// Computes the same in one loop.
    pub serial: fn() -> String,
}

/// All of them.
pub const PROGRAMS: [Program; 3] = [
    Program {
        name: "patches",
        run: |config| Ok(format!("{:?}", patches::run(config)?)),
        serial: || format!("{:?}", patches::serial()),
    },
    Program {
        name: "agents",
        run: |config| Ok(format!("{:?}", agents::run(config)?)),
        serial: || format!("{:?}", agents::serial()),
    },
    Program {
        name: "tours",
        run: |config| Ok(format!("{:?}", tours::run(config)?)),
        serial: || format!("{:?}", tours::serial()),
    },
];
