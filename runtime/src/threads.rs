//! The tools of threads, whatever they run: clocks, sleep and wake-up, gates, room for them, and a lock that only
//! checks where a rank has one worker.

pub(crate) mod barrier;
pub(crate) mod clock;
pub(crate) mod elided_mutex;
pub(crate) mod limits;
pub(crate) mod sleep;
pub(crate) mod sync;
pub(crate) mod team;
pub(crate) mod tsc_clock;
