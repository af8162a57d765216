//! Panics of user code, as the error of a run has them.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::error::Error;
use crate::ids::Rank;

/// The message of a panic.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no text".into())
}

/// A panic with what was being done.
struct PanicContext {
    doing: String,
    panic: String,
}

/// Calls user code for a layer that knows better than those below it what for: the panic goes on with that.
pub(crate) fn with_panic_context<T>(doing: impl FnOnce() -> String, call: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        // Printed already, with its place.
        resume_unwind(Box::new(PanicContext { doing: doing(), panic: panic_message(&*panic) }))
    })
}

/// The error of a panic: of what it tells, or what `otherwise` makes of its message.
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
