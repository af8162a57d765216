//! Tests of the command `caribou paper`, and of the verdicts of each paper.

use super::page::{Page, Verdict};
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
    explained(&page);
    let claims = page.sections.into_iter().flat_map(|section| section.claims);
    claims.map(|claim| (claim.text.clone(), claim.verdict())).collect()
}

/// Every difference has a reason.
fn explained(page: &Page) {
    for claim in page.sections.iter().flat_map(|section| &section.claims) {
        let why = claim.verdict() == Verdict::Reproduced || !claim.because.is_empty();
        assert!(why, "no reason: {} {:?}", claim.text, claim.conditions);
    }
}

/// Checks that all statements of a paper are reproduced but for these, which are given by their first words.
fn all_but(name: &str, exceptions: &[(&str, Verdict)]) {
    let verdicts = verdicts(name);
    for (text, verdict) in &verdicts {
        let expected = exceptions.iter().find(|(begin, _)| text.starts_with(begin));
        let expected = expected.map_or(Verdict::Reproduced, |(_, verdict)| *verdict);
        assert_eq!(*verdict, expected, "{name}: {text}");
    }
    for (begin, _) in exceptions {
        assert!(verdicts.iter().any(|(text, _)| text.starts_with(begin)), "{name}: no statement {begin}");
    }
}

#[test]
fn load_factors_do_what_the_paper_says_but_for_two_speedups() {
    all_but(
        "jacobi-factor",
        &[
            ("The greatest speedups with 4000 and 8000", Verdict::Differs),
            ("The speedup decreases as the number of nodes", Verdict::Partly),
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
fn ruper_does_what_its_paper_says() {
    all_but(
        "ruper-lb",
        &[
            ("Balanced runs take less time", Verdict::Partly),
            ("Ranks look balanced without balancing", Verdict::Partly),
        ],
    );
}

#[test]
fn balancing_and_copies_do_what_their_paper_says() {
    all_but("dlb-jr", &[]);
}

#[test]
fn a_page_has_its_statements_and_pictures_and_the_index_has_its_result() {
    let folder = std::env::temp_dir().join(format!("caribou-papers-{}", std::process::id()));
    let name = folder.display().to_string();
    let said = arguments(&["jacobi-factor", "--out", &name]).unwrap();
    let page = fs::read_to_string(folder.join("jacobi-factor.md")).unwrap();
    let result = page.lines().find_map(|line| line.strip_prefix(markdown::RESULT)).unwrap();
    assert!(said.ends_with(&format!("{result}\n")), "{said}");
    assert!(fs::read_to_string(folder.join("README.md")).unwrap().contains(result));
    for words in ["![", "(jacobi-factor-figure-4.svg)", "**differs**", "(#figure-5-speedup-and-granularity)"]
    {
        assert!(page.contains(words), "{words}: {page}");
    }
    let picture = fs::read_to_string(folder.join("jacobi-factor-figure-4.svg")).unwrap();
    assert!(picture.ends_with("</svg>\n") && !picture.contains("NaN"));
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn papers_are_listed_and_an_unknown_one_is_one_line() {
    let list = arguments(&["--list"]).unwrap();
    assert_eq!(list.lines().count(), PAPERS.len());
    let error = arguments(&["jacobi"]).unwrap_err();
    let expected = "unknown paper \"jacobi\", did you mean \"jacobi-factor\"?";
    assert!(error.to_string().starts_with(expected), "{error}");
    assert_eq!(error.exit_code(), 2);
}
