//! Chooses the strategy of each run and checks that it fits the [`Shape`] of the program.
//!
//! A strategy that does not fit is refused before anything runs, and the error names its source (`--compare`,
//! `--lb` or `CARIBOU_LB`). The runtime would refuse it only when that run begins, without the name of an option.

use caribou::Config;
use caribou::lb::Shape;
use caribou::lb::spec::read_as;

use super::cli;
use super::error::Error;

/// Returns the list of the strategies for this shape, as an error, if the strategy is `help`.
///
/// # Errors
/// [`Error::Listed`].
pub fn list_if_asked(shape: Shape, config: &Config, lb: Option<&str>) -> Result<(), Error> {
    let asked = lb.map_or(config.asks_lb_help(), |lb| lb.trim() == "help");
    if asked { Err(Error::Listed(config.lb_help(shape))) } else { Ok(()) }
}

/// A configuration for each run of a program of this shape, in order: `config` with each strategy of the list `compare`;
/// else with `lb`; else as it is.
///
/// # Errors
/// [`Error::Usage`], naming `--compare`, `--lb` or `CARIBOU_LB`, when a strategy is not one for programs of this shape.
pub fn configs(
    shape: Shape,
    config: &Config,
    lb: Option<&str>,
    compare: Option<&str>,
) -> Result<Vec<Config>, Error> {
    let (option, specs) = match (compare, lb) {
        (Some(list), _) => ("--compare", cli::strategies(list)?),
        (None, Some(lb)) => ("--lb", vec![lb.to_owned()]),
        (None, None) => ("CARIBOU_LB", vec![config.lb_spec(shape).to_owned()]),
    };
    let read = if specs.len() > 1 { format!(" (read as {})", read_as(&specs)) } else { String::new() };
    let balanced = |spec: &String| match with_lb(config, shape, spec) {
        Err(caribou::Error::Config { why, .. }) => Err(Error::Usage(format!("{option}: {why}{read}"))),
        made => Ok(made?),
    };
    specs.iter().map(balanced).collect()
}

fn with_lb(config: &Config, shape: Shape, spec: &str) -> Result<Config, caribou::Error> {
    // A strategy of `config` may have no name to look up, so it is kept as it is.
    let unchanged = spec == config.lb_spec(shape);
    let config = if unchanged { config.clone() } else { config.clone().lb(spec)? };
    config.check_shape(shape)?;
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strategy_for_the_other_shape_is_refused_by_the_name_of_its_option() {
        let plain = Config::default();
        let complaint = |shape: Shape, config: &Config, lb, compare| {
            configs(shape, config, lb, compare).unwrap_err().to_string()
        };
        for (complaint, begin, known) in [
            (complaint(Shape::Pools, &plain, None, Some("static,greedy")), "--compare: `greedy`", "leases"),
            (complaint(Shape::Pools, &plain, Some("refine"), None), "--lb: `refine`", "leases"),
            (complaint(Shape::Arrays, &plain, None, Some("none,leases")), "--compare: `leases`", "greedy"),
            (complaint(Shape::Arrays, &plain, Some("static"), None), "--lb: `static`", "greedy"),
        ] {
            assert!(complaint.starts_with(begin) && complaint.contains(known), "{complaint}");
        }
        let (arrays, pools) = (plain.clone().lb("greedy").unwrap(), plain.lb("ruper").unwrap());
        assert!(complaint(Shape::Pools, &arrays, None, None).starts_with("CARIBOU_LB: `greedy`"));
        assert!(complaint(Shape::Pools, &arrays, Some("greedy"), None).starts_with("--lb: `greedy`"));
        assert!(complaint(Shape::Arrays, &pools, None, None).starts_with("CARIBOU_LB: `ruper`"));
    }

    #[test]
    fn a_wrong_strategy_of_a_list_is_told_with_how_the_list_was_read() {
        let list = Some("none,refine,tolerance,greedy,background=share");
        let error = configs(Shape::Arrays, &Config::default(), None, list).unwrap_err().to_string();
        let read = " (read as none | refine | tolerance | greedy,background=share)";
        assert!(
            error.starts_with("--compare: unknown strategy \"tolerance\"") && error.ends_with(read),
            "{error}"
        );
    }

    #[test]
    fn options_win_over_what_the_environment_chose_for_the_other_shape() {
        let config = Config::default().lb("greedy").unwrap();
        let made = configs(Shape::Pools, &config, None, Some("static,chunk=0.01,leases")).unwrap();
        let specs: Vec<&str> = made.iter().map(|config| config.lb_spec(Shape::Pools)).collect();
        assert_eq!(specs, ["static,chunk=0.01", "leases"]);
        for shape in [Shape::Arrays, Shape::Pools] {
            assert_eq!(configs(shape, &Config::default(), None, None).unwrap().len(), 1);
        }
    }
}
