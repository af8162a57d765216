//! One message from `send` to `receive`: five hops, or four where it stays on its rank.
//!
//! The runtime tells of each hop at `trace` level, which release builds compile out.
#![cfg(debug_assertions)]

use std::fmt::Debug;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use caribou::{Chunk, Config, Ctx};
use caribou_tests::within_patience;
use serde::{Deserialize, Serialize};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// A hop's number and name.
type Hop = (u64, String);

/// The hops of the whole process, in the order in which they happened.
static HOPS: Mutex<Vec<Hop>> = Mutex::new(Vec::new());

fn hops() -> MutexGuard<'static, Vec<Hop>> {
    HOPS.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Recorder;

impl Subscriber for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.fields().field("hop").is_some()
    }

    fn event(&self, event: &Event<'_>) {
        let mut hop = (0, String::new());
        event.record(&mut Reading(&mut hop));
        hops().push(hop);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

struct Reading<'h>(&'h mut Hop);

impl Visit for Reading<'_> {
    fn record_u64(&mut self, _: &Field, number: u64) {
        self.0.0 = number;
    }

    fn record_i64(&mut self, _: &Field, number: i64) {
        self.0.0 = number.unsigned_abs();
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.0.1 = format!("{value:?}");
        }
    }
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
    static RECORDER: LazyLock<()> = LazyLock::new(|| {
        tracing::subscriber::set_global_default(Recorder).expect("this is the only subscriber");
    });
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    LazyLock::force(&RECORDER);
    let seen = Seen::default();
    let service = seen.clone();
    within_patience("one message", move || {
        caribou::run(Config::default().ranks(ranks), |setup| {
            setup.service(service.clone());
            setup.array(2, |_| Correspondent);
        })
    })
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
            (2, "Worker::flush"),
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
        [(1, "Ctx::send"), (2, "Worker::flush"), (4, "Mailbox::push"), (5, "Slot::deliver")]
    );
}
