//! Safe wrappers of MPI calls. The third place with `unsafe`.
//!
//! A [`Communicator`] starts messages, [`Sendings`] and [`Receiving`] are messages in flight, and [`SharedMemory`] is
//! memory that the processes of a host share. This file has the calls that concern the process. A request owns its
//! buffer until it is complete, because the sends of a transport outlive every scope. (The non-blocking calls of rsmpi
//! borrow their buffers for a scope.) An incomplete request that is dropped leaks its buffer for MPI.
//!
//! # Rules
//! 1. All types with MPI handles are `!Send`, because MPI was initialised for one thread (funneled). Other threads may
//!    use only the shared memory and an [`Alarm`].
//! 2. A request owns the buffer that MPI uses, and neither moves nor frees it before the request is complete.
//! 3. Errors are returned (`MPI_ERRORS_RETURN`), with the text of MPI.
//!
//! This module depends on no packets, states of ranks or protocols.
#![expect(unsafe_code, reason = "calls to a C library; the rules above say what makes them sound")]

use std::ffi::c_int;

use mpi::ffi;

/// Calls MPI; the error has the function's name.
macro_rules! call {
    ($function:ident($($argument:expr),* $(,)?)) => {
        check(stringify!($function), ffi::$function($($argument),*))
    };
}

mod communicator;
mod request;
mod shared_memory;

pub(crate) use communicator::{Alarm, Channel, Communicator};
#[cfg(test)]
pub(crate) use request::Sending;
pub(crate) use request::{Receiving, Sendings};
pub(crate) use shared_memory::{Mapping, SharedMemory, Words};

/// A failed call: the function's name, and MPI's text.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{call}: {why}")]
pub(crate) struct MpiError {
    pub(crate) call: &'static str,
    pub(crate) why: String,
}

fn check(call: &'static str, code: c_int) -> Result<(), MpiError> {
    if code == ffi::MPI_SUCCESS as c_int {
        return Ok(());
    }
    let mut text = [0u8; ffi::MPI_MAX_ERROR_STRING as usize + 1];
    let mut length: c_int = 0;
    // SAFETY: MPI writes at most MPI_MAX_ERROR_STRING bytes, and their number.
    let explained = unsafe { ffi::MPI_Error_string(code, text.as_mut_ptr().cast(), &raw mut length) };
    let length = if explained == 0 { length.max(0) as usize } else { 0 };
    Err(MpiError { call, why: String::from_utf8_lossy(&text[..length.min(text.len())]).into_owned() })
}

/// Tells whether the calling thread may call MPI.
pub(crate) fn is_main_thread() -> bool {
    let mut flag: c_int = 0;
    // SAFETY: MPI writes the flag.
    unsafe { ffi::MPI_Is_thread_main(&raw mut flag) };
    flag != 0
}

/// Tells whether the process may have other threads, which do not call MPI.
pub(crate) fn may_have_threads() -> bool {
    mpi::environment::threading_support() >= mpi::Threading::Funneled
}

/// Tells whether MPI has been started in this process.
pub(crate) fn is_initialised() -> bool {
    let mut flag: c_int = 0;
    // SAFETY: MPI writes the flag; the call is allowed at any time.
    unsafe { ffi::MPI_Initialized(&raw mut flag) };
    flag != 0
}

/// Tells whether MPI has ended in this process.
pub(crate) fn is_finalized() -> bool {
    let mut flag: c_int = 0;
    // SAFETY: MPI writes the flag; the call is allowed at any time.
    unsafe { ffi::MPI_Finalized(&raw mut flag) };
    flag != 0
}

/// Ends all processes of the job at once.
///
/// Aborts MPI's world, and the launcher ends the job. With any other communicator, MPICH 4.0 waits for messages to
/// processes that may not take them any more.
pub(crate) fn abort(code: u8) -> ! {
    // SAFETY: MPI runs; its world lives as long.
    unsafe { ffi::MPI_Abort(ffi::RSMPI_COMM_WORLD, c_int::from(code)) };
    std::process::exit(code.into());
}

/// Ends this process at once, from any thread. The launcher then ends the rest of the job.
pub(crate) fn end_process() -> ! {
    unsafe extern "C" {
        fn _exit(status: c_int) -> !;
    }
    // SAFETY: a function of the C library; nothing runs after it.
    unsafe { _exit(1) }
}
