//! Parses decimal numbers as programs in C and Fortran write them.

/// Parses a finite number. Its exponent may begin with `e`, `E`, or with the `d` or `D` of Fortran's double precision.
pub(crate) fn parse_decimal(text: &str) -> Option<f64> {
    // Refuses names of numbers, as in `inf`. A second exponent, as in `1d2e3`, fails below.
    if !text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E' | b'd' | b'D'))
    {
        return None;
    }
    text.replace(['d', 'D'], "e").parse().ok().filter(|number: &f64| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponents_may_be_fortran_s() {
        for (text, number) in
            [("0.10D+02", 10.0), ("1.d0", 1.0), ("1.", 1.0), ("-2.5E-1", -0.25), ("+7", 7.0)]
        {
            assert_eq!(parse_decimal(text), Some(number), "{text}");
        }
        for text in ["", "d", "1d2e3", "1d", "inf", "nan", "1e999", "0x1", "1,5", "1_0", "e5"] {
            assert_eq!(parse_decimal(text), None, "{text}");
        }
    }
}
