//! Reads the values that a user gives to the parameters of a policy.

use std::ops::RangeInclusive;

use litemap::LiteMap;

use crate::choice::Choice;
use crate::parse_error::ParseError;
use crate::renamed::renamed;

/// A parameter of a policy.
///
/// ```
/// use lb_strategies::ARRAYS;
/// let refine = ARRAYS.find("refine").expect("it is listed");
/// let tolerance = refine.parameters[0];
/// assert_eq!((tolerance.name, tolerance.default), ("tolerance", "0.05"));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// The key left of the `=`.
    pub name: &'static str,
    /// The value when the key is not given.
    pub default: &'static str,
    /// Its effect, in one line.
    pub meaning: &'static str,
}

/// The values of all parameters of one specification, including defaults.
///
/// ```
/// use lb_strategies::{Parameter, Parameters};
/// const SEED: Parameter = Parameter { name: "seed", default: "1", meaning: "fixes the draws" };
/// assert_eq!(Parameters::read("mine", &[SEED], "")?.integer("seed")?, 1);
/// assert_eq!(Parameters::read("mine", &[SEED], "seed = 7")?.integer("seed")?, 7);
/// assert!(Parameters::read("mine", &[SEED], "seeds=7").is_err());
/// # Ok::<(), lb_strategies::ParseError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Parameters {
    strategy: &'static str,
    values: LiteMap<&'static str, String>,
}

impl Parameters {
    /// Reads `key=value` pairs, separated by commas. Parameters that are not given have their default. The old name of
    /// a [renamed](mod@crate::renamed) parameter counts as the new one.
    pub fn read(
        strategy: &'static str,
        parameters: &'static [Parameter],
        settings: &str,
    ) -> Result<Self, ParseError> {
        let mut values = LiteMap::new();
        for parameter in parameters {
            values.insert(parameter.name, parameter.default.to_owned());
        }
        let mut given = Vec::new();
        for setting in settings.split(',').map(str::trim).filter(|setting| !setting.is_empty()) {
            let (key, value) =
                setting.split_once('=').map_or((setting, None), |(key, value)| (key, Some(value)));
            let key = present_name(strategy, parameters, key.trim());
            let Some(known) = values.get_mut(key) else {
                let known = parameters.iter().map(|parameter| parameter.name);
                let choice = Choice::new(key, known);
                return Err(ParseError::UnknownParameter { strategy, choice });
            };
            let Some(value) = value else {
                return Err(ParseError::MissingValue { strategy, key: key.to_owned() });
            };
            if given.contains(&key) {
                return Err(ParseError::Twice { strategy, key: key.to_owned() });
            }
            given.push(key);
            value.trim().clone_into(known);
        }
        Ok(Self { strategy, values })
    }

    /// The value of `key` as a number within `range`.
    pub fn number(&self, key: &'static str, range: RangeInclusive<f64>) -> Result<f64, ParseError> {
        let value = self.value(key).parse().ok().filter(|number| range.contains(number));
        value.ok_or_else(|| self.bad(key, format!("a number from {} to {}", range.start(), range.end())))
    }

    /// The value of `key` as a number within `range`; `None` for `word`.
    pub fn number_or(
        &self,
        key: &'static str,
        range: RangeInclusive<f64>,
        word: &str,
    ) -> Result<Option<f64>, ParseError> {
        if self.value(key) == word {
            return Ok(None);
        }
        let number = self.number(key, range.clone());
        number.map(Some).map_err(|_| {
            self.bad(key, format!("{word} or a number from {} to {}", range.start(), range.end()))
        })
    }

    /// The value of `key` as a whole number.
    pub fn integer(&self, key: &'static str) -> Result<u64, ParseError> {
        self.value(key).parse().map_err(|_| self.bad(key, format!("a whole number from 0 to {}", u64::MAX)))
    }

    /// The value of `key` as a whole number of a range.
    pub fn whole(&self, key: &'static str, range: RangeInclusive<u64>) -> Result<u64, ParseError> {
        let value = self.value(key).parse().ok().filter(|value| range.contains(value));
        value
            .ok_or_else(|| self.bad(key, format!("a whole number from {} to {}", range.start(), range.end())))
    }

    /// The value of `key` as a whole number, at least 1; `None` for `auto`.
    pub fn count_or_auto(&self, key: &'static str) -> Result<Option<u64>, ParseError> {
        match self.value(key) {
            "auto" => Ok(None),
            value => match value.parse() {
                Ok(count) if count > 0 => Ok(Some(count)),
                _ => Err(self.bad(key, format!("auto or a whole number from 1 to {}", u64::MAX))),
            },
        }
    }

    /// The value of `key`: `on` or `off`.
    pub fn switch(&self, key: &'static str) -> Result<bool, ParseError> {
        self.one_of(key, &[("on", true), ("off", false)])
    }

    /// The value of `key` as one of these words; returns the choice beside the word.
    pub fn one_of<T: Copy>(&self, key: &'static str, choices: &[(&str, T)]) -> Result<T, ParseError> {
        let chosen = choices.iter().find(|(word, _)| *word == self.value(key));
        let words = || choices.iter().map(|&(word, _)| word).collect::<Vec<_>>().join(" or ");
        chosen.map(|&(_, value)| value).ok_or_else(|| self.bad(key, words()))
    }

    /// The value of `key` as written.
    pub(crate) fn value(&self, key: &str) -> &str {
        let value = self.values.get(key);
        value.unwrap_or_else(|| panic!("the parameter {key:?} is read, but the strategy does not list it"))
    }

    /// The error for a value of `key` that is not as `expected`.
    pub(crate) fn bad(&self, key: &'static str, expected: String) -> ParseError {
        ParseError::BadValue { strategy: self.strategy, key, value: self.value(key).to_owned(), expected }
    }
}

/// The present name of the parameter `key`, which may be an old name.
fn present_name<'k>(strategy: &str, parameters: &[Parameter], key: &'k str) -> &'k str {
    let is_known = parameters.iter().any(|parameter| parameter.name == key);
    let present = renamed(strategy).find(|renamed| !is_known && renamed.old == key);
    present.map_or(key, |renamed| renamed.new)
}
