//! Counts as people write them.

use std::fmt::Display;
use std::ops::RangeInclusive;

/// Above this not every whole number is a floating-point number.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// A reader of whole numbers in `range`, also as `1e6`; what it refuses it answers with what was expected.
///
/// ```
/// let read = presentation::counts(1..=2_000_000u32);
/// assert_eq!(read("1e6"), Ok(1_000_000));
/// assert_eq!(read("0").unwrap_err(), "expected a whole number from 1 to 2000000, as in 1000 or 1e3");
/// ```
pub fn counts<T>(
    range: RangeInclusive<T>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: TryFrom<u64> + PartialOrd + Display + Clone + Send + Sync + 'static,
{
    move |text| {
        let count = whole(text).and_then(|count| T::try_from(count).ok());
        count.filter(|count| range.contains(count)).ok_or_else(|| {
            let endless = T::try_from(u64::MAX).is_ok_and(|most| range.contains(&most));
            let most = if endless { "on".to_owned() } else { format!("to {}", range.end()) };
            format!("expected a whole number from {} {most}, as in 1000 or 1e3", range.start())
        })
    }
}

fn whole(text: &str) -> Option<u64> {
    let rounded = || text.parse::<f64>().ok();
    let exact = |number: &f64| (0.0..=EXACT_MAX).contains(number) && number.fract() == 0.0;
    text.parse().ok().or_else(|| rounded().filter(exact).map(|number| number as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_may_have_an_exponent_and_is_never_rounded() {
        let read = counts(0..=u64::MAX);
        let most = u64::MAX.to_string();
        let written = ["0", "17", "1e6", "1.5e3", "2.0", &most];
        assert_eq!(written.map(|text| read(text).unwrap()), [0, 17, 1_000_000, 1500, 2, u64::MAX]);
        for bad in ["", "-1", "1.5", "1e400", "1e17", "nan", "inf", "many", "18446744073709551616"] {
            let said = read(bad).unwrap_err();
            assert_eq!(said, "expected a whole number from 0 on, as in 1000 or 1e3", "{bad}");
        }
        assert!(counts(1..=u32::MAX)("5e9").unwrap_err().ends_with("to 4294967295, as in 1000 or 1e3"));
    }
}
