//! The settings of checkpoints: their directory, their interval, and how many are kept.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

const EXPECTED: &str = "expected DIR[,every=TIME][,keep=COUNT], TIME a whole number of ms, s, m or h, as in checkpoints,every=10m,keep=3";

/// The directory and the interval of checkpoints, and how many are kept.
///
/// ```
/// use std::time::Duration;
/// use caribou::checkpoint::Settings;
/// let settings: Settings = "checkpoints,every=90s,keep=2".parse()?;
/// assert_eq!(settings, Settings::new("checkpoints").every(Duration::from_secs(90)).keep(2));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub(crate) dir: PathBuf,
    pub(crate) every: Duration,
    pub(crate) keep: u32,
    /// The number of the run in its process.
    pub(crate) run: u32,
    /// Settings of the program, by name.
    pub(crate) program: Vec<(String, String)>,
    /// The time of earlier runs from which this run was restarted, ns; none if it begins anew.
    pub(crate) elapsed_before_ns: Option<u64>,
}

impl Settings {
    /// Checkpoints every 10 minutes in this directory, which is created if necessary. The last 3 are kept.
    pub fn new(dir: impl Into<PathBuf>) -> Settings {
        let (dir, every, keep) = (dir.into(), Duration::from_secs(600), 3);
        Settings { dir, every, keep, run: 0, program: Vec::new(), elapsed_before_ns: None }
    }

    /// The time from one checkpoint to the next.
    #[must_use]
    pub fn every(self, every: Duration) -> Settings {
        Settings { every, ..self }
    }

    /// The number of checkpoints that are kept, at least 1.
    #[must_use]
    pub fn keep(self, keep: u32) -> Settings {
        Settings { keep: keep.max(1), ..self }
    }
}

impl FromStr for Settings {
    type Err = String;

    fn from_str(text: &str) -> Result<Settings, String> {
        let mut parts = text.split(',');
        let dir = parts.next().filter(|dir| !dir.is_empty()).ok_or(EXPECTED)?;
        if let Some(("every" | "keep", _)) = dir.split_once('=') {
            return Err(format!("`{dir}` is in the place of the directory, {EXPECTED}"));
        }
        let mut given = Vec::new();
        parts.try_fold(Settings::new(dir), |settings, part| {
            let wrong = || format!("`{part}` is not understood, {EXPECTED}");
            let (key, value) = part.split_once('=').ok_or_else(wrong)?;
            if given.contains(&key) {
                return Err(format!("`{part}`: {key} is given twice, {EXPECTED}"));
            }
            given.push(key);
            match (key, value) {
                ("every", time) => Ok(settings.every(parse_time(time).ok_or_else(wrong)?)),
                ("keep", count) => {
                    let keep = count.parse().ok().filter(|&keep| keep > 0).ok_or_else(wrong)?;
                    Ok(settings.keep(keep))
                }
                _ => Err(wrong()),
            }
        })
    }
}

/// Parses a number with a unit, ms, s, m or h. The time must be at least 1 ms.
fn parse_time(text: &str) -> Option<Duration> {
    let units = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];
    let (number, ms) = units.iter().find_map(|(unit, ms)| Some((text.strip_suffix(unit)?, ms)))?;
    let ms = number.parse::<u64>().ok()?.checked_mul(*ms)?;
    (ms > 0).then(|| Duration::from_millis(ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_and_faults_name_the_part() {
        let settings: Settings = "a/b,keep=1,every=5m".parse().expect("it is right");
        assert_eq!(settings, Settings::new("a/b").keep(1).every(Duration::from_secs(300)));
        for (text, part) in [
            ("", "DIR"),
            ("a,keep=0", "`keep=0`"),
            ("a,every=5", "`every=5`"),
            ("a,b", "`b`"),
            ("every=1s", "`every=1s` is in the place of the directory"),
            ("keep=2,every=1s", "`keep=2` is in the place of the directory"),
            ("a,keep=1,every=1s,keep=2", "`keep=2`: keep is given twice"),
        ] {
            let why = text.parse::<Settings>().expect_err(text);
            assert!(why.contains(part) && why.contains("every=10m"), "{text}: {why}");
        }
    }
}
