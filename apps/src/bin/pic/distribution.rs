//! Defines the initial distribution of particles: the mean number in each cell.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One of the kernel's four. The mean number in a cell depends on its column, in a patch also on its row.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Distribution {
    /// Each column has `ratio` times the particles of the one before.
    Geometric {
        /// Between 0 and 1.
        ratio: f64,
    },
    /// The square of a cosine, with half a wave over all columns.
    Sinusoidal,
    /// From `beta` in the first column down to `beta - alpha` in the last, in proportion.
    Linear {
        /// The fall.
        alpha: f64,
        /// The beginning.
        beta: f64,
    },
    /// All particles in a rectangle of cells that includes its bounds.
    Patch {
        /// First column.
        left: u32,
        /// Last column.
        right: u32,
        /// First row.
        bottom: u32,
        /// Last row.
        top: u32,
    },
}

impl Distribution {
    /// Reads `geometric:RATIO`, `sinusoidal`, `linear:ALPHA,BETA` or `patch:LEFT,RIGHT,BOTTOM,TOP`.
    ///
    /// # Errors
    /// A sentence that names what was expected.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let parts: Vec<&str> = if rest.is_empty() { Vec::new() } else { rest.split(',').collect() };
        match (name.to_ascii_lowercase().as_str(), &parts[..]) {
            ("geometric", [ratio]) => match ratio.parse() {
                Ok(ratio) if 0.0 < ratio && ratio < 1.0 => Ok(Self::Geometric { ratio }),
                _ => Err(format!("`{ratio}` is not a ratio of columns, expected a number between 0 and 1")),
            },
            ("sinusoidal", []) => Ok(Self::Sinusoidal),
            ("linear", [alpha, beta]) => match (alpha.parse(), beta.parse()) {
                (Ok(alpha), Ok(beta))
                    if 0.0 < beta && 0.0 <= alpha && alpha <= beta && beta < f64::INFINITY =>
                {
                    Ok(Self::Linear { alpha, beta })
                }
                _ => Err(format!("expected linear:ALPHA,BETA with ALPHA from 0 to BETA, not `{rest}`")),
            },
            ("patch", [left, right, bottom, top]) => {
                let sides = [left, right, bottom, top].map(|side| side.parse::<u32>());
                let [Ok(left), Ok(right), Ok(bottom), Ok(top)] = sides else {
                    return Err(format!("expected columns and rows as in patch:0,200,100,200, not `{rest}`"));
                };
                if right < left || top < bottom {
                    return Err(format!("the patch `{rest}` is empty: expected patch:LEFT,RIGHT,BOTTOM,TOP"));
                }
                Ok(Self::Patch { left, right, bottom, top })
            }
            _ => {
                Err("expected geometric:RATIO, sinusoidal, linear:ALPHA,BETA or patch:LEFT,RIGHT,BOTTOM,TOP"
                    .to_owned())
            }
        }
    }

    /// True if particles may begin in the cell `[column, row]`.
    #[must_use]
    pub(crate) fn has(self, [column, row]: [u32; 2]) -> bool {
        match self {
            Self::Patch { left, right, bottom, top } => {
                (left..=right).contains(&column) && (bottom..=top).contains(&row)
            }
            Self::Geometric { .. } | Self::Sinusoidal | Self::Linear { .. } => true,
        }
    }

    /// True if the distribution lies in a grid of `grid` cells per side.
    #[must_use]
    pub(crate) fn fits(self, grid: u32) -> bool {
        match self {
            Self::Patch { right, top, .. } => right < grid && top < grid,
            Self::Geometric { .. } | Self::Sinusoidal | Self::Linear { .. } => true,
        }
    }

    /// The mean number in the cell `[column, row]` of a grid of `grid` cells per side with `particles` in all.
    #[must_use]
    pub(crate) fn mean(self, cell: [u32; 2], grid: u32, particles: f64) -> f64 {
        let (column, side) = (f64::from(cell[0]), f64::from(grid));
        match self {
            Self::Geometric { ratio } => {
                let first = particles * ((1.0 - ratio) / (1.0 - ratio.powf(side))) / side;
                first * ratio.powf(column)
            }
            Self::Sinusoidal => {
                let wave = (column * std::f64::consts::PI / side).cos();
                2.0 * wave * wave * particles / (side * side)
            }
            Self::Linear { alpha, beta } => {
                let step = 1.0 / (side - 1.0);
                let all = beta * side - alpha * 0.5 * step * side * (side - 1.0);
                particles * ((beta - alpha * step * column) / all) / side
            }
            Self::Patch { .. } if !self.has(cell) => 0.0,
            Self::Patch { left, right, bottom, top } => {
                particles / (f64::from(right - left + 1) * f64::from(top - bottom + 1))
            }
        }
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Geometric { ratio } => write!(f, "geometric:{}", short(*ratio)),
            Self::Sinusoidal => f.write_str("sinusoidal"),
            Self::Linear { alpha, beta } => write!(f, "linear:{},{}", short(*alpha), short(*beta)),
            Self::Patch { left, right, bottom, top } => write!(f, "patch:{left},{right},{bottom},{top}"),
        }
    }
}

/// A number, with an exponent where there were many zeros.
fn short(number: f64) -> String {
    let text = format!("{number:?}");
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again_and_what_is_wrong_is_named() {
        for text in ["geometric:0.99", "geometric:1e-300", "sinusoidal", "linear:1,3", "patch:0,200,100,200"]
        {
            assert_eq!(Distribution::parse(text).unwrap().to_string(), text);
        }
        for (text, words) in [
            ("uniform", "expected geometric:RATIO, sinusoidal"),
            ("geometric", "expected geometric:RATIO"),
            ("geometric:1", "between 0 and 1"),
            ("geometric:NaN", "between 0 and 1"),
            ("linear:3,1", "ALPHA from 0 to BETA"),
            ("linear:1,inf", "ALPHA from 0 to BETA"),
            ("sinusoidal:1", "expected"),
            ("patch:0,2,1", "expected"),
            ("patch:0,2,1,x", "columns and rows"),
            ("patch:3,2,1,2", "empty"),
        ] {
            assert!(Distribution::parse(text).unwrap_err().contains(words), "{text}");
        }
    }

    #[test]
    fn means_add_up_to_all_particles() {
        for text in ["geometric:0.9", "sinusoidal", "linear:1,3", "patch:0,4,2,6"] {
            let distribution = Distribution::parse(text).unwrap();
            let cells = (0..20).flat_map(|column| (0..20).map(move |row| [column, row]));
            let all: f64 = cells.map(|cell| distribution.mean(cell, 20, 2000.0)).sum();
            assert!((all - 2000.0).abs() < 1e-6, "{text}: {all}");
        }
    }
}
