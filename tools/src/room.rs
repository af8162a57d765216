//! Refuses work that needs more memory than there is.

use crate::Error;

/// Refuses `what`, which needs `needed` bytes, if no more than `available` bytes are there.
pub(crate) fn check(what: &str, needed: u64, available: Option<u64>) -> Result<(), Error> {
    match available {
        Some(available) if needed > available => Err(Error::Usage(format!(
            "{what} needs {:.1} GB of memory, and {:.1} GB are available",
            needed as f64 / 1e9,
            available as f64 / 1e9
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::refused;

    #[test]
    fn what_does_not_fit_is_refused_with_both_sizes() {
        let check = |needed, available| check("it", needed, available).map_err(|error| error.to_string());
        assert_eq!((check(10, Some(10)), check(10, None)), (Ok(()), Ok(())));
        let said = check(2_000_000_000, Some(500_000_000)).map(|()| String::new());
        refused(said, "it needs 2.0 GB of memory, and 0.5 GB are available");
    }
}
