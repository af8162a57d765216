//! User-defined values in a reduction: the runtime carries them as bytes and calls the user's function to combine them.
//!
//! Combining is associative and commutative, so any rank may combine the values at any time, if none is left out.
//!
//! # Rules
//! 1. Values that have not been combined travel as a list, so a rank without the type can take part.
//! 2. The values of a chunk carry the function that combines them, within a process. On a rank where such a chunk has
//!    contributed, the list has at most one value.
//! 3. A rank without such a function sends on the list.
//! 4. The caller that reads the result has the type, and combines the remaining values.
//! 5. Combining runs user code, so under a lock values are only appended to the list. Two values leave the core in a
//!    [`Task::Combine`](crate::arrays::core::command::Task::Combine), and come back as one.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::wire::WireError;

/// Combines several encoded values of one type into one.
pub(crate) type CombineAll = fn(&[Vec<u8>]) -> Result<Vec<u8>, WireError>;

/// Values of a user-defined type, encoded. [`Values::own`](crate::Values::own) makes them, and
/// [`Values::combined`](crate::Values::combined) reads them.
///
/// ```
/// use caribou::{Combine, Reducer, Values};
/// use serde::{Deserialize, Serialize};
/// #[derive(Serialize, Deserialize)]
/// struct Longest(String);
/// impl Combine for Longest {
///     fn combine(&mut self, other: Longest) {
///         // Of words of equal length the alphabetically first: the result must not depend on the order of words.
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
    /// Never leaves the process.
    #[serde(skip)]
    combine: Option<CombineAll>,
}

/// The function that combines values is not part of the value.
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

    /// The values that have not been combined yet.
    pub(crate) fn values(&self) -> &[Vec<u8>] {
        &self.0.values
    }

    /// Adds values of the same type.
    pub(crate) fn append(&mut self, other: Own) {
        self.0.values.extend(other.0.values);
        self.0.combine = self.0.combine.or(other.0.combine);
    }

    /// True if there are several values, and one of them has brought the function that combines them.
    pub(crate) fn can_combine(&self) -> bool {
        self.0.values.len() > 1 && self.0.combine.is_some()
    }

    /// Combines the values, if one of them has brought the function for that. Runs user code.
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
    fn values_that_meet_become_one_where_the_function_is_known() {
        let mut own = value(3, sum);
        assert!(!own.can_combine(), "it is alone");
        own.append(value(4, sum));
        assert!(own.can_combine());
        own.combine().expect("they combine");
        assert_eq!(own.values(), [[7]]);
    }

    #[test]
    fn values_that_left_their_process_are_a_list_until_one_brings_the_function() {
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
