//! The figures behind the pictures, once, as JSON: for the script, and for programs that read the page.
//!
//! Long lists of numbers are little-endian arrays in base64.

use serde_json::{Value, json};

use super::Report;
use super::activities::State;
use super::balance::RANKS_MAX;
use super::charts::row_name;

/// The JSON, in which nothing can end the element that it is in.
pub(super) fn json(report: &Report<'_>) -> String {
    value(report).to_string().replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

fn value(report: &Report<'_>) -> Value {
    let figures = &report.figures;
    let activities = (0..figures.activities.len()).map(|number| {
        let number = number as u8;
        let class = figures.activities.class(number);
        json!({ "name": figures.activities.name(number), "state": State::of(number).name(), "class": class })
    });
    let rows = (0..figures.rows.len())
        .map(|row| json!({ "name": row_name(figures, row), "workers": figures.rows[row].workers }));
    let levels = figures.levels.iter().enumerate().map(|(level, grid)| {
        let bins = figures.rows.iter().flat_map(|row| row.level(level));
        let bytes: Vec<u8> = bins.flat_map(|bin| std::iter::once(bin.kind).chain(bin.shares)).collect();
        json!({ "bin_ns": grid.bin_ns, "bins": grid.bins, "data": base64(&bytes) })
    });
    let stack = figures.stack.iter().map(|(activity, ns)| json!({ "activity": activity, "ns": ns }));
    let marks = figures.marks.iter().map(|&(at_ns, name)| json!([at_ns, report.trace.name(name)]));
    json!({
        "schema": "caribou.trace.report/1",
        "run": report.trace.run,
        "elapsed_ns": figures.elapsed_ns,
        "activities": activities.collect::<Value>(),
        "states": State::ALL.map(State::name),
        "rows": rows.collect::<Value>(),
        "levels": levels.collect::<Value>(),
        "exact": exact(report),
        "arrows": arrows(report),
        "syncs": syncs(report),
        "sync_times_ns": sync_times(report),
        "marks": marks.collect::<Value>(),
        "utilisation": { "bin_ns": figures.stack_grid.bin_ns, "rows": stack.collect::<Value>() },
    })
}

fn exact(report: &Report<'_>) -> Value {
    let window = &report.window;
    let slices = &window.slices;
    let le = |number: f64| (number as f32).to_le_bytes();
    json!({
        "from_ns": window.from_ns,
        "to_ns": window.to_ns,
        "offsets": window.offsets,
        "begin_ns": base64(&slices.iter().flat_map(|slice| (slice.begin_ns as f64).to_le_bytes()).collect::<Vec<_>>()),
        "long_ns": base64(&slices.iter().flat_map(|slice| le((slice.end_ns - slice.begin_ns) as f64)).collect::<Vec<_>>()),
        "lost_ns": base64(&slices.iter().flat_map(|slice| le(slice.lost_ns as f64)).collect::<Vec<_>>()),
        "activity": base64(&slices.iter().map(|slice| slice.activity).collect::<Vec<_>>()),
        "chunk": base64(&slices.iter().flat_map(|slice| slice.chunk.to_le_bytes()).collect::<Vec<_>>()),
        "chunk_names": window.chunk_names,
    })
}

fn arrows(report: &Report<'_>) -> Value {
    let arrows = &report.window.arrows;
    let rows = |row: usize| (row as u16).to_le_bytes();
    let times = |ns: u64| (ns as f64).to_le_bytes();
    json!({
        "one_in": report.window.one_in,
        "from_row": base64(&arrows.iter().flat_map(|arrow| rows(arrow.from_row)).collect::<Vec<_>>()),
        "to_row": base64(&arrows.iter().flat_map(|arrow| rows(arrow.to_row)).collect::<Vec<_>>()),
        "sent_ns": base64(&arrows.iter().flat_map(|arrow| times(arrow.sent_ns)).collect::<Vec<_>>()),
        "handled_ns": base64(&arrows.iter().flat_map(|arrow| times(arrow.handled_ns)).collect::<Vec<_>>()),
    })
}

fn syncs(report: &Report<'_>) -> Value {
    let balance = &report.balance;
    let some = |ns: &[u64]| ns.iter().take(RANKS_MAX).copied().collect::<Vec<_>>();
    let shown = balance.shown().map(|outcome| {
        let sync = outcome.report;
        json!({
            "sync": sync.sync,
            "at_ns": sync.at_ns,
            "before_ns": some(&sync.before_ns),
            "predicted_ns": some(&sync.predicted_ns),
            "next_ns": some(outcome.measured_ns().unwrap_or_default()),
        })
    });
    shown.collect()
}

/// Lines in the timeline: so many that they can be told apart.
fn sync_times(report: &Report<'_>) -> Vec<u64> {
    let times = report.balance.syncs.iter().map(|sync| sync.report.at_ns);
    let every = report.balance.syncs.len().div_ceil(5000).max(1);
    times.step_by(every).filter(|&at_ns| at_ns <= report.figures.elapsed_ns).collect()
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let bits =
            three.iter().enumerate().map(|(place, &byte)| u32::from(byte) << (16 - 8 * place)).sum::<u32>();
        for digit in 0..4 {
            let value = bits >> (18 - 6 * digit) & 63;
            text.push(if digit <= three.len() { DIGITS[value as usize] as char } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn bytes_become_the_base64_of_rfc_4648() {
        let expected = ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"];
        for (length, expected) in expected.into_iter().enumerate() {
            assert_eq!(base64(&b"foobar"[..length]), expected);
        }
        assert_eq!(base64(&[0xff, 0xfe, 0xfd]), "//79");
    }
}
