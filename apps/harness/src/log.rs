//! Log lines on standard error: warnings, or what `RUST_LOG` asks for (`RUST_LOG=caribou=info` gives a line a sync).

use std::io::{Write, stderr};

use tracing_subscriber::filter::{LevelFilter, ParseError, Targets};
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Starts logging. A second call changes nothing.
pub(super) fn start() {
    let asked = std::env::var_os("RUST_LOG").unwrap_or_default();
    let levels = levels(&asked.to_string_lossy()).unwrap_or_else(|error| {
        // A closed error stream is no reason to stop.
        drop(writeln!(stderr(), "RUST_LOG is none of info, caribou=debug and the like: {error}"));
        Targets::new().with_default(LevelFilter::WARN)
    });
    // Refused only where a logger is at work already, which is as good.
    let _ = tracing_subscriber::registry().with(fmt::layer().with_writer(stderr)).with(levels).try_init();
}

/// Warnings of everything, and what `asked` says beyond that: a level, or `target=level` with commas between.
fn levels(asked: &str) -> Result<Targets, ParseError> {
    format!("warn,{asked}").trim_end_matches(',').parse()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_warnings_unless_more_or_less_is_asked_for() {
        assert_eq!(levels("").unwrap().default_level(), Some(LevelFilter::WARN));
        assert_eq!(levels("info").unwrap().default_level(), Some(LevelFilter::INFO));
        let caribou = levels("caribou=debug").unwrap();
        assert_eq!(caribou.default_level(), Some(LevelFilter::WARN));
        assert_eq!(caribou.iter().collect::<Vec<_>>(), [("caribou", LevelFilter::DEBUG)]);
        assert!(levels("caribou=loud").is_err());
    }
}
