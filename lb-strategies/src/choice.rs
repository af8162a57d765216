//! Suggests the nearest known name for a name that is not on a list.

use std::fmt;

/// Characters that users write where a comma belongs.
pub(crate) const NO_COMMA: [char; 4] = [':', '=', ';', ' '];

/// A name that is not on a list, with the list and the nearest name.
///
/// ```
/// use lb_strategies::Choice;
/// let choice = Choice::new("gredy", ["none", "greedy"]);
/// assert_eq!(choice.to_string(), "\"gredy\", did you mean \"greedy\"? known: none, greedy");
/// assert_eq!(Choice::new("GREEDY", ["none", "greedy"]).nearest, Some("greedy"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The name as written.
    pub given: String,
    /// The nearest known name; none if no name is near.
    pub nearest: Option<&'static str>,
    /// All known names.
    pub known: Vec<&'static str>,
}

impl Choice {
    /// Finds the known name nearest to `given`. A name is suggested if at most a third of its letters differ.
    pub fn new(given: &str, known: impl IntoIterator<Item = &'static str>) -> Self {
        let known: Vec<_> = known.into_iter().collect();
        let given_name = given.split(NO_COMMA).next().unwrap_or(given).trim().to_lowercase();
        let distance = |name: &&str| strsim::damerau_levenshtein(&given_name, &name.to_lowercase());
        let nearest =
            known.iter().copied().min_by_key(distance).filter(|name| 3 * distance(name) <= name.len().max(3));
        Self { given: given.to_owned(), nearest, known }
    }

    /// The name as written, and the nearest name as a question.
    pub(crate) fn suggestion(&self) -> String {
        match self.nearest {
            Some(nearest) => format!("{:?}, did you mean {nearest:?}?", self.given),
            None => format!("{:?};", self.given),
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.known.is_empty() {
            return write!(formatter, "{:?}; it takes none", self.given);
        }
        write!(formatter, "{} known: {}", self.suggestion(), self.known.join(", "))
    }
}
