//! Tells how a run is doing while it runs: a page of figures by HTTP, for `caribou top`, Prometheus and people with `curl`.
//!
//! | `GET` | answers |
//! |---|---|
//! | `/status` | a [`Status`] as JSON |
//! | `/metrics` | the same figures in Prometheus' text format |
//! | `/` | the list of pages |
//!
//! `POST /resize/N` with [`RESIZE_HEADER`] makes the first N ranks the active ones, for `caribou resize`.
//!
//! One thread serves all connections and sleeps while no client asks. Figures are collected on request, at most four
//! times a second. The number of connections, their time and their bytes are bounded: no client can block the program or
//! fill its memory. So the server is our own: `tiny_http` takes a thread per connection, reads lines of any length, waits
//! without limit and cannot be joined.
//!
//! There is no password. So the server listens on loopback unless told otherwise, and resizes a run on loopback only. No
//! other request changes a run.
//!
//! Layers, each of which uses only the ones before it: figures (`status`), Prometheus' format (`metrics`), requests and
//! answers (`page`), sockets (`listen`, `server`).

mod http;
mod listen;
mod metrics;
mod server;
mod status;

use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::JoinHandle;

pub use http::RESIZE_HEADER;
pub use status::{KindStatus, RankStatus, RunningStatus, SCHEMA, Status, WorkerStatus};

use crate::Error;
use crate::ids::Rank;

/// The server of one process; stops when dropped.
pub(crate) struct Monitor {
    address: SocketAddr,
    /// The server stops when this end goes.
    wake: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

/// Collects the figures. Called by the monitor's thread, so it takes locks that workers hold for short times only.
pub(crate) type Collect = Arc<dyn Fn() -> Status + Send + Sync>;

/// Asks the run for a number of active ranks; the error says why it is refused.
pub(crate) type Resize = Arc<dyn Fn(u32) -> Result<(), String> + Send + Sync>;

impl Monitor {
    /// Listens on `address`: `HOST:PORT`, `:PORT` or `PORT`. Without a host that is loopback; port 0 is any free one.
    ///
    /// # Errors
    /// [`Error::Config`] if that is no address, or not one that this process may listen on.
    pub(crate) fn start(
        address: &str,
        rank: Rank,
        collect: Collect,
        resize: Resize,
    ) -> Result<Monitor, Error> {
        let wrong = |why: String| Error::Config { setting: "CARIBOU_MONITOR".into(), why };
        let listener = listen::listen(address).map_err(wrong)?;
        let cannot = |error: std::io::Error| wrong(format!("cannot listen on {address:?}: {error}"));
        let address = listener.local_addr().map_err(cannot)?;
        let (wake, woken) = UnixStream::pair().map_err(cannot)?;
        let pages = http::Pages::new(collect, resize, address.ip().is_loopback());
        let thread = std::thread::Builder::new()
            .name("caribou monitor".into())
            .spawn(move || server::serve(&listener, &woken, pages))
            .map_err(cannot)?;
        tracing::info!(rank = rank.0, %address, "monitor: http://{address}/status");
        Ok(Monitor { address, wake: Some(wake), thread: Some(thread) })
    }

    /// The address where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Monitor {
    /// Waits for the server's thread, which leaves at once.
    fn drop(&mut self) {
        drop(self.wake.take());
        if let Some(thread) = self.thread.take() {
            // A panic while figures were collected is on standard error.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
