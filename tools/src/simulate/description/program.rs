//! Defines the fields of a described program, and the generators of programs, each of which takes some of the fields.

use lb_strategies::pool::Nanos;
use serde::Deserialize;

use super::{Source, fields, wrong};
use crate::Error;

/// A program: its generator, and the fields of all generators.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct Program {
    pub(in super::super) generator: Option<Generator>,
    /// Chunks of an array.
    #[serde(default, deserialize_with = "fields::chunks")]
    pub(in super::super) chunks: Option<u32>,
    /// Units of work of all chunks in an iteration; none for one unit for each chunk.
    #[serde(default, deserialize_with = "fields::work")]
    pub(in super::super) work: Option<f64>,
    /// Iterations of each chunk, or of a pool.
    #[serde(default, deserialize_with = "fields::count")]
    pub(in super::super) iterations: Option<u64>,
    /// The cost of a chunk or an iteration, as `--cost` takes it.
    pub(in super::super) cost: Option<String>,
    /// Time of an iteration or unit of cost 1 on a vCPU of speed 1, ns. Without it, speeds are units of work per second.
    #[serde(default, deserialize_with = "fields::time")]
    pub(in super::super) task: Option<Nanos>,
    /// Who exchanges messages in an array, or how parts reach all workers in supersteps.
    pub(in super::super) exchange: Option<String>,
    /// Bytes of a chunk that travel when it moves.
    #[serde(default, deserialize_with = "fields::bytes")]
    pub(in super::super) state_bytes: Option<u64>,
    /// The K of the hot spot of a PIC program, which moves 2K+1 thousandths of the grid in an iteration.
    #[serde(default, deserialize_with = "fields::small")]
    pub(in super::super) spot: Option<u32>,
    /// The pattern of a Task Bench graph.
    pub(in super::super) pattern: Option<Pattern>,
    /// Number of inputs of a task in the pattern `nearest`.
    #[serde(default, deserialize_with = "fields::small")]
    pub(in super::super) radix: Option<u32>,
    /// Recorded loads: a trace, or the beginning of the names of files.
    pub(in super::super) loads: Option<String>,
    /// Factor of recorded loads.
    #[serde(default, deserialize_with = "fields::scale")]
    pub(in super::super) scale: Option<f64>,
    /// Units that supersteps divide.
    #[serde(default, deserialize_with = "fields::count")]
    pub(in super::super) units: Option<u64>,
    /// Steps of a program in supersteps.
    #[serde(default, deserialize_with = "fields::count")]
    pub(in super::super) steps: Option<u64>,
    /// Bytes of a unit that all workers get in each step.
    #[serde(default, deserialize_with = "fields::bytes")]
    pub(in super::super) part_bytes: Option<u64>,
    /// Bytes of a unit that travel when it moves.
    #[serde(default, deserialize_with = "fields::bytes")]
    pub(in super::super) unit_bytes: Option<u64>,
}

/// A generator of programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(in super::super) enum Generator {
    Array,
    Stencil,
    Pic,
    TaskBench,
    Recorded,
    Pool,
    Supersteps,
}

/// The shape of a program, which decides its policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Shape {
    Array,
    Pool,
    Steps,
}

/// The patterns of Task Bench whose messages are the same in all steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in super::super) enum Pattern {
    Trivial,
    NoComm,
    #[serde(rename = "stencil_1d")]
    Stencil1d,
    #[serde(rename = "stencil_1d_periodic")]
    Stencil1dPeriodic,
    Nearest,
    AllToAll,
}

/// The generators, their names, and their fields.
const GENERATORS: [(Generator, &str, &[&str]); 7] = [
    (Generator::Array, "array", &["chunks", "work", "iterations", "cost", "exchange", "task", "state_bytes"]),
    (Generator::Stencil, "stencil", &["chunks", "work", "iterations", "cost", "task", "state_bytes"]),
    (Generator::Pic, "pic", &["chunks", "work", "iterations", "spot", "task", "state_bytes"]),
    (
        Generator::TaskBench,
        "task-bench",
        &["pattern", "chunks", "work", "iterations", "cost", "radix", "task", "state_bytes"],
    ),
    (Generator::Recorded, "recorded", &["loads", "scale", "chunks", "iterations", "exchange", "state_bytes"]),
    (Generator::Pool, "pool", &["iterations", "cost", "task"]),
    (
        Generator::Supersteps,
        "supersteps",
        &["units", "steps", "exchange", "task", "part_bytes", "unit_bytes"],
    ),
];

impl Generator {
    pub(in super::super) fn shape(self) -> Shape {
        match self {
            Self::Pool => Shape::Pool,
            Self::Supersteps => Shape::Steps,
            Self::Array | Self::Stencil | Self::Pic | Self::TaskBench | Self::Recorded => Shape::Array,
        }
    }
}

impl Program {
    /// The fields that the program has.
    fn given(&self) -> impl Iterator<Item = &'static str> {
        let all = [
            ("chunks", self.chunks.is_some()),
            ("work", self.work.is_some()),
            ("iterations", self.iterations.is_some()),
            ("cost", self.cost.is_some()),
            ("task", self.task.is_some()),
            ("exchange", self.exchange.is_some()),
            ("state_bytes", self.state_bytes.is_some()),
            ("spot", self.spot.is_some()),
            ("pattern", self.pattern.is_some()),
            ("radix", self.radix.is_some()),
            ("loads", self.loads.is_some()),
            ("scale", self.scale.is_some()),
            ("units", self.units.is_some()),
            ("steps", self.steps.is_some()),
            ("part_bytes", self.part_bytes.is_some()),
            ("unit_bytes", self.unit_bytes.is_some()),
        ];
        all.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name)
    }

    /// The generator, if the program has one and all of its fields are of this generator.
    pub(in super::super) fn generator(&self, source: &dyn Source) -> Result<Generator, Error> {
        let Some(generator) = self.generator else {
            let names: Vec<&str> = GENERATORS.iter().map(|(_, name, _)| *name).collect();
            let what = format!("it is missing, expected one of {}", names.join(", "));
            return Err(wrong(source, "program.generator", &"", &what));
        };
        let entry = GENERATORS.iter().find(|(one, ..)| *one == generator);
        let (_, name, fields) = entry.expect("each generator is in the table");
        match self.given().find(|field| !fields.contains(field)) {
            None => Ok(generator),
            Some(field) => {
                let having = GENERATORS.iter().filter(|(_, _, fields)| fields.contains(&field));
                let having: Vec<&str> = having.map(|(_, name, _)| *name).collect();
                let what = format!(
                    "a field of {}, but the generator is {name}, which has {}",
                    having.join(", "),
                    fields.join(", ")
                );
                Err(wrong(source, &format!("program.{field}"), &"", &what))
            }
        }
    }

    /// Units of work per second of a vCPU of speed 1, if the program says how long a unit takes.
    pub(super) fn per_second(&self, source: &dyn Source) -> Result<Option<f64>, Error> {
        match self.task {
            Some(_) if self.work.is_some() => {
                let what =
                    "`task` is the time of each chunk, and `work` the sum of all, expected one of them";
                Err(wrong(source, "program.work", &"", what))
            }
            Some(0) => Err(wrong(source, "program.task", &"0s", "expected a time above 0")),
            Some(ns) => Ok(Some(1e9 / ns as f64)),
            None => Ok(None),
        }
    }
}

impl Pattern {
    /// The chunks to which the output of a chunk of `chunks` goes, without itself. `radix` counts the inputs in `nearest`.
    pub(super) fn sends_to(self, chunks: u32, radix: u32, chunk: u32) -> Vec<u32> {
        let (me, all) = (i64::from(chunk), i64::from(chunks));
        let near =
            |below: i64, above: i64| (me - below..=me + above).filter(|&other| (0..all).contains(&other));
        let others: Vec<i64> = match self {
            Self::Trivial | Self::NoComm => Vec::new(),
            Self::Stencil1d => near(1, 1).collect(),
            Self::Stencil1dPeriodic => vec![(me + all - 1) % all, (me + 1) % all],
            // A task reads radix/2 points below itself and the rest from itself on; sending is the other way round.
            Self::Nearest => {
                let below = i64::from(radix / 2);
                near((i64::from(radix) - 1 - below).max(0), below).collect()
            }
            Self::AllToAll => (0..all).collect(),
        };
        let mut others: Vec<u32> =
            others.into_iter().map(|other| other as u32).filter(|&other| other != chunk).collect();
        others.sort_unstable();
        others.dedup();
        others
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_send_to_the_chunks_that_read() {
        let sends = |pattern: Pattern, chunk| pattern.sends_to(6, 3, chunk);
        assert_eq!(sends(Pattern::Stencil1d, 0), [1]);
        assert_eq!(sends(Pattern::Stencil1dPeriodic, 0), [1, 5]);
        assert_eq!(sends(Pattern::Nearest, 3), [2, 4]);
        assert_eq!(sends(Pattern::AllToAll, 5), [0, 1, 2, 3, 4]);
        assert_eq!(sends(Pattern::NoComm, 1), [0_u32; 0]);
        assert_eq!(Pattern::Nearest.sends_to(6, 4, 3), [2, 4, 5], "two below are read, and one above");
    }
}
