//! Builds a row of characters, each of which shows the class that took most of its time.

use std::collections::{BTreeMap, BTreeSet};

use trace_reader::Trace;

use super::super::page::{Cell, Table};
use super::super::select::Window;
use super::view::{Class, Slice};

/// Letters for kinds, in the order of their time.
const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// Letters for ranks.
const DIGITS: &str = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// For kinds and ranks beyond the letters.
const OTHER: char = '+';

/// Time of each class in each column of a row.
pub(super) struct Strip {
    window: Window,
    /// A list, because few classes share a column.
    columns: Vec<Vec<(Class, u64)>>,
    marks: BTreeSet<usize>,
}

impl Strip {
    pub(super) fn new(window: Window, width: usize) -> Strip {
        Strip { window, columns: vec![Vec::new(); width], marks: BTreeSet::new() }
    }

    pub(super) fn add(&mut self, slice: &Slice) {
        let worked_ns = slice.end_ns.saturating_sub(slice.lost_ns).max(slice.begin_ns);
        self.add_class(slice.class, slice.begin_ns, worked_ns);
        self.add_class(Class::Lost, worked_ns, slice.end_ns);
    }

    fn add_class(&mut self, class: Class, begin_ns: u64, end_ns: u64) {
        if self.window.overlap_ns(begin_ns, end_ns) == 0 {
            return;
        }
        let width = self.columns.len();
        let (first, last) = (column(self.window, width, begin_ns), column(self.window, width, end_ns));
        for number in first..=last {
            let part = Window { from_ns: self.edge_ns(number), to_ns: self.edge_ns(number + 1) };
            let inside_ns = part.overlap_ns(begin_ns, end_ns);
            if inside_ns == 0 {
                continue;
            }
            let column = &mut self.columns[number];
            match column.iter_mut().find(|(other, _)| *other == class) {
                Some((_, ns)) => *ns += inside_ns,
                None => column.push((class, inside_ns)),
            }
        }
    }

    /// Begin of a column in ns.
    fn edge_ns(&self, number: usize) -> u64 {
        let along = u128::from(self.window.length_ns()) * number as u128;
        // Rounds up, so that each column begins at the first ns that `column` assigns to it.
        self.window.from_ns + along.div_ceil(self.columns.len() as u128) as u64
    }

    pub(super) fn mark(&mut self, at_ns: u64) {
        self.marks.insert(column(self.window, self.columns.len(), at_ns));
    }

    /// The columns with a mark.
    pub(super) fn marks(&self) -> impl Iterator<Item = usize> {
        self.marks.iter().copied()
    }

    /// Time of these classes in the window, in ns.
    pub(super) fn ns(&self, of: impl Fn(&Class) -> bool) -> u64 {
        self.columns.iter().flatten().filter(|(class, _)| of(class)).map(|(_, ns)| ns).sum()
    }

    pub(super) fn text(&self, legend: &Legend) -> String {
        let most =
            |column: &Vec<(Class, u64)>| column.iter().max_by_key(|(class, ns)| (*ns, *class)).copied();
        self.columns
            .iter()
            .map(|column| most(column).map_or(' ', |(class, _)| legend.letter(class)))
            .collect()
    }
}

/// The column of a time; the nearest column if the time is outside of the window.
pub(super) fn column(window: Window, width: usize, at_ns: u64) -> usize {
    let along_ns = u128::from(at_ns.saturating_sub(window.from_ns));
    let column = along_ns * width as u128 / u128::from(window.length_ns().max(1));
    (column as usize).min(width - 1)
}

/// Meaning of the letters.
pub(super) struct Legend {
    entries: Vec<(char, Class, u64)>,
    letters: BTreeMap<Class, char>,
}

impl Legend {
    /// Assigns letters to all classes in these rows.
    pub(super) fn new(strips: &[Strip]) -> Legend {
        let mut totals = BTreeMap::new();
        for (class, ns) in strips.iter().flat_map(|strip| &strip.columns).flatten() {
            *totals.entry(*class).or_insert(0u64) += ns;
        }
        let mut totals: Vec<(Class, u64)> = totals.into_iter().collect();
        totals.sort_by_key(|&(class, ns)| (!class.is_work(), std::cmp::Reverse(ns), class));
        let mut free = LETTERS.chars();
        let entries: Vec<(char, Class, u64)> = totals
            .into_iter()
            .map(|(class, ns)| {
                let letter = match class {
                    Class::Kind(_) | Class::Iterations => free.next().unwrap_or(OTHER),
                    Class::Rank(rank) => DIGITS.chars().nth(rank as usize).unwrap_or(OTHER),
                    Class::Moving => '>',
                    Class::Runtime => '#',
                    Class::Idle => '.',
                    Class::Lost => '/',
                };
                (letter, class, ns)
            })
            .collect();
        let letters = entries.iter().map(|&(letter, class, _)| (class, letter)).collect();
        Legend { entries, letters }
    }

    fn letter(&self, class: Class) -> char {
        self.letters.get(&class).copied().unwrap_or(OTHER)
    }

    pub(super) fn table(&self, trace: &Trace) -> Table {
        let columns = [("letter", ""), ("what", "what"), ("ns", "time"), ("share", "of all shown")];
        let mut table = Table::new("legend", "", &columns).text_rows(30);
        let all: f64 = self.entries.iter().map(|(_, _, ns)| *ns as f64).sum();
        for &(letter, class, ns) in &self.entries {
            let share = Cell::Share(ns as f64 / all.max(1.0));
            table.row([Cell::Text(letter.into()), Cell::Text(class.name(trace)), Cell::Ns(ns as f64), share]);
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(begin_ns: u64, end_ns: u64, lost_ns: u64, class: Class) -> Slice {
        Slice { row: 0, class, begin_ns, end_ns, lost_ns }
    }

    #[test]
    fn a_column_shows_what_took_most_of_it_and_lost_time_comes_last() {
        let mut strip = Strip::new(Window { from_ns: 100, to_ns: 200 }, 10);
        strip.add(&slice(90, 140, 20, Class::Iterations));
        strip.add(&slice(140, 153, 0, Class::Idle));
        strip.add(&slice(153, 159, 0, Class::Runtime));
        let legend = Legend::new(std::slice::from_ref(&strip));
        assert_eq!(strip.text(&legend), "AA//.#    ");
        assert_eq!(strip.ns(|class| *class == Class::Lost), 20);
        assert_eq!(strip.ns(Class::is_work), 20);
    }

    #[test]
    fn columns_that_do_not_divide_the_window_lose_no_time() {
        for (length, width) in [(7, 3), (100, 7), (3, 10), (1, 10), (1_000_003, 100)] {
            let mut strip = Strip::new(Window { from_ns: 5, to_ns: 5 + length }, width);
            strip.add(&slice(0, 1 << 40, 0, Class::Idle));
            assert_eq!(strip.ns(|_| true), length, "{length} in {width}");
        }
    }
}
