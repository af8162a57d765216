//! Builds the sections that show pages of other commands: durations, critical path, outliers.

use maud::{Markup, html};

use super::nothing;
use crate::trace::page::Page;
use crate::trace::report::tables::{Table, folded, prose};
use crate::trace::report::verdict::{capital, sentence};
use crate::trace::report::{EVENTS_MAX, Report};

/// Rows of each table.
const ROWS_MAX: usize = 100;

pub(super) fn durations(report: &Report<'_>) -> Markup {
    match &report.details {
        Some(details) => shown(report, &details.durations, 1, &["duration-table"]),
        None => too_many("caribou trace histogram"),
    }
}

pub(super) fn path(report: &Report<'_>) -> Markup {
    match &report.details {
        Some(details) => shown(report, &details.path.0, 2, &["path-table", "bound-table"]),
        None => too_many("caribou trace critical-path --time FROM..TO"),
    }
}

pub(super) fn outliers(report: &Report<'_>) -> Markup {
    match &report.details {
        Some(details) => shown(report, &details.outliers, usize::MAX, &[]),
        None => too_many("caribou trace outliers --noise"),
    }
}

fn too_many(command: &str) -> Markup {
    nothing(&format!("More than {EVENTS_MAX} events: run `{command}`."))
}

/// The sentences of a page, its first `open` tables, and its other tables folded. `ids` are of the first tables.
fn shown(report: &Report<'_>, page: &Page, open: usize, ids: &[&'static str]) -> Markup {
    let tables = page.tables.iter().filter(|table| table.is_shown()).enumerate().map(|(place, table)| {
        let id = ids.get(place).copied().unwrap_or_default();
        Table::of(id, &capital(table.title()), table, ROWS_MAX, &report.figures)
    });
    let tables: Vec<Table<'_>> = tables.collect();
    html! {
        @for text in &page.says { p { (prose(&sentence(text))) } }
        div.side-by-side { @for table in tables.iter().take(open) { (table.html()) } }
        @for table in tables.iter().skip(open) { (folded(&table.caption, table)) }
        @for note in &page.notes { p.note { (prose(&sentence(note))) } }
    }
}
