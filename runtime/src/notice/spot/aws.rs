//! The client of the instance metadata service of Amazon EC2, version 2. Each request has a token, which expires.
//!
//! See "Spot Instance interruption notices" and "EC2 instance rebalance recommendations" in the user guide of EC2.

use std::time::Duration;

use serde::Deserialize;

use super::http::{Answer, Http};
use super::{Event, Service, is_plain};

const TOKEN: &str = "/latest/api/token";
const INSTANCE_ACTION: &str = "/latest/meta-data/spot/instance-action";
const REBALANCE: &str = "/latest/meta-data/events/recommendations/rebalance";
/// Validity of a token, s: the longest time that the service allows.
const TOKEN_TTL_S: &str = "21600";

#[derive(Default)]
pub(super) struct Aws {
    token: Option<String>,
    has_advised: bool,
}

/// What the service announces to do with the machine, and when.
#[derive(Deserialize)]
struct InstanceAction {
    action: String,
    time: String,
}

impl Service for Aws {
    fn name(&self) -> &'static str {
        "AWS"
    }

    fn interval(&self) -> Duration {
        Duration::from_secs(5)
    }

    fn find(&mut self, http: &Http) -> Result<(), String> {
        self.token(http).map(drop)
    }

    fn poll(&mut self, http: &Http) -> Result<Option<Event>, String> {
        if let Some(action) = self.read(INSTANCE_ACTION, http)? {
            return taken_back(&action).map(Some);
        }
        if self.has_advised || self.read(REBALANCE, http)?.is_none() {
            return Ok(None);
        }
        self.has_advised = true;
        Ok(Some(Event::Advice("AWS may take this instance back soon".into())))
    }
}

impl Aws {
    /// The resource at this path; none if it does not exist.
    fn read(&mut self, path: &str, http: &Http) -> Result<Option<String>, String> {
        let mut answer = self.read_with_token(path, http)?;
        if answer.status == 401 {
            self.token = None;
            answer = self.read_with_token(path, http)?;
        }
        match answer.status {
            404 => Ok(None),
            _ => answer.text().map(Some).map_err(|why| format!("{path}: {why}")),
        }
    }

    fn read_with_token(&mut self, path: &str, http: &Http) -> Result<Answer, String> {
        let token = self.token(http)?;
        http.get(path, &[("X-aws-ec2-metadata-token", token)])
    }

    fn token(&mut self, http: &Http) -> Result<&str, String> {
        if self.token.is_none() {
            let answer = http.put(TOKEN, &[("X-aws-ec2-metadata-token-ttl-seconds", TOKEN_TTL_S)])?;
            let token = answer.text().map_err(|why| format!("{TOKEN}: {why}"))?;
            if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err(format!("{TOKEN}: the answer is not a token"));
            }
            self.token = Some(token);
        }
        Ok(self.token.as_deref().unwrap_or_default())
    }
}

fn taken_back(action: &str) -> Result<Event, String> {
    match serde_json::from_str(action) {
        Ok(InstanceAction { action, time })
            if matches!(&*action, "terminate" | "stop" | "hibernate") && is_plain(&time) =>
        {
            Ok(Event::Notice(format!("AWS takes this instance back at {time}")))
        }
        _ => Err(format!("{INSTANCE_ACTION}: the answer is not an action with its time")),
    }
}
