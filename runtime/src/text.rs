//! Formats counts, durations and names of types for messages to people.

use std::time::Duration;

/// A count with the singular or plural of what is counted.
pub(crate) fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// The message that the number of active ranks has changed, with the number of `all` ranks.
pub(crate) fn resize_line(active: usize, all: usize, before: usize) -> String {
    let ranks = counted(all, "rank", "ranks");
    format!("{active} of {ranks} are active from now on (before: {before})")
}

/// A duration with three digits and its unit, such as `35.5 ms`. Seconds above 999 have more digits.
pub(crate) fn duration(time: Duration) -> String {
    let ns = time.as_nanos() as f64;
    let units = [(1e9, "s"), (1e6, "ms"), (1e3, "us")];
    // A number that three digits round up to 1000 is 1.00 of the larger unit.
    let is_reached = |unit_ns: f64| ns >= 0.9995 * unit_ns;
    let (unit_ns, unit) = units.into_iter().find(|&(unit_ns, _)| is_reached(unit_ns)).unwrap_or((1.0, "ns"));
    let number = ns / unit_ns;
    let digits = if number < 9.995 { 2 } else { usize::from(number < 99.95) };
    format!("{number:.digits$} {unit}")
}

/// A type's name, without its path and its generic arguments.
pub(crate) fn short_type_name<T: ?Sized>() -> &'static str {
    let path = std::any::type_name::<T>();
    let plain = path.split('<').next().unwrap_or(path);
    plain.rsplit("::").next().unwrap_or(plain)
}

/// A type's name with its generic arguments, without paths.
pub(crate) fn type_name_without_paths<T: ?Sized>() -> String {
    let mut parts: Vec<&str> = std::any::type_name::<T>().split("::").collect();
    let last = parts.pop().unwrap_or_default();
    let is_of_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    parts.into_iter().map(|part| part.trim_end_matches(is_of_name)).chain([last]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_three_digits() {
        let text = |ns| duration(Duration::from_nanos(ns));
        assert_eq!([35_544_000, 1_500, 123_000_000_000].map(text), ["35.5 ms", "1.50 us", "123 s"]);
        assert_eq!([999_600, 9_996_000_000, 99_960_000].map(text), ["1.00 ms", "10.0 s", "100 ms"]);
    }

    #[test]
    fn a_whole_name_has_no_paths() {
        assert_eq!(type_name_without_paths::<u64>(), "u64");
        assert_eq!(
            type_name_without_paths::<(Vec<Option<f64>>, [String; 3], u64)>(),
            "(Vec<Option<f64>>, [String; 3], u64)"
        );
    }
}
