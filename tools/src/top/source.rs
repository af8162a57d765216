//! Requests the status of a program, or a resize, by HTTP, for `caribou top` and `caribou resize`.

use std::io::ErrorKind;
use std::time::Duration;

use caribou::monitor::{RESIZE_HEADER, SCHEMA, Status};
use serde::Deserialize;

use crate::Error;

/// Longest time to wait for an answer.
const ANSWER_MAX: Duration = Duration::from_secs(2);
/// Longest answer in bytes: eight times the answer of a process with the largest number of ranks.
const BYTES_MAX: u64 = 4 << 20;
/// Largest number of programs to poll.
const SOURCES_MAX: usize = 256;

/// Error text for a closed port.
pub(crate) const NOBODY: &str =
    "no program listens there: has it ended, was it started with CARIBOU_MONITOR?";

/// The monitor of one program.
pub(crate) struct Source {
    pub(crate) address: String,
    agent: ureq::Agent,
}

/// Parses addresses: `HOST:PORT`, `:PORT` or `PORT`, each with an optional `-PORT` for a range of ports.
pub(crate) fn sources(addresses: &[String]) -> Result<Vec<Source>, Error> {
    let mut found = Vec::new();
    for address in addresses {
        let (host, ports) = parse(address).ok_or_else(|| {
            Error::Usage(format!(
                "{address:?} is not an address, expected HOST:PORT, PORT or HOST:PORT-PORT with ports \
                 from 1 to 65535"
            ))
        })?;
        if found.len() + ports.len() > SOURCES_MAX {
            return Err(Error::Usage(format!("more than {SOURCES_MAX} addresses")));
        }
        found.extend(ports.map(|port| Source::new(format!("{host}:{port}"))));
    }
    Ok(found)
}

fn parse(address: &str) -> Option<(&str, std::ops::RangeInclusive<u16>)> {
    let address = address.strip_prefix("http://").unwrap_or(address).trim_end_matches('/');
    let (host, ports) = address.rsplit_once(':').unwrap_or(("", address));
    let (first, last) = ports.split_once('-').unwrap_or((ports, ports));
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    let of_name = |c: char| c.is_ascii_alphanumeric() || "-_.[]:%".contains(c);
    let bracketed = host.starts_with('[') && host.ends_with(']');
    if first == 0 || first > last || !host.chars().all(of_name) || (host.contains(':') && !bracketed) {
        return None;
    }
    Some((if host.is_empty() { "127.0.0.1" } else { host }, first..=last))
}

impl Source {
    fn new(address: String) -> Source {
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(ANSWER_MAX))
            // On a proxy, loopback would be another host.
            .proxy(None)
            .max_redirects(0)
            .max_idle_connections(0)
            .build();
        Source { address, agent: config.new_agent() }
    }

    /// Requests the status of the program. The error is one line.
    pub(crate) fn ask(&self) -> Result<Status, String> {
        let answer = self.agent.get(format!("http://{}/status", self.address)).call();
        let body =
            answer.and_then(|mut answer| answer.body_mut().with_config().limit(BYTES_MAX).read_to_string());
        let body = body.map_err(|error| reason(&error))?;
        let foreign =
            |error| format!("this is not a Caribou program: its /status is not {SCHEMA:?}: {error}");
        let Schema { schema } = serde_json::from_str(&body).map_err(foreign)?;
        if schema.is_empty() {
            return Err(format!(
                "this is not a Caribou program: its answer has no `schema`, expected {SCHEMA:?}"
            ));
        }
        if schema != SCHEMA {
            return Err(format!("its schema is {:?}, expected {SCHEMA:?}", clean(&schema)));
        }
        serde_json::from_str(&body).map(printable).map_err(foreign)
    }
}

/// Longest answer to a resize request, in bytes. The answer is one line.
const LINE_MAX: u64 = 4096;

impl Source {
    /// Requests that the program uses only its first `ranks` ranks. If it refuses, the error is its reason in one line.
    pub(crate) fn resize(&self, ranks: u32) -> Result<(), String> {
        let (header, value) = RESIZE_HEADER;
        let request =
            self.agent.post(format!("http://{}/resize/{ranks}", self.address)).header(header, value);
        let answer = request.config().http_status_as_error(false).build().send_empty();
        let mut answer = answer.map_err(|error| reason(&error))?;
        let body = answer.body_mut().with_config().limit(LINE_MAX).read_to_string();
        let why = body.map_err(|error| reason(&error))?;
        match answer.status().as_u16() {
            202 => Ok(()),
            403 | 409 => Err(clean(why.trim_end())),
            _ => {
                Err("this program cannot be resized: it is not a Caribou program, or an older version".into())
            }
        }
    }
}

/// The version field of an answer. In other versions all other fields may differ.
#[derive(Deserialize)]
struct Schema {
    #[serde(default)]
    schema: String,
}

/// Describes the error in one line.
fn reason(error: &ureq::Error) -> String {
    match error {
        ureq::Error::Io(error) if error.kind() == ErrorKind::ConnectionRefused => {
            NOBODY.into()
        }
        ureq::Error::Io(error)
            if matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::UnexpectedEof) =>
        {
            "it closed the connection before it had answered: is this the address of a program's CARIBOU_MONITOR, or has \
             the program just ended?"
                .into()
        }
        ureq::Error::Timeout(_) => {
            format!(
                "no answer in {} s: is the program stopped, or the host out of reach?",
                ANSWER_MAX.as_secs()
            )
        }
        ureq::Error::Protocol(_) => {
            "this is not a Caribou program: it does not speak HTTP, expected the address of its CARIBOU_MONITOR"
                .into()
        }
        ureq::Error::BodyExceedsLimit(_) => {
            format!("this is not a Caribou program: its /status has more than {} MiB", BYTES_MAX >> 20)
        }
        ureq::Error::Io(error) if error.kind() == ErrorKind::InvalidData => {
            "this is not a Caribou program: its /status is not text".into()
        }
        ureq::Error::StatusCode(404) => "this is not a Caribou program: it has no /status".into(),
        other => clean(&other.to_string()),
    }
}

/// Replaces control characters in all texts, because a terminal would interpret them.
fn printable(mut status: Status) -> Status {
    let texts = [&mut status.run_id, &mut status.program, &mut status.lb].into_iter();
    let hosts = status.ranks.iter_mut().map(|rank| &mut rank.host);
    let kinds = status.kinds.iter_mut().map(|kind| &mut kind.name);
    for text in texts.chain(hosts).chain(kinds).chain(status.failed.as_mut()) {
        *text = clean(text);
    }
    status
}

fn clean(text: &str) -> String {
    text.replace(|c: char| c.is_control(), " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_may_leave_out_the_host_and_name_ports_in_a_row() {
        for (address, host, ports) in [
            ("9977", "127.0.0.1", 9977..=9977),
            (":9977", "127.0.0.1", 9977..=9977),
            ("node-1:9977-9980", "node-1", 9977..=9980),
            ("[::1]:80", "[::1]", 80..=80),
            ("http://localhost:9977/", "localhost", 9977..=9977),
        ] {
            assert_eq!(parse(address), Some((host, ports)), "{address}");
        }
        for wrong in
            ["", "host", "host:0", "host:9-8", "::1:80", "a b:1", "user@host:1", "host:1/status", "h:65536"]
        {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_a_program_says_gives_the_terminal_no_orders() {
        let kinds = vec![caribou::monitor::KindStatus { name: "\x1b[2Jhalo\n".into(), ..Default::default() }];
        let failed = Some("a\u{9b}b".into());
        let status = printable(Status { program: "\x07x".into(), kinds, failed, ..Status::default() });
        assert_eq!((status.program.as_str(), status.kinds[0].name.as_str()), (" x", " [2Jhalo "));
        assert_eq!(status.failed.as_deref(), Some("a b"));
    }
}
