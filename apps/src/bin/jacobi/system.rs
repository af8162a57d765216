//! A system of linear equations, read or generated.
//!
//! Generated rows are made where they are computed first, so that no process has all of them.

use caribou_apps::matrix_market::Matrix;
use lb_strategies::virtual_time::SplitMix64;
use serde::{Deserialize, Serialize};

use super::kernel::greater;

/// One equation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    /// The coefficients of all unknowns.
    #[serde(with = "caribou::bulk")]
    pub(crate) values: Vec<f64>,
    /// The right-hand side.
    pub(crate) rhs: f64,
}

/// What is wrong with a system that was read.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    /// True if it is in the right-hand side, which was read too.
    pub(crate) in_rhs: bool,
    pub(crate) why: String,
}

/// As many equations as unknowns.
#[derive(Debug)]
pub(crate) enum System {
    /// By a seed: coefficients between 0 and 1, a diagonal of `dominance` times the others of its row, and a solution of
    /// numbers between 1 and 2.
    Generated { size: usize, seed: u64, dominance: f64, solution: Vec<f64> },
    /// From files.
    Read { matrix: Matrix, rhs: Vec<f64> },
}

impl System {
    /// A system of `size` equations whose Jacobi iteration shrinks the error by about `dominance` a step.
    pub(crate) fn generated(size: usize, seed: u64, dominance: f64) -> Self {
        let mut random = random(seed, size);
        let solution = (0..size).map(|_| 1.0 + random.uniform()).collect();
        Self::Generated { size, seed, dominance, solution }
    }

    /// The system of a matrix and a right-hand side; of the one that makes all unknowns 1 if none is given.
    ///
    /// # Errors
    /// If the matrix is not square, has a zero on its diagonal, or does not fit the right-hand side.
    pub(crate) fn read(matrix: Matrix, right: Option<Matrix>) -> Result<Self, Fault> {
        let Matrix { rows, columns, .. } = matrix;
        let fault = |why| Err(Fault { in_rhs: false, why });
        if rows != columns {
            return fault(format!("{rows} x {columns}, expected as many rows as columns"));
        }
        if let Some(row) = (0..rows).find(|&row| matrix.row(row)[row] == 0.0) {
            let row = row + 1;
            return fault(format!("the diagonal is 0 in row {row}, expected another number"));
        }
        let right = match right {
            None => (0..rows).map(|row| matrix.row(row).iter().sum()).collect(),
            Some(Matrix { rows: entries, columns: 1, values }) if entries == rows => values,
            Some(Matrix { rows: entries, columns, .. }) => {
                let why = format!("{entries} x {columns}, expected {rows} x 1 as --matrix has {rows} rows");
                return Err(Fault { in_rhs: true, why });
            }
        };
        if let Some(row) = right.iter().position(|value| !value.is_finite()) {
            let row = row + 1;
            return fault(format!(
                "the right-hand side of row {row} is beyond the numbers that a double can say; scale the system"
            ));
        }
        Ok(Self::Read { matrix, rhs: right })
    }

    /// Equations.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Generated { size, .. } => *size,
            Self::Read { matrix, .. } => matrix.rows,
        }
    }

    /// One equation. O(size).
    pub(crate) fn row(&self, row: usize) -> Row {
        match self {
            Self::Generated { size, seed, dominance, solution } => {
                let mut random = random(*seed, row);
                let mut values: Vec<f64> = (0..*size).map(|_| random.uniform()).collect();
                values[row] = 0.0;
                let others: f64 = values.iter().sum();
                // One equation alone has no others.
                values[row] = if others > 0.0 { dominance * others } else { 1.0 };
                let right = values.iter().zip(solution).map(|(a, x)| a * x).sum();
                Row { values, rhs: right }
            }
            Self::Read { matrix, rhs: right } => Row { values: matrix.row(row).to_vec(), rhs: right[row] },
        }
    }

    /// The greatest number of the right-hand side, or 1 if that is 0. O(size^2) where rows are generated.
    pub(crate) fn scale(&self) -> f64 {
        let right = |row| match self {
            Self::Generated { .. } => self.row(row).rhs,
            Self::Read { rhs: right, .. } => right[row],
        };
        let greatest = (0..self.size()).map(right).fold(0.0, |most, right: f64| greater(most, right.abs()));
        if greatest > 0.0 { greatest } else { 1.0 }
    }

    /// The first row, from 0, whose diagonal is not greater than all others of it together: then the iteration may not
    /// converge. O(size^2); none where rows are generated, which are as they should be.
    pub(crate) fn not_dominant(&self) -> Option<usize> {
        let Self::Read { matrix, .. } = self else { return None };
        (0..matrix.rows).find(|&row| {
            let all: f64 = matrix.row(row).iter().map(|value| value.abs()).sum();
            let diagonal = matrix.row(row)[row].abs();
            diagonal <= all - diagonal
        })
    }
}

/// The random numbers of a row, or of what comes after the last.
fn random(seed: u64, row: usize) -> SplitMix64 {
    SplitMix64::new(
        seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (row as u64 + 1).wrapping_mul(0xd1b5_4a32_d192_ed03),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generated_row_is_dominant_and_the_same_on_every_worker() {
        let [one, other] = [(); 2].map(|()| System::generated(50, 7, 1.1));
        for row in 0..50 {
            let Row { values, rhs } = one.row(row);
            assert_eq!(other.row(row), Row { values: values.clone(), rhs });
            let others: f64 = values.iter().sum::<f64>() - values[row];
            assert!((values[row] / others - 1.1).abs() < 1e-12 && rhs > 0.0, "row {row}");
        }
        assert_ne!(one.row(0).values[2..].to_vec(), one.row(1).values[2..].to_vec());
        assert_ne!(System::generated(50, 8, 1.1).row(0), one.row(0));
    }

    #[test]
    fn a_matrix_that_cannot_be_solved_so_is_refused_and_one_that_may_not_is_told() {
        let matrix = |rows, columns, values: &[f64]| Matrix { rows, columns, values: values.to_vec() };
        let said = |matrix, right| System::read(matrix, right).unwrap_err().why;
        assert!(said(matrix(1, 2, &[1.0, 2.0]), None).contains("as many rows as columns"));
        assert!(said(matrix(2, 2, &[1.0, 2.0, 3.0, 0.0]), None).contains("0 in row 2"));
        let square = || matrix(2, 2, &[3.0, 1.0, 2.0, 2.0]);
        assert!(said(square(), Some(matrix(3, 1, &[1.0; 3]))).contains("expected 2 x 1"));
        let system = System::read(square(), None).unwrap();
        assert_eq!((system.not_dominant(), system.row(0).rhs, system.scale()), (Some(1), 4.0, 4.0));
        assert_eq!(System::read(matrix(2, 2, &[3.0, 1.0, 1.0, 2.0]), None).unwrap().not_dominant(), None);
    }
}
