//! Tests the command `caribou` from arguments to output and error lines.

use std::fs;
use std::path::{Path, PathBuf};

use lb_strategies::synthetic::Workload;
use lb_strategies::{ARRAYS, POOLS, SUPERSTEPS};
use serde_json::Value;

use super::*;

/// A path for one test, at first without a file. Dropping it removes what is there: a file, or a directory.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("caribou-test-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Scratch(path)
    }

    /// A file with this content.
    pub(crate) fn file(name: &str, content: impl AsRef<[u8]>) -> Scratch {
        let scratch = Scratch::new(name);
        fs::write(&scratch.0, content).unwrap();
        scratch
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn text(&self) -> &str {
        self.0.to_str().unwrap()
    }

    /// The path of a file in the directory.
    pub(crate) fn join(&self, name: &str) -> String {
        format!("{}/{name}", self.text())
    }

    /// The content of the file.
    pub(crate) fn read(&self) -> String {
        fs::read_to_string(&self.0).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0).or_else(|_| fs::remove_file(&self.0));
    }
}

pub(crate) fn caribou(arguments: &[&str]) -> Result<String, String> {
    match caribou_says(arguments) {
        (out, None) => Ok(out),
        (_, Some(error)) => Err(error.to_string()),
    }
}

/// Output of the command with `--json`.
pub(crate) fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&caribou(&[arguments, &["--json"]].concat()).unwrap()).unwrap()
}

/// Checks that a command was refused with one line that has these words.
#[track_caller]
pub(crate) fn refused(said: Result<String, String>, words: &str) {
    let line = said.expect_err(words);
    assert!(line.contains(words), "{line:?} instead of {words:?}");
    assert_eq!(line.lines().count(), 1, "{line:?}");
}

/// Output of the command, and its error.
pub(crate) fn caribou_says(arguments: &[&str]) -> (String, Option<Error>) {
    let mut out = Vec::new();
    let arguments = ["caribou"].iter().chain(arguments).map(OsString::from);
    let error = run(arguments, &mut out).err();
    (String::from_utf8(out).unwrap(), error)
}

/// Exit code of the command when its output is a closed pipe.
pub(crate) fn exit_code_unread(arguments: &[&str]) -> u8 {
    struct Closed;
    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let arguments = ["caribou"].iter().chain(arguments).map(OsString::from);
    ended(run(arguments, &mut Closed))
}

/// Runs `balance` on a file with this content that no other test uses. Returns the output or the error line.
fn balance_file(name: &str, content: &[u8]) -> Result<String, String> {
    let file = Scratch::file(&format!("{name}.json"), content);
    caribou(&["balance", "--snapshot", file.text()]).map_err(|line| line.replace(file.text(), "FILE"))
}

#[test]
fn strategies_lists_every_strategy_and_parameter() {
    let text = caribou(&["strategies"]).unwrap();
    // Long lines are wrapped.
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for entry in ARRAYS.iter() {
        assert!(text.contains(entry.name));
        assert!(entry.parameters.iter().all(|parameter| words.contains(parameter.meaning)));
    }
    for entry in POOLS.iter() {
        assert!(words.contains(entry.summary), "{}", entry.name);
    }
    for entry in SUPERSTEPS.iter() {
        assert!(words.contains(entry.summary), "{}", entry.name);
    }
    assert!(text.lines().all(|line| line.len() <= 100), "{text}");
    let longest = text.lines().find(|line| line.contains("first-interval=interval/1.5"));
    assert!(longest.is_some_and(|line| line.contains("/1.5  seconds to a worker's first report")), "{text}");
}

#[test]
fn balance_prints_a_row_a_strategy() {
    let text =
        caribou(&["balance", "--chunks", "2.56e2", "--ranks", "2", "--workload", "noisy-rank"]).unwrap();
    assert_eq!(text.lines().count(), 5 + ARRAYS.iter().count());
    for lists in [&["--lb", "refine,tolerance=0.1;none"][..], &["--lb", "refine,tolerance=0.1,none"]] {
        let text = caribou(&[&["balance"], lists].concat()).unwrap();
        assert!(text.lines().nth(2).unwrap().starts_with("refine,tolerance=0.1 "), "{text}");
        assert!(text.lines().nth(3).unwrap().starts_with("none "), "{text}");
    }
}

#[test]
fn a_snapshot_file_gives_what_the_same_synthetic_snapshot_gives() {
    let json = serde_json::to_vec(&Workload::Lognormal.snapshot(10_000, 100, 1)).unwrap();
    let marked = balance_file("marked", &[&b"\xef\xbb\xbf"[..], &json].concat());
    assert!(marked.is_ok(), "a byte order mark before it: {marked:?}");
    let without_time = |text: String| -> Vec<String> {
        text.lines().map(|line| line.rsplit_once(' ').unwrap().0.trim_end().to_owned()).collect()
    };
    let from_file = without_time(balance_file("same", &json).unwrap());
    assert_eq!(from_file, without_time(caribou(&["balance", "--workload", "lognormal"]).unwrap()));
}

#[test]
fn json_output_can_be_read_back() {
    let report = json(&["balance", "--lb", "greedy"]);
    assert_eq!(report["rows"][0]["strategy"], "greedy");
    assert!(report["rows"][0]["max_over_avg_after"].as_f64().unwrap() < 1.01);
}

#[test]
fn bad_options_are_one_line_that_says_what_was_expected() {
    for (arguments, expected) in [
        (&["balance", "--workload", "steady"][..], "uniform, lognormal, ramp"),
        (&["balance", "--chunks", "many"], "invalid value 'many' for '--chunks <CHUNKS>'"),
        (&["balance", "--ranks", "0"], "expected a whole number from 1 to 4294967295, as in 1000 or 1e3"),
        (
            &["balance", "--lb", "refin"],
            "--lb \"refin\": unknown strategy \"refin\", did you mean \"refine\"?",
        ),
        (
            &["balance", "--lb", "refine,greedy,a=1"],
            "--lb \"greedy,a=1\": strategy greedy: unknown parameter \"a\"",
        ),
        (&["balance", "--lb", "refine,"], "--lb \"refine,\": the strategy after refine has no name"),
        (&["balance", "--snapshot", "/nowhere.json"], "/nowhere.json: cannot be read: "),
        (&["balance", "--snapshot", "x", "--seed", "1"], "cannot be used with"),
        (
            &["balance", "--chunks", "-1"],
            "invalid value '-1' for '--chunks <CHUNKS>': expected a whole number",
        ),
        (
            &["trace", "summary", "x", "--time", "1s..2s"],
            "unexpected argument '--time' found: it is an option of trace profile, trace timeline, ",
        ),
        (
            &["balance", "--chunks", "4294967295"],
            "--chunks 4294967295 --ranks 100: the snapshot needs 429.5 GB",
        ),
        (
            &["balance", "--ranks", "4294967295"],
            "--chunks 10000 --ranks 4294967295: the snapshot needs 859.0 GB",
        ),
        (&["strategie"], "similar subcommands exist: 'trace', 'strategies'"),
        (
            &[],
            "no command; expected one of strategies, advise, balance, calibrate, simulate, paper, trace, checkpoint, top, resize (--help explains)",
        ),
        (&["trace"], "no command; expected one of summary, "),
    ] {
        refused(caribou(arguments), expected);
    }
}

#[test]
fn a_damaged_file_is_named_with_the_place_of_the_damage() {
    let whole = serde_json::to_string(&Workload::Equal.snapshot(3, 2, 1)).unwrap();
    let cut = &whole.as_bytes()[..whole.len() / 2];
    let with_memory =
        |memory: &str| format!("{},\"memory\":{memory}}}", &whole[..whole.len() - 1]).into_bytes();
    for (name, content, expected) in [
        ("cut", cut.to_vec(), "FILE: not a snapshot: no valid JSON: EOF while parsing"),
        ("brotli", vec![0xff, 0, 1, 2], "not text, perhaps a file of LBAF or vt that brotli compressed"),
        (
            "lbaf",
            br#"{"type": "LBDatafile", "phases": [{"id": 0, "tasks": []}]}"#.to_vec(),
            "it looks like a file of LBAF or vt: `caribou trace export --to lbdata` writes such files",
        ),
        ("empty", Vec::new(), "at line 1 column 0"),
        (
            "binary",
            vec![0xff, 0, 1, 2],
            "FILE: not a snapshot: no valid JSON: expected value at line 1 column 1",
        ),
        (
            "shape",
            b"{\"phase\": 1,\n \"ranks\": 7}".to_vec(),
            "invalid type: integer `7`, expected a sequence at line 2",
        ),
        ("ticks", whole.replacen("\"ticks\":", "\"ticks\":-", 1).into_bytes(), "expected u64 at line 1"),
        (
            "rank",
            whole.replacen("\"rank\":1", "\"rank\":9", 1).into_bytes(),
            "FILE: chunks[2]: rank is 9, expected one of the 2",
        ),
        (
            "unknown",
            whole.replacen("\"ticks\":", "\"tick\":7,\"ticks\":", 1).into_bytes(),
            "FILE: not a snapshot: unknown field `tick`, expected one of `id`, `rank`, `ticks`",
        ),
        (
            "lines",
            whole.replacen("\"ticks\":", "\"a\\nb\":7,\"ticks\":", 1).into_bytes(),
            "FILE: not a snapshot: unknown field `a\\nb`, expected one of `id`",
        ),
        (
            "long",
            whole.replacen("\"ticks\":", &format!("\"{}\":7,\"ticks\":", "x".repeat(999)), 1).into_bytes(),
            "xxxx... at line 1 column 1",
        ),
        (
            "twice",
            whole.replacen("\"key\":1", "\"key\":0", 1).into_bytes(),
            "FILE: chunks[1]: array 0, key 0 are those of chunks[0], expected each chunk once",
        ),
        (
            "too-much",
            whole.replacen("\"ticks\":", "\"ticks\":1844674407370", 1).into_bytes(),
            "FILE: chunks[0]: the ticks of the chunks up to here exceed 4611686018427387904",
        ),
        ("nan", whole.replacen("\"speed\":1.0", "\"speed\":NaN", 1).into_bytes(), "expected value at line 1"),
        (
            "no-rank",
            b"{\"phase\": 1, \"ranks\": [], \"chunks\": []}".to_vec(),
            "FILE: ranks: none, expected one at least",
        ),
        (
            "more",
            format!("{whole}\n{whole}").into_bytes(),
            "FILE: not a snapshot: no valid JSON: trailing characters at line 2",
        ),
        (
            "speed",
            whole.replacen("\"speed\":1.0", "\"speed\":0.0", 1).into_bytes(),
            "FILE: ranks[0]: speed is 0, expected",
        ),
        (
            "share",
            whole.replacen("\"share\":1.0", "\"share\":1.5", 1).into_bytes(),
            "FILE: ranks[0]: share is 1.5, expected",
        ),
        (
            "link",
            whole.replacen("\"ns_per_byte\":0.0", "\"ns_per_byte\":-1", 1).into_bytes(),
            "FILE: links.within_host: ns_per_byte is -1, expected a number from 0",
        ),
        (
            "limits",
            with_memory(r#"{"limits": [1, 2, 3]}"#),
            "FILE: memory.limits: 3 values, expected 2 at most, the number of ranks",
        ),
        (
            "working",
            with_memory(r#"{"limits": [], "working": [1, 2, 3, 4]}"#),
            "FILE: memory.working: 4 values, expected 3 at most, the number of chunks",
        ),
        (
            "block",
            with_memory(r#"{"limits": [], "blocks": [{"bytes": 1, "chunks": [0, 3]}]}"#),
            "FILE: memory.blocks[0]: chunk 3 is not there, expected a position below 3",
        ),
        (
            "block-twice",
            with_memory(r#"{"limits": [], "blocks": [{"bytes": 1, "chunks": [0, 1, 0]}]}"#),
            "FILE: memory.blocks[0]: chunk 0 is there twice, expected each chunk once",
        ),
        (
            "memory",
            with_memory(r#"{"limits": [], "footprints": [4611686018427387904]}"#),
            "bytes in all, expected 4611686018427387904 at most",
        ),
    ] {
        refused(balance_file(name, &content), expected);
    }
}

#[test]
fn no_damage_to_a_file_makes_the_command_panic() {
    let whole = serde_json::to_vec(&Workload::NoisyRank.snapshot(6, 2, 1)).unwrap();
    for position in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[position] ^= 0x15;
        // Either result is valid: some changes only change a digit.
        let _ = balance_file("flip", &damaged);
    }
}
