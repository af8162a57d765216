//! Measures the distance between two vCPUs, the least cost of a message between threads. The hypervisor chooses it and
//! may change it.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::seconds;

/// Round trips below this are between near vCPUs: on one socket, if not on one core.
pub const NEAR_NS: f64 = 200.0;

/// Time of a cache line from a thread on the first vCPU of this process to a thread on its last one and back, ns.
///
/// # Panics
/// If a thread cannot be started.
#[must_use]
pub fn round_trip_ns(trips: u64) -> f64 {
    #[repr(align(128))]
    struct Line(AtomicU64);
    let vcpus = caribou::machine::vcpus();
    let (here, there) = (vcpus[0], vcpus[vcpus.len() - 1]);
    let (ball, up) = (Line(AtomicU64::new(0)), Line(AtomicU64::new(0)));
    thread::scope(|scope| {
        scope.spawn(|| {
            caribou::machine::pin_to(there);
            up.0.store(1, Ordering::Release);
            for trip in 0..trips {
                await_value(&ball.0, 2 * trip + 1);
                ball.0.store(2 * trip + 2, Ordering::Release);
            }
        });
        // On a thread of its own, so that the caller stays where it was.
        let player = scope.spawn(|| {
            caribou::machine::pin_to(here);
            await_value(&up.0, 1);
            seconds(|| {
                for trip in 0..trips {
                    ball.0.store(2 * trip + 1, Ordering::Release);
                    await_value(&ball.0, 2 * trip + 2);
                }
            })
        });
        player.join().expect("it does not panic") * 1e9 / trips as f64
    })
}

/// Spins until the other thread has stored `value`, and yields now and then in case that thread does not run.
fn await_value(place: &AtomicU64, value: u64) {
    let mut turns = 0u32;
    while place.load(Ordering::Acquire) != value {
        turns += 1;
        if turns.is_multiple_of(10_000) {
            thread::yield_now();
        }
        spin_loop();
    }
}
