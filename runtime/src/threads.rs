//! The tools of threads, whatever they run: clocks, sleep and wake-up, gates, room for them, and a lock that only
//! checks where a rank has one worker.

pub(crate) mod clock;
pub(crate) mod gate;
pub(crate) mod guarded;
pub(crate) mod room;
pub(crate) mod sleep;
pub(crate) mod sync;
pub(crate) mod team;
pub(crate) mod ticks;
