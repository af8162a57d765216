//! Steps of reductions that chunks name out of order.

use caribou::{Chunk, Config, Ctx, Error, Reducer, Section, Target};
use caribou_tests::run_array_in_time;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Order {
    AbstainsUntilLess,
    ContributesAndAbstainsUntilLess,
    ContributesToOneLeftOut,
    ContributesTwice,
    EmptySection,
    SectionOfOthers,
}

#[derive(Serialize, Deserialize)]
struct Member(Order);

impl Chunk for Member {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        let mut contribute = |step| ctx.contribute_at(step, 0, Reducer::Sum, vec![1u64], Target::Exit);
        match self.0 {
            Order::AbstainsUntilLess => {
                ctx.abstain_until(10);
                ctx.abstain_until(5);
                ctx.contribute_at(10, 0, Reducer::Sum, vec![1u64], Target::Exit);
            }
            Order::ContributesAndAbstainsUntilLess => {
                contribute(3);
                ctx.abstain_until(2);
            }
            Order::ContributesToOneLeftOut => {
                ctx.abstain_until(10);
                ctx.contribute_at(7, 0, Reducer::Sum, vec![1u64], Target::Exit);
            }
            Order::ContributesTwice => [4, 4].into_iter().for_each(contribute),
            Order::EmptySection => contribute_in(ctx, &[]),
            Order::SectionOfOthers => contribute_in(ctx, &[5, 6, 7, 8]),
        }
    }

    fn receive(&mut self, (): (), _: &mut Ctx<'_, Self>) {}
}

fn contribute_in(ctx: &mut Ctx<'_, Member>, section: &[u32]) {
    let section = Section::new(section.iter().copied());
    ctx.contribute_in(&section, 0, Reducer::Sum, vec![1u64], Target::Exit);
}

fn run(order: Order, ranks: u32) -> Result<Vec<u64>, Error> {
    let report =
        run_array_in_time(&format!("{order:?}"), Config::default().ranks(ranks), 3, move |_| Member(order));
    report?.value()
}

#[test]
fn to_abstain_until_a_step_that_is_past_has_no_effect() {
    for ranks in [1, 3] {
        for order in [Order::AbstainsUntilLess, Order::ContributesAndAbstainsUntilLess] {
            assert_eq!(run(order, ranks), Ok(vec![3]), "{order:?} on {ranks} ranks");
        }
    }
}

#[test]
fn a_step_before_the_next_of_a_chunk_is_refused() {
    for ranks in [1, 3] {
        for (order, why) in [
            (Order::ContributesToOneLeftOut, "contributes to reduction 7, but its next one is 10"),
            (Order::ContributesTwice, "contributes to reduction 4, but its next one is 5"),
        ] {
            let error = run(order, ranks).expect_err("it is refused").to_string();
            let why = format!("{why}: it has contributed to earlier ones, or abstained from them");
            assert!(error.ends_with(&why), "{error}");
        }
    }
}

#[test]
fn a_chunk_that_is_not_of_a_section_is_told_whose_it_is() {
    for (order, of) in
        [(Order::EmptySection, "the section is empty"), (Order::SectionOfOthers, "5, 6, 7, ...")]
    {
        let error = run(order, 1).expect_err("it is refused").to_string();
        let why = format!(" contributes to a reduction over a section that does not contain it: {of}");
        assert!(error.ends_with(&why), "{error}");
    }
}
