//! Serves the state of a run by HTTP while it runs, for `caribou top`, Prometheus and people with `curl`.
//!
//! | `GET` | answer |
//! |---|---|
//! | `/status` | a [`Status`] as JSON |
//! | `/metrics` | the same figures in the text format of Prometheus |
//! | `/` | the list of pages |
//!
//! `POST /resize/N` with [`RESIZE_HEADER`] makes the first N ranks the active ones, for `caribou resize`.
//!
//! One thread serves all connections, and sleeps while there are no requests. Figures are collected on request, at most
//! four times per second. The number of connections, their time and their bytes are bounded, so no client can block the
//! program or fill its memory. `tiny_http` is not used, because it takes a thread per connection, reads lines of any
//! length, waits without limit and cannot be joined.
//!
//! There is no password. By default the server therefore listens on loopback, and it resizes a run on loopback only. No
//! other request changes a run.
//!
//! Layers, each of which uses only earlier ones: figures (`status`), the format of Prometheus (`metrics`), requests and
//! answers (`http`), sockets (`listen`, `server`).

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

/// The server of one process, which stops when dropped.
pub(crate) struct Monitor {
    address: SocketAddr,
    /// The server stops when this end of the connection is dropped.
    wake: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

/// Collects the figures. The monitor's thread calls this, and takes only locks that workers hold for short times.
pub(crate) type Collect = Arc<dyn Fn() -> Status + Send + Sync>;

/// Requests a number of active ranks. The error is the reason for a refusal.
pub(crate) type Resize = Arc<dyn Fn(u32) -> Result<(), String> + Send + Sync>;

impl Monitor {
    /// Listens on `address`: `HOST:PORT`, `:PORT` or `PORT`. Without a host this is loopback; port 0 is any free port.
    ///
    /// # Errors
    /// [`Error::Config`] if the address is invalid, or this process may not listen on it.
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

    /// The address on which the server listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Monitor {
    /// Stops the server's thread, and waits for it.
    fn drop(&mut self) {
        drop(self.wake.take());
        if let Some(thread) = self.thread.take() {
            // A panic during the collection of figures was printed on standard error.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
