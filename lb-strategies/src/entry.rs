//! Describes a policy as a user selects it: its name, its parameters, and its constructor.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::parameters::{Parameter, Parameters};
use crate::parse_error::ParseError;
use crate::spec::settings_of;

/// A row of a [`Table`](crate::Table) of policies: `Entry<dyn Strategy>` for arrays, `Entry<dyn PoolStrategy>` for
/// pools.
///
/// ```
/// use lb_strategies::{ARRAYS, Entry, Parameter, Strategy};
/// let mine: Entry<dyn Strategy> = Entry {
///     name: "often",
///     summary: "refine, already at a small imbalance",
///     parameters: &[Parameter { name: "percent", default: "1", meaning: "what is tolerated" }],
///     build: |parameters| ARRAYS.parse(&format!("refine,tolerance={}", parameters.number("percent", 0.0..=100.0)? / 100.0)),
/// };
/// assert_eq!(mine.make("often,percent=2")?.name(), "refine");
/// # Ok::<(), lb_strategies::ParseError>(())
/// ```
pub struct Entry<P: ?Sized> {
    /// The name, which comes before the first comma of a specification.
    pub name: &'static str,
    /// The policy in one line.
    pub summary: &'static str,
    /// Its parameters, with defaults.
    pub parameters: &'static [Parameter],
    /// Makes the policy; fails if a value has the wrong form.
    pub build: fn(&Parameters) -> Result<Box<P>, ParseError>,
}

// Derived implementations would require `P: Clone` and `P: Copy`.
impl<P: ?Sized> Clone for Entry<P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: ?Sized> Copy for Entry<P> {}

impl<P: ?Sized> Entry<P> {
    /// Makes this policy with the parameters in `spec`, which starts with the policy's name.
    ///
    /// # Errors
    /// If the parameters are wrong, or the policy panicked when it was made.
    pub fn make(&self, spec: &str) -> Result<Box<P>, ParseError> {
        let parameters = Parameters::read(self.name, self.parameters, settings_of(spec))?;
        catch_unwind(AssertUnwindSafe(|| (self.build)(&parameters))).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
            let panic = text.unwrap_or_else(|| "no text".to_owned());
            Err(ParseError::Panicked { strategy: self.name, panic })
        })
    }

    /// The entry as lines of help: its name, then its parameters with defaults and meanings.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (String, &'static str)> {
        let setting = |parameter: &Parameter| {
            (format!("  {}={}", parameter.name, parameter.default), parameter.meaning)
        };
        [(self.name.to_owned(), self.summary)].into_iter().chain(self.parameters.iter().map(setting))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_that_panics_when_it_is_made_is_named() {
        let entry: Entry<dyn Send> = Entry {
            name: "mine",
            summary: "asks for what it does not list",
            parameters: &[],
            build: |parameters| parameters.integer("how").map(|_| unreachable!("it is not listed")),
        };
        let error = entry.make("mine").err().expect("there is no such parameter").to_string();
        let expected = "strategy mine panicked when it was created: the parameter \"how\" is read, but the strategy does \
                        not list it";
        assert_eq!(error, expected);
    }
}
