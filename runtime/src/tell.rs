//! What whoever started the program must see at once, even one who listens to no log.

use std::io::Write;

/// Warns: in the log, and on standard error if the program keeps none.
pub(crate) fn warn(text: &str) {
    tracing::warn!("{text}");
    if !tracing::dispatcher::has_been_set() {
        // In one piece: other processes may be speaking too. Whoever closed it does not want to know.
        let _ = std::io::stderr().write_all(format!("caribou: {text}\n").as_bytes());
    }
}
