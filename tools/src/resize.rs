//! Implements `caribou resize`: makes a running program use its first N ranks.

use std::io::Write;
use std::thread::sleep;
use std::time::Duration;

use presentation::format::plural;

use crate::Error;
use crate::top::seconds_within;
use crate::top::source::{NOBODY, Source, sources};

/// Time between two polls of the program.
const INTERVAL: Duration = Duration::from_millis(100);

/// The program, and the number of ranks.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Options {
    /// The value of CARIBOU_MONITOR; of several processes, that of rank 0
    #[arg(value_name = "HOST:PORT")]
    address: String,
    /// The number of ranks that are to be active, from 1 to all
    #[arg(value_name = "N", value_parser = ranks)]
    ranks: u32,
    /// Seconds to wait for the program and the change (with syncs, made at the next one); exit code 1 if it is not
    /// made; 0: do not wait
    #[arg(long, value_name = "S", default_value = "10", value_parser = seconds)]
    wait: Duration,
}

fn ranks(text: &str) -> Result<u32, String> {
    text.parse().ok().filter(|&ranks| ranks > 0).ok_or_else(|| "expected a number of ranks, 1 or more".into())
}

fn seconds(text: &str) -> Result<Duration, String> {
    seconds_within(text, 0.0..=86_400.0)
}

pub(crate) fn run(options: &Options, out: &mut dyn Write) -> Result<(), Error> {
    let [source] = &sources(std::slice::from_ref(&options.address))?[..] else {
        return Err(Error::Usage("expected one address, of the process of rank 0".into()));
    };
    let unreachable = |why| Error::Unreachable { address: source.address.clone(), why };
    let mut questions = options.wait.as_millis() / INTERVAL.as_millis();
    ask_once_it_listens(source, options, &mut questions).map_err(unreachable)?;
    let ranks = plural(options.ranks, "rank");
    match wait_for(source, options, questions).map_err(unreachable)? {
        Outcome::Done => writeln!(out, "{ranks} active")?,
        Outcome::Elsewhere => {
            writeln!(out, "asked for {ranks}: the process of rank 0 reports when it is done")?;
        }
        Outcome::Ended => writeln!(out, "asked for {ranks}, and the program has ended")?,
        Outcome::Waits => {
            let address = &options.address;
            return Err(Error::Unfinished(format!(
                "asked for {ranks}, not done yet: `caribou top {address}` shows it"
            )));
        }
    }
    Ok(())
}

/// State of a resize request.
enum Outcome {
    Done,
    Waits,
    Ended,
    /// The polled process does not have rank 0, and only rank 0 has the number of active ranks.
    Elsewhere,
}

/// Sends the request. Retries while the port is closed, because the run may not have begun.
fn ask_once_it_listens(source: &Source, options: &Options, questions: &mut u128) -> Result<(), String> {
    loop {
        match source.resize(options.ranks) {
            Err(why) if why == NOBODY && *questions > 0 => {
                *questions -= 1;
                sleep(INTERVAL);
            }
            asked => return asked,
        }
    }
}

/// Polls until `options.ranks` ranks are active, at most `questions` times.
fn wait_for(source: &Source, options: &Options, questions: u128) -> Result<Outcome, String> {
    for question in 0..questions {
        sleep(INTERVAL);
        let status = match source.ask() {
            Err(why) if why == NOBODY => return Ok(Outcome::Ended),
            status => status?,
        };
        match status.ranks_active {
            Some(active) if active == options.ranks => return Ok(Outcome::Done),
            None if !status.ranks.is_empty() => return Ok(Outcome::Elsewhere),
            _ if status.finished => return Ok(Outcome::Ended),
            // The run has not begun, or the resize is in progress.
            _ => {}
        }
        if question == 0 {
            // The run may have begun after the first request. Only a run that has begun can refuse a request.
            source.resize(options.ranks)?;
        }
    }
    Ok(Outcome::Waits)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use caribou::{Chunk, Config, Ctx};
    use serde::{Deserialize, Serialize};

    use crate::tests::{caribou, refused};

    /// Sends messages to itself until the run is to end.
    #[derive(Serialize, Deserialize)]
    struct Busy;

    impl Chunk for Busy {
        type Index = u32;
        type Message = ();

        fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
            ctx.send(ctx.index(), ());
        }

        fn receive(&mut self, (): (), ctx: &mut Ctx<'_, Self>) {
            if ctx.service::<Arc<AtomicBool>>().load(Ordering::Relaxed) {
                return ctx.exit();
            }
            ctx.send(ctx.index(), ());
        }
    }

    /// Resizes a run of two ranks under the strategy `lb` to each of these numbers. Returns the output of the command.
    fn resized(lb: &str, numbers: &[&str]) -> Vec<Result<String, String>> {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
        let config = Config::default().ranks(2).monitor(&port).lb(lb).unwrap();
        let ends = Arc::new(AtomicBool::new(false));
        let service = ends.clone();
        let run = std::thread::spawn(move || {
            caribou::run(config, move |setup| {
                setup.service(service.clone());
                setup.array(8, |_| Busy);
            })
        });
        while caribou(&["top", "--once", &port]).is_err() {
            assert!(!run.is_finished(), "{:?}", run.join());
            std::thread::yield_now();
        }
        let resized = numbers.iter().map(|number| caribou(&["resize", &port, number])).collect();
        ends.store(true, Ordering::Relaxed);
        run.join().unwrap().unwrap();
        resized
    }

    #[test]
    fn a_run_is_shrunk_and_expanded_and_says_when_it_is_done() {
        let said = resized("refine", &["1", "2", "3"]);
        let [Ok(shrunk), Ok(expanded), Err(refused)] = &said[..] else { panic!("{said:?}") };
        assert_eq!([&shrunk[..], expanded], ["1 rank active\n", "2 ranks active\n"]);
        assert!(refused.ends_with("3 active ranks, expected a number from 1 to 2"), "{refused}");
    }

    #[test]
    fn a_run_in_which_nothing_moves_is_not_resized() {
        let said = resized("none", &["1"]);
        assert!(said[0].as_ref().is_err_and(|why| why.contains("no chunk of this run can move")), "{said:?}");
    }

    #[test]
    fn a_wrong_command_line_says_what_was_expected() {
        for (arguments, expected) in [
            (vec!["resize", "9977"], "<N>"),
            (vec!["resize", "9977", "x"], "expected a number of ranks, 1 or more"),
            (vec!["resize", "9977-9978", "1"], "expected one address"),
            (vec!["resize", "9977", "1", "--wait", "-1"], "expected seconds, 0 to 86400"),
        ] {
            refused(caribou(&arguments), expected);
        }
    }
}
