//! Any text describes combinations of scenarios, or is refused in a line that names the text, in words of TOML.
#![no_main]

mod line;

use libfuzzer_sys::fuzz_target;
use line::assert_line;

/// Longest text, bytes: each combination has a copy.
const LENGTH_MAX: usize = 4096;

/// Words of Rust and serde that mean nothing to a reader.
const FOREIGN: [&str; 9] = [
    "invalid type",
    "invalid value",
    "expected struct",
    "expected u32",
    "expected u64",
    "expected usize",
    "expected f64",
    "a sequence",
    "newtype",
];

fuzz_target!(|text: &str| {
    if text.len() > LENGTH_MAX {
        return;
    }
    match caribou_tools::scenario(text) {
        Ok(combinations) => assert!(combinations > 0),
        Err(why) => {
            assert_line(&why);
            assert!(why.starts_with("scenario"), "{why}");
            // A text may have these words itself.
            let is_foreign = |words: &&&str| why.contains(**words) && !text.contains(**words);
            assert_eq!(FOREIGN.iter().find(is_foreign), None, "{why}");
        }
    }
});
