//! Lines for the person who started a program: the run went on, or ended well.

use std::io::{Write, stderr};

use tracing::dispatcher::get_default;
use tracing::subscriber::NoSubscriber;

/// Warns through `tracing`, and on standard error in a program that has set up no subscriber: silence would be worse.
pub(crate) fn warn(text: &str) {
    tracing::warn!("{text}");
    if get_default(|dispatch| dispatch.is::<NoSubscriber>()) {
        print_line(&format!("caribou: {text}"));
    }
}

/// Tells of a change that the user or the system asked for.
pub(crate) fn tell(text: &str) {
    print_line(&format!("caribou: {text}"));
}

/// A line on standard error, in one piece: other processes may be writing too. If the stream is closed, the line is
/// dropped.
pub(crate) fn print_line(line: &str) {
    let _ = stderr().write_all(format!("{line}\n").as_bytes());
}
