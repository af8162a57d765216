//! Values of types that the runtime does not know, on their way through a reduction.
//!
//! A rank need not know a type to take part: values that were not combined yet travel as a list. To combine is
//! associative and commutative, so it does not matter who does it, or when, only that nobody is left out; and whoever
//! asks for the result knows the type, and combines what is left. Where a chunk of the rank has contributed, its values
//! bring along how to combine them, and the list never gets longer than one. A rank without such a chunk, in a process of
//! its own, passes on what it was given.
//!
//! To combine runs the user's code, so nothing here is done under a lock but to append to the list: two values that meet
//! leave the core as an [`Task::Combine`](crate::arrays::core::action::Task::Combine) and come back as one.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::wire::WireError;

/// Combines encoded values of a type: the bytes of one from those of several.
pub(crate) type CombineAll = fn(&[Vec<u8>]) -> Result<Vec<u8>, WireError>;

/// Values of a type of the program's own, encoded: see [`Values::own`](crate::Values::own), which makes it, and
/// [`Values::combined`](crate::Values::combined), which reads it.
///
/// ```
/// use caribou::{Combine, Reducer, Values};
/// use serde::{Deserialize, Serialize};
/// #[derive(Serialize, Deserialize)]
/// struct Longest(String);
/// impl Combine for Longest {
///     fn combine(&mut self, other: Longest) {
///         // Of words of one length the first of the alphabet: the order in which words come must not matter.
///         let key = |word: &Longest| (std::cmp::Reverse(word.0.len()), word.0.clone());
///         if key(&other) < key(self) { *self = other; }
///     }
/// }
/// assert!(matches!(Values::own(&Longest("reindeer".into())), Values::Own(_)));
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Own(Box<Parts>);

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Parts {
    type_name: Cow<'static, str>,
    values: Vec<Vec<u8>>,
    /// Stays in the process.
    #[serde(skip)]
    combine: Option<CombineAll>,
}

/// What combines them is no part of the value.
impl PartialEq for Own {
    fn eq(&self, other: &Own) -> bool {
        (&self.0.type_name, &self.0.values) == (&other.0.type_name, &other.0.values)
    }
}

impl Own {
    pub(crate) fn new(type_name: &'static str, value: Vec<u8>, combine: CombineAll) -> Own {
        let (type_name, values) = (Cow::Borrowed(type_name), vec![value]);
        Own(Box::new(Parts { type_name, values, combine: Some(combine) }))
    }

    /// The full name of the type.
    pub(crate) fn type_name(&self) -> &str {
        &self.0.type_name
    }

    /// The values that were not combined yet.
    pub(crate) fn values(&self) -> &[Vec<u8>] {
        &self.0.values
    }

    /// Adds values of the same type.
    pub(crate) fn append(&mut self, other: Own) {
        self.0.values.extend(other.0.values);
        self.0.combine = self.0.combine.or(other.0.combine);
    }

    /// True if there are several values, and it is known how to combine them.
    pub(crate) fn can_combine(&self) -> bool {
        self.0.values.len() > 1 && self.0.combine.is_some()
    }

    /// Combines the values, if it is known how. Runs user code.
    pub(crate) fn combine(&mut self) -> Result<(), WireError> {
        if let Some(combine) = self.0.combine {
            self.0.values = vec![combine(&self.0.values)?];
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire;

    fn value(number: u8, combine: CombineAll) -> Own {
        Own::new("Number", vec![number], combine)
    }

    fn sum(values: &[Vec<u8>]) -> Result<Vec<u8>, WireError> {
        Ok(vec![values.iter().map(|value| value[0]).sum()])
    }

    #[test]
    fn values_that_meet_become_one_where_it_is_known_how() {
        let mut own = value(3, sum);
        assert!(!own.can_combine(), "it is alone");
        own.append(value(4, sum));
        assert!(own.can_combine());
        own.combine().expect("they combine");
        assert_eq!(own.values(), [[7]]);
    }

    #[test]
    fn what_has_left_the_process_is_a_list_until_one_comes_that_knows() {
        let through_the_wire = |own: &Own| -> Own {
            wire::decode(&wire::encode(own).expect("bytes encode")).expect("they decode")
        };
        let mut own = through_the_wire(&value(3, sum));
        own.append(through_the_wire(&value(4, sum)));
        assert!(!own.can_combine());
        assert_eq!(own.values(), [[3], [4]]);
        own.append(value(5, sum));
        assert!(own.can_combine());
        own.combine().expect("they combine");
        assert_eq!(own, value(12, sum));
    }
}
