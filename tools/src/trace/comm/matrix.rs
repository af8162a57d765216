//! Counts the traffic between ranks, and formats it as tables and as a heat map.

use std::collections::{BTreeMap, BTreeSet};

use presentation::svg::{Anchor, Area, Svg};
use trace_reader::Trace;

use crate::trace::page::{Cell, Table, bytes, columns};
use crate::trace::palette;

/// Largest number of pairs of ranks with own sums.
pub(super) const PAIRS_MAX: usize = 1 << 20;
/// Rows and columns of the heat map. More ranks share rows and columns.
const SIDE_MAX: usize = 256;
/// Rows in the text.
const SENDERS_IN_TEXT: usize = 16;
/// Characters from no traffic to the most traffic.
const SHADES: [char; 8] = [' ', '.', ':', '-', '=', '+', '#', '@'];

/// Messages and their bytes. Estimates need not be whole numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Volume {
    pub(super) messages: f64,
    pub(super) bytes: f64,
}

/// Traffic of each pair of ranks.
#[derive(Default)]
pub(super) struct Matrix {
    pairs: BTreeMap<(u32, u32), Volume>,
    all: Volume,
    merged: bool,
}

impl Volume {
    /// Traffic of a recorded message that represents `weight` messages.
    pub(super) fn of(weight: f64, bytes: u64) -> Volume {
        Volume { messages: weight, bytes: weight * bytes as f64 }
    }

    pub(super) fn add(&mut self, other: Volume) {
        self.messages += other.messages;
        self.bytes += other.bytes;
    }

    pub(super) fn cells(&self) -> [Cell; 2] {
        [Cell::Count(self.messages as u64), Cell::Bytes(self.bytes as u64)]
    }
}

impl Matrix {
    pub(super) fn add(&mut self, from: u32, to: u32, volume: Volume) {
        self.all.add(volume);
        // A damaged trace may name any number of ranks.
        if self.pairs.len() >= PAIRS_MAX && !self.pairs.contains_key(&(from, to)) {
            self.merged = true;
            return;
        }
        self.pairs.entry((from, to)).or_default().add(volume);
    }

    pub(super) fn all(&self) -> Volume {
        self.all
    }

    /// Returns whether there were too many pairs of ranks for own sums.
    pub(super) fn merged(&self) -> bool {
        self.merged
    }

    pub(super) fn local(&self) -> Volume {
        self.sum(|from, to| from == to)
    }

    pub(super) fn on_host(&self, trace: &Trace) -> Volume {
        let hosts: BTreeMap<u32, &str> =
            trace.ranks.iter().map(|rank| (rank.rank, rank.host.as_str())).collect();
        let host = |rank: u32| {
            let said = || trace.run.hosts.get(rank as usize).map(String::as_str);
            hosts.get(&rank).copied().or_else(said).filter(|host| !host.is_empty())
        };
        self.sum(|from, to| from == to || host(from).is_some() && host(from) == host(to))
    }

    fn sum(&self, of: impl Fn(u32, u32) -> bool) -> Volume {
        let mut sum = Volume::default();
        self.pairs.iter().filter(|&(&(from, to), _)| of(from, to)).for_each(|(_, &volume)| sum.add(volume));
        sum
    }

    /// A table of all pairs, heaviest first.
    pub(super) fn pairs(&self) -> Table {
        let columns =
            columns("from_rank: from rank | to_rank: to rank | messages | bytes | bytes_share: of all bytes");
        let mut table = Table::new("ranks", "", &columns);
        let mut pairs: Vec<_> = self.pairs.iter().collect();
        pairs.sort_by(|(a, one), (b, other)| {
            other.bytes.total_cmp(&one.bytes).then(other.messages.total_cmp(&one.messages)).then(a.cmp(b))
        });
        for (&(from, to), volume) in pairs {
            let share = Cell::Share(if self.all.bytes > 0.0 { volume.bytes / self.all.bytes } else { 0.0 });
            let ranks = [Cell::Count(u64::from(from)), Cell::Count(u64::from(to))];
            table.row(ranks.into_iter().chain(volume.cells()).chain([share]));
        }
        table
    }

    /// A table of senders, with the matrix as characters.
    pub(super) fn senders(&self, trace: &Trace) -> Table {
        let columns = columns(
            "rank | sent_messages: sent | sent_bytes: bytes | local_share: to itself | \
             to: to ranks, in order",
        );
        let shades: String = SHADES.iter().skip(1).collect();
        let title = format!(
            "senders; between brackets a sign for each receiving rank, by messages: blank for none, then {shades}, the last \
             for the most of any pair"
        );
        let mut table = Table::new("senders", title, &columns).text_rows(SENDERS_IN_TEXT);
        let axis = Axis::new(self.ranks(trace), 100);
        let shades = axis.cells(self);
        let most = shades.values().map(|volume| volume.messages).fold(0.0, f64::max);
        let mut sent: BTreeMap<u32, (Volume, Volume)> = BTreeMap::new();
        for (&(from, to), &volume) in &self.pairs {
            let (all, local) = sent.entry(from).or_default();
            all.add(volume);
            if from == to {
                local.add(volume);
            }
        }
        for (&rank, (all, local)) in &sent {
            let row = axis.place(rank);
            let shade = |column| {
                let part = shades.get(&(row, column)).map_or(0.0, |volume| volume.messages / most);
                SHADES[(part * (SHADES.len() - 1) as f64).ceil() as usize]
            };
            let shaded: String = (0..axis.side()).map(shade).collect();
            let share = Cell::Share(if all.messages > 0.0 { local.messages / all.messages } else { 0.0 });
            let begin = [Cell::Count(u64::from(rank))].into_iter().chain(all.cells());
            table.row(begin.chain([share, Cell::Text(format!("[{shaded}]"))]));
        }
        table
    }

    /// The ranks of the trace, and ranks that messages name.
    fn ranks(&self, trace: &Trace) -> BTreeSet<u32> {
        let named = self.pairs.keys().flat_map(|&(from, to)| [from, to]);
        trace.ranks.iter().map(|rank| rank.rank).chain(named).collect()
    }

    /// Draws a heat map, which is darker for more bytes.
    pub(super) fn draw(&self, trace: &Trace) -> Svg {
        let axis = Axis::new(self.ranks(trace), SIDE_MAX);
        let (side, cell) = (axis.side(), (512.0 / axis.side() as f64).clamp(3.0, 40.0));
        let (left, top) = (70.0, 60.0);
        let wide = side as f64 * cell;
        let mut svg = Svg::new(left + wide.max(360.0) + 30.0, top + wide + 60.0, "Bytes between ranks");
        svg.text(
            (10.0, 18.0),
            Anchor::Start,
            &format!("{}: bytes from rank (row) to rank (column)", trace.run.run_id),
        );
        let cells = axis.cells(self);
        // If no message has a size, the map shows numbers of messages.
        let by_bytes = self.all.bytes > 0.0;
        let of = |volume: &Volume| if by_bytes { volume.bytes } else { volume.messages };
        let most = cells.values().map(of).fold(0.0, f64::max);
        svg.rect(Area::at((left, top), (wide, wide)), &palette::shade(0.0), None);
        for (&(row, column), volume) in &cells {
            let at = (left + column as f64 * cell, top + row as f64 * cell);
            let (from, to) = (axis.name(row), axis.name(column));
            let hint =
                format!("{from} to {to}: {:.0} messages, {}", volume.messages, bytes(volume.bytes as u64));
            // A logarithmic scale, so that light pairs are visible beside heavy pairs.
            let part = (1.0 + 999.0 * of(volume) / most.max(1.0)).ln() / 1000f64.ln();
            svg.rect(
                Area::at(at, (cell - 0.3, cell - 0.3)),
                &palette::shade(0.08 + 0.92 * part),
                Some(&hint),
            );
        }
        let every = (14.0 / cell).ceil().max(1.0) as usize;
        for place in (0..side).step_by(every) {
            let along = (place as f64 + 0.5) * cell;
            svg.text((left - 6.0, top + along + 4.0), Anchor::End, &axis.name(place));
            if place % (every * (40.0 / (cell * every as f64)).ceil().max(1.0) as usize) == 0 {
                svg.text((left + along, top - 6.0), Anchor::Middle, &axis.name(place));
            }
        }
        let unit = if by_bytes { bytes(most as u64) } else { format!("{most:.0} messages") };
        svg.text((left, top + wide + 20.0), Anchor::Start, &format!("darkest: {unit}; by the logarithm"));
        svg
    }
}

/// Rows or columns of ranks. Several ranks share one if there are many.
struct Axis {
    ranks: Vec<u32>,
    /// Number of ranks per row or column.
    each: usize,
}

impl Axis {
    fn new(ranks: BTreeSet<u32>, side_max: usize) -> Axis {
        let each = ranks.len().div_ceil(side_max).max(1);
        Axis { ranks: ranks.into_iter().collect(), each }
    }

    fn side(&self) -> usize {
        self.ranks.len().div_ceil(self.each).max(1)
    }

    fn place(&self, rank: u32) -> usize {
        self.ranks.partition_point(|&other| other < rank) / self.each
    }

    fn name(&self, place: usize) -> String {
        let ranks = self.ranks.chunks(self.each).nth(place).unwrap_or_default();
        match ranks {
            [] => String::new(),
            [one] => one.to_string(),
            [first, .., last] => format!("{first}-{last}"),
        }
    }

    fn cells(&self, matrix: &Matrix) -> BTreeMap<(usize, usize), Volume> {
        let mut cells: BTreeMap<_, Volume> = BTreeMap::new();
        for (&(from, to), &volume) in &matrix.pairs {
            cells.entry((self.place(from), self.place(to))).or_default().add(volume);
        }
        cells
    }
}
