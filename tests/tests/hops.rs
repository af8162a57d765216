//! One message from `send` to `receive`: five hops, or four where it stays on its rank.
//!
//! The runtime tells of each hop at `trace` level, which release builds compile out.
#![cfg(debug_assertions)]

use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

use caribou::{Chunk, Config, Ctx};
use caribou_tests::events::listen;
use caribou_tests::{run_array_with_service, with_timeout};
use serde::{Deserialize, Serialize};
use tracing::Metadata;

/// A hop's number and name.
type Hop = (u64, String);

/// The hops of the whole process, in the order in which they happened.
static HOPS: Mutex<Vec<Hop>> = Mutex::new(Vec::new());

fn hops() -> MutexGuard<'static, Vec<Hop>> {
    HOPS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps an event that tells of a hop.
fn keep(_: &Metadata<'_>, fields: &[(&str, String)]) {
    let text = |name| fields.iter().find(|(field, _)| *field == name).map(|(_, text)| text.clone());
    let number = text("hop").and_then(|number| number.parse().ok()).unwrap_or(0);
    hops().push((number, text("message").unwrap_or_default()));
}

/// Chunk 1 asks for a message, chunk 0 sends it, and chunk 1 ends the run when it is there.
#[derive(Serialize, Deserialize)]
struct Correspondent;

#[derive(Serialize, Deserialize)]
enum Message {
    Ask,
    Answer,
}

impl Chunk for Correspondent {
    type Index = u32;
    type Message = Message;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        if ctx.index() == 1 {
            ctx.send(0, Message::Ask);
        }
    }

    fn receive(&mut self, message: Message, ctx: &mut Ctx<'_, Self>) {
        match message {
            Message::Ask => {
                // Whatever else the run had to do is done: from here on there is one message.
                std::thread::sleep(Duration::from_millis(20));
                hops().clear();
                ctx.send(1, Message::Answer);
            }
            Message::Answer => {
                ctx.service::<Seen>().0.lock().expect("nobody panics with it").append(&mut hops());
                ctx.exit();
            }
        }
    }
}

#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<Hop>>>);

/// The hops of the answer on its way from chunk 0 to chunk 1.
fn hops_of_one_message(ranks: u32) -> Vec<Hop> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    static LISTENS: Once = Once::new();
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    LISTENS.call_once(|| listen(|metadata| metadata.fields().field("hop").is_some(), keep));
    let seen = Seen::default();
    let (config, service) = (Config::default().ranks(ranks), seen.clone());
    with_timeout("one message", || run_array_with_service(config, service, 2, |_| Correspondent))
        .expect("chunk 1 ends the run");
    std::mem::take(&mut seen.0.lock().expect("the run is over"))
}

fn names(hops: &[Hop]) -> Vec<(u64, &str)> {
    hops.iter().map(|(hop, name)| (*hop, name.as_str())).collect()
}

#[test]
fn a_message_to_another_rank_makes_five_hops() {
    assert_eq!(
        names(&hops_of_one_message(2)),
        [
            (1, "Ctx::send"),
            (2, "Worker::send"),
            (3, "Transport::send"),
            (3, "Transport::poll"),
            (4, "Mailbox::push"),
            (5, "Slot::deliver"),
        ]
    );
}

#[test]
fn a_message_within_a_rank_does_not_see_the_transport() {
    assert_eq!(
        names(&hops_of_one_message(1)),
        [(1, "Ctx::send"), (2, "Worker::send"), (4, "Mailbox::push"), (5, "Slot::deliver")]
    );
}
