//! Formats HTML tables with a caption, heads, and values by which the script sorts.

use maud::{Markup, html};

use super::figures::Figures;
use crate::trace::analysis::events::WorkerName;
use crate::trace::page::{self, Cell};

/// Number of columns up to which a table does not fill a wide page.
const FEW: usize = 6;

/// A share in percent. A no-break space keeps the unit on the line of the number.
pub(super) fn percent(share: f64) -> String {
    format!("{:.1}\u{a0}%", 100.0 * share)
}

/// Converts text with commands and names between backticks.
pub(super) fn prose(text: &str) -> Markup {
    html! {
        @for (number, part) in text.split('`').enumerate() {
            @if number % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

/// The sort key of a cell; none for text, which is its own key.
fn value(cell: &Cell) -> Option<String> {
    (!matches!(cell, Cell::Text(_))).then(|| cell.value())
}

/// A position in the timeline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TimelinePosition {
    from_ns: u64,
    to_ns: u64,
    worker: Option<WorkerName>,
}

impl TimelinePosition {
    /// A position without a worker.
    pub(super) fn over(from_ns: u64, to_ns: u64) -> TimelinePosition {
        TimelinePosition { from_ns, to_ns, worker: None }
    }

    pub(super) fn on(worker: WorkerName, from_ns: u64, to_ns: u64) -> TimelinePosition {
        TimelinePosition { from_ns, to_ns, worker: Some(worker) }
    }
}

/// Rows below heads. The first cell of a row is its head.
#[derive(Default)]
pub(super) struct Table<'h> {
    pub(super) id: &'static str,
    pub(super) caption: String,
    pub(super) heads: Vec<&'h str>,
    pub(super) rows: Vec<Vec<Cell>>,
    /// Position of each row in the timeline, and the timeline row of its worker; empty if no row has a position.
    pub(super) places: Vec<Option<(TimelinePosition, Option<usize>)>>,
}

impl<'h> Table<'h> {
    /// The table of another command, at most `most` rows of it. Rows with a time link to the timeline; rows with a
    /// chunk do so in the script.
    pub(super) fn of(
        id: &'static str,
        caption: &str,
        table: &'h page::Table,
        most: usize,
        figures: &Figures,
    ) -> Table<'h> {
        let rows: Vec<Vec<Cell>> = table.rows().iter().take(most).cloned().collect();
        let shown = Table { id, caption: caption.into(), heads: table.heads().collect(), ..Table::default() };
        let places = rows.iter().map(|row| place(table, row)).collect();
        Table { rows, ..shown }.at(places, figures)
    }

    /// Sets the positions of rows in the timeline.
    pub(super) fn at(mut self, places: Vec<Option<TimelinePosition>>, figures: &Figures) -> Table<'h> {
        let row = |place: TimelinePosition| place.worker.and_then(|worker| figures.row_of(worker));
        self.places = places.into_iter().map(|place| place.map(|place| (place, row(place)))).collect();
        self
    }

    pub(super) fn html(&self) -> Markup {
        let number = |column: usize| {
            self.rows.iter().all(|row| !matches!(row.get(column), Some(Cell::Text(_)))) && column > 0
        };
        let numbers: Vec<bool> = (0..self.heads.len()).map(number).collect();
        let place = |number: usize| self.places.get(number).copied().flatten();
        html! {
            // A table wider than the page scrolls, also by keyboard.
            div.scroll tabindex="0" role="region" aria-label=(self.caption) {
                table id=[(!self.id.is_empty()).then_some(self.id)] class=[(self.heads.len() <= FEW).then_some("few")] {
                    caption { (self.caption) }
                    thead { tr { @for (head, number) in self.heads.iter().zip(&numbers) {
                        th scope="col" class=[number.then_some("number")] { (head) }
                    } } }
                    tbody { @for (number, row) in self.rows.iter().enumerate() { tr
                        data-from=[place(number).map(|(place, _)| place.from_ns)]
                        data-to=[place(number).map(|(place, _)| place.to_ns)]
                        data-row=[place(number).and_then(|(_, row)| row)] {
                        @for (column, cell) in row.iter().enumerate() {
                            @if column == 0 {
                                th scope="row" data-v=[value(cell)] { (cell.text()) }
                            } @else {
                                td data-v=[value(cell)] class=[numbers[column].then_some("number")] { (cell.text()) }
                            }
                        }
                    } } }
                }
            }
        }
    }
}

/// Position of a row of another command's table, from the columns with these names in JSON.
fn place(table: &page::Table, row: &[Cell]) -> Option<TimelinePosition> {
    let number = |key: &str| match row.get(table.column(key)?)? {
        Cell::Ns(number) if *number >= 0.0 => Some(*number as u64),
        Cell::Count(number) => Some(*number),
        _ => None,
    };
    let from_ns = number("begin_ns").or_else(|| number("at_ns"))?;
    let long_ns = number("wall_ns").or_else(|| number("time_ns")).unwrap_or(0);
    let rank = number("rank").and_then(|rank| u32::try_from(rank).ok());
    let worker = number("worker").and_then(|worker| u32::try_from(worker).ok()).unwrap_or(0);
    let worker = rank.map(|rank| WorkerName { rank, worker });
    Some(TimelinePosition { from_ns, to_ns: from_ns.saturating_add(long_ns), worker })
}

/// A table that is folded until the reader opens it.
pub(super) fn folded(summary: &str, table: &Table<'_>) -> Markup {
    html! { details { summary { (summary) } (table.html()) } }
}
