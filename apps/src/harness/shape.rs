//! The two shapes of programs, and the strategies to run each with. A strategy is for one of them.
//!
//! What does not fit is refused here, before anything runs, and by the name of the option it came from: the runtime would
//! say so only when that run begins, and knows no options.

use caribou::Config;
use lb_strategies::STRATEGIES;
use lb_strategies::pool::POOL_STRATEGIES;

use crate::harness::cli;
use crate::harness::error::Error;

/// What a program spreads over workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Chunks that talk to each other, and stay where they are between two syncs.
    Array,
    /// Iterations that know nothing of each other.
    Pool,
}

impl Shape {
    /// A configuration for each run, in order: `config` with each strategy of the list `compare`; else with `lb`; else as it
    /// is.
    ///
    /// # Errors
    /// [`Error::Usage`], naming `--compare`, `--lb` or `CARIBOU_LB`, when a strategy is not one for programs of this shape.
    pub(crate) fn configs(
        self,
        config: &Config,
        lb: Option<&str>,
        compare: Option<&str>,
    ) -> Result<Vec<Config>, Error> {
        let (option, specs) = match (compare, lb) {
            (Some(list), _) => ("--compare", cli::strategies(list)?),
            (None, Some(lb)) => ("--lb", vec![lb.to_owned()]),
            (None, None) => ("CARIBOU_LB", vec![self.spec(config).to_owned()]),
        };
        specs.iter().map(|spec| self.config(config, option, spec)).collect()
    }

    fn config(self, config: &Config, option: &str, spec: &str) -> Result<Config, Error> {
        // Unchanged it may be a strategy that has no name to be looked up by.
        let config = if spec == self.spec(config) {
            config.clone()
        } else {
            config.clone().lb(spec).map_err(|error| match error {
                caribou::Error::Config { why, .. } => Error::Usage(format!("{option}: `{spec}`: {why}")),
                other => other.into(),
            })?
        };
        if self.fits(&config) { Ok(config) } else { Err(self.misplaced(option, spec)) }
    }

    fn spec(self, config: &Config) -> &str {
        match self {
            Self::Array => config.lb_spec(),
            Self::Pool => config.pool_lb_spec(),
        }
    }

    fn fits(self, config: &Config) -> bool {
        match self {
            Self::Array => config.is_for_arrays(),
            Self::Pool => config.is_for_pools(),
        }
    }

    fn misplaced(self, option: &str, spec: &str) -> Error {
        let arrays = || STRATEGIES.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ");
        let pools = || POOL_STRATEGIES.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ");
        let (of, here, known) = match self {
            Self::Array => ("pools", "an array of chunks", arrays()),
            Self::Pool => ("arrays", "a pool of iterations", pools()),
        };
        Error::Usage(format!("{option}: `{spec}` balances {of}, but this is {here}: use one of {known}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strategy_for_the_other_shape_is_refused_by_the_name_of_its_option() {
        let plain = Config::default();
        let complaint = |shape: Shape, config: &Config, lb, compare| {
            shape.configs(config, lb, compare).unwrap_err().to_string()
        };
        for (complaint, begin, known) in [
            (complaint(Shape::Pool, &plain, None, Some("static,greedy")), "--compare: `greedy`", "leases"),
            (complaint(Shape::Pool, &plain, Some("refine"), None), "--lb: `refine`", "leases"),
            (complaint(Shape::Array, &plain, None, Some("none,leases")), "--compare: `leases`", "greedy"),
            (complaint(Shape::Array, &plain, Some("static"), None), "--lb: `static`", "greedy"),
        ] {
            assert!(complaint.starts_with(begin) && complaint.contains(known), "{complaint}");
        }
        let (arrays, pools) = (plain.clone().lb("greedy").unwrap(), plain.lb("ruper").unwrap());
        assert!(complaint(Shape::Pool, &arrays, None, None).starts_with("CARIBOU_LB: `greedy`"));
        assert!(complaint(Shape::Pool, &arrays, Some("greedy"), None).starts_with("--lb: `greedy`"));
        assert!(complaint(Shape::Array, &pools, None, None).starts_with("CARIBOU_LB: `ruper`"));
    }

    #[test]
    fn options_win_over_what_the_environment_chose_for_the_other_shape() {
        let config = Config::default().lb("greedy").unwrap();
        let configs = Shape::Pool.configs(&config, None, Some("static,chunk=0.01,leases")).unwrap();
        let specs: Vec<&str> = configs.iter().map(Config::pool_lb_spec).collect();
        assert_eq!(specs, ["static,chunk=0.01", "leases"]);
        for shape in [Shape::Array, Shape::Pool] {
            assert_eq!(shape.configs(&Config::default(), None, None).unwrap().len(), 1);
        }
    }
}
