//! The ordered table of strategies, and how a person selects one: `refine,tolerance=0.05`.
//!
//! A strategy is one file with an `ENTRY` and one line in [`STRATEGIES`]. The table is a constant rather than
//! a registry that plug-ins fill at start: one can read it, and its order is the same everywhere.

use crate::Strategy;
use crate::parameters::{self, Parameter, Parameters, ParseError, build, select};
use crate::strategies::{greedy, greedy_refine, none, random, refine, refine_best, refine_paper, rotate};

/// Every strategy, simplest first.
pub const STRATEGIES: &[StrategyEntry] = &[
    none::ENTRY,
    rotate::ENTRY,
    random::ENTRY,
    greedy::ENTRY,
    greedy_refine::ENTRY,
    refine_paper::ENTRY,
    refine::ENTRY,
    refine_best::ENTRY,
];

/// A line of the table: what a strategy is called, what it takes, and how it is made.
///
/// ```
/// use lb_strategies::STRATEGIES;
/// let names: Vec<_> = STRATEGIES.iter().map(|entry| entry.name).collect();
/// assert_eq!(names[..5], ["none", "rotate", "random", "greedy", "greedy-refine"]);
/// assert_eq!(names[5..], ["refine-paper", "refine", "refine-best"]);
/// ```
#[derive(Clone, Copy)]
pub struct StrategyEntry {
    /// The name before the first comma of a specification.
    pub name: &'static str,
    /// What the strategy does, in one line.
    pub summary: &'static str,
    /// What can be set, with defaults.
    pub parameters: &'static [Parameter],
    /// Makes the strategy; fails if a value has the wrong form.
    pub build: fn(&Parameters) -> Result<Box<dyn Strategy>, ParseError>,
}

/// Makes the strategy that `spec` describes: a name, then `key=value` pairs, separated by commas.
///
/// ```
/// use lb_strategies::{Background, parse};
/// assert_eq!(parse("refine, tolerance=0.1, background=additive")?.background(), Background::Additive);
/// let Err(error) = parse("refin") else { unreachable!() };
/// let line = error.to_string();
/// assert!(line.starts_with("unknown strategy \"refin\", did you mean \"refine\"? known: none, rotate, "));
/// # Ok::<(), lb_strategies::ParseError>(())
/// ```
pub fn parse(spec: &str) -> Result<Box<dyn Strategy>, ParseError> {
    select(STRATEGIES, |entry| entry.name, spec)?.make(spec)
}

impl StrategyEntry {
    /// Makes this strategy with the parameters in `spec`, which begins with its name.
    ///
    /// # Errors
    /// What is wrong with the parameters.
    pub fn make(&self, spec: &str) -> Result<Box<dyn Strategy>, ParseError> {
        build(self.name, self.parameters, spec, self.build)
    }
}

/// The table as text for a person: each strategy, then its parameters with their defaults.
///
/// ```
/// let help = lb_strategies::help();
/// assert!(help.contains("refine ") && help.contains("  tolerance=0.05 "));
/// ```
pub fn help() -> String {
    help_among(STRATEGIES)
}

/// The same for other entries.
pub fn help_among(entries: &[StrategyEntry]) -> String {
    parameters::help(entries.iter().map(|entry| (entry.name, entry.summary, entry.parameters)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(spec: &str) -> String {
        parse(spec).err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn every_entry_builds_with_its_defaults_under_its_own_name() {
        for entry in STRATEGIES {
            let strategy = parse(entry.name).expect("defaults are valid");
            assert_eq!(strategy.name(), entry.name);
        }
    }

    #[test]
    fn a_strategy_that_panics_when_it_is_made_is_named() {
        let entry = StrategyEntry {
            name: "mine",
            summary: "asks for what it does not list",
            parameters: &[],
            build: |parameters| parameters.integer("how").map(|_| unreachable!("it is not listed")),
        };
        let error = entry.make("mine").err().expect("there is no such parameter").to_string();
        let expected = "strategy mine: it panicked when it was made: it asks for the parameter \"how\", which is not among \
                        those it lists";
        assert_eq!(error, expected);
    }

    #[test]
    fn errors_say_what_where_and_what_was_expected() {
        assert_eq!(
            error("refine,tolerance"),
            "strategy refine: parameter \"tolerance\" has no value, expected tolerance=VALUE"
        );
        assert_eq!(
            error("refine,tolerance=lots"),
            "strategy refine: tolerance=\"lots\" is not a number from 0 to 10"
        );
        assert_eq!(
            error("refine,settle=lots"),
            "strategy refine: settle=\"lots\" is not tolerance or a number from 0 to 10"
        );
        assert_eq!(
            error("refine,background=x"),
            "strategy refine: background=\"x\" is not share or additive"
        );
        assert_eq!(error("none,a=1"), "strategy none: unknown parameter \"a\"; it takes none");
        assert_eq!(
            error("random,seed=-1"),
            format!("strategy random: seed=\"-1\" is not a whole number from 0 to {}", u64::MAX)
        );
        assert_eq!(
            error("refine,tolerance=1,tolerance=2"),
            "strategy refine: parameter \"tolerance\" is given twice"
        );
        let without_comma = error("refine:tolerance=0.1");
        assert!(without_comma.contains("did you mean \"refine\"?"), "{without_comma}");
        assert!(without_comma.ends_with("a comma comes before each parameter: NAME,KEY=VALUE"));
        assert!(error("").starts_with("unknown strategy \"\"; known: none, rotate"));
        for spec in ["refine,tolerance=NaN", "refine,tolerance=-1", "refine,band=2"] {
            assert!(error(spec).contains("is not a number from 0"), "{spec}");
        }
    }
}
