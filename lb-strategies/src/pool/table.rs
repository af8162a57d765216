//! The ordered table of pool policies, and how a person selects one: `leases,chunk=0.05`.

use super::{PoolStrategy, auto, caa, equal, factoring, guided, leases, master_worker, ruper};
use crate::parameters::{Parameter, Parameters, ParseError, build, help, select};

/// Every policy for pools, simplest first.
pub const POOL_STRATEGIES: &[PoolEntry] = &[
    equal::ENTRY,
    guided::ENTRY,
    factoring::ENTRY,
    master_worker::ENTRY,
    caa::ENTRY,
    ruper::ENTRY,
    leases::ENTRY,
    auto::ENTRY,
];

/// A line of the table: what a policy is called, what it takes, and how it is made.
///
/// ```
/// use lb_strategies::pool::POOL_STRATEGIES;
/// assert_eq!(POOL_STRATEGIES[0].name, "static");
/// ```
#[derive(Clone, Copy)]
pub struct PoolEntry {
    /// The name before the first comma of a specification.
    pub name: &'static str,
    /// What the policy does, in one line.
    pub summary: &'static str,
    /// What can be set, with defaults.
    pub parameters: &'static [Parameter],
    /// Makes the policy; fails if a value has the wrong form.
    pub build: fn(&Parameters) -> Result<Box<dyn PoolStrategy>, ParseError>,
}

/// Makes the policy that `spec` describes: a name, then `key=value` pairs, separated by commas.
///
/// ```
/// use lb_strategies::pool::pool_parse;
/// assert_eq!(pool_parse("static, chunk=0.05")?.name(), "static");
/// assert!(pool_parse("statics").is_err_and(|error| error.to_string().contains("did you mean \"static\"?")));
/// # Ok::<(), lb_strategies::ParseError>(())
/// ```
pub fn pool_parse(spec: &str) -> Result<Box<dyn PoolStrategy>, ParseError> {
    select(POOL_STRATEGIES, |entry| entry.name, spec)?.make(spec)
}

impl PoolEntry {
    /// Makes this policy with the parameters in `spec`, which begins with its name.
    ///
    /// # Errors
    /// What is wrong with the parameters.
    pub fn make(&self, spec: &str) -> Result<Box<dyn PoolStrategy>, ParseError> {
        build(self.name, self.parameters, spec, self.build)
    }
}

/// The table as text for a person: each policy, then its parameters with their defaults.
///
/// ```
/// assert!(lb_strategies::pool::pool_help().contains("static "));
/// ```
pub fn pool_help() -> String {
    pool_help_among(POOL_STRATEGIES)
}

/// The same for other entries.
pub fn pool_help_among(entries: &[PoolEntry]) -> String {
    help(entries.iter().map(|entry| (entry.name, entry.summary, entry.parameters)))
}
