//! Sends requests to a metadata service, each limited in time and bytes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ureq::http::{HeaderMap, Response};
use ureq::{Agent, Body};

use super::Stop;

/// The address of the metadata service in each cloud.
const ADDRESS: &str = "169.254.169.254";
/// Maximum length of an answer, bytes. Each event of a machine takes some hundred bytes.
const BYTES_MAX: u64 = 64 << 10;

/// Maximum time of each part of a request, together about 1 s. With a single limit for the whole request, `ureq` would
/// look up the address in a thread that is never joined.
const CONNECT_MAX: Duration = Duration::from_millis(300);
const SEND_MAX: Duration = Duration::from_millis(100);
const ANSWER_MAX: Duration = Duration::from_millis(400);
const BODY_MAX: Duration = Duration::from_millis(200);

/// A client of one service.
pub(super) struct Http {
    agent: Agent,
    /// The URL without the path.
    base: String,
    pub(super) stop: Arc<Stop>,
}

/// An answer of any status.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: String,
}

/// Headers of a request.
type Headers<'h> = &'h [(&'h str, &'h str)];

impl Http {
    /// A client of the service at this address, by default the clouds' address. Sends no requests after `stop`.
    pub(super) fn new(address: Option<SocketAddr>, stop: Arc<Stop>) -> Http {
        let config = Agent::config_builder()
            .timeout_connect(Some(CONNECT_MAX))
            .timeout_send_request(Some(SEND_MAX))
            .timeout_send_body(Some(SEND_MAX))
            .timeout_recv_response(Some(ANSWER_MAX))
            .timeout_recv_body(Some(BODY_MAX))
            // A proxy would forward to the service of its own machine.
            .proxy(None)
            .http_status_as_error(false)
            .max_redirects(0)
            .max_idle_connections(0)
            .build();
        let base = address.map_or_else(|| format!("http://{ADDRESS}"), |address| format!("http://{address}"));
        Http { agent: config.new_agent(), base, stop }
    }

    pub(super) fn get(&self, path: &str, headers: Headers<'_>) -> Result<Answer, String> {
        let request = self.agent.get(format!("{}{path}", self.base));
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        self.ask(path, || request.call())
    }

    pub(super) fn put(&self, path: &str, headers: Headers<'_>) -> Result<Answer, String> {
        let request = self.agent.put(format!("{}{path}", self.base));
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        self.ask(path, || request.send_empty())
    }

    /// Sends a request. The error has the request and the reason why there is no answer.
    fn ask(
        &self,
        path: &str,
        call: impl FnOnce() -> Result<Response<Body>, ureq::Error>,
    ) -> Result<Answer, String> {
        if self.stop.is_set() {
            return Err("the run ends".into());
        }
        let answer = call().and_then(|mut response| {
            let body = response.body_mut().with_config().limit(BYTES_MAX).read_to_string()?;
            Ok(Answer { status: response.status().as_u16(), headers: response.headers().clone(), body })
        });
        answer.map_err(|error| {
            let why = error.to_string().replace(|c: char| c.is_control(), " ");
            format!("{}{path}: {why}", self.base)
        })
    }
}

impl Answer {
    /// The body of an answer of status 200.
    pub(super) fn text(self) -> Result<String, String> {
        match self.status {
            200 => Ok(self.body),
            status => Err(format!("status {status}")),
        }
    }
}
