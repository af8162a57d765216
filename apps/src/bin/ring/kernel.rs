//! Does the work of a hop by Task Bench's compute-bound kernel (Slaughter et al., SC 2020): 64 numbers, each squared
//! and added to itself. They become infinite after a dozen iterations, which costs nothing and is the usual
//! measurement.

use std::hint::black_box;

/// Independent numbers: enough to keep the vector units busy.
const NUMBERS: usize = 64;

/// Works for `iterations` iterations, with two operations per number.
pub(crate) fn run(iterations: u32) {
    if iterations == 0 {
        return;
    }
    let mut numbers = black_box([1.2345_f64; NUMBERS]);
    for _ in 0..iterations {
        for number in &mut numbers {
            *number += *number * *number;
        }
    }
    black_box(numbers);
}
