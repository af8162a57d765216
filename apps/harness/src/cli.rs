//! Parses the command line of every program. A fault becomes one line and exit code 2.

use clap::error::ErrorKind;
use clap::{Arg, Parser};
use lb_strategies::spec::split_list;
use presentation::format::escape_control;

use crate::error::Error;

/// Reads the command line.
///
/// # Errors
/// [`Error::Listed`] with the requested help, or [`Error::Usage`] with one line that names the fault.
pub fn parse<T: Parser>(arguments: impl IntoIterator<Item = std::ffi::OsString>) -> Result<T, Error> {
    let options = |argument: Arg| {
        let negative = argument.get_action().takes_values() && !argument.is_positional();
        argument.allow_negative_numbers(negative)
    };
    // A number below 0 is then reported as a wrong value, not as an unknown option.
    let mut command = T::command().mut_args(options);
    let matches = command.try_get_matches_from_mut(arguments);
    let parsed = matches.and_then(|matches| T::from_arg_matches(&matches));
    parsed.map_err(|error| {
        let text = error.render().to_string();
        match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Error::Listed(text),
            _ => Error::Usage(one_line(&text)),
        }
    })
}

/// Joins the first paragraph of clap's message and its tip into one line that ends with a hint to `--help`.
fn one_line(text: &str) -> String {
    let mut paragraphs = text.split("\n\n").map(|paragraph| {
        paragraph.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
    });
    let mut line = paragraphs.next().unwrap_or_default();
    line = line.strip_prefix("error: ").map(str::to_owned).unwrap_or(line);
    if let Some(tip) = paragraphs.find(|paragraph| paragraph.starts_with("tip:")) {
        line = format!("{line} ({tip})");
    }
    escape_control(&format!("{line}; --help lists the options"))
}

/// Splits the list of strategies given to `--compare`, by the rule of [`split_list`].
///
/// # Errors
/// [`Error::Usage`] when a strategy has no name.
pub fn strategies(list: &str) -> Result<Vec<String>, Error> {
    let named = |error| Error::Usage(format!("--compare {error}; --lb help lists the names"));
    split_list(list).map_err(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Options {
        #[arg(long)]
        grid: Option<u32>,
        #[arg(long)]
        must: u32,
    }

    fn refusal(arguments: &[&str]) -> Error {
        let all = ["program"].iter().chain(arguments);
        parse::<Options>(all.map(std::ffi::OsString::from)).unwrap_err()
    }

    #[test]
    fn every_complaint_is_one_line_with_a_way_on() {
        for (arguments, words) in [
            (&["--gird", "5", "--must", "1"][..], "'--grid'"),
            (&["--grid", "x", "--must", "1"], "invalid value 'x' for '--grid <GRID>'"),
            (&["--grid", "-1", "--must", "1"], "invalid value '-1' for '--grid <GRID>'"),
            // Clap removes escape sequences.
            (&["--grid", "1\u{1b}[31m", "--must", "1"], "invalid value '1' for"),
            (&[], "not provided: --must"),
            (&["stray", "--must", "1"], "'stray'"),
        ] {
            let Error::Usage(text) = refusal(arguments) else { panic!("{arguments:?}") };
            assert!(text.contains(words) && !text.contains('\n') && text.contains("--help"), "{text}");
            assert!(!text.starts_with("error"), "its teller says so: {text}");
        }
    }

    #[test]
    fn help_is_not_a_complaint() {
        let refusal = refusal(&["--help"]);
        assert!(matches!(&refusal, Error::Listed(text) if text.lines().count() > 3), "{refusal}");
    }

    #[test]
    fn parameters_stay_with_their_strategy() {
        let list = |text| strategies(text).unwrap();
        assert_eq!(list("none,refine"), ["none", "refine"]);
        assert_eq!(
            list("none,refine,tolerance=0.1,background=share,greedy"),
            ["none", "refine,tolerance=0.1,background=share", "greedy"]
        );
        assert_eq!(list("refine,tolerance=0.1; refine"), ["refine,tolerance=0.1", "refine"]);
        for bad in ["", "none,", "tolerance=0.1", "none;tolerance=0.1", ",none"] {
            assert!(strategies(bad).is_err(), "{bad}");
        }
    }
}
