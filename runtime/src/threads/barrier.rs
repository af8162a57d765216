//! A barrier at which the ranks of a process wait for each other before the run begins.
//!
//! The barrier fails if a rank cannot be set up or its thread cannot be started. `wait` then returns false.

use std::sync::{Condvar, Mutex, PoisonError};

#[derive(Clone, Copy, PartialEq)]
enum State {
    Waiting { arrived: u32 },
    Open,
    Failed,
}

/// Opens when all ranks have arrived.
pub(crate) struct FallibleBarrier {
    ranks: u32,
    state: Mutex<State>,
    changed: Condvar,
}

impl FallibleBarrier {
    pub(crate) fn new(ranks: u32) -> FallibleBarrier {
        FallibleBarrier { ranks, state: Mutex::new(State::Waiting { arrived: 0 }), changed: Condvar::new() }
    }

    /// Waits for all other ranks. False if one of them has failed.
    pub(crate) fn wait(&self) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let State::Waiting { arrived } = *state {
            let all = arrived + 1 == self.ranks;
            *state = if all { State::Open } else { State::Waiting { arrived: arrived + 1 } };
            self.changed.notify_all();
        }
        let waiting = |state: &mut State| matches!(state, State::Waiting { .. });
        *self.changed.wait_while(state, waiting).unwrap_or_else(PoisonError::into_inner) == State::Open
    }

    /// Makes [`wait`](Self::wait) return false on all ranks, now and later.
    pub(crate) fn fail(&self) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = State::Failed;
        self.changed.notify_all();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn all_pass_together_or_none_does() {
        for fails in [false, true] {
            let barrier = FallibleBarrier::new(3);
            std::thread::scope(|scope| {
                let waiters: Vec<_> = (0..2).map(|_| scope.spawn(|| barrier.wait())).collect();
                match fails {
                    true => barrier.fail(),
                    false => assert!(barrier.wait()),
                }
                for waiter in waiters {
                    assert_eq!(waiter.join().expect("nobody panics at the gate"), !fails);
                }
            });
        }
    }
}
