//! Turns a panic of user code into the [`Error`] that ends the run.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::error::Error;
use crate::ids::Rank;

/// The message of a panic.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no text".into())
}

/// A panic with the activity during which it happened.
struct PanicContext {
    doing: String,
    panic: String,
}

/// Calls user code and adds `doing` to its panic, because layers below do not have the purpose of the call.
pub(crate) fn with_panic_context<T>(doing: impl FnOnce() -> String, call: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        // The panic hook has printed the panic and its place.
        resume_unwind(Box::new(PanicContext { doing: doing(), panic: panic_message(&*panic) }))
    })
}

/// The error of a panic: from its context if it has one, else from `otherwise` with its message.
pub(crate) fn panic_error(
    rank: Rank,
    panic: &(dyn Any + Send),
    otherwise: impl FnOnce(String) -> Error,
) -> Error {
    match panic.downcast_ref::<PanicContext>() {
        Some(PanicContext { doing, panic }) => {
            Error::Panicked { rank, doing: doing.clone(), panic: panic.clone() }
        }
        None => otherwise(panic_message(panic)),
    }
}
