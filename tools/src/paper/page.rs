//! The page of a paper, before it is text: claims with verdicts, tables and pictures, by section.
//!
//! A verdict is never written down. It follows from conditions on the numbers of this run, so that a policy that no
//! longer does what a paper says changes the verdict. Only the reason for a difference is text.

use presentation::bars::Bars;
use presentation::chart::Chart;

/// The page of one paper. Texts may have Markdown within a line.
pub(crate) struct Page {
    /// What the paper is about, as the title of the page.
    pub(crate) title: &'static str,
    /// Authors, title and year.
    pub(crate) citation: &'static str,
    /// What the paper proposes, in one or two sentences.
    pub(crate) proposes: String,
    /// What the paper found.
    pub(crate) found: String,
    /// What came out here; may quote numbers of this run.
    pub(crate) here: String,
    /// The experiment in the paper and here, part by part.
    pub(crate) setting: Grid,
    /// The figures and tables of the paper in its order, then what goes beyond it.
    pub(crate) sections: Vec<Section>,
    /// Commands that show some of it on this machine, with what each shows; `--help` must work behind each.
    pub(crate) live: Vec<Live>,
}

/// One figure or table of the paper, or several that show one experiment.
pub(crate) struct Section {
    /// Heading, as in `Figure 5b: balancing periods`.
    pub(crate) title: String,
    /// The experiment, and where it differs from the paper's.
    pub(crate) text: String,
    /// Statements of the paper that this section checks.
    pub(crate) claims: Vec<Claim>,
    /// Numbers, the paper's and those of this run.
    pub(crate) tables: Vec<Grid>,
    /// The figure redrawn.
    pub(crate) pictures: Vec<Picture>,
    /// What the best policy of Caribou does on the same work; empty if the section has none.
    pub(crate) best: String,
}

/// A statement of the paper and what this run says about it.
pub(crate) struct Claim {
    /// The statement.
    pub(crate) text: String,
    /// The paper's numbers; `read off the plot` where the text has none.
    pub(crate) paper: String,
    /// The numbers of this run.
    pub(crate) here: String,
    /// Parts of the statement, and whether each holds in this run.
    pub(crate) conditions: Vec<(String, bool)>,
    /// Constants of the model are fitted to this number, so that it is no evidence.
    pub(crate) fitted: bool,
    /// Why the statement does not hold, or holds in part, by a measurement. Printed only then.
    pub(crate) because: String,
}

/// What a run says about a statement of a paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// All parts of the statement hold.
    Reproduced,
    /// Some parts hold.
    Partly,
    /// No part holds.
    Differs,
}

impl Verdict {
    /// The verdict in a table.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Verdict::Reproduced => "reproduced",
            Verdict::Partly => "in part",
            Verdict::Differs => "differs",
        }
    }
}

impl Claim {
    /// A statement of the paper, with the paper's numbers.
    pub(crate) fn new(text: impl Into<String>, paper: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            paper: paper.into(),
            here: String::new(),
            conditions: Vec::new(),
            fitted: false,
            because: String::new(),
        }
    }

    /// The numbers of this run.
    pub(crate) fn here(self, here: impl Into<String>) -> Self {
        Self { here: here.into(), ..self }
    }

    /// A part of the statement, as a condition on the numbers of this run.
    pub(crate) fn holds(mut self, condition: impl Into<String>, holds: bool) -> Self {
        self.conditions.push((condition.into(), holds));
        self
    }

    /// Marks the number as one to which the model is fitted.
    pub(crate) fn fitted(self) -> Self {
        Self { fitted: true, ..self }
    }

    /// The reason if the statement does not hold as a whole.
    pub(crate) fn because(self, why: impl Into<String>) -> Self {
        Self { because: why.into(), ..self }
    }

    /// The verdict, by the conditions.
    ///
    /// # Panics
    /// If the claim has no condition, because then nothing was checked.
    pub(crate) fn verdict(&self) -> Verdict {
        assert!(!self.conditions.is_empty(), "no condition: {}", self.text);
        match self.conditions.iter().filter(|(_, holds)| *holds).count() {
            0 => Verdict::Differs,
            count if count == self.conditions.len() => Verdict::Reproduced,
            _ => Verdict::Partly,
        }
    }
}

impl Section {
    /// A section without content.
    pub(crate) fn new(title: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            text: text.into(),
            claims: Vec::new(),
            tables: Vec::new(),
            pictures: Vec::new(),
            best: String::new(),
        }
    }

    /// Adds a claim.
    pub(crate) fn claim(mut self, claim: Claim) -> Self {
        self.claims.push(claim);
        self
    }

    /// Adds a table.
    pub(crate) fn table(mut self, table: Grid) -> Self {
        self.tables.push(table);
        self
    }

    /// Adds a picture. `name` is a part of its file name; `shows` is read instead of the picture.
    pub(crate) fn picture(
        mut self,
        name: &'static str,
        shows: impl Into<String>,
        panels: impl IntoIterator<Item = Panel>,
    ) -> Self {
        self.pictures.push(Picture { name, shows: shows.into(), panels: panels.into_iter().collect() });
        self
    }

    /// States what the best policy of Caribou does on the same work.
    pub(crate) fn best(self, best: impl Into<String>) -> Self {
        Self { best: best.into(), ..self }
    }
}

/// A table: heads, and rows of as many cells. The first column has words, the others numbers unless a cell says else.
#[derive(Clone, Debug, Default)]
pub(crate) struct Grid {
    /// Text above the table; empty without.
    pub(crate) caption: String,
    /// Heads of the columns.
    pub(crate) heads: Vec<String>,
    /// The rows.
    pub(crate) rows: Vec<Vec<String>>,
    /// Number of first columns that have words and are aligned to the left.
    pub(crate) words: usize,
}

impl Grid {
    /// A table without rows. `heads` are separated by ` | `.
    pub(crate) fn new(caption: impl Into<String>, heads: &str) -> Self {
        let heads = heads.split(" | ").map(str::to_owned).collect();
        Self { caption: caption.into(), heads, rows: Vec::new(), words: 1 }
    }

    /// A table whose first `words` columns have words.
    pub(crate) fn words(self, words: usize) -> Self {
        Self { words, ..self }
    }

    /// Adds a row.
    pub(crate) fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }
}

/// A picture: panels beside each other.
pub(crate) struct Picture {
    /// The part of the file name that distinguishes the pictures of a page.
    pub(crate) name: &'static str,
    /// What the picture shows, for readers who do not see it.
    pub(crate) shows: String,
    /// At most two of them stand beside each other.
    pub(crate) panels: Vec<Panel>,
}

/// One chart of a picture.
pub(crate) enum Panel {
    /// Lines and dots between two axes of numbers.
    Lines(Chart),
    /// Bars in named groups.
    Bars(Bars),
}

impl From<Chart> for Panel {
    fn from(chart: Chart) -> Self {
        Self::Lines(chart)
    }
}

impl From<Bars> for Panel {
    fn from(bars: Bars) -> Self {
        Self::Bars(bars)
    }
}

/// A command that shows a result on a real machine.
pub(crate) struct Live {
    /// The command, possibly on several lines.
    pub(crate) command: &'static str,
    /// What it shows, and which numbers to compare.
    pub(crate) shows: &'static str,
}
