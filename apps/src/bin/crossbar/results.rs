//! Formats results for people: a table of the highest load, and the whole grid as a CSV file.

use std::fmt::Write;

use presentation::Table;

use super::grid::{Grid, Point};
use super::grid_results::GridResults;

/// The results of each scheduler and buffer at the highest load, where they differ most.
#[must_use]
pub(crate) fn table(grid: &Grid, tally: &GridResults) -> String {
    let highest = grid.loads.iter().copied().fold(0.0, f64::max);
    let mut rows = Table::new(["scheduler", "buffer", "throughput", "delay in slots", "loss"]);
    for &wanted in &grid.schedulers {
        for (at, point) in tally.points.iter().enumerate() {
            let Point { load, buffer, scheduler } = grid.point(at);
            if scheduler == wanted && load.total_cmp(&highest).is_eq() {
                let estimates = [point.throughput(), point.delay_slots(), point.loss()];
                let mut row = vec![scheduler.name().to_owned(), buffer.to_string()];
                row.extend(estimates.map(|estimate| estimate.to_string()));
                rows.row(row);
            }
        }
    }
    format!("{0} x {0} ports, load {highest}:\n{rows}", grid.ports)
}

/// A line for each point of the grid, as comma-separated values with a heading; unknown values are NaN.
#[must_use]
pub(crate) fn grid_csv(grid: &Grid, tally: &GridResults) -> String {
    let mut text = "load,buffer,scheduler,tasks,slots,offered,lost,throughput,throughput_standard_error,\
                    delay_slots,delay_slots_standard_error,loss,loss_standard_error\n"
        .to_owned();
    for (at, point) in tally.points.iter().enumerate() {
        let Point { load, buffer, scheduler } = grid.point(at);
        let scheduler = scheduler.name();
        let _ = write!(text, "{load},{buffer},{scheduler},{},{}", point.tasks(), point.slots);
        let _ = write!(text, ",{},{}", point.offered, point.lost);
        for estimate in [point.throughput(), point.delay_slots(), point.loss()] {
            let _ = write!(text, ",{:.9},{:.9}", estimate.value, estimate.standard_error);
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::tests::grid;
    use crate::grid_results::run_tasks;

    fn tally() -> GridResults {
        let mut tally = GridResults::new(&grid());
        run_tasks(&grid(), 0..24, &mut tally);
        tally
    }

    #[test]
    fn the_table_shows_the_highest_load_by_scheduler_and_buffer() {
        let text = table(&grid(), &tally());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines.len(), lines[0]), (2 + 3 * 2, "4 x 4 ports, load 1:"));
        assert!(lines[2].starts_with("round-robin") && lines[4].starts_with("longest-queue"), "{text}");
    }

    #[test]
    fn the_file_has_a_line_a_point_and_a_number_a_column() {
        let csv = grid_csv(&grid(), &tally());
        let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
        assert_eq!((lines.len(), lines[0].len()), (13, 13));
        for line in &lines[1..] {
            let loss: f64 = line[11].parse().unwrap();
            let counted = line[6].parse::<f64>().unwrap() / line[5].parse::<f64>().unwrap();
            assert!(line.len() == 13 && line[3] == "2" && (loss - counted).abs() < 1e-3, "{line:?}");
        }
    }
}
