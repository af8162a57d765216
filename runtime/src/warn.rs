//! What the person who started a program should know although the run went on, or ended well.

use tracing::dispatcher::get_default;
use tracing::subscriber::NoSubscriber;

/// Warns through `tracing`, and on standard error in a program that has set up no subscriber: silence would be worse.
#[expect(clippy::print_stderr, reason = "nobody else would say it")]
pub(crate) fn warn(text: &str) {
    tracing::warn!("{text}");
    if get_default(|dispatch| dispatch.is::<NoSubscriber>()) {
        eprintln!("caribou: {text}");
    }
}
