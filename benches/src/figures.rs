//! Records the figures that the documents name. A benchmark appends each measurement to the file in the variable
//! `FIGURES`, and `tools/figures` puts it into `benches/figures.csv`. Without the variable nothing is written.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::sync::OnceLock;

use crate::Quartiles;
use crate::distance::round_trip_ns;

/// Round trips of a cache line for the distance of the vCPUs that goes with each figure.
const TRIPS: u64 = 20_000;

/// Adds a figure: its name, the unit it is written in, and what was switched on or compared.
///
/// # Panics
/// If the file cannot be written: without an error, an old figure would stay.
pub fn figure(name: &str, unit: &str, what: &str, spread: Quartiles) {
    if let Some(path) = std::env::var_os("FIGURES") {
        add(Path::new(&path), &line(name, unit, what, spread, distance_ns()));
    }
}

/// The round trip of a cache line between the vCPUs of this process, ns; measured once. None where it has one vCPU.
fn distance_ns() -> Option<f64> {
    static DISTANCE_NS: OnceLock<Option<f64>> = OnceLock::new();
    *DISTANCE_NS.get_or_init(|| (caribou::machine::vcpus().len() > 1).then(|| round_trip_ns(TRIPS)))
}

fn line(name: &str, unit: &str, what: &str, spread: Quartiles, distance_ns: Option<f64>) -> String {
    let Quartiles { median, low, high, .. } = spread;
    let distance = distance_ns.map_or_else(|| "-".to_owned(), |ns| format!("{ns:.0}"));
    assert!(
        ![name, unit, what].iter().any(|text| text.contains([',', '\n'])),
        "a comma separates: {name}, {what}"
    );
    format!("{name},{unit},{median:.4},{low:.4},{high:.4},{distance},{what}\n")
}

fn add(path: &Path, line: &str) {
    let file = OpenOptions::new().create(true).append(true).open(path);
    let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
    written.unwrap_or_else(|why| panic!("{}: {why}", path.display()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_a_line_of_its_own() {
        let spread = Quartiles { median: 124.0, low: 121.5, high: 130.25, least: 120.0 };
        let line = line("ring.default", "ns", "profile and measuring", spread, Some(58.4));
        assert_eq!(line, "ring.default,ns,124.0000,121.5000,130.2500,58,profile and measuring\n");
    }

    #[test]
    #[should_panic(expected = "a comma separates")]
    fn a_comma_would_shift_what_follows() {
        line(
            "ring",
            "ns",
            "measured, profiled",
            Quartiles { median: 1.0, low: 1.0, high: 1.0, least: 1.0 },
            None,
        );
    }
}
