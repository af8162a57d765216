//! What every complaint of a reader is.

/// One line with words in it.
pub(crate) fn assert_line(line: &str) {
    assert!(!line.is_empty() && !line.contains('\n'), "{line:?}");
}
