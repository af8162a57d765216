//! The command line as all programs here treat it: one line for what is wrong, exit code 2, lists of strategies.

use std::io::Write;
use std::process::ExitCode;

use caribou::Launch;
use clap::error::ErrorKind;
use clap::{Arg, Parser};
use lb_strategies::spec::split_list;
use presentation::words::visible;

use crate::error::Error;
use crate::launch;

/// Why a program does not start: the text to print, and how to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    text: String,
    /// Help that was asked for is a result; everything else is a complaint.
    asked_for: bool,
}

impl Refusal {
    /// Prints the text where it belongs and returns the exit code: 0 for help, 2 for a bad command line. Of several
    /// processes only the one that speaks prints.
    #[must_use]
    pub fn report(&self, launch: Launch) -> ExitCode {
        if !self.asked_for {
            launch.refuse(&self.text, 2);
        }
        // A closed stream leaves nobody to tell.
        let _ = match (launch.speaks(), self.asked_for) {
            (true, true) => write!(std::io::stdout(), "{}", self.text),
            (true, false) => writeln!(std::io::stderr(), "{}", self.text),
            (false, true) => Ok(()),
            (false, false) => {
                launch::give_way();
                Ok(())
            }
        };
        if self.asked_for { ExitCode::SUCCESS } else { ExitCode::from(2) }
    }
}

/// Reads the command line.
///
/// # Errors
/// [`Refusal`] with the help that was asked for, or with one line that says what is wrong.
pub fn parse<T: Parser>(arguments: impl IntoIterator<Item = std::ffi::OsString>) -> Result<T, Refusal> {
    let options = |argument: Arg| {
        let negative = argument.get_action().takes_values() && !argument.is_positional();
        argument.allow_negative_numbers(negative)
    };
    // So that a number below 0 is a wrong value, and no unknown option.
    let mut command = T::command().mut_args(options);
    let matches = command.try_get_matches_from_mut(arguments);
    let parsed = matches.and_then(|matches| T::from_arg_matches(&matches));
    parsed.map_err(|error| {
        let asked_for = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
        let text = error.render().to_string();
        Refusal { text: if asked_for { text } else { one_line(&text) }, asked_for }
    })
}

/// The first paragraph of clap's explanation and its tip, in one line, with a way on.
fn one_line(text: &str) -> String {
    let mut paragraphs = text.split("\n\n").map(|paragraph| {
        paragraph.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
    });
    let mut line = paragraphs.next().unwrap_or_default();
    if let Some(tip) = paragraphs.find(|paragraph| paragraph.starts_with("tip:")) {
        line = format!("{line} ({tip})");
    }
    visible(&format!("{line}; --help lists the options"))
}

/// Splits a list of strategies, each of which may carry parameters: `none,refine,tolerance=0.1,greedy` are three.
///
/// A part with a `=` belongs to the strategy before it; `;` always separates.
///
/// # Errors
/// [`Error::Usage`] when a strategy has no name.
pub fn strategies(list: &str) -> Result<Vec<String>, Error> {
    split_list(list).ok_or_else(|| {
        Error::Usage(format!("--compare {list}: expected names of strategies with commas between them; --lb help lists those there are"))
    })
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

    fn refusal(arguments: &[&str]) -> Refusal {
        let all = ["program"].iter().chain(arguments);
        parse::<Options>(all.map(std::ffi::OsString::from)).unwrap_err()
    }

    #[test]
    fn every_complaint_is_one_line_with_a_way_on() {
        for (arguments, words) in [
            (&["--gird", "5", "--must", "1"][..], "'--grid'"),
            (&["--grid", "x", "--must", "1"], "invalid value 'x' for '--grid <GRID>'"),
            (&["--grid", "-1", "--must", "1"], "invalid value '-1' for '--grid <GRID>'"),
            // Of an escape sequence clap leaves nothing.
            (&["--grid", "1\u{1b}[31m", "--must", "1"], "invalid value '1' for"),
            (&[], "not provided: --must"),
            (&["stray", "--must", "1"], "'stray'"),
        ] {
            let Refusal { text, asked_for } = refusal(arguments);
            assert!(text.contains(words) && !text.contains('\n') && text.contains("--help"), "{text}");
            assert!(!asked_for);
        }
    }

    #[test]
    fn help_is_not_a_complaint() {
        let refusal = refusal(&["--help"]);
        assert!(refusal.asked_for && refusal.text.lines().count() > 3);
        assert_eq!(refusal.report(Launch::Together { process: 1, processes: 2 }), ExitCode::SUCCESS);
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
