//! Tables with a caption, heads that say what they head, and values by which a script can sort.

use maud::{Markup, html};

use crate::trace::page::{bytes, duration};

/// What is in a cell: shown for people, sorted by its number.
#[derive(Clone, Debug)]
pub(super) enum Cell {
    Text(String),
    Count(u64),
    Ns(f64),
    /// A part of a whole.
    Share(f64),
    Number(f64),
    Bytes(u64),
    Empty,
}

impl Cell {
    pub(super) fn text(&self) -> String {
        match self {
            Cell::Text(text) => text.clone(),
            Cell::Count(count) => count.to_string(),
            Cell::Ns(ns) => duration(*ns),
            Cell::Share(share) => percent(*share),
            Cell::Number(number) => format!("{number:.3}"),
            Cell::Bytes(count) => bytes(*count),
            Cell::Empty => "–".into(),
        }
    }

    fn value(&self) -> Option<String> {
        match self {
            Cell::Text(_) => None,
            Cell::Count(count) | Cell::Bytes(count) => Some(count.to_string()),
            Cell::Ns(number) => Some(number.round().to_string()),
            Cell::Share(number) | Cell::Number(number) => Some(number.to_string()),
            Cell::Empty => Some(String::new()),
        }
    }

    pub(super) fn ns(ns: u64) -> Cell {
        Cell::Ns(ns as f64)
    }
}

/// A share as people write it: the unit stays on the line of the number.
pub(super) fn percent(share: f64) -> String {
    format!("{:.1}\u{a0}%", 100.0 * share)
}

/// Rows under heads; the first cell of a row is its head.
pub(super) struct Table<'h> {
    pub(super) id: &'static str,
    pub(super) caption: String,
    pub(super) heads: &'h [&'h str],
    pub(super) rows: Vec<Vec<Cell>>,
}

impl Table<'_> {
    pub(super) fn html(&self) -> Markup {
        let number = |column: usize| {
            self.rows.iter().all(|row| !matches!(row.get(column), Some(Cell::Text(_)))) && column > 0
        };
        let numbers: Vec<bool> = (0..self.heads.len()).map(number).collect();
        html! {
            // It may be wider than the page, and is then scrolled: by keyboard as well.
            div.scroll tabindex="0" role="region" aria-label=(self.caption) {
                table id=(self.id) {
                    caption { (self.caption) }
                    thead { tr { @for (head, number) in self.heads.iter().zip(&numbers) {
                        th scope="col" class=[number.then_some("number")] { (head) }
                    } } }
                    tbody { @for row in &self.rows { tr {
                        @for (column, cell) in row.iter().enumerate() {
                            @if column == 0 {
                                th scope="row" data-v=[cell.value()] { (cell.text()) }
                            } @else {
                                td data-v=[cell.value()] class=[numbers[column].then_some("number")] { (cell.text()) }
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
