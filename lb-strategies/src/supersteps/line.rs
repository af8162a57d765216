//! Fits a straight line to points by least squares.

/// `y = slope x + intercept`.
///
/// ```
/// use lb_strategies::supersteps::Line;
/// let line = Line::fit(&[(1.0, 5.0), (2.0, 7.0), (3.0, 9.0)]).expect("points that differ in x");
/// assert_eq!((line.slope, line.intercept, line.correlation), (2.0, 3.0, 1.0));
/// assert_eq!(line.at(10.0), 23.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// Change of y with x.
    pub slope: f64,
    /// The value of y at x = 0.
    pub intercept: f64,
    /// Correlation of x and y, from -1 to 1; 0 if y does not change.
    pub correlation: f64,
}

impl Line {
    /// The line with the least sum of squared distances in y; none if all points have the same x. O(points).
    pub fn fit(points: &[(f64, f64)]) -> Option<Self> {
        let count = points.len() as f64;
        let mean_x = points.iter().map(|point| point.0).sum::<f64>() / count;
        let mean_y = points.iter().map(|point| point.1).sum::<f64>() / count;
        let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
        for (x, y) in points.iter().map(|point| (point.0 - mean_x, point.1 - mean_y)) {
            (xx, xy, yy) = (xx + x * x, xy + x * y, yy + y * y);
        }
        let slope = Some(xy / xx).filter(|slope| slope.is_finite())?;
        let correlation = if yy > 0.0 { xy / (xx * yy).sqrt() } else { 0.0 };
        Some(Self { slope, intercept: mean_y - slope * mean_x, correlation })
    }

    /// The value at `x`.
    pub fn at(&self, x: f64) -> f64 {
        self.slope * x + self.intercept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_of_one_x_have_no_line_and_a_level_one_no_correlation() {
        assert_eq!(Line::fit(&[]), None);
        assert_eq!(Line::fit(&[(2.0, 1.0), (2.0, 5.0)]), None);
        let level = Line::fit(&[(1.0, 4.0), (2.0, 4.0)]).expect("two points");
        assert_eq!((level.slope, level.intercept, level.correlation), (0.0, 4.0, 0.0));
    }
}
