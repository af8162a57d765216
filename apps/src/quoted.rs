//! Quotes text of a file for error messages.

use presentation::format::escape_control;

/// Characters of a file that an error shows.
const SHOWN_MAX: usize = 60;

/// Bytes of a file in backquotes, shortened if they are many, without control characters for a terminal.
pub(crate) fn quoted(bytes: &[u8]) -> String {
    // A character may have four bytes.
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * SHOWN_MAX)]);
    let text = text.trim_end();
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("`{}...`", escape_control(&text[..end])),
        None => format!("`{}`", escape_control(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_long_is_cut_and_what_is_no_text_is_shown_all_the_same() {
        assert_eq!(quoted(b"1 2 3\r\n"), "`1 2 3`");
        assert_eq!(quoted(b"J\xfcrg"), "`J\u{fffd}rg`");
        let long = quoted(&b"\xfc".repeat(500));
        assert_eq!(long, format!("`{}...`", "\u{fffd}".repeat(60)));
    }
}
