//! Reads the loads of a recorded run, for `balance --lbdata STEM` and `simulate array --cost recorded:STEM`.
//!
//! | what STEM names | content |
//! |---|---|
//! | `STEM.RANK.json`, one file per rank | LB data of vt and LBAF, plain or compressed by brotli; `.json.br` too |
//! | `STEM.RANK.vom`, one file per rank | the older format of vt |
//! | a trace | the reports of ranks to syncs, of a run with `CARIBOU_LB_REPORTS=on` |
//!
//! `virtual_cluster::RecordedLoads` parses the files. This module finds, opens and decompresses them.

mod files;
mod reports;

use std::path::Path;

use presentation::format::{decimal, plural};
use trace_reader::Trace;
use virtual_cluster::RecordedLoads;

use crate::trace::open::warn;
use crate::{Error, input};

pub(crate) use reports::{Reported, of_syncs};

/// Reads the loads. `option` is the beginning of a line about a fault, such as `--lbdata`.
pub(crate) fn read(option: &str, stem: &str) -> Result<RecordedLoads, Error> {
    let wrong = |what: String| Error::Usage(format!("{option}{stem}: {what}"));
    if Path::new(stem).exists() {
        let trace = Trace::open(Path::new(stem))
            .map_err(|error| files::hint(stem).map_or_else(|| error.into(), &wrong))?;
        warn(&trace.problems);
        let snapshots = reports::snapshots(&of_syncs(&trace).map_err(wrong)?);
        let loads = RecordedLoads::new(snapshots).map_err(wrong)?;
        let last_ns = trace.syncs.iter().map(|sync| sync.at_ns).max().unwrap_or(0);
        let (last_s, lb) = (decimal(last_ns as f64 / 1e9, 3), &trace.run.lb);
        input::note(&format!(
            "{stem}: the recorded run took {last_s} s to its last sync, under {lb}; its shares of vCPUs, neighbours and \
             messages are left out"
        ));
        return Ok(loads);
    }
    let (format, files) = files::read(stem).map_err(wrong)?;
    let files: Vec<(&str, &[u8])> = files.iter().map(|(name, bytes)| (name.as_str(), &bytes[..])).collect();
    RecordedLoads::parse(format, &files).map_err(|error| Error::Usage(error.to_string()))
}

/// Prints the size of the recording on standard error. `scale` multiplies all loads.
pub(crate) fn note(stem: &str, loads: &RecordedLoads, scale: f64) {
    input::note(&format!(
        "{stem}: {}, {}, {} of {} ms in the mean",
        plural(loads.ranks(), "rank"),
        plural(loads.homes().len(), "chunk"),
        plural(loads.phases(), "phase"),
        decimal(1e3 * scale * loads.mean_phase_s(), 1)
    ));
    let rounded = loads.rounded_edges();
    if rounded > 0 {
        let edges = plural(rounded, "edge");
        input::note(&format!("{stem}: the bytes of {edges} are no whole numbers, and are rounded"));
    }
}
