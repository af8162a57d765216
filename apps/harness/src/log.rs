//! Writes log lines to standard error: warnings, and what `RUST_LOG` adds (`caribou=info`: one line per sync).

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
        drop(writeln!(stderr(), "RUST_LOG: expected a filter such as info or caribou=debug: {error}"));
        Targets::new().with_default(LevelFilter::WARN)
    });
    // Fails only if a logger is already installed.
    let _ = tracing_subscriber::registry().with(fmt::layer().with_writer(stderr)).with(levels).try_init();
}

/// Warnings of all targets, changed by `asked`: a level, or `target=level` separated by commas.
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
