//! Specifications as people write them: a name, then `key=value` pairs, separated by commas.

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

/// Splits a list of strategies, each of which may carry parameters: a part with a `=` belongs to the strategy before it,
/// and `;` always separates. `None` when a strategy has no name.
///
/// ```
/// use lb_strategies::spec::split_list;
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
