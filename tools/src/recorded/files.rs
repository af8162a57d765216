//! Finds the files of a recorded run, `STEM.RANK.json` or `STEM.RANK.vom`, and decompresses them.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use serde::de::IgnoredAny;
use virtual_cluster::LoadFormat;

use crate::input;

/// Longest file after decompression, in bytes.
const BYTES_MAX: u64 = 1 << 28;

/// Longest text of all files together, in bytes.
const ALL_BYTES_MAX: u64 = 1 << 31;

/// Largest number of ranks, that of a simulated array.
const RANKS_MAX: u32 = 1_000_000;

/// The names and texts of the files, in the order of ranks.
pub(super) type Files = Vec<(String, Vec<u8>)>;

/// Reads the files of `stem`.
pub(super) fn read(stem: &str) -> Result<(LoadFormat, Files), String> {
    let (format, names) = find(stem)?;
    let mut left = ALL_BYTES_MAX;
    let mut files = Files::new();
    for name in names {
        let text = content(&name, format).map_err(|what| format!("{name}: {what}"))?;
        left = left.checked_sub(text.len() as u64).ok_or_else(|| too_long(&name))?;
        files.push((name, text));
    }
    Ok((format, files))
}

fn too_long(last: &str) -> String {
    format!("{last}: this file and those before it have more than {ALL_BYTES_MAX} bytes")
}

/// What is meant if `stem` is a folder or a file of LB data and not the beginning of names.
pub(super) fn hint(stem: &str) -> Option<String> {
    let path = Path::new(stem);
    let name = path.file_name()?.to_str()?;
    if !path.is_dir() {
        let stem = prefix_of(name)?;
        return Some(format!("a file of one rank, expected `{}`", path.with_file_name(stem).display()));
    }
    let names = fs::read_dir(path).ok()?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let stem = names.filter_map(|name| prefix_of(&name).map(str::to_owned)).min()?;
    Some(format!("a folder with files of LB data, expected `{}`", path.join(stem).display()))
}

/// The format of the files of `stem`, and their names in the order of ranks.
fn find(stem: &str) -> Result<(LoadFormat, Vec<String>), String> {
    let (folder, prefix) = stem.rsplit_once('/').map_or((".", stem), |(folder, prefix)| match folder {
        "" => ("/", prefix),
        folder => (folder, prefix),
    });
    let unreadable = |error| format!("{folder} cannot be read: {error}");
    let mut found: [BTreeMap<u32, String>; 2] = LoadFormat::ALL.map(|_| BTreeMap::new());
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name();
        let Some(name) = name.to_str() else { continue };
        let Some((rank, format)) = rank_of(name, prefix) else { continue };
        let of_format = &mut found[usize::from(format == LoadFormat::ALL[1])];
        if let Some(other) = of_format.insert(rank, format!("{stem}{}", &name[prefix.len()..])) {
            return Err(format!(
                "{other} and {name} are both of rank {rank}, expected one file for each rank"
            ));
        }
    }
    let [vom, json] = found;
    let (format, names) = match (vom.is_empty(), json.is_empty()) {
        (false, true) => (LoadFormat::Vom, vom),
        (true, false) => (LoadFormat::Json, json),
        (false, false) => {
            return Err(format!("{stem}.RANK.vom and {stem}.RANK.json are both there, expected one kind"));
        }
        (true, true) => return Err(format!("no file {stem}.0.vom or {stem}.0.json")),
    };
    let count = names.len() as u32;
    if let Some(missing) = (0..count).find(|rank| !names.contains_key(rank)) {
        let last = names.keys().last().copied().unwrap_or(0);
        let name = format!("{stem}.{missing}.{}", format.extension());
        return Err(format!("{name} is missing, expected a file for each rank from 0 to {last}"));
    }
    if count > RANKS_MAX {
        return Err(format!("files of {count} ranks, expected {RANKS_MAX} at most"));
    }
    Ok((format, names.into_values().collect()))
}

/// The rank and the format in a name `PREFIX.RANK.FORMAT` or `PREFIX.RANK.json.br`.
fn rank_of(name: &str, prefix: &str) -> Option<(u32, LoadFormat)> {
    let (number, extension) = name.strip_prefix(prefix)?.strip_prefix('.')?.split_once('.')?;
    let extension = if extension == "json.br" { "json" } else { extension };
    let format = LoadFormat::ALL.into_iter().find(|format| format.extension() == extension)?;
    let rank = number.parse().ok().filter(|rank: &u32| rank.to_string() == number)?;
    Some((rank, format))
}

/// The prefix of a name `PREFIX.RANK.FORMAT` or `PREFIX.RANK.json.br`.
fn prefix_of(name: &str) -> Option<&str> {
    let (beginning, _) = name.strip_suffix(".br").unwrap_or(name).rsplit_once('.')?;
    let (prefix, _) = beginning.rsplit_once('.')?;
    rank_of(name, prefix).map(|_| prefix)
}

/// The text of a file, decompressed if necessary.
fn content(file: &str, format: LoadFormat) -> Result<Vec<u8>, String> {
    // Nobody names these files one by one, so a pipe among them would wait for nobody.
    if fs::metadata(file).is_ok_and(|about| about.file_type().is_fifo()) {
        return Err("a pipe, expected a file".to_owned());
    }
    let bytes = input::read(Path::new(file)).map_err(|error| format!("cannot be read: {error}"))?;
    match format {
        LoadFormat::Vom => Ok(input::without_mark(&bytes).to_vec()),
        LoadFormat::Json => json(&bytes, BYTES_MAX),
    }
}

/// The JSON text, which may be compressed by brotli. No first byte tells which: a compressed file may begin like text.
fn json(bytes: &[u8], bytes_max: u64) -> Result<Vec<u8>, String> {
    let text = input::without_mark(bytes);
    let Err(no_json) = serde_json::from_slice::<IgnoredAny>(text) else { return Ok(text.to_vec()) };
    decompressed(bytes, bytes_max).or_else(|no_brotli| match text.trim_ascii_start().first() {
        // The parser names the place of the fault.
        None | Some(b'{') => Ok(text.to_vec()),
        _ => Err(format!("neither JSON ({no_json}) nor compressed by brotli ({no_brotli})")),
    })
}

fn decompressed(compressed: &[u8], bytes_max: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let decompressor = brotli_decompressor::Decompressor::new(compressed, 4096);
    let read = decompressor.take(bytes_max + 1).read_to_end(&mut bytes);
    read.map_err(|error| error.to_string())?;
    if bytes.len() as u64 > bytes_max {
        return Err(format!("more than {bytes_max} bytes after decompression"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::Scratch;

    #[test]
    fn names_of_files_are_a_stem_a_rank_and_a_format() {
        assert_eq!(rank_of("data.12.vom", "data"), Some((12, LoadFormat::Vom)));
        assert_eq!(rank_of("data.0.json", "data"), Some((0, LoadFormat::Json)));
        assert_eq!(rank_of("data.3.json.br", "data"), Some((3, LoadFormat::Json)));
        for other in [
            "data.01.vom",
            "data.+1.vom",
            "data.1.vom.gz",
            "data.1.vom.br",
            "data.vom",
            "data.x.vom",
            "date.1.vom",
            "data_b.1.vom",
        ] {
            assert_eq!(rank_of(other, "data"), None, "{other}");
        }
    }

    #[test]
    fn a_folder_or_one_file_leads_to_the_stem() {
        let folder = Scratch::new("stem-hint");
        let text = |name: &str| folder.join(name);
        fs::create_dir(folder.path()).unwrap();
        assert_eq!(hint(folder.text()), None, "nothing in it");
        for name in ["run.0.json", "run.1.json.br", "old.0.vom"] {
            fs::write(folder.join(name), "{}").unwrap();
        }
        let of_folder = format!("a folder with files of LB data, expected `{}`", text("old"));
        assert_eq!(hint(folder.text()), Some(of_folder));
        let of_file = Some(format!("a file of one rank, expected `{}`", text("run")));
        assert_eq!(hint(&text("run.0.json")), of_file);
        assert_eq!(hint(&text("run.1.json.br")), of_file);
        assert_eq!((hint(&text("run")), hint(&text("x.trace"))), (None, None));
    }

    #[test]
    fn a_pipe_is_no_file() {
        let folder = Scratch::new("pipe");
        fs::create_dir(folder.path()).unwrap();
        let made = std::process::Command::new("mkfifo").arg(folder.join("d.0.json")).status().unwrap();
        assert!(made.success());
        let refused = read(&folder.join("d")).unwrap_err();
        assert!(refused.ends_with("d.0.json: a pipe, expected a file"), "{refused}");
    }

    /// A brotli stream of one stored block that holds "{}".
    const STREAM: [u8; 6] = [0x8b, 0x00, 0x80, b'{', b'}', 0x03];

    #[test]
    fn what_does_not_decompress_or_grows_too_long_is_refused() {
        assert_eq!(json(&STREAM, 100).as_deref(), Ok(&b"{}"[..]));
        assert_eq!(json(b"\xef\xbb\xbf {\"a\": 1}", 1).as_deref(), Ok(&b" {\"a\": 1}"[..]));
        for (bytes, both) in [(&STREAM[..], "more than 1 bytes"), (&[0xff; 9], ""), (&STREAM[..3], "")] {
            let error = json(bytes, 1).unwrap_err();
            assert!(error.starts_with("neither JSON (expected value at line 1 column 1) nor"), "{error}");
            assert!(error.contains(both), "{error}");
        }
        assert_eq!(json(b"{\"a\":", 100).as_deref(), Ok(&b"{\"a\":"[..]), "the parser says what is wrong");
    }
}
