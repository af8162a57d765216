//! Parses requests and makes their answers: as much of HTTP as pages of figures and one other request need.
//!
//! Of a request the first line, `Host` and [`RESIZE_HEADER`] are read, but no body. Connections are not kept.
//!
//! 1. An answer has no CORS header, so a browser lets no other site read it.
//! 2. A site could resolve its own name to loopback (DNS rebinding). The check of `Host` prevents that.
//! 3. A browser does not send [`RESIZE_HEADER`] for another site. So only a program of this host can resize a run, and
//!    only if the server listens on loopback.

use std::net::IpAddr;
use std::sync::Arc;

use super::metrics::{self, metrics};
use super::status::Status;
use super::{Collect, Resize};
use crate::threads::clock::monotonic_ns;

/// Minimum time between two collections of figures, ns.
const CACHE_NS: u64 = 250_000_000;
const HELP: &str = "A Caribou program runs here.\n\n\
    /status   state of the run as JSON; `caribou top` shows it\n\
    /metrics  the same in the format of Prometheus\n\
    /resize   POST /resize/N makes the first N ranks the active ones, as `caribou resize` does\n";
const TEXT: &str = "text/plain; charset=utf-8";

/// The header of a request that changes the run. Browsers do not send it for other sites.
pub const RESIZE_HEADER: (&str, &str) = ("X-Caribou", "resize");

/// The pages of the server.
pub(super) struct Pages {
    collect: Collect,
    resize: Resize,
    /// Only names of this host are accepted.
    loopback: bool,
    cached: Option<CachedStatus>,
}

/// Figures that were just collected, and the pages that were requested since.
struct CachedStatus {
    collected_ns: u64,
    status: Status,
    json: Option<Arc<[u8]>>,
    metrics: Option<Arc<[u8]>>,
}

impl Pages {
    pub(super) fn new(collect: Collect, resize: Resize, loopback: bool) -> Pages {
        Pages { collect, resize, loopback, cached: None }
    }

    /// The whole answer to a request with this head.
    pub(super) fn answer(&mut self, head: &[u8]) -> Vec<u8> {
        let Some(request) = Request::parse(head) else {
            return refuse("400 Bad Request", "this is not an HTTP request");
        };
        if self.loopback && !request.host.is_none_or(names_this_host) {
            return refuse(
                "403 Forbidden",
                "the Host header names another host, expected localhost or an IP address",
            );
        }
        if let Some(ranks) = request.path.strip_prefix("/resize/").filter(|_| request.method == "POST") {
            return self.answer_resize(ranks, &request);
        }
        if !matches!(request.method, "GET" | "HEAD") {
            return refuse("405 Method Not Allowed", "expected GET or HEAD, or POST to /resize/N");
        }
        let (content_type, body): (_, Arc<[u8]>) = match request.path {
            "/status" => ("application/json", self.json()),
            "/metrics" => (metrics::CONTENT_TYPE, self.metrics()),
            "/" => (TEXT, HELP.as_bytes().into()),
            _ => return refuse("404 Not Found", "expected /status, /metrics or /"),
        };
        response("200 OK", content_type, &body, request.method == "HEAD")
    }

    fn answer_resize(&self, ranks: &str, request: &Request<'_>) -> Vec<u8> {
        let (header, value) = RESIZE_HEADER;
        if !self.loopback {
            return refuse(
                "403 Forbidden",
                "a run can be resized on a loopback address only, because there is no password",
            );
        }
        if !request.resizes {
            return refuse("403 Forbidden", &format!("expected the header `{header}: {value}`"));
        }
        let Ok(ranks) = ranks.parse() else {
            return refuse("400 Bad Request", &format!("{ranks:?} is not a number of ranks"));
        };
        match (self.resize)(ranks) {
            Ok(()) => response("202 Accepted", TEXT, b"", false),
            Err(why) => refuse("409 Conflict", &why),
        }
    }

    fn json(&mut self) -> Arc<[u8]> {
        let fresh = self.fresh();
        let render = || serde_json::to_vec(&fresh.status).expect("a status has string keys only").into();
        fresh.json.get_or_insert_with(render).clone()
    }

    fn metrics(&mut self) -> Arc<[u8]> {
        let fresh = self.fresh();
        fresh.metrics.get_or_insert_with(|| metrics(&fresh.status).into_bytes().into()).clone()
    }

    fn fresh(&mut self) -> &mut CachedStatus {
        let now_ns = monotonic_ns();
        let old = |fresh: &mut CachedStatus| now_ns.saturating_sub(fresh.collected_ns) >= CACHE_NS;
        if self.cached.as_mut().is_none_or(old) {
            self.cached = None;
        }
        let collect = || CachedStatus {
            collected_ns: now_ns,
            status: (self.collect)().bounded(),
            json: None,
            metrics: None,
        };
        self.cached.get_or_insert_with(collect)
    }
}

/// A refusal in one line.
pub(super) fn refuse(status: &str, why: &str) -> Vec<u8> {
    response(status, TEXT, format!("{why}\n").as_bytes(), false)
}

fn response(status: &str, content_type: &str, body: &[u8], head_only: bool) -> Vec<u8> {
    let allow = if status.starts_with("405") { "Allow: GET, HEAD\r\n" } else { "" };
    let length = body.len();
    let mut bytes = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\nCache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\n{allow}Connection: close\r\n\r\n"
    )
    .into_bytes();
    if !head_only {
        bytes.extend_from_slice(body);
    }
    bytes
}

/// The relevant parts of a request.
#[derive(Debug, PartialEq, Eq)]
struct Request<'a> {
    method: &'a str,
    /// The path without the part from a `?` on.
    path: &'a str,
    host: Option<&'a str>,
    /// True if the request has [`RESIZE_HEADER`].
    resizes: bool,
}

impl<'a> Request<'a> {
    fn parse(head: &'a [u8]) -> Option<Request<'a>> {
        let mut lines = std::str::from_utf8(head).ok()?.lines();
        let mut words = lines.next()?.split(' ');
        let (method, target, version) = (words.next()?, words.next()?, words.next()?);
        let known = version.starts_with("HTTP/1.") && words.next().is_none();
        if !known || method.is_empty() || !target.starts_with('/') {
            return None;
        }
        let path = target.split_once('?').map_or(target, |(path, _)| path);
        let fields = lines.filter_map(|line| line.split_once(':'));
        let fields: Vec<(&str, &str)> = fields.map(|(name, value)| (name, value.trim())).collect();
        let field = |name: &str| {
            fields.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|&(_, value)| value)
        };
        let (header, value) = RESIZE_HEADER;
        Some(Request { method, path, host: field("host"), resizes: field(header) == Some(value) })
    }
}

/// Tells whether the name always means this host, so that no other site can have resolved it.
fn names_this_host(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(bracketed) => bracketed.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_its_first_line_and_its_host() {
        let head = b"GET /status?x=1 HTTP/1.1\r\nUser-Agent: x\r\nHOST:  localhost:99 \r\n\r\n";
        let request = Request { method: "GET", path: "/status", host: Some("localhost:99"), resizes: false };
        assert_eq!(Request::parse(head), Some(request));
        for wrong in [
            &b""[..],
            b"\r\n\r\n",
            b"GET\r\n\r\n",
            b"GET / HTTP/2\r\n\r\n",
            b"GET / HTTP/1.1 x\r\n\r\n",
            b"GET http://x/ HTTP/1.1\r\n\r\n",
            b"GET /\xff HTTP/1.1\r\n\r\n",
        ] {
            assert_eq!(Request::parse(wrong), None, "{}", wrong.escape_ascii());
        }
    }

    #[test]
    fn another_site_that_resolves_to_loopback_is_refused() {
        for (host, right) in [
            ("localhost", true),
            ("LocalHost:99", true),
            ("127.0.0.1:99", true),
            ("[::1]:99", true),
            ("evil.example", false),
            ("localhost.evil.example:99", false),
            ("", false),
        ] {
            assert_eq!(names_this_host(host), right, "{host:?}");
        }
    }
}
