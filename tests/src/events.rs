//! Messages of the runtime through `tracing`, for tests that ask for them.

use std::fmt::Debug;

use tracing::field::Field;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Listens to the whole process from now on: `wants` chooses, and `told` gets each event, its fields by name, as text.
///
/// # Panics
/// If somebody listens already.
pub fn listen(wants: fn(&Metadata<'_>) -> bool, told: fn(&Metadata<'_>, &[(&str, String)])) {
    tracing::subscriber::set_global_default(Listener { wants, told }).expect("nobody else listens");
}

struct Listener {
    wants: fn(&Metadata<'_>) -> bool,
    told: fn(&Metadata<'_>, &[(&str, String)]),
}

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        (self.wants)(metadata)
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = Vec::new();
        event.record(&mut |field: &Field, value: &dyn Debug| {
            fields.push((field.name(), format!("{value:?}")));
        });
        (self.told)(event.metadata(), &fields);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}
