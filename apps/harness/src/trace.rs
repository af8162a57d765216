//! Names the trace of a run in the table and in `--json`.

use caribou::report::RunReport;
use serde::Serialize;

/// Where the trace of a run is, if it has one.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(transparent)]
pub struct Trace {
    /// Its directory; empty if there is none.
    pub dir: String,
    /// True if a rank of this process could not write it to the end, for instance on a full disk.
    #[serde(skip)]
    pub cut_off: bool,
}

impl Trace {
    /// The trace of `run`.
    #[must_use]
    pub fn of(run: &RunReport) -> Self {
        Self {
            dir: run.record.trace.clone(),
            cut_off: run.profiles.iter().any(|profile| profile.broken.is_some()),
        }
    }

    /// A line with its directory; empty without a trace.
    #[must_use]
    pub fn line(&self, lb: &str) -> String {
        let Self { dir, cut_off } = self;
        let but = if *cut_off { ", cut off" } else { "" };
        match dir.is_empty() {
            true => String::new(),
            false => format!("Trace of `{lb}`{but}: {dir} (`caribou trace summary {dir}`)\n"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use caribou::trace::RankProfile;

    #[test]
    fn a_trace_that_could_not_be_written_to_its_end_is_said_to_be_cut_off() {
        let mut run = RunReport::default();
        assert_eq!(Trace::of(&run).line("none"), "");
        run.record.trace = "traces/run-1".to_owned();
        let whole = RankProfile::default();
        let broken = RankProfile { broken: Some("no space".to_owned()), ..RankProfile::default() };
        for (last, but) in [(whole.clone(), ""), (broken, ", cut off")] {
            run.profiles = vec![whole.clone(), last];
            let line = format!("Trace of `none`{but}: traces/run-1 (`caribou trace summary traces/run-1`)\n");
            assert_eq!(Trace::of(&run).line("none"), line);
        }
    }
}
