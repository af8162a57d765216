//! Any text is a trace of hosts or a line that says why not, and each line of it is a sample or a host.
#![no_main]

mod line;

use libfuzzer_sys::fuzz_target;
use line::assert_line;

fuzz_target!(|text: &str| {
    match caribou_tools::hosts(text) {
        Ok((hosts, notes)) => {
            notes.iter().for_each(|note| assert_line(note));
            assert_all(text.strip_prefix('\u{feff}').unwrap_or(text), hosts);
        }
        Err((line, why)) => {
            assert!(line > 0 && line <= text.matches(['\n', '\r']).count() as u64 + 1, "{line}");
            assert_line(&why);
        }
    }
});

/// Counts the hosts by lines, which a quote would join.
fn assert_all(text: &str, hosts: usize) {
    if text.contains(['"', '\r']) || !text.is_ascii() {
        return;
    }
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first: Vec<&str> = lines.next().unwrap_or_default().split(',').map(str::trim).collect();
    let others = lines.clone().count();
    let expected = match first[..] {
        [""] => 0,
        ["time_s", "host", "share"] => {
            let mut names: Vec<&str> =
                lines.filter_map(|line| line.split(',').nth(1)).map(str::trim).collect();
            names.sort_unstable();
            names.dedup();
            names.len()
        }
        ["timestamp" | "starttime", "value"] => others.min(1),
        ["vm", "value"] => others,
        _ => others + 1,
    };
    assert_eq!(hosts, expected, "{text}");
}
