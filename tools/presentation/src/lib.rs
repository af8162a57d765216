//! Results as people see them: tables of text, pictures as SVG, numbers with their words; and counts as people write them.
//!
//! The programs and the `caribou` command show the same kinds of things and must not depend on each other. The runtime
//! lies below both, and shows nothing. So what both need lies here. It knows nothing of runs or traces, does no IO, and
//! depends on no other crate, so that it costs the build of a program next to nothing.
#![forbid(unsafe_code)]

pub mod chart;
mod count_parser;
pub mod format;
pub mod svg;
pub mod table;

pub use count_parser::count_parser;
pub use table::Table;
