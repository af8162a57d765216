//! A run asks the metadata service of its cloud, which is a server of this process here.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use caribou::checkpoint::{Settings, list};
use caribou::config::{Cloud, Spot};
use caribou::supersteps::{Job, Parts, Supersteps, Then};
use caribou::{Chunk, Config, Ctx, Error, Reducer, Target};
use caribou_tests::{run_array_with_service, scratch, with_timeout};
use serde::{Deserialize, Serialize};

const CHUNKS: u32 = 8;
const STEPS: u64 = 40;

/// What the service of AWS has for this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Says {
    Nothing,
    Advice,
    Notice,
}

/// A server that answers like the metadata service of AWS. It ends when it is dropped.
struct Aws {
    address: SocketAddr,
    ends: Arc<AtomicBool>,
    /// Returns the number of tokens that were asked for.
    thread: Option<JoinHandle<u32>>,
}

impl Aws {
    fn start(says: Says) -> Aws {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let (address, ends) = (listener.local_addr().expect("it is bound"), Arc::new(AtomicBool::new(false)));
        let stop = ends.clone();
        let serve = move || {
            let streams = listener.incoming().take_while(|_| !stop.load(Ordering::Acquire));
            streams.map(|stream| u32::from(serve(stream.expect("it is open"), says))).sum()
        };
        Aws { address, ends, thread: Some(thread::spawn(serve)) }
    }

    fn spot(&self) -> Spot {
        Spot::of(Cloud::Aws).at(self.address)
    }

    fn end(&mut self) -> u32 {
        self.ends.store(true, Ordering::Release);
        let _ = TcpStream::connect(self.address);
        self.thread.take().map_or(0, |thread| thread.join().expect("it ends"))
    }
}

impl Drop for Aws {
    fn drop(&mut self) {
        self.end();
    }
}

/// Answers a request. True if that was for a token.
fn serve(mut stream: TcpStream, says: Says) -> bool {
    stream.set_read_timeout(Some(Duration::from_secs(5))).expect("it is not zero");
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|bytes| bytes > 0) {
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head);
    let (status, body) = match says {
        _ if head.starts_with("PUT /latest/api/token") => (200, "secret"),
        Says::Notice if head.contains("/spot/instance-action ") => {
            (200, r#"{"action": "terminate", "time": "2026-11-29T10:00:00Z"}"#)
        }
        Says::Advice if head.contains("/recommendations/rebalance ") => {
            (200, r#"{"noticeTime": "2026-11-29T09:00:00Z"}"#)
        }
        _ => (404, ""),
    };
    // A run that ends may have closed the connection.
    let _ = write!(stream, "HTTP/1.1 {status} x\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    head.starts_with("PUT")
}

/// Tells whether chunks may go on in the middle of the run.
#[derive(Clone)]
struct Gate(Arc<dyn Fn() -> bool + Send + Sync>);

impl Gate {
    fn open() -> Gate {
        Gate(Arc::new(|| true))
    }

    fn closed() -> Gate {
        Gate(Arc::new(|| false))
    }

    /// Opens when the directory has a checkpoint.
    fn of(dir: &Path) -> Gate {
        let dir = dir.to_owned();
        Gate(Arc::new(move || !list(&dir).is_empty()))
    }
}

/// A chunk of a ring that passes messages on, and waits at the gate on the way.
#[derive(Serialize, Deserialize)]
struct Counter {
    value: u64,
    step: u64,
}

impl Chunk for Counter {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        ctx.send((ctx.index() + 1) % CHUNKS, ());
    }

    fn receive(&mut self, (): (), ctx: &mut Ctx<'_, Self>) {
        if self.step == STEPS / 2 && !(ctx.service::<Gate>().0)() {
            return ctx.send_after(Duration::from_millis(1), ());
        }
        self.step += 1;
        self.value = (self.value ^ self.step).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        if self.step < STEPS {
            return ctx.send((ctx.index() + 1) % CHUNKS, ());
        }
        ctx.contribute(1, Reducer::WrappingSum, vec![self.value], Target::Exit);
    }
}

fn count(config: Config, gate: Gate) -> Result<u64, Error> {
    let report = with_timeout(&format!("{config:?}"), move || {
        run_array_with_service(config, gate, CHUNKS, |index: u32| Counter { value: index.into(), step: 0 })
    })?;
    Ok(report.value::<Vec<u64>>().expect("it is a sum")[0])
}

/// Steps until the gate opens.
struct Stepper(Gate);

impl Supersteps for Stepper {
    type Unit = ();
    type Edge = ();
    /// Whether the gate is open.
    type Part = bool;
    type Shared = ();

    fn units(&self) -> u64 {
        8
    }

    fn begin(&self) {}

    fn unit(&self, _: u64) {}

    fn compute(&self, _: Job<'_, Self>) -> bool {
        (self.0.0)()
    }

    fn combine(&self, (): &mut (), mut parts: Parts<'_, bool>) -> Then {
        if parts.any(|(_, is_open)| *is_open) { Then::End } else { Then::Step }
    }
}

/// Checkpoints that are made only when something asks for them.
fn rarely(dir: &Path) -> Settings {
    Settings::new(dir).every(Duration::from_secs(3600))
}

/// The threads of this process that ask a service.
fn watchers() -> usize {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let names = threads.filter_map(|thread| fs::read_to_string(thread.path().join("comm")).ok());
    names.filter(|name| name.trim() == "caribou spot").count()
}

/// One test, so that it sees no watcher of another.
#[test]
fn a_run_that_a_cloud_tells_to_end_goes_on_elsewhere_and_advice_makes_a_checkpoint() {
    let config = || Config::default().ranks(2).workers(1);
    let expected = count(config(), Gate::open()).expect("nothing is wrong");

    let (dir, mut aws) = (scratch(), Aws::start(Says::Notice));
    let told = count(config().checkpoint(rarely(&dir)).spot(aws.spot()), Gate::closed());
    let Err(Error::Interrupted { by, checkpoint }) = told else { panic!("{told:?}") };
    assert_eq!(by, "AWS takes this instance back at 2026-11-29T10:00:00Z (rank 0)");
    assert_eq!((watchers(), aws.end()), (0, 1), "one thread of the process watches, as long as the run");

    // The next machine has a service that does not answer, and then one that has nothing to say.
    let restarted = |spot| {
        count(config().ranks(3).restart(&checkpoint).checkpoint(rarely(&dir)).spot(spot), Gate::open())
    };
    assert_eq!(restarted(aws.spot()), Ok(expected));
    assert_eq!(restarted(Aws::start(Says::Nothing).spot()), Ok(expected));
    assert_eq!(watchers(), 0);

    let aws = Aws::start(Says::Advice);
    let advised = |dir: &Path| config().checkpoint(rarely(dir)).spot(aws.spot());
    let dir = scratch();
    assert_eq!(count(advised(&dir), Gate::of(&dir)), Ok(expected));
    let dir = scratch();
    let (settings, gate) = (advised(&dir), Gate::of(&dir));
    with_timeout("supersteps", move || caribou::supersteps(&settings, Stepper(gate)).map(drop))
        .expect("a checkpoint ends it");
    let dir = scratch();
    let (settings, gate) = (advised(&dir), Gate::of(&dir));
    let wait = move |iterations: &mut u64, range: Range<u64>| {
        for _ in range {
            *iterations += 1;
            thread::sleep(Duration::from_millis(u64::from(!(gate.0)())));
        }
    };
    with_timeout("pool", move || caribou::pool(&settings, 4_000, || 0, wait).map(drop)).expect("it ends");
    assert_eq!(list(&*dir).len(), 1);
    assert_eq!(watchers(), 0);
}
