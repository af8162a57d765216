//! Reads specifications of policies as users write them: a name and `key=value` pairs, with commas; and lists of these.

use std::fmt;

/// The name in a specification such as `refine,tolerance=0.05`.
///
/// ```
/// assert_eq!(lb_strategies::spec::name_of(" refine , tolerance=0.05"), "refine");
/// ```
pub fn name_of(spec: &str) -> &str {
    spec.split(',').next().unwrap_or(spec).trim()
}

/// The part of a specification after the name.
pub(crate) fn settings_of(spec: &str) -> &str {
    spec.split_once(',').map_or("", |(_, settings)| settings)
}

/// Splits a list of policies at its commas: a part `key=value` is a parameter of the policy before it, and any other
/// part begins the next policy. A `;` always begins the next policy.
///
/// ```
/// use lb_strategies::spec::split_list;
/// let specs = ["none", "refine,tolerance=0.1,band=0", "greedy"];
/// assert_eq!(split_list("none,refine,tolerance=0.1,band=0,greedy")?, specs);
/// assert_eq!(split_list("none; refine, tolerance=0.1, band=0; greedy")?, specs);
/// # Ok::<(), lb_strategies::spec::Nameless>(())
/// ```
///
/// # Errors
/// If a policy has no name.
pub fn split_list(list: &str) -> Result<Vec<String>, Nameless> {
    let mut specs: Vec<String> = Vec::new();
    for group in list.split(';') {
        let before = specs.len();
        for part in group.split(',').map(str::trim) {
            match specs.get_mut(before..).and_then(<[String]>::last_mut) {
                Some(spec) if part.contains('=') => *spec = format!("{spec},{part}"),
                _ if part.is_empty() || part.contains('=') => {
                    return Err(Nameless { list: list.to_owned(), part: part.to_owned(), specs });
                }
                _ => specs.push(part.to_owned()),
            }
        }
    }
    Ok(specs)
}

/// The policies of a list, as the list was read, for users.
///
/// ```
/// use lb_strategies::spec::{read_as, split_list};
/// assert_eq!(read_as(&split_list("none,refine,band=0")?), "none | refine,band=0");
/// # Ok::<(), lb_strategies::spec::Nameless>(())
/// ```
pub fn read_as(specs: &[String]) -> String {
    specs.join(" | ")
}

/// The error that a policy in a list has no name. Its text is a line that shows how the list was read.
///
/// ```
/// let error = lb_strategies::spec::split_list("none,,greedy").unwrap_err();
/// let line = "\"none,,greedy\": the strategy after none has no name; expected NAME[,KEY=VALUE..],NAME[,KEY=VALUE..]..";
/// assert_eq!((error.part.as_str(), error.to_string().as_str()), ("", line));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Nameless {
    /// The list as it was written.
    pub list: String,
    /// The text where a name should be: empty, or a parameter.
    pub part: String,
    /// The policies before it.
    pub specs: Vec<String>,
}

impl fmt::Display for Nameless {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { list, part, specs } = self;
        let fault = match (specs.as_slice(), part.as_str()) {
            ([], "") => "the strategy at its beginning has no name".to_owned(),
            ([], _) => format!("no strategy comes before the parameter {part}"),
            (_, "") => format!("the strategy after {} has no name", read_as(specs)),
            _ => format!("the strategy after {} has no name, but the parameter {part}", read_as(specs)),
        };
        write!(formatter, "{list:?}: {fault}; expected NAME[,KEY=VALUE..],NAME[,KEY=VALUE..]..")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_without_a_name_is_told_with_what_was_read_before() {
        let error = |list| split_list(list).expect_err("it has no name").to_string();
        let expected = "expected NAME[,KEY=VALUE..],NAME[,KEY=VALUE..]..";
        assert_eq!(error(""), format!("\"\": the strategy at its beginning has no name; {expected}"));
        assert_eq!(
            error("none,refine,band=0,"),
            format!(
                "\"none,refine,band=0,\": the strategy after none | refine,band=0 has no name; {expected}"
            )
        );
        assert_eq!(
            error("band=0,refine"),
            format!("\"band=0,refine\": no strategy comes before the parameter band=0; {expected}")
        );
        assert_eq!(
            error("refine;band=0"),
            format!(
                "\"refine;band=0\": the strategy after refine has no name, but the parameter band=0; {expected}"
            )
        );
    }
}
