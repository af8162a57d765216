//! Writes a page of a paper as Markdown: first what came out, then the figures in their order, last how to repeat it.

use std::fmt::Write;

use super::page::{Claim, Grid, Page, Picture, Section, Verdict};

/// Longest line of text, as in the other pages.
const WIDTH: usize = 128;

/// Begin of the line that counts verdicts, which the index of pages repeats.
pub(super) const RESULT: &str = "**Result:** ";

/// The place of a page: the name of the paper, whether pictures are beside the page, and what the last lines state.
pub(super) struct Place<'p> {
    /// The paper.
    pub(super) name: &'p str,
    /// Whether pictures are written beside the page.
    pub(super) pictures: bool,
    /// The options with which the page was made.
    pub(super) options: String,
    /// The CPU time that it took, rounded.
    pub(super) duration: &'static str,
}

/// The text of a page.
pub(super) fn page(page: &Page, place: &Place<'_>) -> String {
    let mut text = format!("# {}\n\n{}\n", page.title, wrap(&format!("*{}*", page.citation), ""));
    for (head, words) in [("Proposed", &page.proposes), ("Found", &page.found), ("Here", &page.here)] {
        text += &wrap(&format!("- **{head}:** {words}"), "  ");
    }
    // Markdown needs a line between the list and the result.
    let _ = write!(text, "\n{RESULT}{}\n\n## Statements\n\n", result(page));
    text +=
        &wrap("*Fitted* numbers are no evidence: constants of the model are set so that they come out.", "");
    text += "\n";
    text += &grid(&statements(page));
    text += "\n## Setting\n\n";
    text += &grid(&page.setting);
    for section in &page.sections {
        text += "\n";
        text += &self::section(section, place);
    }
    text += &ending(page, place);
    text
}

/// The counts of verdicts in one line.
pub(super) fn result(page: &Page) -> String {
    let claims: Vec<&Claim> = page.sections.iter().flat_map(|section| &section.claims).collect();
    let count = |verdict, fitted| {
        claims.iter().filter(|claim| claim.verdict() == verdict && claim.fitted == fitted).count()
    };
    let of_both = |verdict| count(verdict, false) + count(verdict, true);
    format!(
        "{} statements: {} reproduced, {} reproduced by fitted constants, {} in part, {} different.",
        claims.len(),
        count(Verdict::Reproduced, false),
        count(Verdict::Reproduced, true),
        of_both(Verdict::Partly),
        of_both(Verdict::Differs)
    )
}

/// The file of a picture.
pub(super) fn file(paper: &str, picture: &Picture) -> String {
    format!("{paper}-{}.svg", picture.name)
}

/// The table of all claims, with links to their sections.
fn statements(page: &Page) -> Grid {
    let mut table = Grid::new("", "statement of the paper | the paper | here | verdict | where").words(5);
    for section in &page.sections {
        for claim in &section.claims {
            let short = section.title.split(':').next().unwrap_or_default();
            table.row([
                claim.text.clone(),
                claim.paper.clone(),
                claim.here.clone(),
                verdict(claim),
                format!("[{short}](#{})", anchor(&section.title)),
            ]);
        }
    }
    table
}

fn verdict(claim: &Claim) -> String {
    let fitted = if claim.fitted { ", fitted" } else { "" };
    match claim.verdict() {
        Verdict::Reproduced => format!("reproduced{fitted}"),
        other => format!("**{}**{fitted}", other.word()),
    }
}

fn section(section: &Section, place: &Place<'_>) -> String {
    let mut text = format!("## {}\n\n{}", section.title, wrap(&section.text, ""));
    for picture in section.pictures.iter().filter(|_| place.pictures) {
        let _ = write!(text, "\n![{}]({})\n", picture.shows, file(place.name, picture));
    }
    for table in &section.tables {
        text += "\n";
        text += &grid(table);
    }
    if !section.claims.is_empty() {
        text += "\n";
    }
    for claim in &section.claims {
        text += &wrap(&sentence(claim), "  ");
    }
    if !section.best.is_empty() {
        text += "\n";
        text += &wrap(&format!("**The best of Caribou:** {}", section.best), "");
    }
    text
}

/// A claim in a list: the verdict, the claim, and the conditions from which the verdict follows.
fn sentence(claim: &Claim) -> String {
    let list = |wanted: bool| {
        let of = claim.conditions.iter().filter(|(_, holds)| *holds == wanted);
        of.map(|(text, _)| text.as_str()).collect::<Vec<_>>().join("; ")
    };
    let (yes, no) = (list(true), list(false));
    let mut text = format!("- {}: *{}*", verdict(claim), claim.text);
    if !yes.is_empty() {
        let _ = write!(text, " Holds: {yes}.");
    }
    if !no.is_empty() {
        let _ = write!(text, " Required, but not so: {no}. {}", claim.because);
    }
    text
}

fn ending(page: &Page, place: &Place<'_>) -> String {
    let mut text = String::new();
    if !page.live.is_empty() {
        text += "\n## On a real machine\n";
        for live in &page.live {
            let _ = write!(text, "\n{}\n```sh no_run\n{}\n```\n", wrap(live.shows, ""), live.command);
        }
    }
    let Place { name, options, duration, .. } = place;
    let _ = write!(text, "\n## How this page is made\n\n```sh no_run\n");
    let _ =
        write!(text, "cargo run --release --bin caribou -- paper {name}{options} --out docs/papers\n```\n\n");
    text += &wrap(
        &format!(
            "This takes {duration} of CPU time, half as long on two vCPUs. All runs are in virtual time, with the policies of production. \
             Running it again gives the same numbers. Every verdict follows from conditions in the code on the numbers \
             of the run."
        ),
        "",
    );
    text
}

fn grid(table: &Grid) -> String {
    let cell = |text: &String| text.replace('|', "\\|").replace('\n', " ");
    let line = |cells: &[String]| format!("| {} |\n", cells.iter().map(cell).collect::<Vec<_>>().join(" | "));
    let mut text = String::new();
    if !table.caption.is_empty() {
        text += &wrap(&table.caption, "");
        text += "\n";
    }
    text += &line(&table.heads);
    let rules = (0..table.heads.len()).map(|column| if column < table.words { "---|" } else { "---:|" });
    let _ = writeln!(text, "|{}", rules.collect::<String>());
    for row in &table.rows {
        text += &line(row);
    }
    text
}

/// The name by which other places of the page link to a heading.
fn anchor(title: &str) -> String {
    let kept = title.to_lowercase();
    kept.chars()
        .filter(|letter| letter.is_ascii_alphanumeric() || " _-".contains(*letter))
        .map(|letter| if letter == ' ' { '-' } else { letter })
        .collect()
}

/// Breaks each line of a text between words. Further lines begin with `indent`.
fn wrap(text: &str, indent: &str) -> String {
    let mut lines = String::new();
    for paragraph in text.lines() {
        let mut length = 0;
        for word in paragraph.split_whitespace() {
            let letters = word.chars().count();
            match length {
                0 => {}
                _ if length + 1 + letters > WIDTH => {
                    lines += "\n";
                    lines += indent;
                    length = indent.len();
                }
                _ => {
                    lines += " ";
                    length += 1;
                }
            }
            lines += word;
            length += letters;
        }
        lines += "\n";
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words_and_headings_have_the_names_of_links() {
        let text = wrap(&"word ".repeat(60), "  ");
        assert_eq!(text.lines().count(), 3);
        assert!(
            text.lines().all(|line| line.len() <= WIDTH)
                && text.lines().nth(1).unwrap().starts_with("  word")
        );
        assert_eq!(wrap("a\n\nb", ""), "a\n\nb\n");
        assert_eq!(anchor("Figures 4, 5: speed-up (all)"), "figures-4-5-speed-up-all");
    }
}
