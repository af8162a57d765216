//! Misuse by a program is told with the place in the program, and not one in the runtime.

use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::sync::{Mutex, PoisonError};

use caribou::testing::probe;
use caribou::{Chunk, Ctx, Reducer, Target};
use serde::{Deserialize, Serialize};

/// The misuse.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Slip {
    NoService,
    SyncTwice,
    SyncWhileWaiting,
    RemoveAtSync,
    RemoveWhilePassing,
    InsertAfterRemove,
    ContributeAfterRemove,
}

#[derive(Serialize, Deserialize)]
struct Clumsy(Slip);

impl Chunk for Clumsy {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        match self.0 {
            Slip::NoService => assert!(ctx.service::<String>().is_empty()),
            Slip::SyncTwice => (0..2).for_each(|_| ctx.at_sync()),
            Slip::SyncWhileWaiting => {
                ctx.at_sync();
                ctx.at_sync_nowait();
            }
            Slip::RemoveAtSync => {
                ctx.at_sync();
                ctx.remove();
            }
            Slip::RemoveWhilePassing => {
                ctx.at_sync_nowait();
                ctx.remove();
            }
            Slip::InsertAfterRemove => {
                ctx.remove();
                ctx.insert(1, Clumsy(self.0));
            }
            Slip::ContributeAfterRemove => {
                ctx.remove();
                ctx.contribute(0, Reducer::Sum, vec![1u64], Target::All);
            }
        }
    }

    fn receive(&mut self, (): (), _: &mut Ctx<'_, Self>) {}
}

/// Ends the run if its service says so.
#[derive(Serialize, Deserialize)]
struct Asks;

impl Chunk for Asks {
    type Index = u32;
    type Message = ();

    fn receive(&mut self, (): (), ctx: &mut Ctx<'_, Self>) {
        if ctx.service::<String>() == "enough" {
            ctx.exit();
        }
    }
}

#[test]
fn a_probe_provides_services_as_a_setup_does() {
    assert!(probe(&mut Asks, 0).service(7u32).service("enough".to_owned()).receive(()).exit);
}

static FILES: Mutex<Vec<String>> = Mutex::new(Vec::new());

#[test]
fn a_misuse_is_told_with_the_place_in_the_program() {
    set_hook(Box::new(|panic| {
        let file = panic.location().map_or("", |location| location.file()).to_owned();
        FILES.lock().unwrap_or_else(PoisonError::into_inner).push(file);
    }));
    let slips = [
        Slip::NoService,
        Slip::SyncTwice,
        Slip::SyncWhileWaiting,
        Slip::RemoveAtSync,
        Slip::RemoveWhilePassing,
        Slip::InsertAfterRemove,
        Slip::ContributeAfterRemove,
    ];
    for slip in slips {
        let call = || drop(probe(&mut Clumsy(slip), 0).start());
        assert!(catch_unwind(AssertUnwindSafe(call)).is_err(), "{slip:?}");
    }
    assert_eq!(*FILES.lock().unwrap_or_else(PoisonError::into_inner), vec![file!().to_owned(); slips.len()]);
}
