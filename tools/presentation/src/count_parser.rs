//! Parses counts on the command line.

use std::fmt::Display;
use std::ops::RangeInclusive;

/// Returns a parser of whole numbers in `range`, also in the form `1e6`. Its error states the expected form.
///
/// ```
/// let read = presentation::count_parser(1..=2_000_000u32);
/// assert_eq!(read("1e6"), Ok(1_000_000));
/// assert_eq!(read("0").unwrap_err(), "expected a whole number from 1 to 2000000, as in 1000 or 1e3");
/// ```
pub fn count_parser<T>(
    range: RangeInclusive<T>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: TryFrom<u64> + PartialOrd + Display + Clone + Send + Sync + 'static,
{
    move |text| {
        let count = whole(text).and_then(|count| T::try_from(count).ok());
        count.filter(|count| range.contains(count)).ok_or_else(|| {
            let all = T::try_from(u64::MAX).is_ok_and(|most| range.contains(&most));
            let most = if all { "2^64 - 1".to_owned() } else { range.end().to_string() };
            format!("expected a whole number from {} to {most}, as in 1000 or 1e3", range.start())
        })
    }
}

/// Parses digits of a whole number, optionally with a decimal point and an exponent.
fn whole(text: &str) -> Option<u64> {
    let (number, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (digits, fraction) = number.split_once('.').unwrap_or((number, ""));
    let fraction = fraction.trim_end_matches('0');
    let zeros = exponent.parse::<usize>().ok()?.checked_sub(fraction.len())?;
    let number: u64 = format!("{digits}{fraction}").parse().ok()?;
    number.checked_mul(10_u64.checked_pow(u32::try_from(zeros).ok()?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_may_have_an_exponent_and_is_never_rounded() {
        let read = count_parser(0..=u64::MAX);
        let most = u64::MAX.to_string();
        let written = ["0", "17", "1e6", "1.5E3", "2.0", "1.8446744073709551615e19", &most];
        assert_eq!(written.map(|text| read(text).unwrap()), [0, 17, 1_000_000, 1500, 2, u64::MAX, u64::MAX]);
        for bad in [
            "",
            ".",
            "e3",
            "-1",
            "1.5",
            "1.25e1",
            "1e-3",
            "1e20",
            "1e400",
            "nan",
            "inf",
            "many",
            "18446744073709551616",
        ] {
            let said = read(bad).unwrap_err();
            assert_eq!(said, "expected a whole number from 0 to 2^64 - 1, as in 1000 or 1e3", "{bad}");
        }
        assert!(count_parser(1..=u32::MAX)("5e9").unwrap_err().ends_with("to 4294967295, as in 1000 or 1e3"));
    }
}
