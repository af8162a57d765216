//! Finds the options with which a run was started, and writes a change as an option of the same kind.
//!
//! Options win over variables, so a change of a setting that was an option must be an option again. How many chunks a
//! program has is its own matter: three options of the programs of this repository are known.

use super::program::Size;

/// Options for the size of chunks, and the power of the number of chunks by which their value grows.
const SIZES: [(&str, f64); 3] = [
    // Sides of square chunks, and numbers of squares along a side.
    ("--chunk", -0.5),
    ("--tiles", 0.5),
    ("--chunks", 1.0),
];
/// An option that names several strategies stands for `--lb` too.
const STRATEGIES: &str = "--compare";

/// The value of an option.
pub(super) fn value<'a>(arguments: &'a [String], option: &str) -> Option<&'a str> {
    let mut arguments = arguments.iter();
    let rest = arguments.find_map(|argument| {
        argument.strip_prefix(option).filter(|rest| rest.is_empty() || rest.starts_with('='))
    })?;
    if rest.is_empty() { arguments.next().map(String::as_str) } else { rest.strip_prefix('=') }
}

/// The beginning of a setting, up to its value.
pub(super) fn setting(arguments: &[String], option: &str, variable: &str) -> String {
    let is_option =
        value(arguments, option).is_some() || option == "--lb" && value(arguments, STRATEGIES).is_some();
    if is_option { format!("{option} ") } else { format!("{variable}=") }
}

/// The option for chunks of the recorded size, its value, and the power.
fn recorded(arguments: &[String]) -> Option<(&'static str, f64, f64)> {
    SIZES.into_iter().find_map(|(name, power)| Some((name, value(arguments, name)?.parse().ok()?, power)))
}

/// The value of the option for chunks of another size; none if it would not be whole.
fn resized(value: f64, power: f64, size: Size) -> Option<f64> {
    let value = value * size.factor().powf(power);
    Some(value.round()).filter(|whole| (whole - value).abs() < 1e-9 && *whole >= 1.0)
}

/// Whether chunks may have this size: with a known option, its value must be whole.
pub(super) fn has(arguments: &[String], size: Size) -> bool {
    recorded(arguments).is_none_or(|(_, value, power)| resized(value, power, size).is_some())
}

/// How to have chunks of this size; none for the recorded size.
pub(super) fn size(arguments: &[String], size: Size) -> Option<String> {
    let words = match size {
        Size::Same => return None,
        Size::Divided(parts) => format!("({parts} times as many chunks)"),
        Size::Joined(count) => format!("(1/{count} of the chunks)"),
    };
    let typed = recorded(arguments)
        .and_then(|(name, value, power)| resized(value, power, size).map(|value| format!("{name} {value}")));
    Some(typed.unwrap_or(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_setting_is_typed_as_it_was() {
        let arguments = line("stencil2d --lb=none --ranks 2 --period");
        assert_eq!(setting(&arguments, "--lb", "CARIBOU_LB"), "--lb ");
        assert_eq!(setting(&arguments, "--workers", "CARIBOU_WORKERS"), "CARIBOU_WORKERS=");
        assert_eq!(setting(&line("pic --compare none,refine"), "--lb", "CARIBOU_LB"), "--lb ");
        assert_eq!((value(&arguments, "--ranks"), value(&arguments, "--period")), (Some("2"), None));
    }

    #[test]
    fn sides_change_by_the_root_of_the_number_of_chunks() {
        let chunk = line("stencil2d --chunk 128");
        assert_eq!(size(&chunk, Size::Divided(4)).unwrap(), "--chunk 64");
        assert!(has(&chunk, Size::Joined(4)) && !has(&chunk, Size::Divided(2)), "a side of 90.5 cells");
        assert_eq!(size(&line("pic --tiles=3"), Size::Divided(16)).unwrap(), "--tiles 12");
        assert!(!has(&line("pic --tiles 3"), Size::Joined(4)));
        assert_eq!(size(&line("ring --chunks 10"), Size::Joined(2)).unwrap(), "--chunks 5");
        assert_eq!(size(&line("mine"), Size::Joined(2)).unwrap(), "(1/2 of the chunks)");
        assert_eq!(size(&chunk, Size::Same), None);
    }
}
