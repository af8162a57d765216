//! The options of `crossbar`.

use std::path::PathBuf;

use presentation::count_parser;

use super::grid::Grid;
use super::scheduler::Scheduler;
use harness::Error;

/// A switch with buffers at its crosspoints, simulated under every load, with every buffer and every scheduler.
#[derive(Clone, Debug, clap::Parser)]
#[command(name = "crossbar", version, after_help = AFTER_HELP)]
pub(crate) struct Options {
    /// Simulations, dealt in turn to the points of the grid of loads, buffers and schedulers; each point needs one
    #[arg(long, value_name = "COUNT", default_value_t = 3072, value_parser = count_parser(1..=u64::MAX))]
    pub(crate) tasks: u64,
    /// Packets that arrive in each simulation
    #[arg(long, value_name = "PACKETS", default_value_t = 50_000,
          value_parser = count_parser(1..=1_000_000_000_000u64))]
    pub(crate) requests: u64,
    /// Inputs of the switch, and as many outputs; up to 64
    #[arg(long, value_name = "COUNT", default_value_t = 16, value_parser = count_parser(0..=usize::MAX))]
    pub(crate) ports: usize,
    /// Packets per slot that arrive at each input, from 0.001 to 1, as a list [default: 0.25,0.3,..,1]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) load: Vec<f64>,
    /// Packets that each crosspoint can hold, as a list
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,2,4,8,16,32,64,128")]
    pub(crate) buffer: Vec<u32>,
    /// Rules by which outputs choose among their crosspoints, as a list
    #[arg(
        long,
        value_name = "LIST",
        value_enum,
        value_delimiter = ',',
        default_value = "round-robin,longest-queue,random"
    )]
    pub(crate) scheduler: Vec<Scheduler>,
    /// Mean length of the bursts in which packets for one output arrive, up to 1000000; 1 is uniform traffic
    #[arg(long, value_name = "PACKETS", default_value_t = 1.0)]
    pub(crate) burst: f64,
    /// Seed of all random numbers: the same seed gives the same result
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = count_parser(0..=u64::MAX))]
    pub(crate) seed: u64,
    /// Write throughput, delay and loss of every point of the grid, with errors
    #[arg(long, value_name = "FILE.csv")]
    pub(crate) output: Option<PathBuf>,
}

const AFTER_HELP: &str = "\
Options win over CARIBOU_* variables, which win over the defaults.
Standard errors are estimated from the simulations of a point. Results depend on the seed, not on ranks and workers.
Exit code: 0 done, 1 a run failed or its result is wrong, 2 bad options.

The paper's workload:
  crossbar --tasks 3072 --ports 16 --requests 1000000";

impl Options {
    /// The grid to simulate.
    ///
    /// # Errors
    /// [`Error::Usage`] if the grid cannot be simulated, or has more points than there are tasks.
    pub(crate) fn grid(&self) -> Result<Grid, Error> {
        let usual = || (5..=20).map(|twentieths| f64::from(twentieths) / 20.0).collect();
        let grid = Grid {
            ports: self.ports,
            requests: self.requests,
            burst: self.burst,
            loads: if self.load.is_empty() { usual() } else { self.load.clone() },
            buffers: self.buffer.clone(),
            schedulers: self.scheduler.clone(),
            seed: self.seed,
        };
        grid.check()?;
        let points = grid.points();
        if self.tasks < points as u64 {
            return Err(Error::Usage(format!(
                "--tasks {}: the grid of loads, buffers and schedulers has {points} points, and each needs a task",
                self.tasks
            )));
        }
        Ok(grid)
    }

    /// All settings that decide the results, given or default.
    #[must_use]
    pub(crate) fn description(&self, grid: &Grid) -> serde_json::Value {
        let schedulers: Vec<_> = grid.schedulers.iter().map(|scheduler| scheduler.name()).collect();
        serde_json::json!({
            "tasks": self.tasks,
            "requests": grid.requests,
            "ports": grid.ports,
            "loads": grid.loads,
            "buffers": grid.buffers,
            "schedulers": schedulers,
            "burst": grid.burst,
            "seed": grid.seed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn options(arguments: &str) -> Options {
        Options::try_parse_from(arguments.split(' ')).unwrap()
    }

    #[test]
    fn every_documented_option_is_understood() {
        let all = options(
            "crossbar --tasks 9 --requests 100 --ports 8 --load 0.5,1 --buffer 2 --scheduler random,round-robin \
             --burst 3.5 --seed 7 --output a.csv",
        );
        let grid = all.grid().unwrap();
        assert_eq!((grid.ports, grid.requests, grid.points(), grid.seed), (8, 100, 4, 7));
        assert_eq!(grid.schedulers, [Scheduler::Random, Scheduler::RoundRobin]);
        assert_eq!(all.output, Some("a.csv".into()));
    }

    #[test]
    fn the_usual_grid_is_simulated_eight_times() {
        let usual = options("crossbar");
        assert_eq!(usual.grid().unwrap().points() as u64 * 8, usual.tasks);
    }

    #[test]
    fn the_description_says_what_ran_also_where_nothing_was_asked_for() {
        let usual = options("crossbar --buffer 2,4 --burst 3");
        let said = usual.description(&usual.grid().unwrap());
        assert_eq!((said["loads"].as_array().unwrap().len(), &said["loads"][0]), (16, &0.25.into()));
        assert_eq!((&said["buffers"][1], &said["burst"]), (&4.into(), &3.0.into()));
        assert_eq!(said["schedulers"], serde_json::json!(["round-robin", "longest-queue", "random"]));
        assert_eq!((&said["requests"], &said["ports"]), (&50_000.into(), &16.into()));
    }

    #[test]
    fn every_point_needs_a_task() {
        let error = options("crossbar --tasks 383").grid().unwrap_err().to_string();
        assert!(error.contains("384 points"), "{error}");
    }
}
