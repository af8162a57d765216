//! A checkpoint with any bytes in its files, and right checksums, restarts, or is refused in one line. Nothing panics.
//!
//! The bytes are edits of a checkpoint that a run has made, four for each: the place in all files, what is done there, and a
//! byte.
#![no_main]

mod line;

use std::fs;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use caribou::checkpoint::{Settings, list};
use caribou::config::Period;
use caribou::{Chunk, Config, Ctx, Error, Reducer, Target, Values};
use libfuzzer_sys::fuzz_target;
use line::assert_line;
use lz4_flex::frame::{FrameDecoder, FrameEncoder};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const CELLS: u32 = 6;
const STEPS: u64 = 40;
/// The step in which a checkpoint is asked for, and the one in which that run ends.
const SAVED: u64 = 5;
const DIES: u64 = 30;
const FILES: [&str; 3] = ["rank-0", "rank-1", "manifest"];

/// Exchanges messages round a ring, some of them late, and adds up what it has heard.
#[derive(Serialize, Deserialize)]
struct Cell {
    step: u64,
    heard: Vec<u64>,
    sums: u64,
    dies: bool,
}

#[derive(Serialize, Deserialize)]
enum Message {
    Halo { step: u64, text: String },
    Late(u64),
    Sum(u64),
}

impl Cell {
    fn send(&self, ctx: &mut Ctx<'_, Self>) {
        let halo = Message::Halo { step: self.step, text: format!("from {}", ctx.index()) };
        ctx.send((ctx.index() + 1) % CELLS, halo);
    }
}

impl Chunk for Cell {
    type Index = u32;
    type Message = Message;

    fn reduced(_: u32, values: Values) -> Message {
        Message::Sum(if let Values::U64(sums) = values { sums.iter().sum() } else { 0 })
    }

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.send(ctx);
    }

    fn ready(&self, message: &Message) -> bool {
        !matches!(message, Message::Halo { step, .. } if *step != self.step)
    }

    fn receive(&mut self, message: Message, ctx: &mut Ctx<'_, Self>) {
        match message {
            Message::Halo { step, text } => {
                self.heard.push(step ^ text.len() as u64);
                self.step = self.step.wrapping_add(1);
                ctx.send_after(Duration::from_micros(3), Message::Late(step));
                match self.step {
                    SAVED => ctx.checkpoint(),
                    DIES if self.dies => return ctx.fail("it dies"),
                    STEPS => return ctx.contribute(0, Reducer::Sum, vec![self.sums], Target::Exit),
                    step if step % 3 == 0 => ctx.contribute(1, Reducer::Sum, vec![step], Target::All),
                    _ => {}
                }
                self.send(ctx);
            }
            Message::Late(step) => self.heard.push(step),
            Message::Sum(sum) => self.sums = self.sums.wrapping_add(sum),
        }
    }
}

fn run(config: Config, dies: bool) -> Result<(), Error> {
    let config = config.ranks(2).balance(Period::Every(Duration::from_micros(50)));
    caribou::run(config, move |setup| {
        setup.array(CELLS, move |_| Cell { step: 0, heard: Vec::new(), sums: 0, dies });
    })
    .map(drop)
}

/// The checkpoint, and its files as they were before they were compressed.
static SAVED_RUN: LazyLock<(PathBuf, [Vec<u8>; 3])> = LazyLock::new(|| {
    let dir = std::env::temp_dir().join(format!("caribou-fuzz-{}", std::process::id()));
    let _ = fs::remove_dir_all(&dir);
    let settings = Settings::new(&dir).every(Duration::from_secs(3600)).keep(1);
    run(Config::default().simulate(1).checkpoint(settings), true).expect_err("it dies");
    let checkpoint = list(&dir).pop().expect("it was asked for");
    let mut files = FILES.map(|name| fs::read(checkpoint.join(name)).expect("it is there"));
    files[..2].iter_mut().for_each(|file| *file = unpacked(file));
    (checkpoint, files)
});

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut frame = FrameEncoder::new(Vec::new());
    frame.write_all(bytes).expect("a vector takes all");
    frame.finish().expect("a vector takes all")
}

fn unpacked(file: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    FrameDecoder::new(file).read_to_end(&mut bytes).expect("it is as it was written");
    bytes
}

/// Does what four bytes say somewhere in the files.
fn edit(files: &mut [Vec<u8>; 3], [place, rest, what, byte]: [u8; 4]) {
    let file = &mut files[usize::from(what >> 6) % FILES.len()];
    if file.is_empty() {
        return;
    }
    let at = usize::from(u16::from_le_bytes([place, rest])) % file.len();
    match what % 5 {
        0 => file[at] = byte,
        1 => file[at] ^= byte,
        2 => file.insert(at, byte),
        3 => drop(file.remove(at)),
        _ => file.truncate(at),
    }
}

/// The manifest of these files, with right lengths and checksums as far as it is one.
fn acknowledged([first, second, manifest]: &[Vec<u8>; 3], lengths: [usize; 2]) -> Vec<u8> {
    let line = manifest.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let mut line = line.to_vec();
    if let Ok(mut parsed) = serde_json::from_slice::<Value>(&line) {
        if parsed["files"].as_array().is_some_and(|files| files.len() == 2) {
            let file = |bytes: &Vec<u8>, content: usize| {
                json!({ "bytes": bytes.len(), "crc": crc32fast::hash(bytes), "content": content })
            };
            parsed["files"] = json!([file(first, lengths[0]), file(second, lengths[1])]);
            line = parsed.to_string().into_bytes();
        }
    }
    let checksum = crc32fast::hash(&line);
    line.extend(format!("\n{checksum}\n").into_bytes());
    line
}

fuzz_target!(|bytes: &[u8]| {
    let (checkpoint, intact) = &*SAVED_RUN;
    let mut files = intact.clone();
    bytes.as_chunks().0.iter().for_each(|&four| edit(&mut files, four));
    let lengths = [files[0].len(), files[1].len()];
    files[..2].iter_mut().for_each(|file| *file = packed(file));
    // An odd byte at the end damages the frames themselves.
    if let [.., last] = *bytes && bytes.len() % 4 == 1 {
        let at = usize::from(last) * files[0].len() / 256;
        files[0][at] ^= last | 1;
    }
    files[2] = acknowledged(&files, lengths);
    for (name, bytes) in FILES.iter().zip(&files) {
        fs::write(checkpoint.join(name), bytes).expect("there is room");
    }
    match run(Config::default().simulate(2).restart(checkpoint), false) {
        Err(Error::Config { why, .. }) => assert_line(&why),
        Err(error @ (Error::Panicked { .. } | Error::SetupPanicked { .. } | Error::System { .. })) => {
            panic!("{error}")
        }
        // It is what its author wrote: another program.
        Ok(()) | Err(_) => {}
    }
});
