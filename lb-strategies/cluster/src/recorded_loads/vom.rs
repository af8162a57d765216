//! Reads lines of `phase,object,seconds`, and of communication: `phase,object,object,bytes,kind`.

use super::rank_file::{RankFile, Sizes, Task, load};
use super::{RecordedLoadsError, no_load};

/// Number of characters of a field that are shown.
const SHOWN_MAX: usize = 40;

/// Reads a file. Every object may migrate, because the format does not say which may not.
pub(super) fn read(file: &str, bytes: &[u8]) -> Result<RankFile, RecordedLoadsError> {
    let mut content = RankFile::default();
    for (number, line) in (1..).zip(bytes.split(|&byte| byte == b'\n')) {
        let at_place = |what| RecordedLoadsError { place: format!("{file}:{number}"), what };
        let line = std::str::from_utf8(line).map_err(|_| at_place("expected text in UTF-8".to_owned()))?;
        if line.trim().is_empty() {
            continue;
        }
        if let Some((phase, task)) = task(line).map_err(at_place)? {
            content.entries.entry(phase).or_default().tasks.push(task);
        }
    }
    Ok(content)
}

/// The phase and task of a line; none for communication.
fn task(line: &str) -> Result<Option<(u64, Task)>, String> {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    match fields[..] {
        [phase, object, seconds] => {
            let (phase, object) = (whole("phase", phase)?, whole("object", object)?);
            let seconds = load(seconds.parse().map_err(|_| no_load(&shown(seconds)))?)?;
            let sizes = Sizes::default();
            Ok(Some((phase, Task { object, sequence: None, seconds, migratable: true, sizes })))
        }
        [phase, to, from, bytes, kind] => {
            let names = ["phase", "object", "object", "kind of communication"];
            names
                .iter()
                .zip([phase, to, from, kind])
                .try_for_each(|(name, text)| whole(name, text).map(drop))?;
            let is_size = bytes.parse::<f64>().is_ok_and(|bytes| bytes >= 0.0);
            is_size.then_some(None).ok_or_else(|| format!("{:?} is no number of bytes", shown(bytes)))
        }
        _ => Err(format!(
            "{} fields, expected phase,object,seconds or the five fields of communication",
            fields.len()
        )),
    }
}

fn whole(name: &str, text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{:?} is no {name}, expected a whole number", shown(text)))
}

fn shown(text: &str) -> String {
    text.chars().take(SHOWN_MAX).collect()
}
