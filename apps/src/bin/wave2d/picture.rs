//! Draws the field as a map, from as many evenly spread cells as the picture has pixels.

use std::fmt::Write;

use caribou_apps::stencil2d::plate::Part;
use presentation::svg::escape;

use super::pulses::REST;

/// Pixels along a side, at most.
const PIXELS_MAX: usize = 192;

/// The side of the picture on a page.
const SIZE: usize = 768;

/// Number of shades from the pressure at rest to the pressure farthest from it.
const SHADES: i32 = 16;

/// The colours of the lowest and the highest pressure. The pressure at rest is white.
const COLOURS: [[f64; 3]; 2] = [[33.0, 102.0, 172.0], [178.0, 24.0, 43.0]];

/// Evenly spread cells of a square grid: the pixels of its picture.
#[derive(Debug)]
pub(crate) struct Raster {
    grid: usize,
    /// Row by row.
    values: Vec<f32>,
}

impl Raster {
    /// A raster of a grid of `grid` cells per side, at rest.
    pub(crate) fn new(grid: usize) -> Self {
        Self { grid, values: vec![REST as f32; side(grid).pow(2)] }
    }

    /// Stores the pixels that [`sample`] took from a part.
    pub(crate) fn fill(&mut self, part: Part, pixels: &[f32]) {
        for ((row, column), &pixel) in places(self.grid, part).zip(pixels) {
            self.values[row * side(self.grid) + column] = pixel;
        }
    }

    /// The picture as the text of an SVG file.
    pub(crate) fn svg(&self, title: &str) -> String {
        let distance = |value: &f32| f64::from(*value) - REST;
        let farthest =
            self.values.iter().map(|value| distance(value).abs()).fold(f64::MIN_POSITIVE, f64::max);
        let shade = |value: &f32| (distance(value) / farthest * f64::from(SHADES)).round() as i32;
        let shades: Vec<i32> = self.values.iter().map(shade).collect();
        let side = side(self.grid);
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 -0.5 {side} {side}\" width=\"{SIZE}\" \
             height=\"{SIZE}\" shape-rendering=\"crispEdges\" role=\"img\"><title>{}</title>\n\
             <rect y=\"-0.5\" width=\"{side}\" height=\"{side}\" fill=\"#ffffff\"/>\n",
            escape(title)
        );
        for shade in (-SHADES..=SHADES).filter(|&shade| shade != 0) {
            let path = runs(&shades, side, shade);
            if !path.is_empty() {
                // Writing to a string does not fail.
                let _ = writeln!(text, "<path stroke=\"{}\" d=\"{path}\"/>", colour(shade));
            }
        }
        text + "</svg>\n"
    }
}

/// The cells of a part that are pixels. `cells` holds the part row by row.
pub(crate) fn sample(grid: usize, part: Part, cells: &[f64]) -> Vec<f32> {
    let value = |(row, column)| {
        cells[(cell(grid, row) - part.top) * part.width + cell(grid, column) - part.left] as f32
    };
    places(grid, part).map(value).collect()
}

/// Pixels along a side.
fn side(grid: usize) -> usize {
    grid.min(PIXELS_MAX)
}

/// The row of cells that a row of pixels shows; columns likewise.
fn cell(grid: usize, pixel: usize) -> usize {
    (2 * pixel + 1) * grid / (2 * side(grid))
}

/// The pixels of a part, row by row.
fn places(grid: usize, part: Part) -> impl Iterator<Item = (usize, usize)> {
    let within = move |first: usize, count: usize| {
        (0..side(grid)).filter(move |&pixel| (first..first + count).contains(&cell(grid, pixel)))
    };
    within(part.top, part.height)
        .flat_map(move |row| within(part.left, part.width).map(move |column| (row, column)))
}

/// All pixels of one shade, adjacent pixels as one line.
fn runs(shades: &[i32], side: usize, shade: i32) -> String {
    let mut path = String::new();
    for (y, row) in shades.chunks_exact(side).enumerate() {
        let mut x = 0;
        for run in row.chunk_by(|one, next| one == next) {
            if run[0] == shade {
                let _ = write!(path, "M{x} {y}h{}", run.len());
            }
            x += run.len();
        }
    }
    path
}

fn colour(shade: i32) -> String {
    let [red, green, blue] = COLOURS[usize::from(shade > 0)].map(|full| {
        let part = f64::from(shade.abs()) / f64::from(SHADES);
        (255.0 + part * (full - 255.0)).round() as u8
    });
    format!("#{red:02x}{green:02x}{blue:02x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::tests::problem;

    #[test]
    fn parts_together_have_every_pixel_once() {
        for grid in [1, 43, 192, 500] {
            let problem = problem(grid, grid.div_ceil(5));
            let mut pixels: Vec<_> = problem.parts().flat_map(|part| places(grid, part)).collect();
            pixels.sort_unstable();
            let all = places(grid, problem.whole());
            assert!(pixels.into_iter().eq(all), "{grid}");
            assert_eq!(places(grid, problem.whole()).count(), side(grid).pow(2));
        }
    }

    #[test]
    fn the_highest_cell_is_red_where_it_is_and_the_lowest_blue() {
        let mut raster = Raster::new(3);
        let cells = [1.0, 1.0, 1.5, 1.0, 1.0, 1.0, 0.5, 0.5, 1.0];
        let part = problem(3, 3).whole();
        raster.fill(part, &sample(3, part, &cells));
        let svg = raster.svg("a <small> one");
        assert!(svg.contains("<path stroke=\"#b2182b\" d=\"M2 0h1\"/>"), "{svg}");
        assert!(svg.contains("<path stroke=\"#2166ac\" d=\"M0 2h2\"/>"), "{svg}");
        assert!(svg.contains("a &lt;small&gt; one") && svg.ends_with("</svg>\n"), "{svg}");
    }

    #[test]
    fn a_field_at_rest_is_white() {
        assert!(!Raster::new(1000).svg("rest").contains("path"));
    }
}
