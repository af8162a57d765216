//! Keeps the policies for one [`Shape`] of program, and selects one as a user writes it: `refine,tolerance=0.1`.
//!
//! Our tables are constants in the source, and not filled by plug-ins at start. So they have the same order everywhere.
//! A program adds its own policies to a copy.

use crate::choice::Choice;
use crate::entry::Entry;
use crate::parse_error::ParseError;
use crate::renamed::{Renamed, renamed};
use crate::shape::Shape;
use crate::spec::{name_of, settings_of};

/// The policies for one shape of program, simplest first. [`ARRAYS`](crate::ARRAYS), [`POOLS`](crate::POOLS) and
/// [`SUPERSTEPS`](crate::SUPERSTEPS) are ours.
///
/// ```
/// use lb_strategies::{ARRAYS, Background};
/// assert_eq!(ARRAYS.parse("refine, tolerance=0.1, background=additive")?.terms().background, Background::Additive);
/// let Err(error) = ARRAYS.parse("refin") else { unreachable!() };
/// let line = error.to_string();
/// assert!(line.starts_with("unknown strategy \"refin\", did you mean \"refine\"? known: none, program, rotate, "));
/// # Ok::<(), lb_strategies::ParseError>(())
/// ```
pub struct Table<P: ?Sized + 'static> {
    shape: Shape,
    ours: &'static [Entry<P>],
    own: Vec<Entry<P>>,
    shape_of: fn(&str) -> Option<Shape>,
}

impl<P: ?Sized> Clone for Table<P> {
    fn clone(&self) -> Self {
        Self { shape: self.shape, ours: self.ours, own: self.own.clone(), shape_of: self.shape_of }
    }
}

impl<P: ?Sized> Table<P> {
    /// A table of `ours`. `shape_of` returns the shape that a policy is for, to explain why it is not in this table.
    pub(crate) const fn new(
        shape: Shape,
        ours: &'static [Entry<P>],
        shape_of: fn(&str) -> Option<Shape>,
    ) -> Self {
        Self { shape, ours, own: Vec::new(), shape_of }
    }

    /// Adds a policy of the program. Its name takes precedence over our names.
    pub fn register(&mut self, entry: Entry<P>) {
        self.own.push(entry);
    }

    /// All entries, the program's own first.
    pub fn iter(&self) -> impl Iterator<Item = &Entry<P>> {
        self.own.iter().chain(self.ours)
    }

    /// The entry that `spec` names.
    pub fn find(&self, spec: &str) -> Option<&Entry<P>> {
        self.iter().find(|entry| entry.name == name_of(spec))
    }

    /// Makes the policy that `spec` describes: a name, then `key=value` pairs, separated by commas.
    ///
    /// # Errors
    /// If the name is unknown, or is a policy for another shape, or the parameters are wrong.
    pub fn parse(&self, spec: &str) -> Result<Box<P>, ParseError> {
        let name = name_of(spec);
        match (self.find(spec), (self.shape_of)(name)) {
            (Some(entry), _) => entry.make(spec),
            (None, Some(other)) => Err(self.misplaced(name, other)),
            (None, None) => {
                let known = self.names().join(", ");
                Err(ParseError::UnknownStrategy { choice: Choice::new(name, self.names()), known })
            }
        }
    }

    /// The old parameter names in `spec`, if it names one of our policies. They are read, but users should be warned.
    pub fn old_names(&self, spec: &str) -> impl Iterator<Item = Renamed> {
        let is_own = self.own.iter().any(|entry| entry.name == name_of(spec));
        let is_ours = !is_own && self.find(spec).is_some();
        renamed(name_of(spec)).filter(move |renamed| is_ours && renamed.is_used_in(settings_of(spec)))
    }

    /// The default policy.
    pub fn default_policy(&self) -> Box<P> {
        let spec = self.shape.default_spec();
        let entry = self.ours.iter().find(|entry| entry.name == spec);
        entry.expect("it is in the table").make(spec).expect("defaults are valid")
    }
}

/// What every table can do, for policies of any shape.
pub trait Listing {
    /// The shape of the programs that the policies balance.
    fn shape(&self) -> Shape;

    /// Names of the policies, the program's own first.
    fn names(&self) -> Vec<&'static str>;

    /// Names of the program's own policies.
    fn own_names(&self) -> Vec<&'static str>;

    /// The table as text for users: each policy, then its parameters with their defaults.
    ///
    /// ```
    /// use lb_strategies::{ARRAYS, Listing};
    /// assert!(ARRAYS.help().contains("refine ") && ARRAYS.help().contains("  tolerance=0.05 "));
    /// ```
    fn help(&self) -> String;

    /// The error if the policy `name`, which is for programs of shape `of`, is used for a program of this shape.
    ///
    /// ```
    /// use lb_strategies::{Listing, POOLS, Shape};
    /// let line = POOLS.misplaced("greedy", Shape::Arrays).to_string();
    /// assert!(line.starts_with("`greedy` balances arrays, but this is a pool of iterations: use one of static, guided,"));
    /// ```
    fn misplaced(&self, name: &str, of: Shape) -> ParseError {
        ParseError::Misplaced { name: name.to_owned(), of, here: self.shape(), known: self.names() }
    }
}

impl<P: ?Sized> Listing for Table<P> {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn names(&self) -> Vec<&'static str> {
        self.iter().map(|entry| entry.name).collect()
    }

    fn own_names(&self) -> Vec<&'static str> {
        self.own.iter().map(|entry| entry.name).collect()
    }

    fn help(&self) -> String {
        in_columns(&self.iter().flat_map(Entry::lines).collect::<Vec<_>>())
    }
}

/// Width of the help text, in letters.
const HELP_WIDTH: usize = 100;

/// Settings in a column, with their meanings beside them.
fn in_columns(rows: &[(String, &str)]) -> String {
    let left = rows.iter().map(|(setting, _)| setting.len()).max().unwrap_or(0) + 2;
    let line = |(setting, meaning): &(String, &str)| {
        format!("{setting:<left$}{}\n", wrapped(meaning, HELP_WIDTH - left).join(&format!("\n{:left$}", "")))
    };
    rows.iter().map(line).collect()
}

/// The words of `text` in lines of at most `width` letters. A longer word has its own line.
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
