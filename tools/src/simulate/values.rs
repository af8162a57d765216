//! Parses values of options: times with a unit, counts, costs, and lists of speeds.

use std::path::Path;

use crate::input;

/// A parser of text that stays text, if `parse` can read it.
pub(super) fn checked<T>(
    parse: impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static,
) -> impl Fn(&str) -> Result<String, String> + Clone + Send + Sync + 'static {
    move |text| parse(text).map(|_| text.to_owned())
}

/// A whole number that is small enough to be simulated.
pub(super) fn count(text: &str) -> Result<u64, String> {
    presentation::count_parser(0..=1_000_000_000_000_000)(text)
}

/// A time in nanoseconds, from `0.1ms`, `200us` or `2s`.
pub(super) fn time(text: &str) -> Result<u64, String> {
    // `s` is last, because the other units end with it. A number may contain a letter too: `1e6`.
    let units = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
    let split = units.into_iter().find_map(|(unit, unit_ns)| Some((text.strip_suffix(unit)?, unit_ns)));
    let Some((number, unit_ns)) = split else {
        return Err("expected a time with its unit, as in 0.1ms, 200us or 2s".to_owned());
    };
    let number: Option<f64> = number.trim().parse().ok();
    let time = number.map(|number| number * unit_ns).filter(|time| (0.0..=1e15).contains(time));
    time.map(|time| time.round() as u64).ok_or_else(|| "expected a time up to 1e6s, as in 0.1ms".to_owned())
}

/// The units of sizes, each with its bytes.
const SIZES: [(&str, f64); 9] = [
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("kB", 1e3),
    ("KB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("TB", 1e12),
    ("B", 1.0),
];

/// A number with one of the units, times the unit.
fn with_unit(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let split = units.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)));
    let (number, factor) = split.unwrap_or((text, 1.0));
    number.trim().parse::<f64>().ok().map(|number| number * factor)
}

/// A size in bytes, from `65536`, `64KiB` or `1.5 MB`.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    let expected = || "expected a number of bytes up to 1e12, as in 65536, 64KiB or 1.5MB".to_owned();
    let bytes = with_unit(text, &SIZES).filter(|bytes| (0.0..=1e12).contains(bytes));
    bytes.map(|bytes| bytes.round() as u64).ok_or_else(expected)
}

/// A rate in bytes per second, from `1.25e9`, `1.25GB/s` or `10Gbit/s`.
pub(super) fn rate(text: &str) -> Result<f64, String> {
    let bits = [("kbit/s", 125.0), ("Mbit/s", 125e3), ("Gbit/s", 125e6)];
    let rate = if text.ends_with("bit/s") {
        with_unit(text, &bits)
    } else {
        with_unit(text.strip_suffix("/s").unwrap_or(text), &SIZES)
    };
    let expected =
        || "expected bytes per second from 1e-6 to 1e12, as in 1.25e9, 1.25GB/s or 10Gbit/s".to_owned();
    rate.filter(|rate| (1e-6..=1e12).contains(rate)).ok_or_else(expected)
}

/// A factor.
pub(super) fn scale(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| (1e-6..=1e6).contains(number));
    number.ok_or_else(|| "expected a factor from 1e-6 to 1e6".to_owned())
}

/// Units of work.
pub(super) fn work(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| (1e-6..=1e15).contains(number));
    number.ok_or_else(|| "expected a number of units from 1e-6 to 1e15".to_owned())
}

/// A speed in units per second.
pub(super) fn speed(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    number
        .filter(|number| (1e-6..=1e12).contains(number))
        .ok_or_else(|| "expected a number per second, from 1e-6 to 1e12".to_owned())
}

/// A positive number of seconds.
pub(super) fn seconds(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    number
        .filter(|number| (1e-3..=1e9).contains(number))
        .ok_or_else(|| "expected seconds, a number from 0.001 to 1e9".to_owned())
}

/// Costs of iterations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Cost {
    Constant,
    /// Lognormal with this sigma.
    Lognormal(f64),
}

/// Parses `constant` or `lognormal:SIGMA`.
pub(super) fn cost(text: &str) -> Result<Cost, String> {
    if text == "constant" {
        return Ok(Cost::Constant);
    }
    let sigma = text.strip_prefix("lognormal:").and_then(|sigma| sigma.parse::<f64>().ok());
    let sigma = sigma.filter(|sigma| (0.0..=5.0).contains(sigma));
    sigma
        .map(Cost::Lognormal)
        .ok_or_else(|| "expected constant, or lognormal:SIGMA with a number from 0 to 5".to_owned())
}

/// The speeds in a list such as `1000,2000`, or in a file of that name. In a file, white space also separates speeds.
pub(super) fn speeds(list_or_file: &str) -> Result<Vec<f64>, String> {
    let is_list = list_or_file.split(',').all(|part| part.trim().parse::<f64>().is_ok());
    if is_list {
        return speeds_of(list_or_file).map_err(|what| format!("--speeds {list_or_file}: {what}"));
    }
    let text = input::read_text(Path::new(list_or_file)).map_err(|error| {
        format!("--speeds {list_or_file}: neither a list as in 1000,2000 nor a file: {error}")
    })?;
    let mut speeds = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = speeds_of(line).map_err(|what| format!("--speeds {list_or_file}:{number}: {what}"))?;
        speeds.extend(line);
    }
    Ok(speeds)
}

/// The speeds in a line.
fn speeds_of(line: &str) -> Result<Vec<f64>, String> {
    let parts = line.split(|letter: char| letter == ',' || letter.is_whitespace());
    parts.filter(|part| !part.is_empty()).map(speed_or_0).collect()
}

/// A speed in a list, where 0 is a worker that stands still.
pub(super) fn speed_or_0(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| (0.0..=1e12).contains(number));
    number.ok_or_else(|| format!("{text:?} is not a speed, expected a number from 0 to 1e12"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_rates_may_have_a_unit() {
        assert_eq!([bytes("65536"), bytes("64KiB"), bytes("64 KiB")], [Ok(65_536), Ok(65_536), Ok(65_536)]);
        assert_eq!([bytes("1.5MB"), bytes("1e6"), bytes("7B")], [Ok(1_500_000), Ok(1_000_000), Ok(7)]);
        let all = ["1.25e9", "1.25GB/s", "10Gbit/s", "1250MB"].map(rate);
        assert_eq!(all, [Ok(1.25e9), Ok(1.25e9), Ok(1.25e9), Ok(1.25e9)]);
        for bad in ["", "KiB", "-1", "nan", "5 apples", "2e12"] {
            assert!(bytes(bad).is_err() && rate(bad).is_err(), "{bad}");
        }
        assert!(rate("0").is_err() && rate("1Gbit").is_err());
    }

    #[test]
    fn times_have_a_unit_and_may_have_an_exponent() {
        assert_eq!(time("0.1ms"), Ok(100_000));
        assert_eq!(time("1e3us"), Ok(1_000_000));
        assert_eq!(time("1e6s"), Ok(1_000_000_000_000_000));
        assert_eq!(time("2 s"), Ok(2_000_000_000));
        assert_eq!(time("50ns"), Ok(50));
        for bad in ["", "s", "5", "2e6s", "-1s", "nans", "1h"] {
            assert!(time(bad).is_err(), "{bad}");
        }
    }
}
