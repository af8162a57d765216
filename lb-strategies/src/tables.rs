//! Defines the tables of policies of all [`Shape`]s of program, and functions that need all of them.

use crate::arrays::strategy::Strategy;
use crate::choice::Choice;
use crate::parse_error::ParseError;
use crate::pools::policy::PoolStrategy;
use crate::shape::Shape;
use crate::spec::name_of;
use crate::supersteps::policy::SuperstepStrategy;
use crate::table::{Listing, Table};

/// The strategies for arrays of chunks.
///
/// ```
/// use lb_strategies::{ARRAYS, Listing};
/// let names = ARRAYS.names();
/// assert_eq!(names[..5], ["none", "program", "rotate", "random", "greedy"]);
/// assert_eq!(names[5..], ["refine-paper", "refine", "sfc", "hierarchical", "comm"]);
/// ```
pub static ARRAYS: Table<dyn Strategy> =
    Table::new(Shape::Arrays, crate::arrays::strategies::ENTRIES, shape_of);

/// The policies for pools of iterations.
///
/// ```
/// use lb_strategies::POOLS;
/// assert_eq!(POOLS.parse("static, chunk=0.05")?.name(), "static");
/// assert!(POOLS.parse("statics").is_err_and(|error| error.to_string().contains("did you mean \"static\"?")));
/// # Ok::<(), lb_strategies::ParseError>(())
/// ```
pub static POOLS: Table<dyn PoolStrategy> = Table::new(Shape::Pools, crate::pools::table::ENTRIES, shape_of);

/// The policies for programs in supersteps.
///
/// ```
/// use lb_strategies::{Listing, SUPERSTEPS};
/// assert_eq!(SUPERSTEPS.names(), ["equal", "load-factor", "des", "replicate", "dlb-jr", "adaptive"]);
/// ```
pub static SUPERSTEPS: Table<dyn SuperstepStrategy> =
    Table::new(Shape::Supersteps, crate::supersteps::table::ENTRIES, shape_of);

fn shape_of(name: &str) -> Option<Shape> {
    let tables: [&dyn Listing; 3] = [&ARRAYS, &POOLS, &SUPERSTEPS];
    tables.iter().find(|table| table.names().contains(&name)).map(|table| table.shape())
}

/// All tables as text for users, each under its shape.
///
/// ```
/// use lb_strategies::{ARRAYS, POOLS, help};
/// assert!(help(&[&ARRAYS, &POOLS]).starts_with("for arrays of chunks:\n\nnone "));
/// ```
pub fn help(tables: &[&dyn Listing]) -> String {
    let section = |table: &&dyn Listing| format!("for {}:\n\n{}", table.shape().programs(), table.help());
    tables.iter().map(section).collect::<Vec<_>>().join("\n")
}

/// The error for a `spec` whose name is in no table of `tables`. It suggests a policy of any of them.
pub fn unknown(tables: &[&dyn Listing], spec: &str) -> ParseError {
    let choice = Choice::new(name_of(spec), tables.iter().flat_map(|table| table.names()));
    let of_shape = |table: &&dyn Listing| format!("for {} {}", table.shape(), table.names().join(", "));
    let known = tables.iter().map(of_shape).collect::<Vec<_>>().join("; ");
    ParseError::UnknownStrategy { choice, known }
}

/// The error for a name by which a program's own policy cannot be selected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` {why}")]
pub struct BadName {
    /// The name.
    pub name: &'static str,
    /// What is wrong with the name.
    pub why: String,
}

/// Checks that each of the program's own policies in `tables` can be selected by name.
///
/// ```
/// use lb_strategies::{ARRAYS, Entry, POOLS, check_own};
/// let mut arrays = ARRAYS.clone();
/// arrays.register(Entry { name: "leases", ..*ARRAYS.find("refine").expect("it is ours") });
/// let error = check_own(&[&arrays, &POOLS]).expect_err("it would hide a policy for pools");
/// assert_eq!(error.to_string(), "`leases` is the name of a policy for pools");
/// ```
///
/// # Errors
/// The first name that is not one word, or that two policies have.
pub fn check_own(tables: &[&dyn Listing]) -> Result<(), BadName> {
    let own: Vec<_> = tables.iter().flat_map(|table| table.own_names()).collect();
    for (position, &name) in own.iter().enumerate() {
        let letter = |letter: char| letter.is_alphanumeric() || "-_.".contains(letter);
        let why = if name.is_empty() || name == "help" || !name.chars().all(letter) {
            "is not a valid name: expected letters, digits, `-`, `_` and `.`, and not `help`"
        } else if own[..position].contains(&name) {
            "is registered by two strategies"
        } else {
            continue;
        };
        return Err(BadName { name, why: why.to_owned() });
    }
    for table in tables {
        let hidden = |name: &&str| shape_of(name).filter(|of| *of != table.shape());
        if let Some((name, of)) = table.own_names().into_iter().find_map(|name| Some((name, hidden(&name)?)))
        {
            return Err(BadName { name, why: format!("is the name of a policy for {of}") });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(spec: &str) -> String {
        ARRAYS.parse(spec).err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn every_entry_builds_with_its_defaults_under_its_own_name() {
        for entry in ARRAYS.iter() {
            assert_eq!(entry.make(entry.name).expect("defaults are valid").name(), entry.name);
        }
        for entry in POOLS.iter() {
            assert_eq!(entry.make(entry.name).expect("defaults are valid").name(), entry.name);
        }
        for entry in SUPERSTEPS.iter() {
            assert_eq!(entry.make(entry.name).expect("defaults are valid").name(), entry.name);
        }
        assert_eq!(SUPERSTEPS.default_policy().name(), Shape::Supersteps.default_spec());
        assert_eq!(ARRAYS.default_policy().name(), Shape::Arrays.default_spec());
        assert_eq!(POOLS.default_policy().name(), Shape::Pools.default_spec());
    }

    #[test]
    fn what_no_table_has_is_told_with_all_names_by_shape() {
        let error = unknown(&[&ARRAYS, &POOLS], "refien,tolerance=1").to_string();
        let expected =
            "unknown strategy \"refien\", did you mean \"refine\"? known: for arrays none, program, rotate, ";
        assert!(error.starts_with(expected) && error.contains("comm; for pools static, "), "{error}");
    }

    #[test]
    fn a_policy_for_another_shape_is_told_from_an_unknown_one() {
        let expected =
            "`leases` balances pools, but this is an array of chunks: use one of none, program, rotate, ";
        assert!(error("leases,chunk=1").starts_with(expected), "{}", error("leases,chunk=1"));
        assert!(error("lease").starts_with("unknown strategy \"lease\""));
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
        assert!(error("").starts_with("unknown strategy \"\"; known: none, program, rotate"));
        for spec in ["refine,tolerance=NaN", "refine,tolerance=-1", "refine,band=2"] {
            assert!(error(spec).contains("is not a number from 0"), "{spec}");
        }
    }
}
