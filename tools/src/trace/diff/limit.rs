//! Parses and checks `--fail-if`, a limit for the change of a cause.

use std::str::FromStr;

use super::measures::Cause;
use super::side::{Change, Side};

/// A limit for the ratio of one cause.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Limit {
    cause: Cause,
    over: bool,
    ratio: f64,
    text: String,
}

impl Limit {
    /// Describes how the limit was exceeded; none if it was not.
    pub(super) fn broken(&self, before: &Side, after: &Side) -> Option<String> {
        let ratio = Change::of(self.cause.name(), before, after, |run| run.cause_ns(self.cause)).ratio();
        let broken = if self.over { ratio > self.ratio } else { ratio < self.ratio };
        let name = self.cause.name();
        broken.then(|| format!("{name} is {ratio:.4} times what it was: --fail-if '{}'", self.text))
    }
}

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Limit, String> {
        let wrong = || "expected a cause, > or <, and a ratio, such as total > 1.05".to_owned();
        let at = text.find(['<', '>']).ok_or_else(wrong)?;
        let (name, rest) = (text[..at].trim(), text[at + 1..].trim());
        let cause = Cause::ALL.into_iter().find(|cause| cause.name() == name).ok_or_else(|| {
            let names: Vec<&str> = Cause::ALL.iter().map(|cause| cause.name()).collect();
            format!("`{name}` is none of {}", names.join(", "))
        })?;
        let ratio = rest.parse().ok().filter(|ratio: &f64| ratio.is_finite()).ok_or_else(wrong)?;
        Ok(Limit { cause, over: text[at..].starts_with('>'), ratio, text: text.trim().into() })
    }
}
