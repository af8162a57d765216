//! Implements `caribou top`: shows the state of a running program that has `CARIBOU_MONITOR` set. It only reads.
//! Figures on the screen are differences between two answers of the program, so they describe the last interval, except
//! kinds of messages. With `--once` and `--json` they describe the run so far.
//!
//! Each module uses only modules above it:
//!
//! | module | purpose |
//! |---|---|
//! | `source` | requests the status of a program by HTTP |
//! | `dashboard` | computes figures from two answers |
//! | `watch` | keeps the last two answers of each program, and the imbalance over time |
//! | `view` | sorting, scrolling, pausing and help, as set by keys |
//! | `text`, `screen` | format the figures as text, and for a terminal |
//! | `terminal` | the event loop: keys and answers in, the screen out |

mod dashboard;
mod screen;
pub(crate) mod source;
mod terminal;
mod text;
mod view;
mod watch;

use std::io::{IsTerminal, Write};
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::Error;
use source::Source;
use watch::Watch;

/// The programs to watch, and the way to show them.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Options {
    /// The value of CARIBOU_MONITOR; processes of one job have ports in a row: HOST:PORT-PORT
    #[arg(value_name = "HOST:PORT", default_value = "127.0.0.1:9977")]
    addresses: Vec<String>,
    /// Seconds between two updates
    #[arg(long, value_name = "S", default_value = "0.5", value_parser = seconds)]
    interval: Duration,
    /// Print the figures since the run began, and exit; the default if standard output is not a terminal
    #[arg(long)]
    once: bool,
    /// The same as one JSON object; times in ns, shares as fractions
    #[arg(long)]
    json: bool,
}

fn seconds(text: &str) -> Result<Duration, String> {
    seconds_within(text, 0.1..=3600.0)
}

/// Parses a number of seconds in `range`.
pub(crate) fn seconds_within(text: &str, range: RangeInclusive<f64>) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| range.contains(seconds));
    let expected = || format!("expected seconds, {} to {}", range.start(), range.end());
    seconds.map(Duration::from_secs_f64).ok_or_else(expected)
}

pub(crate) fn run(options: &Options, out: &mut dyn Write) -> Result<(), Error> {
    let sources = source::sources(&options.addresses)?;
    let watch = first_look(&sources)?;
    if options.json {
        serde_json::to_writer(&mut *out, watch.picture()).map_err(std::io::Error::from)?;
        return Ok(writeln!(out)?);
    }
    if options.once || !std::io::stdout().is_terminal() {
        return Ok(text::write(watch.picture(), out)?);
    }
    Ok(terminal::show(watch, sources, options.interval)?)
}

/// Polls all sources once. At least one must answer: a wrong address is better reported before the screen is cleared.
fn first_look(sources: &[Source]) -> Result<Watch, Error> {
    let mut watch = Watch::new(sources.iter().map(|source| source.address.clone()));
    let mut refused = None;
    let mut answered = false;
    for (number, source) in sources.iter().enumerate() {
        let answer = source.ask();
        answered |= answer.is_ok();
        if let Err(why) = &answer {
            refused.get_or_insert(Error::Unreachable { address: source.address.clone(), why: why.clone() });
        }
        watch.update(number, answer);
    }
    match refused {
        Some(error) if !answered => Err(error),
        _ => Ok(watch),
    }
}

#[cfg(test)]
mod tests;
