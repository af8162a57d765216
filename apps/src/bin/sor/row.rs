//! Relaxes a row. The serial program uses the same function, so that results can be compared bit for bit.

/// Relaxes the points of one colour in a row between two others: the points with an even row + column + `colour`. It
/// reads only points of the other colour, so that no point of a step depends on another. Returns the greatest change.
pub(crate) fn relax(
    here: &mut [f64],
    [above, below]: [&[f64]; 2],
    row: u64,
    colour: u64,
    relaxation: f64,
) -> f64 {
    let last = here.len() - 1;
    let first = ((row + colour) % 2) as usize;
    let mut greatest = 0.0_f64;
    for at in (first..here.len()).step_by(2) {
        let west = if at == 0 { 0.0 } else { here[at - 1] };
        let east = if at == last { 0.0 } else { here[at + 1] };
        let around = 0.25 * ((above[at] + below[at]) + (west + east));
        let change = relaxation * (around - here[at]);
        here[at] += change;
        greatest = greatest.max(change.abs());
    }
    greatest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_points_of_a_colour_are_relaxed_and_the_border_is_zero() {
        let mut row = [0.0; 3];
        let change = relax(&mut row, [&[4.0; 3], &[0.0, 4.0, 8.0]], 0, 0, 1.0);
        assert_eq!((row.to_vec(), change), (vec![1.0, 0.0, 3.0], 3.0));
        relax(&mut row, [&[4.0; 3], &[0.0, 4.0, 8.0]], 0, 1, 0.5);
        assert_eq!(row.to_vec(), vec![1.0, 1.5, 3.0]);
    }
}
