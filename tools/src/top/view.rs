//! Holds what the keys of `caribou top` control: the sort order, scrolling, pause and help.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::dashboard::{Dashboard, RankRow};

/// The keys and their meaning, for the help.
pub(super) const KEYS: [(&str, &str); 7] = [
    ("q Esc Ctrl-C", "leave"),
    ("up down", "scroll the ranks by one"),
    ("PgUp PgDn", "by ten"),
    ("Home", "to the first"),
    ("s", "sort by rank, busiest, most time lost"),
    ("p", "pause and go on"),
    ("?", "this help"),
];

/// What to show, and in what order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct View {
    pub(super) sort: Sort,
    /// Number of rows of ranks above the first visible one.
    pub(super) scroll: usize,
    pub(super) paused: bool,
    pub(super) help: bool,
    pub(super) quit: bool,
}

/// Order of ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Sort {
    #[default]
    Rank,
    Busy,
    Lost,
}

impl Sort {
    pub(super) fn name(self) -> &'static str {
        match self {
            Sort::Rank => "rank",
            Sort::Busy => "busy",
            Sort::Lost => "lost",
        }
    }

    /// The ranks in this order; ranks with equal values by number.
    pub(super) fn ranks(self, picture: &Dashboard) -> Vec<&RankRow> {
        let mut ranks: Vec<&RankRow> = picture.ranks.iter().collect();
        match self {
            Sort::Rank => {}
            Sort::Busy => ranks.sort_by(|a, b| b.parts.busy().total_cmp(&a.parts.busy())),
            Sort::Lost => ranks.sort_by(|a, b| b.parts.lost.total_cmp(&a.parts.lost)),
        }
        ranks
    }
}

impl View {
    /// Handles a key. The ranks can be scrolled by at most `rows` rows.
    pub(super) fn press(&mut self, key: KeyEvent, rows: usize) {
        let to = |scroll: usize| scroll.min(rows);
        match key.code {
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => self.quit = true,
            // A key that closes the help does not quit.
            KeyCode::Char('?' | 'q') | KeyCode::Esc if self.help => self.help = false,
            KeyCode::Char('q') | KeyCode::Esc => self.quit = true,
            KeyCode::Char('?') => self.help = true,
            KeyCode::Char('p') => self.paused = !self.paused,
            KeyCode::Char('s') => {
                self.scroll = 0;
                self.sort = match self.sort {
                    Sort::Rank => Sort::Busy,
                    Sort::Busy => Sort::Lost,
                    Sort::Lost => Sort::Rank,
                };
            }
            KeyCode::Down => self.scroll = to(self.scroll + 1),
            KeyCode::PageDown => self.scroll = to(self.scroll + 10),
            KeyCode::Up => self.scroll = to(self.scroll).saturating_sub(1),
            KeyCode::PageUp => self.scroll = to(self.scroll).saturating_sub(10),
            KeyCode::Home => self.scroll = 0,
            _ => {}
        }
    }
}
