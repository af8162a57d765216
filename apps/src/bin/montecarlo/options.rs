//! The options of `montecarlo`.

use std::path::PathBuf;

use presentation::count_parser;

use super::cost::{Cost, CostDistribution};
use super::energy::Energy;
use super::medium::Medium;
use super::slabs::{Slab, SlabSpec, Stack};
use super::transport::Problem;
use harness::Error;

/// Photons arrive at slabs of matter: how many pass, how many come back, and where do they leave their energy?
#[derive(Clone, Debug, clap::Parser)]
#[command(name = "montecarlo", version, after_help = AFTER_HELP)]
pub(crate) struct Options {
    /// Photons to follow
    #[arg(long, value_name = "COUNT", default_value_t = 1_000_000, value_parser = count_parser(1..=u64::MAX))]
    pub(crate) histories: u64,
    /// A slab, from the source on; repeatable. Materials: water, aluminium, iron, lead, and grey, which takes
    /// absorption=PER_CM and scattering=PER_CM (0.5 each if not given) and asymmetry=COSINE (0) [default: water:10 lead:1]
    #[arg(long, value_name = "MATERIAL[,KEY=VALUE]:CM", value_parser = SlabSpec::parse)]
    pub(crate) slab: Vec<SlabSpec>,
    /// Energy of the photons that arrive, from 1 to 2000
    #[arg(long, value_name = "KEV", default_value_t = 1000.0, value_parser = energy_kev)]
    pub(crate) energy: f64,
    /// Number of equal parts of the depth, for which deposited energy is reported
    #[arg(long, value_name = "COUNT", default_value_t = 55, value_parser = count_parser(1..=100_000u32))]
    pub(crate) bins: u32,
    /// Seed of all random numbers: the same seed gives the same result
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = count_parser(0..=u64::MAX))]
    pub(crate) seed: u64,
    /// Spread of the extra work of --cost-us over histories; no result depends on it
    #[arg(long, value_enum, default_value = "uniform")]
    pub(crate) cost: CostDistribution,
    /// Extra work of a history on average, in microseconds of a core at 3 GHz [default: 0, heterogeneous: 5]
    #[arg(long, value_name = "MICROSECONDS", value_parser = cost_us)]
    pub(crate) cost_us: Option<f64>,
    /// Write the energy left at each depth, with errors
    #[arg(long, value_name = "FILE.csv")]
    pub(crate) output: Option<PathBuf>,
}

const AFTER_HELP: &str = "\
Options win over CARIBOU_* variables, which win over the defaults.
Matter absorbs by the photoelectric effect and scatters by Compton's; a grey slab does both at all energies alike.
Every estimate has its standard error. Results depend on the seed and the slabs, not on ranks and workers.
Exit code: 0 done, 1 a run failed or its result is wrong, 2 bad options.

Grey slabs with a result known from theory: a pure absorber, and a half-space of isotropic scattering
  montecarlo --slab grey,absorption=1,scattering=0:0.5 --slab grey,absorption=3,scattering=0:0.5
  montecarlo --slab grey,absorption=0.1,scattering=0.9:100
Histories of very unequal cost
  montecarlo --cost heterogeneous --cost-us 20";

/// An extra work of an hour per history is a mistake.
const COST_US_MAX: f64 = 1e9;

fn energy_kev(text: &str) -> Result<f64, String> {
    let energy = text.parse().ok().filter(|kev| (1.0..=2000.0).contains(kev));
    energy.ok_or_else(|| "expected keV between 1 and 2000".to_owned())
}

fn cost_us(text: &str) -> Result<f64, String> {
    let cost = text.parse().ok().filter(|us| (0.0..=COST_US_MAX).contains(us));
    cost.ok_or_else(|| format!("expected microseconds between 0 and {COST_US_MAX}"))
}

impl Options {
    /// The problem to simulate.
    ///
    /// # Errors
    /// [`Error::Usage`] if the slabs together are too thick.
    pub(crate) fn problem(&self) -> Result<Problem, Error> {
        let usual =
            || ["water:10", "lead:1"].map(|slab| SlabSpec::parse(slab).expect("both are slabs")).to_vec();
        let slabs = if self.slab.is_empty() { usual() } else { self.slab.clone() };
        let unless_given_us = match self.cost {
            CostDistribution::Uniform => 0.0,
            CostDistribution::Heterogeneous => 5.0,
        };
        Ok(Problem {
            stack: Stack::new(&slabs)?,
            energy: Energy::from_kev(self.energy),
            bins: self.bins as usize,
            seed: self.seed,
            cost: Cost { mean_us: self.cost_us.unwrap_or(unless_given_us), spread: self.cost },
        })
    }

    /// All settings that decide the results, given or default.
    #[must_use]
    pub(crate) fn description(&self, problem: &Problem) -> serde_json::Value {
        serde_json::json!({
            "histories": self.histories,
            "slabs": problem.stack.slabs().iter().map(slab_description).collect::<Vec<_>>(),
            "energy_kev": problem.energy.kev(),
            "bins": problem.bins,
            "seed": problem.seed,
            "cost": format!("{:?}", problem.cost.spread).to_lowercase(),
            "cost_us": problem.cost.mean_us,
        })
    }
}

fn slab_description(slab: &Slab) -> serde_json::Value {
    let (material, from_cm, to_cm) = (slab.medium.name(), slab.from_cm, slab.to_cm);
    match slab.medium {
        Medium::Matter(_) => {
            serde_json::json!({ "material": material, "from_cm": from_cm, "to_cm": to_cm })
        }
        Medium::Grey { absorption_per_cm, scattering_per_cm, asymmetry } => serde_json::json!({
            "material": material,
            "from_cm": from_cm,
            "to_cm": to_cm,
            "absorption_per_cm": absorption_per_cm,
            "scattering_per_cm": scattering_per_cm,
            "asymmetry": asymmetry,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn options(arguments: &str) -> Result<Options, clap::Error> {
        Options::try_parse_from(arguments.split(' '))
    }

    #[test]
    fn every_documented_option_is_understood() {
        let all = options(
            "montecarlo --histories 9 --slab iron:2 --slab grey,absorption=1,scattering=0:0.5 --energy 511 --bins 7 \
             --seed 3 --cost heterogeneous --cost-us 2.5 --output a.csv",
        )
        .unwrap();
        let problem = all.problem().unwrap();
        assert_eq!((all.histories, problem.bins, problem.seed), (9, 7, 3));
        assert_eq!((problem.stack.slabs().len(), all.output), (2, Some("a.csv".into())));
        assert_eq!(problem.cost, Cost { mean_us: 2.5, spread: CostDistribution::Heterogeneous });
    }

    #[test]
    fn unequal_costs_are_costs_without_saying_how_much() {
        let cost = |arguments| options(arguments).unwrap().problem().unwrap().cost.mean_us;
        assert!(cost("montecarlo") < f64::EPSILON);
        assert!((cost("montecarlo --cost heterogeneous") - 5.0).abs() < f64::EPSILON);
    }

    #[test]
    fn the_description_says_what_ran_also_where_nothing_was_asked_for() {
        let said = |arguments| {
            let options = options(arguments).unwrap();
            options.description(&options.problem().unwrap())
        };
        let usual = said("montecarlo --cost heterogeneous");
        assert_eq!(
            (&usual["slabs"][1]["material"], &usual["slabs"][1]["to_cm"]),
            (&"lead".into(), &11.0.into())
        );
        assert_eq!(
            (&usual["bins"], &usual["cost"], &usual["cost_us"]),
            (&55.into(), &"heterogeneous".into(), &5.0.into())
        );
        let grey = &said("montecarlo --slab grey,scattering=0.25:2")["slabs"][0];
        assert_eq!((&grey["absorption_per_cm"], &grey["scattering_per_cm"]), (&0.5.into(), &0.25.into()));
        assert_eq!(grey["asymmetry"], 0.0);
    }

    #[test]
    fn impossible_values_are_refused() {
        for bad in
            ["--histories 0", "--energy 0.5", "--energy nan", "--bins 0", "--slab water:-1", "--cost-us=-1"]
        {
            assert!(options(&format!("montecarlo {bad}")).is_err(), "{bad}");
        }
    }
}
