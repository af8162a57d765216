//! Errors in a specification.

use crate::choice::{Choice, NO_COMMA};
use crate::shape::Shape;

/// The fault in a specification; one line with the fault, the place and the expectation.
///
/// ```
/// let Err(error) = lb_strategies::ARRAYS.parse("refine,tolerence=0.1") else { unreachable!() };
/// assert_eq!(
///     error.to_string(),
///     "strategy refine: unknown parameter \"tolerence\", did you mean \"tolerance\"? \
///      known: tolerance, settle, band, background"
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// Name a listed strategy.
    #[error("unknown strategy {} known: {known}{}", choice.suggestion(), comma_hint(&choice.given))]
    UnknownStrategy {
        /// The name, and those there are.
        choice: Choice,
        /// Those there are, by shape where they are of several.
        known: String,
    },
    /// Choose a policy for programs of this shape.
    #[error("`{name}` balances {of}, but this is {}: use one of {}", here.program(), known.join(", "))]
    Misplaced {
        /// The policy that was named.
        name: String,
        /// The shape it is for.
        of: Shape,
        /// The shape of the program.
        here: Shape,
        /// Policies for that.
        known: Vec<&'static str>,
    },
    /// Use a listed key, or none.
    #[error("strategy {strategy}: unknown parameter {choice}")]
    UnknownParameter {
        /// The strategy that was named.
        strategy: &'static str,
        /// The key, and those it takes.
        choice: Choice,
    },
    /// Write `key=value`.
    #[error("strategy {strategy}: parameter \"{key}\" has no value, expected {key}=VALUE")]
    MissingValue {
        /// The strategy that was named.
        strategy: &'static str,
        /// The key without a value.
        key: String,
    },
    /// Give each parameter once.
    #[error("strategy {strategy}: parameter \"{key}\" is given twice")]
    Twice {
        /// The strategy that was named.
        strategy: &'static str,
        /// The key that is there again.
        key: String,
    },
    /// Correct the strategy.
    #[error("strategy {strategy}: it panicked when it was made: {panic}")]
    Panicked {
        /// The strategy that was named.
        strategy: &'static str,
        /// The message of the panic.
        panic: String,
    },
    /// Correct the value.
    #[error("strategy {strategy}: {key}={value:?} is not {expected}")]
    BadValue {
        /// The strategy that was named.
        strategy: &'static str,
        /// The parameter.
        key: &'static str,
        /// The value as it was written.
        value: String,
        /// The values that are allowed.
        expected: String,
    },
}

fn comma_hint(given: &str) -> &'static str {
    if given.contains(NO_COMMA) { "; a comma comes before each parameter: NAME,KEY=VALUE" } else { "" }
}
