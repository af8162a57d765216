//! Tests of the command `caribou paper`, and of the verdicts of each paper.

use presentation::bars::Bars;

use super::page::{Claim, Grid, Live, Section, Verdict};
use super::*;
use crate::run as caribou;

fn arguments(words: &[&str]) -> Result<String, Error> {
    let mut out = Vec::new();
    let words = ["caribou", "paper"].into_iter().chain(words.iter().copied());
    caribou(words.map(Into::into), &mut out)?;
    Ok(String::from_utf8(out).expect("it is text"))
}

/// The verdicts of a paper in the order of its page, with reduced repetitions.
fn verdicts(name: &str) -> Vec<(String, Verdict)> {
    let paper = PAPERS.iter().find(|paper| paper.name == name).expect("it is listed");
    let page = (paper.page)(&Context { quick: true, ..Context::default() });
    let unexplained: Vec<_> = (page.sections.iter().flat_map(|section| &section.claims))
        .filter(|claim| claim.verdict() != Verdict::Reproduced && claim.because.is_empty())
        .map(|claim| &claim.text)
        .collect();
    assert!(unexplained.is_empty(), "a difference has a reason: {unexplained:#?}");
    let claims = page.sections.into_iter().flat_map(|section| section.claims);
    claims.map(|claim| (claim.text.clone(), claim.verdict())).collect()
}

/// Checks that all statements of a paper are reproduced but for these, which are given by their first words. A change of a
/// policy that changes a verdict fails here, and the page has to be written again.
fn all_but(name: &str, exceptions: &[(&str, Verdict)]) {
    let found = verdicts(name);
    let expected = |text: &str| {
        let exception = exceptions.iter().find(|(begin, _)| text.starts_with(begin));
        exception.map_or(Verdict::Reproduced, |(_, verdict)| *verdict)
    };
    let wrong: Vec<_> = found.iter().filter(|(text, verdict)| *verdict != expected(text)).collect();
    assert!(wrong.is_empty(), "{name}: {wrong:#?}");
    let stated = |begin: &str| found.iter().any(|(text, _)| text.starts_with(begin));
    assert!(exceptions.iter().all(|(begin, _)| stated(begin)), "{name}: {found:#?}");
}

#[test]
fn load_factors_do_what_the_paper_says_but_for_two_speedups() {
    all_but(
        "jacobi-factor",
        &[
            ("The greatest speedups with 4000 and 8000", Verdict::Differs),
            ("The speedup decreases as the number of nodes", Verdict::Partly),
            ("The granularity falls", Verdict::Partly),
        ],
    );
}

#[test]
fn the_combined_algorithm_does_what_its_paper_says_but_for_its_general_statements() {
    all_but(
        "caa",
        &[
            ("CAA takes less time than DD under", Verdict::Partly),
            ("CAA takes less time than MS under", Verdict::Partly),
            ("With a few tasks that are much longer", Verdict::Differs),
        ],
    );
}

#[test]
fn ruper_does_what_its_paper_says_but_for_its_gains_its_ranks_and_its_overhead() {
    all_but(
        "ruper-lb",
        &[
            ("Balanced runs take less time", Verdict::Partly),
            ("Ranks look balanced without balancing", Verdict::Partly),
            ("The overhead on the processing time", Verdict::Partly),
        ],
    );
}

#[test]
fn balancing_copies_and_the_choice_do_what_their_paper_says_or_what_the_page_explains() {
    use Verdict::{Differs, Partly};
    // On at most 16 nodes (intervals on 32), in runs of 300 steps, on 12 draws of the job times.
    let exceptions = [
        ("At 0.25 the times of set one fall", Partly),
        ("At 0.50 more nodes take more time", Partly),
        ("Four is the best number of copies", Partly),
        ("For a given number of copies", Partly),
        ("At 0.50 copies never pay", Differs),
        ("At 0.25 copies do not pay in set one", Differs),
        ("At 0.50 the times rise", Partly),
        ("In set one DLB is as fast as copies", Differs),
        ("In set two DLB is faster from 8 nodes", Differs),
        ("The speedup of DLB is greatest on 16", Differs),
        ("The choice is at least as fast", Differs),
        ("A suitable number of steps between divisions", Differs),
        ("The time of a step is linear in Y,", Partly),
        ("Y and the times are correlated.", Partly),
        ("The threshold.", Differs),
        ("DLB is faster than equal shares in every setting.", Partly),
        ("More than four copies are slower than four in", Partly),
        ("Speedups of set one are below 2, those of", Differs),
        ("On four nodes of set one DLB is 1.8", Differs),
        ("In set two copies are faster on 2 and", Partly),
        ("At ratios of 0.25 and 0.50 DLB is faster", Differs),
        ("Where one method is clearly faster, the choice is", Differs),
        ("The gain of switches exceeds their cost.", Partly),
        ("An estimate by the lines and the latest Y", Differs),
    ];
    all_but("dlb-jr", &exceptions);
}

/// A page with one claim of each verdict, a table and a picture.
fn sample() -> Page {
    let claim = |text: &str, parts: [bool; 2]| {
        let claim = Claim::new(text, "1 | 2").here("3").because("Measured: 4.");
        parts
            .into_iter()
            .enumerate()
            .fold(claim, |claim, (part, holds)| claim.holds(format!("part {part}"), holds))
    };
    let mut table = Grid::new("Numbers.", "name | value");
    table.row(["a|b", "1"]);
    let bars = Bars::new("speeds", "1/s", ["x"]).series("one", [1.0]);
    let section = Section::new("Figure 1: it (all)", "Text.")
        .table(table.clone())
        .picture("figure-1", "speeds", [bars.into()])
        .claim(claim("All hold.", [true, true]).fitted())
        .claim(claim("Some hold.", [true, false]))
        .claim(claim("None holds.", [false, false]))
        .best("`leases`.");
    Page {
        title: "A paper",
        citation: "Somebody, 2000",
        proposes: "this".into(),
        found: "that".into(),
        here: "both".into(),
        setting: table,
        sections: vec![section],
        live: vec![Live { command: "caribou top", shows: "Live." }],
    }
}

#[test]
fn a_page_has_its_verdicts_and_pictures_and_the_index_has_its_result() {
    let folder = std::env::temp_dir().join(format!("caribou-papers-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let place = markdown::Place { name: "caa", pictures: true, options: String::new(), duration: "a while" };
    let text = markdown::page(&sample(), &place);
    write_page(&sample(), &text, "caa", &folder).unwrap();
    write_index(&folder).unwrap();
    let result = "3 statements: 0 reproduced, 1 reproduced by fitted constants, 1 in part, 1 different.";
    for words in [
        &format!("**Result:** {result}\n"),
        "| All hold. | 1 \\| 2 | 3 | reproduced, fitted | [Figure 1](#figure-1-it-all) |",
        "- **in part**: *Some hold.* Holds: part 0. Required, but not so: part 1. Measured: 4.",
        "- **differs**: *None holds.* Required, but not so: part 0; part 1. Measured: 4.",
        "![speeds](caa-figure-1.svg)",
        "| name | value |\n|---|---:|\n| a\\|b | 1 |",
        "```sh no_run\ncaribou top\n```",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let index = fs::read_to_string(folder.join("README.md")).unwrap();
    let row = index.lines().find(|line| line.starts_with("| [caa](caa.md) | "));
    assert!(row.is_some_and(|row| row.ends_with(&format!(" | {result} |"))), "{index}");
    let picture = fs::read_to_string(folder.join("caa-figure-1.svg")).unwrap();
    assert!(picture.ends_with("</svg>\n") && picture.contains("one, x: 1<"), "{picture}");
    let printed = markdown::page(&sample(), &markdown::Place { pictures: false, ..place });
    assert!(!printed.contains("![speeds]"), "{printed}");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn papers_are_listed_and_an_unknown_one_is_one_line() {
    let list = arguments(&["--list"]).unwrap();
    assert_eq!(list.lines().count(), PAPERS.len());
    let error = arguments(&["jacobi-facto"]).unwrap_err();
    let expected = "unknown paper \"jacobi-facto\", did you mean \"jacobi-factor\"?";
    assert!(error.to_string().starts_with(expected), "{error}");
    assert_eq!(error.exit_code(), 2);
}
