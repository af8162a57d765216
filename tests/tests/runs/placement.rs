//! The ranks on which chunks start.

use std::collections::BTreeSet;

use caribou::{Chunk, Config, Ctx, Placement, Reducer, Target, Values};
use caribou_tests::{run_array_with, with_timeout};
use serde::{Deserialize, Serialize};

const RANKS: u32 = 3;
const INSERTED: u16 = 30;

/// Chunk [0, 0] inserts others of kind 1; each tells its rank.
#[derive(Serialize, Deserialize)]
struct Kind;

impl Chunk for Kind {
    type Index = [u16; 2];
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        if ctx.index() == [0, 0] {
            (0..INSERTED).for_each(|number| ctx.insert([1, number], Kind));
        }
        ctx.contribute(0, Reducer::Gather, Values::part(&ctx.rank().0), Target::Exit);
    }

    fn receive(&mut self, (): (), _: &mut Ctx<'_, Self>) {}
}

#[test]
fn chunks_that_are_inserted_beyond_the_initial_ones_start_on_all_ranks() {
    for (initial, placement) in [(1, Placement::Block), (6, Placement::Block), (6, Placement::RoundRobin)] {
        let what = format!("{placement:?} of {initial}");
        let run = move || {
            let report =
                run_array_with(Config::default().ranks(RANKS), [1, initial], placement.clone(), |_| Kind)?;
            report.gathered::<[u16; 2], u32>()
        };
        let ranks = with_timeout(&what, run).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(ranks.len(), usize::from(initial + INSERTED), "{what}");
        let inserted = ranks.iter().filter(|([kind, _], _)| *kind == 1).map(|&(_, rank)| rank);
        assert_eq!(inserted.collect::<BTreeSet<_>>().len(), RANKS as usize, "{what}: {ranks:?}");
    }
}
