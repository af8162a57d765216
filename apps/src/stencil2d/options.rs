//! The options of `stencil2d`, and the demonstration it gives when it is started without any.

use caribou::Launch;

use super::plate::Shape;
use crate::harness::disturbance::NeighbourSpec;
use crate::harness::error::Error;
use crate::harness::memory;
use crate::harness::options::Balancing;

/// A hot plate cools: a five-point stencil in chunks, balanced while it runs.
///
/// Started without options it runs twice beside a busy neighbour, without and with balancing, and says what that changed.
#[derive(Clone, Debug, clap::Parser)]
#[command(name = "stencil2d", version, after_help = AFTER_HELP)]
pub struct Options {
    /// Cells along one side of the plate
    #[arg(long, value_name = "CELLS", default_value_t = 4096)]
    pub grid: usize,
    /// Cells along one side of a chunk [default: 256, less where a rank would have few chunks]
    #[arg(long, value_name = "CELLS")]
    pub chunk: Option<usize>,
    /// Iterations of each run
    #[arg(long, value_name = "COUNT", default_value_t = 800, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    pub iterations: u32,
    /// Compare every run bit for bit with the serial program; exit code 1 if one differs
    #[arg(long)]
    pub check: bool,
    #[command(flatten)]
    #[expect(missing_docs, reason = "a comment here would replace the description of the program")]
    pub balancing: Balancing,
}

const AFTER_HELP: &str = "\
Options win over CARIBOU_* variables, which win over the defaults.
Exit code: 0 done, 1 a run failed or its result is wrong, 2 bad options.

The table: imbalance is the median over the syncs of the slowest rank's time over the best possible at the measured
capacities, while something disturbs the run; settled after, the syncs from the first disturbance until iterations were
as short as they stayed; of possible, the gain over what it would have been at best, with all work spread at all times
over the capacity that the run measured.

The shape of the paper's experiment (figure 3; there 8192 cells on 32 vCPUs, here 4096 on two):
  stencil2d --grid 4096 --chunk 256 --iterations 500 --period 20 --neighbour 1:100-300 --compare none,refine --plot fig3.svg";

impl Options {
    /// Turns options that were all left out into the demonstration: the middle of each run has a neighbour on the last
    /// rank's vCPU, and `lb` has to beat `none`. With one rank there is nowhere to move work to, so it is one quiet run.
    pub fn demonstrate(&mut self, ranks: u32, lb: &str) {
        if ranks < 2 {
            return;
        }
        let fifth = self.iterations / 5;
        let neighbour = NeighbourSpec { rank: ranks - 1, from: fifth, to: Some(4 * fifth), duty: 1.0 };
        self.balancing.disturbing.neighbour = vec![neighbour];
        self.balancing.compare = Some(if lb == "none" { lb.to_owned() } else { format!("none;{lb}") });
    }

    /// The plate and its chunks.
    ///
    /// # Errors
    /// [`Error::Usage`] when they are impossible.
    pub fn shape(&self, ranks: u32) -> Result<Shape, Error> {
        let chunk = self.chunk.unwrap_or_else(|| default_chunk(self.grid, ranks));
        Shape::new(self.grid, chunk)
    }

    /// Refuses a plate that does not fit into memory.
    ///
    /// # Errors
    /// [`Error::Usage`], naming the options.
    pub fn check_memory(&self, shape: Shape, launch: Launch) -> Result<(), Error> {
        let plate = (self.grid as u64).saturating_pow(2).saturating_mul(size_of::<f64>() as u64);
        let chunks = shape.chunks().saturating_mul(memory::CHUNK_BYTES);
        let asked = self.chunk.map_or(String::new(), |chunk| format!(" --chunk {chunk}"));
        memory::check(&format!("--grid {}{asked}", self.grid), plate.saturating_add(chunks), launch)?;
        // Where results are compared, one process has all of the serial one's, of which a step needs two, and of the run's.
        if !self.check {
            return Ok(());
        }
        memory::check(&format!("--grid {} --check", self.grid), plate.saturating_mul(3), Launch::Alone)
    }
}

/// The largest side of 256 or less that leaves each rank the twenty chunks that balancing needs.
fn default_chunk(grid: usize, ranks: u32) -> usize {
    let enough = |chunk: &usize| (grid / chunk).pow(2) >= 20 * ranks as usize;
    [256, 128, 64, 32, 16, 8, 4, 2].into_iter().find(enough).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn options(arguments: &str) -> Options {
        Options::try_parse_from(arguments.split(' ')).unwrap()
    }

    #[test]
    fn the_demonstration_has_its_neighbour_in_the_middle_of_the_last_rank() {
        let mut demo = options("stencil2d");
        demo.demonstrate(2, "refine,tolerance=0.1");
        assert_eq!(demo.balancing.disturbing.neighbour, [NeighbourSpec::parse("1:160-640").unwrap()]);
        assert_eq!(demo.balancing.compare.as_deref(), Some("none;refine,tolerance=0.1"));
    }

    #[test]
    fn one_rank_alone_demonstrates_no_balancing() {
        let mut demo = options("stencil2d");
        demo.demonstrate(1, "refine");
        assert!(demo.balancing.disturbing.neighbour.is_empty() && demo.balancing.compare.is_none());
    }

    #[test]
    fn many_ranks_get_smaller_chunks() {
        assert_eq!(default_chunk(4096, 2), 256);
        assert_eq!(default_chunk(4096, 64), 64);
        assert_eq!(default_chunk(3, 2), 1);
    }

    #[test]
    fn every_documented_option_is_understood() {
        let all = options(
            "stencil2d --grid 64 --chunk 8 --iterations 9 --period 3 --ranks 2 --workers 1 --neighbour 1:2-4:50% \
             --neighbour 0 --quota 1:50 --compare none,refine --plot a.svg --json a.json --check",
        );
        assert_eq!((all.grid, all.chunk, all.iterations, all.check), (64, Some(8), 9, true));
        assert_eq!((all.balancing.disturbing.neighbour.len(), all.balancing.disturbing.quota.len()), (2, 1));
        assert_eq!(
            options("stencil2d --lb refine,tolerance=0.1").balancing.lb.as_deref(),
            Some("refine,tolerance=0.1")
        );
        assert!(Options::try_parse_from("stencil2d --lb a --compare b,c".split(' ')).is_err());
    }
}
