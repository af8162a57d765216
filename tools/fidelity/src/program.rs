//! Starts the programs that are compared, and reads the times that they write.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::recorded::{Loads, read};

/// The shape of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Array,
    Steps,
    Pool,
}

/// A program to compare.
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    /// Its problem.
    options: &'static [&'static str],
    /// Number of iterations, steps or histories.
    pub(crate) iterations: u64,
    /// Strategies or policies.
    pub(crate) lbs: &'static [&'static str],
    /// Size of a chunk's state in bytes, for arrays.
    pub(crate) state_bytes: u64,
}

/// All programs. Runs take about a second.
pub(crate) const PROGRAMS: &[Program] = &[
    Program {
        name: "stencil2d",
        shape: Shape::Array,
        options: &["--grid", "2048", "--chunk", "256", "--iterations", "400"],
        iterations: 400,
        lbs: &["none", "refine"],
        state_bytes: 2 * 8 * 258 * 258,
    },
    Program {
        name: "wave2d",
        shape: Shape::Array,
        options: &["--grid", "2048", "--chunk", "256", "--iterations", "300"],
        iterations: 300,
        lbs: &["none", "refine"],
        state_bytes: 3 * 8 * 258 * 258,
    },
    Program {
        name: "mol3d",
        shape: Shape::Array,
        options: &["--particles", "20000", "--iterations", "100"],
        iterations: 100,
        lbs: &["none", "refine"],
        state_bytes: 20_000,
    },
    Program {
        name: "pic",
        shape: Shape::Array,
        options: &["--particles", "400000", "--grid", "400", "--tiles", "16", "--iterations", "200"],
        iterations: 200,
        lbs: &["none", "refine"],
        state_bytes: 50_000,
    },
    Program {
        name: "jacobi",
        shape: Shape::Steps,
        options: &["--size", "3000", "--tolerance", "0", "--steps", "300"],
        iterations: 300,
        lbs: &["equal"],
        state_bytes: 0,
    },
    Program {
        name: "montecarlo",
        shape: Shape::Pool,
        options: &["--histories", "4000000"],
        iterations: 4_000_000,
        lbs: &["leases"],
        state_bytes: 0,
    },
];

/// A real run.
pub(crate) struct Real {
    /// Mean time per iteration, ns.
    pub(crate) iteration_ns: f64,
    pub(crate) moves: Option<f64>,
}

/// What a simulation knows of a program: its run on one rank.
pub(crate) enum Base {
    /// The loads of chunks.
    Loads(Loads),
    /// Iterations per second of a worker alone.
    PerSecond(f64),
}

impl Program {
    /// Runs the program.
    pub(crate) fn run(&self, dir: &Path, ranks: u32, lb: &str) -> Result<Real, String> {
        let json =
            self.start(dir, &[("--ranks", &ranks.to_string()), ("--workers", "1"), ("--lb", lb)], &[])?;
        let run = &json["runs"][0];
        let moves = (self.shape == Shape::Array).then(|| run["moves"].as_f64()).flatten();
        let total_s =
            run["total_s"].as_f64().ok_or_else(|| format!("{}: no time in its results", self.name))?;
        Ok(Real { iteration_ns: total_s * 1e9 / self.iterations as f64, moves })
    }

    /// Runs the program on one rank, to know its loads or its speed: the median of three runs.
    pub(crate) fn base(&self, dir: &Path) -> Result<Base, String> {
        if self.shape == Shape::Array {
            return Ok(Base::Loads(self.loads(dir, 1)?));
        }
        let runs = (0..3).map(|_| self.run(dir, 1, self.lbs[0])).collect::<Result<Vec<_>, _>>()?;
        let median = lb_strategies::median(runs.iter().map(|run| run.iteration_ns).collect()).unwrap_or(1.0);
        Ok(Base::PerSecond(1e9 / median))
    }

    /// The loads of chunks per iteration on so many ranks, which nothing moves.
    pub(crate) fn loads(&self, dir: &Path, ranks: u32) -> Result<Loads, String> {
        let traces = scratch(self.name, "traces");
        let _ = std::fs::remove_dir_all(&traces);
        let variables = [
            ("CARIBOU_TRACE", traces.display().to_string()),
            ("CARIBOU_TRACE_FILTER", "none".to_owned()),
            ("CARIBOU_LB_REPORTS", "on".to_owned()),
            ("CARIBOU_LB_EDGES", "on".to_owned()),
        ];
        let ranks = ranks.to_string();
        let options = [("--ranks", ranks.as_str()), ("--workers", "1"), ("--lb", "none"), ("--period", "1")];
        self.start(dir, &options, &variables)?;
        let loads = read(&traces);
        let _ = std::fs::remove_dir_all(&traces);
        loads.map_err(|error| format!("{}: {error}", self.name))
    }

    fn start(
        &self,
        dir: &Path,
        options: &[(&str, &str)],
        variables: &[(&str, String)],
    ) -> Result<Value, String> {
        let results = scratch(self.name, "json");
        let mut command = Command::new(dir.join(self.name));
        command.args(self.options).arg("--json").arg(&results).stdout(Stdio::null()).stderr(Stdio::null());
        options.iter().for_each(|(option, value)| _ = command.args([option, value]));
        variables.iter().for_each(|(name, value)| _ = command.env(name, value));
        start(&mut command, self.name)?;
        let text = std::fs::read_to_string(&results);
        let _ = std::fs::remove_file(&results);
        let text = text.map_err(|error| format!("{}: its results cannot be read: {error}", self.name))?;
        serde_json::from_str(&text).map_err(|error| format!("{}: its results: {error}", self.name))
    }
}

/// Runs a command to its end.
pub(crate) fn start(command: &mut Command, name: &str) -> Result<(), String> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{name} failed: {status}")),
        Err(error) => Err(format!("{name} cannot be started (--programs): {error}")),
    }
}

/// A name for a file or folder of this process.
pub(crate) fn scratch(name: &str, what: &str) -> PathBuf {
    std::env::temp_dir().join(format!("caribou-fidelity-{}-{name}.{what}", std::process::id()))
}
