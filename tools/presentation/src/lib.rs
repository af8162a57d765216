//! Formats results for people: text tables, SVG pictures, numbers with units; and parses counts.
//!
//! The programs and the `caribou` command share this crate, because neither may depend on the other, and the runtime
//! displays nothing. The crate does no IO. It has no dependencies, so it adds little to the build of a program.
#![forbid(unsafe_code)]

pub mod bars;
pub mod chart;
mod count_parser;
pub mod format;
pub mod svg;
pub mod table;

pub use count_parser::count_parser;
pub use table::Table;
