//! Keeps the old names of renamed parameters. Old names are still read, but help shows only the new ones.

use std::fmt;

/// A parameter of a policy with its old and its present name. Its text warns of the old name.
///
/// ```
/// use lb_strategies::POOLS;
/// let old: Vec<String> = POOLS.old_names("ruper,checkpoint=2").map(|renamed| renamed.to_string()).collect();
/// assert_eq!(old, ["strategy ruper: the parameter \"checkpoint\" is now called \"interval\"; the old name is still read"]);
/// assert_eq!(POOLS.old_names("ruper,interval=2").count(), 0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Renamed {
    /// The policy that has the parameter.
    pub strategy: &'static str,
    /// The old name.
    pub old: &'static str,
    /// The present name.
    pub new: &'static str,
}

/// All renamed parameters, one per line.
const RENAMED: &[Renamed] = &[Renamed { strategy: "ruper", old: "checkpoint", new: "interval" }];

/// The renamed parameters of the policy `strategy`.
pub(crate) fn renamed(strategy: &str) -> impl Iterator<Item = Renamed> {
    RENAMED.iter().copied().filter(move |renamed| renamed.strategy == strategy)
}

impl Renamed {
    /// True if the old name is in `settings`, as a key or in a value.
    pub(crate) fn is_used_in(self, settings: &str) -> bool {
        settings.split([',', '=', '/']).any(|word| word.trim() == self.old)
    }
}

impl fmt::Display for Renamed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { strategy, old, new } = self;
        write!(
            formatter,
            "strategy {strategy}: the parameter {old:?} is now called {new:?}; the old name is still read"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ARRAYS, Listing, POOLS, SUPERSTEPS};

    #[test]
    fn an_old_name_is_no_present_one_and_leads_to_one_that_is() {
        let parameters = |name: &str| {
            let arrays = ARRAYS.find(name).map(|entry| entry.parameters);
            let pools = POOLS.find(name).map(|entry| entry.parameters);
            arrays.or(pools).or_else(|| SUPERSTEPS.find(name).map(|entry| entry.parameters))
        };
        for Renamed { strategy, old, new } in RENAMED {
            let known: Vec<&str> =
                parameters(strategy).expect("it is listed").iter().map(|parameter| parameter.name).collect();
            assert!(known.contains(new) && !known.contains(old), "{strategy}: {old} {new}");
            let help = [ARRAYS.help(), POOLS.help(), SUPERSTEPS.help()].concat();
            assert!(!help.contains(&format!("  {old}=")), "{old}");
        }
    }

    #[test]
    fn both_names_at_once_are_one_parameter_twice() {
        let error = POOLS.parse("ruper,checkpoint=1,interval=2").err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), Some("strategy ruper: parameter \"interval\" is given twice"));
    }

    #[test]
    fn an_old_name_is_told_wherever_it_stands() {
        for spec in ["ruper,checkpoint=1", "ruper, interval=1, t-min=checkpoint/4", "ruper,t-min=checkpoint"]
        {
            assert_eq!(POOLS.old_names(spec).count(), 1, "{spec}");
            assert!(POOLS.parse(spec).is_ok(), "{spec}");
        }
        for spec in ["ruper,interval=1", "static,chunk=1", "checkpoint"] {
            assert_eq!(POOLS.old_names(spec).count(), 0, "{spec}");
        }
    }
}
