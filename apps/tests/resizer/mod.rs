//! Shrinks and expands a running program over HTTP, as `caribou resize` does.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::sleep;
use std::time::Duration;

/// Number of requests, 5 ms apart, after which a program counts as not answering.
const QUESTIONS_MAX: u32 = 12_000;

/// An unused port.
pub fn free_port() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.local_addr().expect("it is bound").port().to_string()
}

/// Makes the program on this port of `CARIBOU_MONITOR` use each of these numbers of ranks in turn, and waits for each.
/// False if the program has ended before.
pub fn resize_in_turn(port: &str, numbers: &[u32], has_ended: impl Fn() -> bool) -> bool {
    numbers.iter().all(|number| {
        let is_done = format!("\"ranks_active\":{number},");
        let asks = || ask(port, &format!("POST /resize/{number}")).is_some_and(|said| said.contains(" 202 "));
        let follows = || ask(port, "GET /status").is_some_and(|said| said.contains(&is_done));
        let (mut questions, mut asked) = (0, false);
        loop {
            asked = asked || asks();
            if asked && follows() {
                return true;
            }
            if has_ended() {
                return false;
            }
            questions += 1;
            assert!(questions < QUESTIONS_MAX, "{number} ranks do not become active");
            sleep(Duration::from_millis(5));
        }
    })
}

fn ask(port: &str, request: &str) -> Option<String> {
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).ok()?;
    let head =
        format!("{request} HTTP/1.1\r\nHost: localhost\r\nX-Caribou: resize\r\nContent-Length: 0\r\n\r\n");
    stream.write_all(head.as_bytes()).ok()?;
    let mut said = String::new();
    stream.read_to_string(&mut said).ok()?;
    Some(said)
}
