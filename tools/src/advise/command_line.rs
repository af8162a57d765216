//! Finds the options with which a run was started, and writes a change as settings of the same kind.
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

/// A setting with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Setting {
    /// An option of the program.
    Option(&'static str, String),
    /// A variable.
    Variable(&'static str, String),
    /// Something that the user has to find out how to set.
    Words(String),
}

impl Setting {
    /// An option if the run was started with it, else a variable.
    pub(super) fn new(
        arguments: &[String],
        option: &'static str,
        variable: &'static str,
        value: String,
    ) -> Setting {
        let is_option = option_value(arguments, option).is_some()
            || option == "--lb" && option_value(arguments, STRATEGIES).is_some();
        if is_option { Setting::Option(option, value) } else { Setting::Variable(variable, value) }
    }

    /// The size of chunks; none if it is the recorded one.
    pub(super) fn size(arguments: &[String], size: Size) -> Option<Setting> {
        let words = match size {
            Size::Same => return None,
            Size::Divided(parts) => format!("({parts} times as many chunks)"),
            Size::Joined(count) => format!("(1/{count} of the chunks)"),
        };
        let typed = recorded_size(arguments).and_then(|(name, value, power)| {
            resized(value, power, size).map(|value| Setting::Option(name, value.to_string()))
        });
        Some(typed.unwrap_or(Setting::Words(words)))
    }

    /// The setting as it is typed.
    pub(super) fn text(&self) -> String {
        match self {
            Setting::Option(name, value) => format!("{name} {value}"),
            Setting::Variable(name, value) => format!("{name}={value}"),
            Setting::Words(words) => words.clone(),
        }
    }
}

/// The command line of the run with these settings; none if one of them has no option or variable.
pub(super) fn command(arguments: &[String], settings: &[Setting]) -> Option<String> {
    let mut line = Vec::new();
    let mut words: Vec<String> = arguments.to_vec();
    for setting in settings {
        match setting {
            Setting::Variable(name, value) => line.push(format!("{name}={}", quoted(value))),
            Setting::Option(name, value) => {
                without(&mut words, name);
                if *name == "--lb" {
                    without(&mut words, STRATEGIES);
                }
                words.extend([(*name).to_owned(), value.clone()]);
            }
            Setting::Words(_) => return None,
        }
    }
    line.extend(words.iter().map(|word| quoted(word)));
    (!arguments.is_empty()).then(|| line.join(" "))
}

/// Removes an option and its value.
fn without(words: &mut Vec<String>, option: &str) {
    while let Some(place) = words.iter().position(|word| is_option(word, option)) {
        let end = if words[place].len() == option.len() { place + 2 } else { place + 1 };
        words.drain(place..end.min(words.len()));
    }
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=,:%+@".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// Whether a word is this option, with its value in the same word or in the next one.
fn is_option(word: &str, option: &str) -> bool {
    word.strip_prefix(option).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
}

/// The value of an option.
pub(super) fn option_value<'a>(arguments: &'a [String], option: &str) -> Option<&'a str> {
    let mut arguments = arguments.iter();
    let word = arguments.find(|word| is_option(word, option))?;
    match word.split_once('=') {
        Some((_, value)) => Some(value),
        None => arguments.next().map(String::as_str),
    }
}

/// The option for the size of chunks, its value, and the power.
fn recorded_size(arguments: &[String]) -> Option<(&'static str, f64, f64)> {
    SIZES
        .into_iter()
        .find_map(|(name, power)| Some((name, option_value(arguments, name)?.parse().ok()?, power)))
}

/// The value of the option for chunks of another size; none if it would not be whole.
fn resized(value: f64, power: f64, size: Size) -> Option<f64> {
    let value = value * size.factor().powf(power);
    Some(value.round()).filter(|whole| (whole - value).abs() < 1e-9 && *whole >= 1.0)
}

/// Whether chunks may have this size: with a known option, its value must be whole.
pub(super) fn has_size(arguments: &[String], size: Size) -> bool {
    recorded_size(arguments).is_none_or(|(_, value, power)| resized(value, power, size).is_some())
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
        let text = |option, variable| Setting::new(&arguments, option, variable, "x".into()).text();
        assert_eq!(text("--lb", "CARIBOU_LB"), "--lb x");
        assert_eq!(text("--workers", "CARIBOU_WORKERS"), "CARIBOU_WORKERS=x");
        let compared = Setting::new(&line("pic --compare none,refine"), "--lb", "CARIBOU_LB", "comm".into());
        assert_eq!(compared, Setting::Option("--lb", "comm".into()));
        assert_eq!(
            (option_value(&arguments, "--ranks"), option_value(&arguments, "--period")),
            (Some("2"), None)
        );
    }

    #[test]
    fn sides_change_by_the_root_of_the_number_of_chunks() {
        let text = |arguments: &str, size| Setting::size(&line(arguments), size).unwrap().text();
        assert_eq!(text("stencil2d --chunk 128", Size::Divided(4)), "--chunk 64");
        let chunk = line("stencil2d --chunk 128");
        assert!(
            has_size(&chunk, Size::Joined(4)) && !has_size(&chunk, Size::Divided(2)),
            "a side of 90.5 cells"
        );
        assert_eq!(text("pic --tiles=3", Size::Divided(16)), "--tiles 12");
        assert!(!has_size(&line("pic --tiles 3"), Size::Joined(4)));
        assert_eq!(text("ring --chunks 10", Size::Joined(2)), "--chunks 5");
        assert_eq!(text("mine", Size::Joined(2)), "(1/2 of the chunks)");
        assert_eq!(Setting::size(&chunk, Size::Same), None);
    }

    #[test]
    fn a_command_has_each_setting_once() {
        let settings = [
            Setting::Option("--lb", "refine".into()),
            Setting::Variable("CARIBOU_LB_PERIOD", "auto".into()),
            Setting::Option("--tiles", "6".into()),
        ];
        let arguments = line("bin/pic --compare none,refine --tiles=3 --slow 1:2 --plot");
        let arguments = [arguments, vec!["a picture.svg".into()]].concat();
        assert_eq!(
            command(&arguments, &settings).unwrap(),
            "CARIBOU_LB_PERIOD=auto bin/pic --slow 1:2 --plot 'a picture.svg' --lb refine --tiles 6"
        );
        assert_eq!(command(&arguments, &[Setting::Words("(1/2 of the chunks)".into())]), None);
    }
}
