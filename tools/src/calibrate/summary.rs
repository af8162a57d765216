//! Combines the rounds of a calibration: the median of each cost, its spread, and warnings about the machine.

use std::io::Write;
use std::time::SystemTime;

use presentation::Table;

use super::machine_costs::{COSTS, Cost, RuntimeCosts};
use super::round::Round;
use crate::Error;

/// Below this part of the time, others had the vCPU of a program too often.
const BUSY: f64 = 0.95;
/// Below this part, measurements are worth nothing.
const HOPELESS: f64 = 0.75;
/// A cost whose middle half is wider than this part of its median is uncertain.
const WIDE: f64 = 0.5;

/// The costs of all rounds.
pub(super) struct Summary {
    rows: Vec<Row>,
    /// The part of the time in which a program had its vCPU.
    share: f64,
    /// What makes the measurement doubtful, one line each.
    warnings: Vec<String>,
}

/// A cost in all rounds.
struct Row {
    field: &'static str,
    meaning: &'static str,
    /// Lower quartile, median and upper quartile; none if it was not measured.
    quartiles: Option<[f64; 3]>,
}

impl Summary {
    pub(super) fn of(rounds: &[Round], vcpus: u32, ranks: u32) -> Self {
        let row = |&Cost { field, meaning, .. }: &Cost| {
            let quartiles = quartiles(values_of(rounds, field));
            Row { field, meaning, quartiles }
        };
        let rows: Vec<Row> = COSTS.iter().map(row).collect();
        let shares = rounds.iter().map(|round| round.share).collect();
        let share = quartiles(shares).map_or(0.0, |[_, median, _]| median);
        Self { warnings: warnings(share, &rows, vcpus, ranks), share, rows }
    }

    /// Refuses costs that others on the vCPUs have distorted.
    ///
    /// # Errors
    /// The part of the time in which a program had its vCPU.
    pub(super) fn check(&self) -> Result<(), Error> {
        if self.share >= HOPELESS {
            return Ok(());
        }
        let part = (self.share * 100.0).round();
        Err(Error::Failed(format!(
            "the machine is too busy or limited: a program had its vCPU for {part} % of the time, expected {} % at \
             least; nothing is written",
            HOPELESS * 100.0
        )))
    }

    /// The medians.
    pub(super) fn costs(&self) -> RuntimeCosts {
        let mut costs = RuntimeCosts::default();
        for row in &self.rows {
            costs.set(row.field, row.quartiles.map_or(0.0, |[_, median, _]| median));
        }
        costs
    }

    pub(super) fn write(&self, out: &mut dyn Write) -> Result<(), Error> {
        let mut table = Table::new(["cost", "median", "middle half", "what it is"]);
        for Row { field, meaning, quartiles } in &self.rows {
            let (median, spread) = match quartiles {
                Some([low, median, high]) => (shown(*median), format!("{} to {}", shown(*low), shown(*high))),
                None => ("-".to_owned(), "not measured".to_owned()),
            };
            table.row([(*field).to_owned(), median, spread, (*meaning).to_owned()]);
        }
        write!(out, "{}", table.text_columns([true, false, true, true]))?;
        for warning in &self.warnings {
            writeln!(out, "{warning}")?;
        }
        Ok(())
    }
}

fn values_of(rounds: &[Round], field: &str) -> Vec<f64> {
    let all = rounds.iter().flat_map(|round| &round.costs);
    all.filter(|(name, _)| *name == field).map(|(_, value)| *value).collect()
}

fn quartiles(mut values: Vec<f64>) -> Option<[f64; 3]> {
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    Some([1, 2, 3].map(|quarter| values[(last * quarter + 2) / 4]))
}

/// Three digits.
fn shown(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        _ if value < 1.0 => format!("{value:.3}"),
        _ if value < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

fn warnings(share: f64, rows: &[Row], vcpus: u32, ranks: u32) -> Vec<String> {
    let mut warnings = Vec::new();
    if share < BUSY {
        let part = (share * 100.0).round();
        warnings.push(format!(
            "The machine is busy or limited: a program had its vCPU for {part} % of the time. Measure again."
        ));
    }
    if ranks < 2 {
        warnings.push("Costs between ranks were not measured, and are 0 in the file.".to_owned());
    } else if vcpus < 2 {
        warnings.push(
            "Two ranks share one vCPU, so costs between ranks have the time of the scheduler.".to_owned(),
        );
    }
    let is_wide = |row: &&Row| row.quartiles.is_some_and(|[low, median, high]| high - low > WIDE * median);
    let wide: Vec<&str> = rows.iter().filter(is_wide).map(|row| row.field).collect();
    if !wide.is_empty() {
        warnings.push(format!("Uncertain, since rounds differ by half and more: {}.", wide.join(", ")));
    }
    warnings
}

/// Processor and system of this machine.
pub(super) fn machine_name() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        info.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split(": ").nth(1));
    let system = rustix::system::uname();
    let [name, release] =
        [system.sysname(), system.release()].map(|text| text.to_string_lossy().into_owned());
    format!("{}, {name} {release}", model.unwrap_or("unknown processor"))
}

/// The day, in UTC.
#[expect(clippy::disallowed_methods, reason = "the file tells when costs were measured")]
pub(super) fn today() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string().chars().take(10).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_count_and_doubts_are_told() {
        let round = |value: f64, share| Round { costs: vec![("move_ns", value), ("wake_ns", 5.0)], share };
        let rounds = [(1.0, 1.0), (9.0, 0.5), (2.0, 0.5), (4.0, 0.9), (3.0, 0.6)]
            .map(|(value, share)| round(value, share));
        let summary = Summary::of(&rounds, 2, 2);
        assert_eq!(
            (summary.costs().move_ns, summary.costs().wake_ns, summary.costs().report_ns),
            (3.0, 5.0, 0.0)
        );
        let mut out = Vec::new();
        summary.write(&mut out).expect("it is memory");
        let text = String::from_utf8(out).expect("it is text");
        assert!(text.contains("had its vCPU for 60 % of the time"), "{text}");
        assert!(text.contains("differ by half and more: move_ns."), "{text}");
        assert!(text.contains("not measured"), "{text}");
        assert!(summary.check().unwrap_err().to_string().contains("for 60 % of the time, expected 75 %"));
        let quiet = Summary::of(&[round(1.0, 1.0)], 2, 2);
        quiet.check().expect("it is quiet");
        assert!(quiet.warnings.is_empty(), "{:?}", quiet.warnings);
    }
}
