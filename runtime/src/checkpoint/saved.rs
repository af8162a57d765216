//! Reads checkpoints: lists those of a directory, and checks and reads the files of one.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use super::packed::unpack;
use crate::arrays::core::lifecycle::signature::ArraySignature;
use crate::ids::Rank;
use crate::text::{counted, duration};

/// The version of the file format.
const FORMAT: u32 = 4;
pub(super) const MANIFEST: &str = "manifest";
/// The last step from which a program in supersteps can restart. No run gets that far.
const STEP_MAX: u64 = 1 << 60;
/// Maximum length of a manifest, bytes.
const MANIFEST_MAX: u64 = 64 << 20;

/// The lengths and the checksum of a rank's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Written {
    pub(super) bytes: u64,
    crc: u32,
    /// Length of the content before compression, bytes; 0 if the file is not compressed.
    pub(super) content: u64,
}

impl Written {
    /// Tells whether these are the bytes of the file.
    fn is_of(&self, bytes: &[u8]) -> bool {
        bytes.len() as u64 == self.bytes && crc32fast::hash(bytes) == self.crc
    }
}

/// Computes the length and checksum of the bytes that it passes to `out`.
pub(super) struct Checksummed<W> {
    out: W,
    bytes: u64,
    crc: crc32fast::Hasher,
}

impl<W> Checksummed<W> {
    pub(super) fn new(out: W) -> Checksummed<W> {
        Checksummed { out, bytes: 0, crc: crc32fast::Hasher::new() }
    }

    /// The length and checksum, and the writer.
    pub(super) fn finish(self) -> (Written, W) {
        (Written { bytes: self.bytes, crc: self.crc.finalize(), content: 0 }, self.out)
    }
}

impl<W: Write> Write for Checksummed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = self.out.write(bytes)?;
        self.bytes += length as u64;
        self.crc.update(&bytes[..length]);
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The description of a checkpoint, with the lengths and checksums of its files.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Manifest {
    pub(crate) content: Content,
    /// The number of the run in its process, from 0.
    pub(crate) run: u32,
    /// Settings of the program that must be equal at a restart, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) program: Vec<(String, String)>,
    /// The files by rank.
    pub(crate) files: Vec<Written>,
    /// Time since the start of the run, plus the time of earlier runs from which the run was restarted, ns.
    pub(crate) elapsed_ns: u64,
}

/// The program of a checkpoint, as a restart compares it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Content {
    Arrays(Vec<ArraySignature>),
    Pool(PoolSignature),
    Supersteps(SuperstepsState),
}

impl Default for Content {
    fn default() -> Content {
        Content::Arrays(Vec::new())
    }
}

impl Content {
    /// What each file belongs to: a worker or a rank.
    pub(super) fn writer(&self) -> &'static str {
        if matches!(self, Content::Supersteps(_)) { "worker" } else { "rank" }
    }

    /// The content as text for people, one line per array.
    fn lines(&self) -> Vec<String> {
        match self {
            Content::Arrays(arrays) => {
                let line =
                    |(number, array): (u32, &ArraySignature)| format!("array {number}: {}", array.text());
                (0..).zip(arrays).map(line).collect()
            }
            Content::Pool(pool) => vec![pool.text()],
            Content::Supersteps(state) => vec![state.text()],
        }
    }
}

/// A pool, as a restart compares it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PoolSignature {
    pub(crate) iterations: u64,
    /// The name of the accumulated type.
    pub(crate) accumulated: String,
}

impl PoolSignature {
    /// The pool as text for people.
    pub(crate) fn text(&self) -> String {
        format!("a pool of {} iterations that accumulates `{}`", self.iterations, self.accumulated)
    }
}

/// The state of a program in supersteps between two steps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SuperstepsState {
    pub(crate) units: u64,
    /// The names of the types.
    pub(crate) program: String,
    pub(crate) unit: String,
    pub(crate) shared: String,
    /// True if steps change units. Only then are units saved.
    pub(crate) changes: bool,
    /// The next step.
    pub(crate) step: u64,
    /// Number of units in each file.
    pub(crate) shares: Vec<u64>,
}

impl SuperstepsState {
    /// Tells whether the other state is of the same program, in any step.
    pub(crate) fn is_of_same(&self, other: &SuperstepsState) -> bool {
        let program = |state: &SuperstepsState| {
            let SuperstepsState { units, program, unit, shared, changes, .. } = state.clone();
            (units, program, unit, shared, changes)
        };
        program(self) == program(other)
    }

    /// The range of units in each file.
    pub(crate) fn files(&self) -> Vec<Range<u64>> {
        let end = |end: &mut u64, units: &u64| {
            let begin = std::mem::replace(end, end.saturating_add(*units));
            Some(begin..*end)
        };
        self.shares.iter().scan(0, end).collect()
    }

    /// The state as text for people.
    pub(crate) fn text(&self) -> String {
        let SuperstepsState { units, program, unit, shared, .. } = self;
        let step =
            if self.shares.is_empty() { String::new() } else { format!(", before step {}", self.step) };
        format!("`{program}` in supersteps, of {units} units `{unit}` that share `{shared}`{step}")
    }
}

impl Manifest {
    /// This manifest with the files of all ranks, or the first reason why a file was not written.
    pub(super) fn with_files(
        self,
        mut written: Vec<(Rank, Result<Written, String>)>,
    ) -> Result<Manifest, String> {
        written.sort_by_key(|&(rank, _)| rank);
        let writer = self.content.writer();
        let file = |(number, written): (Rank, Result<Written, String>)| {
            written.map_err(|why| format!("{writer} {number}: {why}"))
        };
        let files = written.into_iter().map(file).collect::<Result<_, _>>()?;
        Ok(Manifest { files, ..self })
    }
}

/// A manifest as its file has it.
#[derive(Serialize, Deserialize)]
struct Versioned<M> {
    format: u32,
    caribou: String,
    #[serde(flatten)]
    manifest: M,
}

impl Manifest {
    /// The content of the manifest's file: a line of JSON, and the checksum of that line.
    pub(super) fn text(&self) -> serde_json::Result<Vec<u8>> {
        let caribou = env!("CARGO_PKG_VERSION").to_owned();
        let line = serde_json::to_vec(&Versioned { format: FORMAT, caribou, manifest: self })?;
        let checksum = checksum_line(&line);
        Ok([line, b"\n".to_vec(), checksum].concat())
    }
}

/// The second line of a manifest: the checksum of its first line.
fn checksum_line(line: &[u8]) -> Vec<u8> {
    format!("{}\n", crc32fast::hash(line)).into_bytes()
}

/// A complete checkpoint. Damage to its files is found when they are read.
///
/// ```
/// use caribou::checkpoint::Saved;
/// let why = Saved::open("nowhere/000001").unwrap_err();
/// assert!(why.contains("nowhere/000001/manifest"));
/// ```
#[derive(Debug)]
pub struct Saved {
    path: PathBuf,
    pub(crate) manifest: Manifest,
}

impl Saved {
    /// The checkpoint in this directory, such as `checkpoints/000007`.
    ///
    /// # Errors
    /// If the checkpoint has no manifest that this version can read. The text names the file.
    pub fn open(path: impl Into<PathBuf>) -> Result<Saved, String> {
        let path = path.into();
        let damaged = |why: &dyn std::fmt::Display| format!("{}: {why}", path.join(MANIFEST).display());
        let text = read_up_to(&path.join(MANIFEST), MANIFEST_MAX).map_err(|why| damaged(&why))?;
        let mut lines = text.splitn(2, |&byte| byte == b'\n');
        let (line, checksum) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
        let versioned: Versioned<serde_json::Value> =
            serde_json::from_slice(line).map_err(|why| damaged(&why))?;
        if versioned.format != FORMAT {
            let (format, caribou) = (versioned.format, versioned.caribou);
            return Err(damaged(&format!(
                "it has format {format}, of Caribou {caribou}, expected format {FORMAT}"
            )));
        }
        if checksum != checksum_line(line) {
            return Err(damaged(&"it is damaged: its checksum differs"));
        }
        let manifest: Manifest = serde_json::from_value(versioned.manifest).map_err(|why| damaged(&why))?;
        if manifest.files.is_empty() {
            return Err(damaged(&"it has no files, expected one for each rank"));
        }
        if let Content::Supersteps(SuperstepsState { units, shares, step, .. }) = &manifest.content {
            if *step > STEP_MAX {
                return Err(damaged(&format!("step {step}, expected at most {STEP_MAX}")));
            }
            let all = shares.iter().try_fold(0_u64, |all, &share| all.checked_add(share));
            if shares.len() != manifest.files.len() || all != Some(*units) {
                return Err(damaged(&"its files do not contain each unit once"));
            }
        }
        Ok(Saved { path, manifest })
    }

    /// The error that the checkpoint is of another program than `this`.
    pub(crate) fn of_another(&self, this: &str) -> String {
        let its = self.content().join(", ");
        format!("{} is of another program: {its}; this is {this}", self.path.display())
    }

    /// Checks that the program of the checkpoint had these settings. The error names the first difference.
    pub(crate) fn check_program(&self, settings: &[(String, String)]) -> Result<(), String> {
        let path = self.path.display();
        let value = |settings: &[(String, String)], name: &str| {
            settings.iter().find(|(other, _)| other == name).map(|(_, value)| value.clone())
        };
        let saved = &self.manifest.program;
        for (name, _) in saved.iter().chain(settings) {
            match (value(saved, name), value(settings, name)) {
                (Some(saved), Some(now)) if saved != now => {
                    return Err(format!(
                        "{path}: the setting `{name}` was {saved} and is now {now}; restart with the options of the \
                         saved run"
                    ));
                }
                (Some(saved), None) => {
                    return Err(format!(
                        "{path}: the setting `{name}` was {saved}, and this program does not have it"
                    ));
                }
                (None, Some(now)) => {
                    return Err(format!(
                        "{path}: the setting `{name}` is {now}, and the checkpoint does not have it"
                    ));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The directory of the checkpoint.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Number of files: one per rank that wrote the checkpoint, or per worker of a program in supersteps.
    pub fn files(&self) -> usize {
        self.manifest.files.len()
    }

    /// The number of ranks or workers that wrote the checkpoint, as in *3 ranks*.
    pub fn writers(&self) -> String {
        let writer = self.manifest.content.writer();
        counted(self.files(), writer, &format!("{writer}s"))
    }

    /// Total length of the files of all ranks, bytes.
    pub fn bytes(&self) -> u64 {
        self.manifest.files.iter().map(|file| file.bytes).fold(0, u64::saturating_add)
    }

    /// Time since the start of the run that wrote the checkpoint, plus that of runs that it continued.
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.manifest.elapsed_ns)
    }

    /// Settings of the program that a restart compares, by name ([`Config::saved_with`](crate::Config::saved_with)).
    pub fn settings(&self) -> &[(String, String)] {
        &self.manifest.program
    }

    /// The content: one line per array, with its initial number of chunks and their types, or one line for a pool or a
    /// program in supersteps.
    pub fn content(&self) -> Vec<String> {
        self.manifest.content.lines()
    }

    /// The line that a restart prints about the checkpoint.
    pub(crate) fn announcement(&self) -> String {
        let (path, elapsed, writers) = (self.path.display(), duration(self.elapsed()), self.writers());
        let step = match &self.manifest.content {
            Content::Supersteps(SuperstepsState { step, .. }) => format!(" at step {step}"),
            _ => String::new(),
        };
        format!(
            "caribou: continues from {path}{step}, which was saved {elapsed} after the run began, by {writers}"
        )
    }

    /// Reads all files, one after the other.
    ///
    /// # Errors
    /// If a file is not as it was written. The text names the first such file.
    pub fn verify(&self) -> Result<(), String> {
        (0..self.files()).try_for_each(|rank| self.packed_file(rank).map(drop))
    }

    /// The content of a rank's file.
    pub(crate) fn file(&self, rank: usize) -> Result<Vec<u8>, String> {
        let packed = self.packed_file(rank)?;
        let length = self.manifest.files[rank].content;
        unpack(&packed, length).map_err(|why| format!("{}: {why}", self.path_of(rank).display()))
    }

    fn path_of(&self, rank: usize) -> PathBuf {
        self.path.join(format!("rank-{rank}"))
    }

    /// The bytes of a rank's file, after a check that they are as written.
    fn packed_file(&self, rank: usize) -> Result<Vec<u8>, String> {
        let (path, written) = (self.path_of(rank), self.manifest.files[rank]);
        let bytes = read_up_to(&path, written.bytes).map_err(|why| format!("{}: {why}", path.display()))?;
        if !written.is_of(&bytes) {
            return Err(format!("{}: it is damaged: its length or checksum differs", path.display()));
        }
        Ok(bytes)
    }
}

/// The complete checkpoints of a directory, newest first. Empty if the directory does not exist.
///
/// ```
/// assert!(caribou::checkpoint::list("nowhere").is_empty());
/// ```
pub fn list(dir: impl AsRef<Path>) -> Vec<PathBuf> {
    complete(dir.as_ref()).into_iter().map(|(_, path)| path).collect()
}

/// The checkpoint of a restart: the newest of a directory, or the directory itself if it is a checkpoint. All ranks
/// must restart from the same checkpoint, so no rank falls back to an older one.
pub(crate) fn chosen(dir: &Path) -> Result<PathBuf, String> {
    if [MANIFEST, "rank-0"].iter().any(|name| dir.join(name).exists()) {
        return Ok(dir.to_owned());
    }
    check_directory(dir)?;
    fs::read_dir(dir).map_err(|why| format!("{} cannot be read: {why}", dir.display()))?;
    let newest = list(dir).into_iter().next();
    newest.ok_or_else(|| format!("{} has no complete checkpoint", dir.display()))
}

/// Checks that a path is a directory.
pub(super) fn check_directory(path: &Path) -> Result<(), String> {
    let name = path.display();
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Ok(()),
        Ok(_) => Err(format!("{name} is a file, expected a directory")),
        Err(why) if why.kind() == io::ErrorKind::NotFound => {
            Err(format!("{name} does not exist, expected a directory with checkpoints, or one of them"))
        }
        Err(why) => Err(format!("{name} cannot be read: {why}")),
    }
}

/// The newest undamaged checkpoint of a directory, if there is one, and the faults of newer ones. Reads all files.
pub(crate) fn newest_whole(dir: &Path) -> (Option<PathBuf>, Vec<String>) {
    let mut damaged = Vec::new();
    for path in list(dir) {
        match Saved::open(&path).and_then(|saved| saved.verify()) {
            Ok(()) => return (Some(path), damaged),
            Err(why) => damaged.push(why),
        }
    }
    (None, damaged)
}

/// Adds to the fault of a checkpoint the name of an older one that is undamaged. Reads the older one.
pub(crate) fn offering_older(path: &Path, why: String) -> String {
    let (parent, newest) = (path.parent().unwrap_or(path), number_of(path).unwrap_or(0));
    let mut older = complete(parent).into_iter().filter(|&(number, _)| number < newest);
    match older.find(|(_, path)| Saved::open(path).is_ok_and(|saved| saved.verify().is_ok())) {
        Some((_, older)) => format!("{why}; {} is undamaged: CARIBOU_RESTART can name it", older.display()),
        None => why,
    }
}

fn path_of(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{number:06}"))
}

fn number_of(path: &Path) -> Option<u64> {
    path.file_name()?.to_str()?.parse().ok()
}

/// The checkpoints of a directory: their numbers, and whether they were completed. A user's directory with such a name
/// does not count, because it has no file of a checkpoint.
pub(super) fn entries(dir: &Path) -> Vec<(u64, bool)> {
    let mut all = numbered(dir);
    all.retain(|&(number, is_whole)| {
        let path = path_of(dir, number);
        let has = |name: &str| match fs::symlink_metadata(path.join(name)) {
            Err(why) => why.kind() != io::ErrorKind::NotFound,
            Ok(_) => true,
        };
        !is_whole || has(MANIFEST) || has("rank-0")
    });
    all
}

/// The entries whose names are those of checkpoints: the number, and whether the name lacks `.partial`.
pub(super) fn numbered(dir: &Path) -> Vec<(u64, bool)> {
    let number = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let (digits, is_whole) = match name.strip_suffix(".partial") {
            Some(digits) => (digits, false),
            None => (name.as_str(), true),
        };
        let number: u64 = digits.parse().ok()?;
        let is_ours = digits == format!("{number:06}") && number < u64::MAX;
        is_ours.then_some((number, is_whole))
    };
    fs::read_dir(dir).into_iter().flatten().flatten().filter_map(number).collect()
}

/// The numbers and paths of the completed checkpoints of a directory, newest first.
pub(super) fn complete(dir: &Path) -> Vec<(u64, PathBuf)> {
    let mut numbers: Vec<u64> =
        entries(dir).into_iter().filter_map(|(number, is_whole)| is_whole.then_some(number)).collect();
    numbers.sort_unstable_by(|a, b| b.cmp(a));
    numbers.into_iter().map(|number| (number, path_of(dir, number))).collect()
}

/// Reads a file of at most `most` bytes. The length is checked before memory is allocated. A pipe in place of the file
/// does not block the run.
fn read_up_to(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let length = metadata.len();
    if length > most {
        return Err(io::Error::other(format!("it has {length} bytes, expected {most}")));
    }
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(length as usize).map_err(io::Error::other)?;
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::super::settings::Settings;
    use super::super::store::Store;
    use super::super::store::next_number;
    use super::super::store::tests::{make, temporary};
    use super::*;
    use crate::ids::ROOT;

    #[test]
    fn the_newest_whole_checkpoint_is_read_and_old_ones_are_removed() {
        let dir = temporary("newest");
        let store = Store::new(&Settings::new(&dir).keep(2), ROOT).expect("it can be made");
        assert_eq!(store.first_number(), 1);
        for number in 1..=3 {
            make(&store, number, [b"first", &[number as u8]]);
        }
        // A checkpoint that was being written when the run died.
        store.write_rank(4, Rank(0), |out| out.write_all(b"half")).expect("it can be written");
        assert_eq!(next_number(&dir), 5);
        // Directories of the user are ignored.
        for name in ["7", "202411", "notes"] {
            fs::create_dir(dir.join(name)).expect("it can be made");
        }
        let saved = Saved::open(chosen(&dir).expect("there is one")).expect("it is whole");
        let length = |rank| fs::metadata(dir.join(format!("000003/rank-{rank}"))).expect("it is there").len();
        assert_eq!((saved.manifest.elapsed_ns, saved.files(), saved.bytes()), (3, 2, length(0) + length(1)));
        assert_eq!([saved.file(0), saved.file(1)], [Ok(b"first".to_vec()), Ok(vec![3])]);
        let mut numbers = entries(&dir);
        numbers.sort_unstable();
        assert_eq!(numbers, [(2, true), (3, true), (4, false)]);
        fs::remove_dir_all(dir).expect("it is there");
    }

    #[test]
    fn a_damaged_checkpoint_is_named_and_the_one_before_is_offered() {
        let dir = temporary("damaged");
        let store = Store::new(&Settings::new(&dir), ROOT).expect("it can be made");
        make(&store, 1, [b"one", b"two"]);
        make(&store, 2, [b"one", b"two"]);
        fs::write(dir.join("000002/rank-1"), b"twO").expect("it is there");
        let newest = Saved::open(chosen(&dir).expect("there is one")).expect("its manifest is whole");
        let why = offering_older(newest.path(), newest.verify().expect_err("it is damaged"));
        let parts = ["000002/rank-1", "checksum", "000001 is undamaged"];
        assert!(parts.iter().all(|part| why.contains(part)), "{why}");
        let (whole, damaged) = newest_whole(&dir);
        assert_eq!(whole, Some(dir.join("000001")));
        assert!(matches!(&damaged[..], [one] if one.contains("000002/rank-1")), "{damaged:?}");
        fs::write(dir.join("000001/manifest"), b"{}").expect("it is there");
        let older = chosen(&dir.join("000001")).expect("it is one itself");
        let why = offering_older(&older, Saved::open(&older).expect_err("it is damaged"));
        assert!(why.contains("000001/manifest") && !why.contains("is undamaged"), "{why}");
        assert_eq!((newest_whole(&dir).0, newest_whole(&dir).1.len()), (None, 2));
        fs::remove_dir_all(dir).expect("it is there");
    }

    #[test]
    fn a_manifest_that_was_cut_is_damaged() {
        let dir = temporary("manifest");
        let store = Store::new(&Settings::new(&dir), ROOT).expect("it can be made");
        make(&store, 1, [b"one", b"two"]);
        let path = dir.join("000001/manifest");
        let text = fs::read_to_string(&path).expect("it is there");
        let (first, second) = text.split_once("},{").expect("it has two files");
        let (_, end) = second.split_once('}').expect("it has an end");
        fs::write(&path, format!("{first}}}{end}")).expect("it is there");
        let why = Saved::open(dir.join("000001")).expect_err("a file is missing");
        assert!(why.contains("000001/manifest") && why.contains("checksum"), "{why}");
        fs::write(&path, text.replace(&format!("\"format\":{FORMAT}"), "\"format\":2")).expect("it is there");
        let why = Saved::open(dir.join("000001")).expect_err("it is of another version");
        assert!(why.contains("format 2"), "{why}");
        fs::remove_dir_all(dir).expect("it is there");
    }

    #[test]
    fn a_place_without_checkpoints_is_described() {
        let dir = temporary("places");
        let why = chosen(&dir).expect_err("it was not made");
        assert!(
            why.ends_with("does not exist, expected a directory with checkpoints, or one of them"),
            "{why}"
        );
        let store = Store::new(&Settings::new(&dir), ROOT).expect("it can be made");
        let why = chosen(&dir).expect_err("it is empty");
        assert!(why.ends_with("has no complete checkpoint"), "{why}");
        let why = chosen(&dir.join("lock")).expect_err("it is a file");
        assert!(why.ends_with("is a file, expected a directory"), "{why}");
        drop(store);
        fs::remove_dir_all(dir).expect("it is there");
    }

    #[test]
    fn a_checkpoint_without_a_manifest_is_damaged_and_its_number_is_not_used_again() {
        let dir = temporary("passed");
        let store = Store::new(&Settings::new(&dir), ROOT).expect("it can be made");
        (1..=3).for_each(|number| make(&store, number, [b"one", b"two"]));
        fs::remove_file(path_of(&dir, 3).join(MANIFEST)).expect("it is there");
        assert_eq!(chosen(&dir), Ok(dir.join("000003")));
        let (whole, damaged) = newest_whole(&dir);
        assert_eq!(whole, Some(dir.join("000002")));
        assert!(matches!(&damaged[..], [one] if one.contains("000003/manifest")), "{damaged:?}");
        // A directory of the user.
        fs::create_dir(dir.join("202411")).expect("it can be made");
        assert_eq!(newest_whole(&dir).1.len(), 1);
        assert_eq!(next_number(&dir), 202_412);
        make(&store, next_number(&dir), [b"one", b"two"]);
        fs::remove_dir_all(dir).expect("it is there");
    }

    #[test]
    fn a_pipe_in_the_place_of_a_file_is_named() {
        let dir = temporary("pipe");
        let store = Store::new(&Settings::new(&dir), ROOT).expect("it can be made");
        make(&store, 1, [b"one", b"two"]);
        let file = dir.join("000001/rank-0");
        fs::remove_file(&file).expect("it is there");
        rustix::fs::mknodat(rustix::fs::CWD, &file, rustix::fs::FileType::Fifo, 0o600.into(), 0)
            .expect("it can be made");
        let why =
            Saved::open(dir.join("000001")).expect("it has a manifest").verify().expect_err("it is a pipe");
        assert!(why.contains("rank-0: it is not a file"), "{why}");
        fs::remove_dir_all(dir).expect("it is there");
    }
}
