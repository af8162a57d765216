//! Tools for threads that arrays, pools and supersteps use: clocks, sleep and wake-up, barriers, thread limits, and a
//! lock that is elided where a rank has one worker.

pub(crate) mod barrier;
pub(crate) mod clock;
pub(crate) mod elided_mutex;
pub(crate) mod limits;
pub(crate) mod sleep;
pub(crate) mod sync;
pub(crate) mod team;
pub(crate) mod tsc_clock;
