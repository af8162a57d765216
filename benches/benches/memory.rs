//! Measures if memory grows with what a program has made and does not use any more.
//!
//! Chunks are inserted under ever new indices and remove themselves after a sync, with and without a migration in
//! between. Sections are made, multicast to and reduced over once. Two ranks run in threads. The table shows the memory
//! of the process after each tenth of the program; the result is its growth per thing made from the second tenth on.
//!
//! Arguments: how many things to make (default 1000000), and which cases, such as `100000 rotate once`.

#![expect(clippy::print_stderr, reason = "a benchmark reports to the person who started it")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use caribou::{Array, Chunk, Config, Ctx, Placement, Reducer, Section, Target, Values};
use serde::{Deserialize, Serialize};

const PARENTS: u32 = 32;
/// Chunks that a parent inserts in each step.
const CHILDREN: u32 = 16;
const TENTHS: usize = 10;

/// The memory of this process, KiB.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().split(' ').next()?.parse().ok()).unwrap_or(0)
}

/// The memory after each tenth of a program.
#[derive(Default)]
struct Tenths([AtomicU64; TENTHS]);

impl Tenths {
    /// Records the memory if `made` things of `all` complete a tenth.
    fn reached(&self, made: u64, all: u64) {
        let tenth = (made * TENTHS as u64 / all.max(1)) as usize;
        if let Some(kib) = tenth.checked_sub(1).and_then(|tenth| self.0.get(tenth)) {
            let _ = kib.compare_exchange(0, resident_kib(), Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    fn kib(&self) -> Vec<u64> {
        self.0.iter().map(|kib| kib.load(Ordering::Relaxed)).collect()
    }
}

/// A parent inserts children in each step, which come to one sync and then send a farewell. All parents begin the next
/// step together, because a sync that only some chunks have come to would also be kept.
#[derive(Serialize, Deserialize)]
enum Relative {
    Parent { step: u32, steps: u32, awaits: u32 },
    Child,
}

#[derive(Serialize, Deserialize)]
enum News {
    Farewell,
    NextStep,
}

impl Relative {
    fn bear(&mut self, ctx: &mut Ctx<'_, Self>) {
        let Relative::Parent { step, steps, awaits } = self else { return };
        if ctx.index() == 0 {
            ctx.service::<Arc<Tenths>>().reached((*step).into(), (*steps).into());
        }
        if step == steps {
            return ctx.contribute(0, Reducer::Sum, vec![1u64], Target::Exit);
        }
        let first = PARENTS + (*step * PARENTS + ctx.index()) * CHILDREN;
        (first..first + CHILDREN).for_each(|child| ctx.insert(child, Relative::Child));
        (*step, *awaits) = (*step + 1, CHILDREN + 1);
        ctx.at_sync();
    }

    /// Counts a child that has gone, or the end of the sync.
    fn is_through(&mut self, ctx: &mut Ctx<'_, Self>) {
        let Relative::Parent { awaits, .. } = self else { return };
        *awaits -= 1;
        if *awaits == 0 {
            ctx.contribute(0, Reducer::Sum, vec![1u64], Target::All);
        }
    }
}

impl Chunk for Relative {
    type Index = u32;
    type Message = News;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        match self {
            Relative::Parent { .. } => self.bear(ctx),
            Relative::Child => ctx.at_sync(),
        }
    }

    fn resume(&mut self, ctx: &mut Ctx<'_, Self>) {
        match self {
            Relative::Parent { .. } => self.is_through(ctx),
            Relative::Child => {
                ctx.send((ctx.index() - PARENTS) / CHILDREN % PARENTS, News::Farewell);
                ctx.remove();
            }
        }
    }

    fn reduced(_: u32, _: Values) -> News {
        News::NextStep
    }

    fn receive(&mut self, news: News, ctx: &mut Ctx<'_, Self>) {
        match news {
            News::Farewell => self.is_through(ctx),
            News::NextStep => self.bear(ctx),
        }
    }
}

fn chunks(lb: &str, count: u32) -> Vec<u64> {
    let steps = count / (PARENTS * CHILDREN);
    let tenths = Arc::new(Tenths::default());
    let config = Config::default().ranks(2).period(20).lb(lb).expect("it is in the table");
    caribou::run(config, |setup| {
        setup.service(tenths.clone());
        setup.array_with(PARENTS, Placement::Hash, move |_| Relative::Parent { step: 0, steps, awaits: 0 });
    })
    .expect("it ends");
    tenths.kib()
}

/// Chunk 0 multicasts to one short-lived section after the other.
#[derive(Serialize, Deserialize)]
struct Node {
    sections: u32,
    made: u32,
    once: bool,
}

#[derive(Serialize, Deserialize)]
enum Word {
    Ask(Section<Node>),
    Answer,
}

/// Number of chunks besides the first.
const NODES: u32 = 4096;

impl Node {
    fn ask(&mut self, ctx: &mut Ctx<'_, Self>) {
        ctx.service::<Arc<Tenths>>().reached(self.made.into(), self.sections.into());
        if self.made == self.sections {
            return ctx.exit();
        }
        // Takes other chunks each time, as long as there are others.
        let made = self.made;
        let member = |nth: u32| {
            1 + (made.wrapping_mul(1 + 2 * nth) ^ (made >> (4 * nth))) % (NODES / 3) + nth * (NODES / 3)
        };
        let section = Section::new((0..3).map(member));
        let section = if self.once { section.once(made.into()) } else { section };
        ctx.multicast(&section, &Word::Ask(section.clone()));
        self.made += 1;
    }
}

impl Chunk for Node {
    type Index = u32;
    type Message = Word;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        if ctx.index() == 0 {
            self.ask(ctx);
        }
    }

    fn reduced(_: u32, _: Values) -> Word {
        Word::Answer
    }

    fn receive(&mut self, word: Word, ctx: &mut Ctx<'_, Self>) {
        match word {
            Word::Ask(section) => ctx.contribute_in(&section, 0, Reducer::Sum, vec![1u64], Target::Chunk(0)),
            Word::Answer => self.ask(ctx),
        }
    }
}

fn sections(once: bool, sections: u32) -> Vec<u64> {
    let tenths = Arc::new(Tenths::default());
    caribou::run(Config::default().ranks(2), |setup| {
        setup.service(tenths.clone());
        let _: Array<Node> =
            setup.array_with(NODES + 1, Placement::RoundRobin, move |_| Node { sections, made: 0, once });
    })
    .expect("it ends");
    tenths.kib()
}

fn main() {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let asked = |case: &str| {
        let mut cases = arguments.iter().filter(|argument| argument.parse::<u32>().is_err()).peekable();
        cases.peek().is_none() || cases.any(|asked| asked == case)
    };
    let count = arguments.iter().find_map(|argument| argument.parse().ok()).unwrap_or(1_000_000);
    eprintln!("memory of two ranks after each tenth of {count} chunks or sections, MiB");
    let cases: [(&str, &dyn Fn() -> Vec<u64>); 4] = [
        ("none", &|| chunks("none", count)),
        ("rotate", &|| chunks("rotate", count)),
        ("once", &|| sections(true, count)),
        ("counted", &|| sections(false, count)),
    ];
    for (case, run) in cases.into_iter().filter(|(case, _)| asked(case)) {
        let kib = run();
        let line: Vec<String> = kib.iter().map(|&kib| format!("{:6.1}", kib as f64 / 1024.0)).collect();
        let made = f64::from(count) * (TENTHS - 2) as f64 / TENTHS as f64;
        let bytes = (kib[TENTHS - 1] as f64 - kib[1] as f64) * 1024.0 / made;
        eprintln!("  {case:<8}{}   {bytes:.1} bytes for each", line.join(" "));
    }
}
