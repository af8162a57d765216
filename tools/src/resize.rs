//! `caribou resize`: has a running program use another number of its ranks.

use std::io::Write;
use std::thread::sleep;
use std::time::Duration;

use presentation::format::plural;

use crate::Error;
use crate::top::source::{Source, sources};

/// Time between two questions whether it is done.
const INTERVAL: Duration = Duration::from_millis(100);

/// The program, and the number of ranks.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Options {
    /// The value of CARIBOU_MONITOR; of several processes, that of rank 0
    #[arg(value_name = "HOST:PORT")]
    address: String,
    /// The number of ranks that are to be active, from 1 to all
    #[arg(value_name = "N")]
    ranks: u32,
    /// Seconds to wait until it is done: programs that balance at syncs do it at the next one; 0 to leave at once
    #[arg(long, value_name = "S", default_value = "10", value_parser = seconds)]
    wait: Duration,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.0..=86_400.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "expected seconds, 0 to 86400".into())
}

pub(crate) fn run(options: &Options, out: &mut dyn Write) -> Result<(), Error> {
    let [source] = &sources(std::slice::from_ref(&options.address))?[..] else {
        return Err(Error::Usage("expected one address, of the process of rank 0".into()));
    };
    let unreachable = |why| Error::Unreachable { address: source.address.clone(), why };
    source.resize(options.ranks).map_err(unreachable)?;
    let ranks = plural(options.ranks, "rank");
    if wait_for(source, options).map_err(unreachable)? {
        writeln!(out, "{ranks} active")?;
    } else {
        writeln!(out, "asked for {ranks}, not done yet: `caribou top {}` shows it", options.address)?;
    }
    Ok(())
}

/// Asks until so many ranks are active. False if the time is up before.
fn wait_for(source: &Source, options: &Options) -> Result<bool, String> {
    let questions = options.wait.as_millis() / INTERVAL.as_millis();
    for _ in 0..questions {
        sleep(INTERVAL);
        if source.ask()?.ranks_active == Some(options.ranks) {
            return Ok(true);
        }
    }
    Ok(false)
}
