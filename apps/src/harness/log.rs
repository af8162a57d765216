//! Log lines on standard error: warnings, or what `RUST_LOG` asks for (`RUST_LOG=caribou=info` gives a line a sync).

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// Starts logging. A second call changes nothing.
pub fn start() {
    let filter = EnvFilter::builder().with_default_directive(LevelFilter::WARN.into()).from_env_lossy();
    // Refused only where a logger is at work already, which is as good.
    let _ = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).try_init();
}
