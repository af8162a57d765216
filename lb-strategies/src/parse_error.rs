//! Defines the errors in the specification of a policy.

use crate::choice::{Choice, NO_COMMA};
use crate::shape::Shape;

/// An error in a specification. Its text is one line with the error, the place and what is expected.
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
    /// The name of the policy is unknown.
    #[error("unknown strategy {} known: {known}{}", choice.suggestion(), comma_hint(&choice.given))]
    UnknownStrategy {
        /// The name, with the known names.
        choice: Choice,
        /// The known names, listed by shape if they are of several shapes.
        known: String,
    },
    /// The policy is for programs of another shape.
    #[error("`{name}` balances {of}, but this is {}: use one of {}", here.program(), known.join(", "))]
    Misplaced {
        /// The policy that was named.
        name: String,
        /// The shape that the policy is for.
        of: Shape,
        /// The shape of the program.
        here: Shape,
        /// The policies for this shape.
        known: Vec<&'static str>,
    },
    /// The policy has no such parameter.
    #[error("strategy {strategy}: unknown parameter {choice}")]
    UnknownParameter {
        /// The strategy that was named.
        strategy: &'static str,
        /// The key, with the known keys.
        choice: Choice,
    },
    /// The parameter has no value.
    #[error("strategy {strategy}: parameter \"{key}\" has no value, expected {key}=VALUE")]
    MissingValue {
        /// The strategy that was named.
        strategy: &'static str,
        /// The key without a value.
        key: String,
    },
    /// The parameter is given twice.
    #[error("strategy {strategy}: parameter \"{key}\" is given twice")]
    Twice {
        /// The strategy that was named.
        strategy: &'static str,
        /// The repeated key.
        key: String,
    },
    /// The policy panicked when it was made.
    #[error("strategy {strategy} panicked when it was created: {panic}")]
    Panicked {
        /// The strategy that was named.
        strategy: &'static str,
        /// The message of the panic.
        panic: String,
    },
    /// The value of the parameter is not allowed.
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
