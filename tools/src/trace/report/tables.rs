//! Tables with a caption, heads that say what they head, and values by which a script can sort.

use maud::{Markup, html};

use crate::trace::page::{self, Cell};

/// A share as people write it: the unit stays on the line of the number.
pub(super) fn percent(share: f64) -> String {
    format!("{:.1}\u{a0}%", 100.0 * share)
}

/// By what a script sorts a cell; text by itself.
fn value(cell: &Cell) -> Option<String> {
    (!matches!(cell, Cell::Text(_))).then(|| cell.csv())
}

/// Rows under heads; the first cell of a row is its head.
pub(super) struct Table<'h> {
    pub(super) id: &'static str,
    pub(super) caption: String,
    pub(super) heads: Vec<&'h str>,
    pub(super) rows: Vec<Vec<Cell>>,
}

impl<'h> Table<'h> {
    /// The table of another command, no more than `most` rows of it.
    pub(super) fn of(id: &'static str, caption: &str, table: &'h page::Table, most: usize) -> Table<'h> {
        let rows = table.rows().iter().take(most).cloned().collect();
        Table { id, caption: caption.into(), heads: table.heads().collect(), rows }
    }

    pub(super) fn html(&self) -> Markup {
        let number = |column: usize| {
            self.rows.iter().all(|row| !matches!(row.get(column), Some(Cell::Text(_)))) && column > 0
        };
        let numbers: Vec<bool> = (0..self.heads.len()).map(number).collect();
        html! {
            // It may be wider than the page, and is then scrolled: by keyboard as well.
            div.scroll tabindex="0" role="region" aria-label=(self.caption) {
                table id=[(!self.id.is_empty()).then_some(self.id)] {
                    caption { (self.caption) }
                    thead { tr { @for (head, number) in self.heads.iter().zip(&numbers) {
                        th scope="col" class=[number.then_some("number")] { (head) }
                    } } }
                    tbody { @for row in &self.rows { tr {
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

/// The same, to be opened by those who want it.
pub(super) fn folded(summary: &str, table: &Table<'_>) -> Markup {
    html! { details { summary { (summary) } (table.html()) } }
}
