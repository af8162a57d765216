//! Parses `--cost` of an array: named shapes of synthetic costs, and files of recorded loads.

use virtual_cluster::{ChunkCosts, CostTable, Costs};

use super::values::{self, Cost};

/// The shapes as written on the command line, and their meaning.
const SHAPES: &[(&str, &str)] = &[
    ("constant", "all the same"),
    ("lognormal:SIGMA", "each chunk has its own, lognormal with this sigma"),
    ("drift:ITERATIONS", "each goes up and down by a half in that time"),
    (
        "alternate:ITERATIONS",
        "1.5 in one half of the chunks, 0.5 in the other; they swap after that many iterations",
    ),
    ("ramp:ITERATIONS", "one half grows from 0.8 to 1.6 within them and drops back; the other stays at 0.8"),
    ("walk:SIGMA", "each takes a normal step of this sigma per iteration, between 0.25 and 1.75"),
    ("spike:ITERATIONS", "1, but once in that many iterations one chunk costs 11, as if preempted"),
    (
        "hot-spot[:K]",
        "less with the distance to a spot, which rests or moves 2K+1 thousandths of the grid per iteration",
    ),
    (
        "recorded:STEM[:SCALE]",
        "seconds from files of LBAF or vt, STEM.RANK.vom or STEM.RANK.json, or CPU time from a trace of a run with \
         CARIBOU_LB_REPORTS=on, times SCALE",
    ),
];

/// Costs of the chunks of an array.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ChunkCost {
    Shaped(Shape),
    Recorded {
        /// Path of the files without `.RANK.EXTENSION`.
        stem: String,
        /// Factor for all loads.
        scale: f64,
    },
}

/// Synthetic costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Shape {
    /// Equal in all iterations.
    Fixed(Cost),
    /// Up and down within this number of iterations.
    Drift(u64),
    /// Two halves swap after this number of iterations.
    Alternate(u64),
    /// One half grows within this number of iterations.
    Ramp(u64),
    /// Random walks with this sigma.
    Walk(f64),
    /// Once in this number of iterations one chunk costs more.
    Spike(u64),
    /// Decreasing with the distance to a hot spot. `None`: the spot does not move.
    HotSpot(Option<u32>),
}

impl Shape {
    /// The costs of `chunks` chunks in `iterations` iterations.
    pub(super) fn costs(self, chunks: u32, iterations: u64, seed: u64) -> ChunkCosts {
        match self {
            Self::Fixed(Cost::Constant) => ChunkCosts::Fixed(Costs::Equal),
            Self::Fixed(Cost::Lognormal(sigma)) => ChunkCosts::Fixed(Costs::lognormal(sigma, seed)),
            Self::Drift(iterations) => ChunkCosts::Drift { iterations: iterations as f64, seed },
            Self::Alternate(iterations) => ChunkCosts::Alternate { iterations },
            Self::Ramp(iterations) => ChunkCosts::Ramp { iterations },
            Self::Walk(sigma) => ChunkCosts::Listed(CostTable::walk(chunks, iterations.max(1), sigma, seed)),
            Self::Spike(iterations) => ChunkCosts::Spikes { iterations, seed },
            Self::HotSpot(k) => ChunkCosts::HotSpot { k },
        }
    }
}

/// The help text of `--cost`, with one line per shape.
pub(super) fn help() -> String {
    let lines = SHAPES.iter().map(|(name, meaning)| format!("\n  {name}: {meaning}"));
    format!(
        "The cost of a chunk in an iteration; of all but recorded loads the mean is 1:{}\n\
         With recorded loads an iteration is a whole recorded phase: with --period 5 five phases pass between two syncs. Chunks, ranks, where chunks begin and the number of iterations are \
         those of the recording; after the last phase comes the first again. With another --ranks chunks begin in blocks. A \
         rank has one worker and speed 1 unless options say otherwise",
        lines.collect::<String>()
    )
}

/// Parses the value of `--cost`.
pub(super) fn parse(text: &str) -> Result<ChunkCost, String> {
    let (name, value) = text.split_once(':').map_or((text, None), |(name, value)| (name, Some(value)));
    let iterations = || {
        let count = value.and_then(|value| values::count(value).ok()).filter(|&count| count > 0);
        count.ok_or_else(|| format!("expected {name}:ITERATIONS with a whole number from 1"))
    };
    let shape = match (name, value) {
        ("recorded", _) => return recorded(value),
        ("constant" | "lognormal", _) => Shape::Fixed(values::cost(text)?),
        ("drift", _) => Shape::Drift(iterations()?),
        ("alternate", _) => Shape::Alternate(iterations()?),
        ("ramp", _) => Shape::Ramp(iterations()?),
        ("walk", _) => Shape::Walk(sigma(value)?),
        ("spike", _) => Shape::Spike(iterations()?),
        ("hot-spot", None) => Shape::HotSpot(None),
        ("hot-spot", Some(value)) => match value.parse() {
            Ok(k @ 0..=1_000_000) => Shape::HotSpot(Some(k)),
            _ => return Err("expected hot-spot:K with a whole number from 0 to 1e6".to_owned()),
        },
        _ => {
            let names: Vec<&str> = SHAPES.iter().map(|(name, _)| *name).collect();
            return Err(format!("expected one of {}", names.join(", ")));
        }
    };
    Ok(ChunkCost::Shaped(shape))
}

fn sigma(value: Option<&str>) -> Result<f64, String> {
    let sigma = value.and_then(|value| value.parse().ok()).filter(|sigma| (0.0..=1.0).contains(sigma));
    sigma.ok_or_else(|| "expected walk:SIGMA with a number from 0 to 1".to_owned())
}

/// Parses `STEM[:SCALE]`. What follows the last colon is a scale if it is a number.
fn recorded(value: Option<&str>) -> Result<ChunkCost, String> {
    let value = value.unwrap_or_default();
    let split = value.rsplit_once(':').and_then(|(stem, scale)| Some((stem, scale.parse::<f64>().ok()?)));
    let (stem, scale) = split.unwrap_or((value, 1.0));
    if stem.is_empty() || !(1e-6..=1e6).contains(&scale) {
        return Err("expected recorded:STEM or recorded:STEM:SCALE with a number from 1e-6 to 1e6".to_owned());
    }
    Ok(ChunkCost::Recorded { stem: stem.to_owned(), scale })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(text: &str) -> Result<Shape, String> {
        match parse(text)? {
            ChunkCost::Shaped(shape) => Ok(shape),
            ChunkCost::Recorded { .. } => Err("recorded".to_owned()),
        }
    }

    #[test]
    fn each_shape_is_parsed_and_has_a_line_of_help() {
        for (text, expected) in [
            ("constant", Shape::Fixed(Cost::Constant)),
            ("lognormal:0.5", Shape::Fixed(Cost::Lognormal(0.5))),
            ("drift:9", Shape::Drift(9)),
            ("alternate:1e3", Shape::Alternate(1000)),
            ("ramp:200", Shape::Ramp(200)),
            ("walk:0.05", Shape::Walk(0.05)),
            ("spike:50", Shape::Spike(50)),
            ("hot-spot", Shape::HotSpot(None)),
            ("hot-spot:3", Shape::HotSpot(Some(3))),
        ] {
            assert_eq!(shape(text), Ok(expected), "{text}");
            let name = text.split(':').next().unwrap();
            assert!(help().lines().any(|line| line.trim_start().starts_with(name)), "{name}");
        }
    }

    #[test]
    fn recorded_loads_have_a_stem_and_perhaps_a_scale() {
        let of = |stem: &str, scale| Ok(ChunkCost::Recorded { stem: stem.to_owned(), scale });
        assert_eq!(parse("recorded:../lbaf/data"), of("../lbaf/data", 1.0));
        assert_eq!(parse("recorded:data:0.5"), of("data", 0.5));
        assert_eq!(parse("recorded:a:b:2"), of("a:b", 2.0));
        assert_eq!(parse("recorded:a:b"), of("a:b", 1.0));
        for bad in [
            "recorded",
            "recorded:",
            "recorded::2",
            "recorded:data:0",
            "recorded:data:-1",
            "recorded:data:nan",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_no_cost_is_told_what_was_expected() {
        for (bad, expected) in [
            ("", "expected one of constant, lognormal:SIGMA, drift:ITERATIONS"),
            ("ramps:2", "expected one of constant"),
            ("ramp", "expected ramp:ITERATIONS with a whole number from 1"),
            ("spike:0", "expected spike:ITERATIONS with a whole number from 1"),
            ("spike:-1", "expected spike:ITERATIONS"),
            ("walk", "expected walk:SIGMA with a number from 0 to 1"),
            ("walk:2", "expected walk:SIGMA"),
            ("walk:nan", "expected walk:SIGMA"),
            ("constant:1", "expected constant, or lognormal:SIGMA"),
        ] {
            let error = parse(bad).unwrap_err();
            assert!(error.starts_with(expected), "{bad}: {error}");
        }
    }
}
