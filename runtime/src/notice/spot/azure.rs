//! The client of the instance metadata service of Azure, which lists events scheduled for a group of named machines.
//!
//! See "Azure Metadata Service: Scheduled Events for Linux VMs". The first request of a machine switches the service
//! on. That may take two minutes, during which requests fail.

use std::time::Duration;

use serde::Deserialize;

use super::http::Http;
use super::{Event, Service, is_plain};

const EVENTS: &str = "/metadata/scheduledevents?api-version=2020-07-01";
const NAME: &str = "/metadata/instance/compute/name?api-version=2021-02-01&format=text";
/// Types of events that destroy the memory of the machine.
const FATAL: [&str; 4] = ["Preempt", "Terminate", "Redeploy", "Reboot"];

#[derive(Default)]
pub(super) struct Azure {
    /// The name of this machine, after it was read.
    name: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Document {
    events: Vec<Scheduled>,
}

/// An event that is scheduled for some machines.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Scheduled {
    event_type: String,
    #[serde(default)]
    resources: Vec<String>,
    /// Empty after the event has begun.
    #[serde(default)]
    not_before: String,
}

impl Service for Azure {
    fn name(&self) -> &'static str {
        "Azure"
    }

    fn interval(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn find(&mut self, http: &Http) -> Result<(), String> {
        self.own_name(http).map(drop)
    }

    fn poll(&mut self, http: &Http) -> Result<Option<Event>, String> {
        let own_name = self.own_name(http)?.to_owned();
        let document: Document = serde_json::from_str(&read(EVENTS, http)?)
            .map_err(|_| format!("{EVENTS}: the answer is not a list of events"))?;
        let is_ours = |event: &&Scheduled| {
            let names = event.resources.iter();
            FATAL.contains(&&*event.event_type)
                && names.into_iter().any(|name| name.eq_ignore_ascii_case(&own_name))
        };
        Ok(document.events.iter().find(is_ours).map(Scheduled::notice))
    }
}

impl Azure {
    fn own_name(&mut self, http: &Http) -> Result<&str, String> {
        if self.name.is_none() {
            let name = read(NAME, http)?;
            let name = name.trim();
            if name.is_empty() || name.contains(char::is_whitespace) {
                return Err(format!("{NAME}: the answer is not a name"));
            }
            self.name = Some(name.to_owned());
        }
        Ok(self.name.as_deref().unwrap_or_default())
    }
}

impl Scheduled {
    fn notice(&self) -> Event {
        let begin = if is_plain(&self.not_before) { format!("at {}", self.not_before) } else { "now".into() };
        Event::Notice(format!("Azure takes this instance back ({}) {begin}", self.event_type))
    }
}

fn read(path: &str, http: &Http) -> Result<String, String> {
    let answer = http.get(path, &[("Metadata", "true")])?;
    answer.text().map_err(|why| format!("{path}: {why}"))
}
