//! The parameters of a strategy, the values a person gives them, and what is wrong with those.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::Background;

/// A parameter of a strategy.
///
/// ```
/// use lb_strategies::STRATEGIES;
/// let refine = STRATEGIES.iter().find(|entry| entry.name == "refine").expect("listed");
/// let tolerance = refine.parameters[0];
/// assert_eq!((tolerance.name, tolerance.default), ("tolerance", "0.05"));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// The key left of the `=`.
    pub name: &'static str,
    /// The value when the key is not given.
    pub default: &'static str,
    /// What it does, in one line.
    pub meaning: &'static str,
}

/// The `background` parameter, common to the strategies that look at loads.
pub(crate) const BACKGROUND: Parameter = Parameter {
    name: "background",
    default: "share",
    meaning: "how a neighbour counts: as a share of the vCPU, or additive (the paper)",
};

/// The values of one specification, defaults included.
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
    values: BTreeMap<&'static str, String>,
}

impl Parameters {
    /// Reads `key=value` pairs, separated by commas, over the defaults of the parameters that `strategy`
    /// takes.
    pub fn read(
        strategy: &'static str,
        parameters: &'static [Parameter],
        settings: &str,
    ) -> Result<Self, ParseError> {
        let mut values: BTreeMap<_, _> =
            parameters.iter().map(|parameter| (parameter.name, parameter.default.to_owned())).collect();
        let mut given = BTreeSet::new();
        for setting in settings.split(',').map(str::trim).filter(|setting| !setting.is_empty()) {
            let (key, value) =
                setting.split_once('=').map_or((setting, None), |(key, value)| (key, Some(value)));
            let Some(known) = values.get_mut(key.trim()) else {
                let known = parameters.iter().map(|parameter| parameter.name);
                let choice = Choice::new(key.trim(), known);
                return Err(ParseError::UnknownParameter { strategy, choice });
            };
            let Some(value) = value else {
                return Err(ParseError::MissingValue { strategy, key: key.to_owned() });
            };
            if !given.insert(key.trim()) {
                return Err(ParseError::Twice { strategy, key: key.trim().to_owned() });
            }
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
        Ok(!self.second_of(key, ["on", "off"])?)
    }

    /// The value of `key`: the first or the second of two words. Says whether it is the second.
    pub fn second_of(&self, key: &'static str, words: [&str; 2]) -> Result<bool, ParseError> {
        let position = words.iter().position(|word| *word == self.value(key));
        position.map(|position| position == 1).ok_or_else(|| self.bad(key, words.join(" or ")))
    }

    /// The value of `background`.
    pub fn background(&self) -> Result<Background, ParseError> {
        let additive = self.second_of("background", ["share", "additive"])?;
        Ok(if additive { Background::Additive } else { Background::Share })
    }

    /// The value of `key` as it was written.
    pub(crate) fn value(&self, key: &str) -> &str {
        let value = self.values.get(key);
        value
            .unwrap_or_else(|| panic!("it asks for the parameter {key:?}, which is not among those it lists"))
    }

    /// The complaint that the value of `key` is not what was `expected`.
    pub(crate) fn bad(&self, key: &'static str, expected: String) -> ParseError {
        ParseError::BadValue { strategy: self.strategy, key, value: self.value(key).to_owned(), expected }
    }
}

/// What `build` makes with the parameters that `spec` sets. If it panics, the error names whose fault that is.
pub(crate) fn build<T>(
    strategy: &'static str,
    parameters: &'static [Parameter],
    spec: &str,
    build: impl Fn(&Parameters) -> Result<T, ParseError>,
) -> Result<T, ParseError> {
    let parameters = Parameters::read(strategy, parameters, settings_of(spec))?;
    catch_unwind(AssertUnwindSafe(|| build(&parameters))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        Err(ParseError::Panicked { strategy, panic: text.unwrap_or_else(|| "no text".to_owned()) })
    })
}

/// The name in a specification such as `refine,tolerance=0.05`.
///
/// ```
/// assert_eq!(lb_strategies::parameters::name_of(" refine , tolerance=0.05"), "refine");
/// ```
pub fn name_of(spec: &str) -> &str {
    spec.split(',').next().unwrap_or(spec).trim()
}

/// What follows the name in a specification.
fn settings_of(spec: &str) -> &str {
    spec.split_once(',').map_or("", |(_, settings)| settings)
}

/// The entry of a table that `spec` names.
pub(crate) fn select<'t, E>(
    table: &'t [E],
    name: impl Fn(&E) -> &'static str,
    spec: &str,
) -> Result<&'t E, ParseError> {
    let entry = table.iter().find(|entry| name(entry) == name_of(spec));
    entry.ok_or_else(|| ParseError::UnknownStrategy(Choice::new(name_of(spec), table.iter().map(&name))))
}

/// Splits a list of strategies, each of which may carry parameters: a part with a `=` belongs to the strategy before it,
/// and `;` always separates. `None` when a strategy has no name.
///
/// ```
/// use lb_strategies::parameters::split_list;
/// assert_eq!(split_list("none,refine,tolerance=0.1,greedy").expect("names"), ["none", "refine,tolerance=0.1", "greedy"]);
/// assert_eq!(split_list("tolerance=0.1"), None);
/// ```
pub fn split_list(list: &str) -> Option<Vec<String>> {
    let mut specs: Vec<String> = Vec::new();
    for group in list.split(';') {
        let before = specs.len();
        for part in group.split(',').map(str::trim) {
            match specs.get_mut(before..).and_then(<[String]>::last_mut) {
                Some(spec) if part.contains('=') => *spec = format!("{spec},{part}"),
                _ if part.is_empty() || part.contains('=') => return None,
                _ => specs.push(part.to_owned()),
            }
        }
    }
    Some(specs)
}

/// Columns of a table for a person.
const HELP_WIDTH: usize = 100;

/// A table as text for a person: each strategy with its summary, then its parameters with their defaults.
pub(crate) fn help(
    entries: impl Iterator<Item = (&'static str, &'static str, &'static [Parameter])>,
) -> String {
    let mut rows: Vec<(String, &str)> = Vec::new();
    for (name, summary, parameters) in entries {
        rows.push((name.to_owned(), summary));
        rows.extend(
            parameters
                .iter()
                .map(|parameter| (format!("  {}={}", parameter.name, parameter.default), parameter.meaning)),
        );
    }
    let left = rows.iter().map(|(setting, _)| setting.len()).max().unwrap_or(0) + 2;
    let line = |(setting, meaning): &(String, &str)| {
        format!("{setting:<left$}{}\n", wrapped(meaning, HELP_WIDTH - left).join(&format!("\n{:left$}", "")))
    };
    rows.iter().map(line).collect()
}

/// The words of `text` in lines of at most `width` letters, where its words are no longer.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= width => *line += &format!(" {word}"),
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Why a specification was refused; one line that says what, where, and what was expected.
///
/// ```
/// let Err(error) = lb_strategies::parse("refine,tolerence=0.1") else { unreachable!() };
/// assert_eq!(
///     error.to_string(),
///     "strategy refine: unknown parameter \"tolerence\", did you mean \"tolerance\"? \
///      known: tolerance, settle, band, background"
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// Name a listed strategy.
    #[error("unknown strategy {}{}", .0, comma_hint(&.0.given))]
    UnknownStrategy(Choice),
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
        /// What the panic said.
        panic: String,
    },
    /// Correct the value.
    #[error("strategy {strategy}: {key}={value:?} is not {expected}")]
    BadValue {
        /// The strategy that was named.
        strategy: &'static str,
        /// The parameter.
        key: &'static str,
        /// What was written.
        value: String,
        /// What would be right.
        expected: String,
    },
}

/// What people write where a comma belongs.
const NO_COMMA: [char; 4] = [':', '=', ';', ' '];

fn comma_hint(given: &str) -> &'static str {
    if given.contains(NO_COMMA) { "; a comma comes before each parameter: NAME,KEY=VALUE" } else { "" }
}

/// A name that is not on a list, with the list and the nearest name on it.
///
/// ```
/// use lb_strategies::parameters::Choice;
/// let choice = Choice::new("gredy", ["none", "greedy"]);
/// assert_eq!(choice.to_string(), "\"gredy\", did you mean \"greedy\"? known: none, greedy");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// What was written.
    pub given: String,
    /// What could have been meant.
    pub nearest: Option<&'static str>,
    /// What may be written.
    pub known: Vec<&'static str>,
}

impl Choice {
    /// Looks for the known name nearest to `given`; one is suggested if at most a third of its letters
    /// differ.
    pub fn new(given: &str, known: impl IntoIterator<Item = &'static str>) -> Self {
        let known: Vec<_> = known.into_iter().collect();
        let given_name = given.split(NO_COMMA).next().unwrap_or(given).trim();
        let distance = |name: &&str| strsim::damerau_levenshtein(given_name, name);
        let nearest =
            known.iter().copied().min_by_key(distance).filter(|name| 3 * distance(name) <= name.len().max(3));
        Self { given: given.to_owned(), nearest, known }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}", self.given)?;
        if self.known.is_empty() {
            return formatter.write_str("; it takes none");
        }
        if let Some(nearest) = self.nearest {
            write!(formatter, ", did you mean {nearest:?}?")?;
        } else {
            formatter.write_str(";")?;
        }
        write!(formatter, " known: {}", self.known.join(", "))
    }
}
