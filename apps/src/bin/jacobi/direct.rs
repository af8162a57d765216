//! A direct solution, by Gaussian elimination with partial pivoting: it has nothing in common with the iteration.

use super::system::System;

/// Solves `system`. O(size^3).
pub(super) fn solve(system: &System) -> Vec<f64> {
    let size = system.size();
    let mut rows: Vec<Vec<f64>> = (0..size)
        .map(|row| {
            let row = system.row(row);
            row.values.into_iter().chain([row.right]).collect()
        })
        .collect();
    for column in 0..size {
        let pivot = (column..size).max_by(|&a, &b| rows[a][column].abs().total_cmp(&rows[b][column].abs()));
        rows.swap(column, pivot.unwrap());
        let (above, below) = rows.split_at_mut(column + 1);
        let pivot = &above[column];
        for row in below {
            let factor = row[column] / pivot[column];
            row[column..].iter_mut().zip(&pivot[column..]).for_each(|(cell, above)| *cell -= factor * above);
        }
    }
    let mut x = vec![0.0; size];
    for row in (0..size).rev() {
        let known: f64 = (row + 1..size).map(|column| rows[row][column] * x[column]).sum();
        x[row] = (rows[row][size] - known) / rows[row][row];
    }
    x
}
