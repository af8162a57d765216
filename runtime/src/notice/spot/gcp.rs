//! The client of the metadata server of Google Compute Engine.
//!
//! See "Spot VMs" and "About VM metadata" in the documentation of Compute Engine.

use std::time::Duration;

use super::http::Http;
use super::{Event, Service};

const PREEMPTED: &str = "/computeMetadata/v1/instance/preempted";
/// The header of each request, and of each answer.
const FLAVOR: (&str, &str) = ("Metadata-Flavor", "Google");

pub(super) struct Gcp;

impl Service for Gcp {
    fn name(&self) -> &'static str {
        "Google Cloud"
    }

    fn interval(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn find(&mut self, http: &Http) -> Result<(), String> {
        self.poll(http).map(drop)
    }

    fn poll(&mut self, http: &Http) -> Result<Option<Event>, String> {
        let answer = http.get(PREEMPTED, &[FLAVOR])?;
        if answer.headers.get(FLAVOR.0).is_none_or(|flavor| flavor != FLAVOR.1) {
            return Err(format!("{PREEMPTED}: the answer has no header {}: {}", FLAVOR.0, FLAVOR.1));
        }
        let text = answer.text().map_err(|why| format!("{PREEMPTED}: {why}"))?;
        match text.trim() {
            "TRUE" => Ok(Some(Event::Notice("Google Cloud takes this instance back".into()))),
            "FALSE" => Ok(None),
            _ => Err(format!("{PREEMPTED}: the answer is neither TRUE nor FALSE")),
        }
    }
}
