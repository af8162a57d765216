//! Prints warnings and notices for the person who started a program. (A failure that ends a run is an error instead.)

use std::io::{Write, stderr};

use tracing::dispatcher::get_default;
use tracing::subscriber::NoSubscriber;

/// Warns through `tracing`. In a program without a subscriber, also on standard error, so that the warning is not lost.
pub(crate) fn warn(text: &str) {
    tracing::warn!("{text}");
    if get_default(|dispatch| dispatch.is::<NoSubscriber>()) {
        print_line(&format!("caribou: {text}"));
    }
}

/// Prints a notice of a change that the user or the system requested.
pub(crate) fn tell(text: &str) {
    print_line(&format!("caribou: {text}"));
}

/// Prints a line on standard error by a single write, since other processes may write too. Ignores a failure.
pub(crate) fn print_line(line: &str) {
    let _ = stderr().write_all(format!("{line}\n").as_bytes());
}
