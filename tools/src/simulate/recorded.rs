//! Reads the files of `--cost recorded:STEM`, which hold recorded loads: `STEM.RANK.vom` or `STEM.RANK.json`, one file
//! per rank. `virtual_cluster::RecordedLoads` parses them. JSON files of vt are usually compressed by brotli.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::Path;

use presentation::format::decimal;
use virtual_cluster::{LoadFormat, RecordedLoads};

use super::cluster::RANKS_MOST;
use crate::{Error, input};

/// Longest file after decompression, in bytes.
const BYTES_MAX: u64 = 1 << 28;

/// Reads the loads in the files of `stem`. Prints a summary on standard error. `scale` multiplies all loads.
pub(super) fn read(stem: &str, scale: f64) -> Result<RecordedLoads, Error> {
    let wrong = |what: String| Error::Usage(format!("--cost recorded:{stem}: {what}"));
    let (format, ranks) = find(stem).map_err(wrong)?;
    let name = |rank| file(stem, rank, format);
    let read = |rank| content(&name(rank), format).map_err(|what| wrong(format!("{}: {what}", name(rank))));
    let files: Vec<(String, Vec<u8>)> =
        (0..ranks).map(|rank| Ok((name(rank), read(rank)?))).collect::<Result<_, Error>>()?;
    let files: Vec<(&str, &[u8])> = files.iter().map(|(name, bytes)| (name.as_str(), &bytes[..])).collect();
    let loads = RecordedLoads::parse(format, &files).map_err(|error| Error::Usage(error.to_string()))?;
    input::note(&format!(
        "{stem}: {ranks} ranks, {} chunks, {} phases of {} ms in the mean",
        loads.homes().len(),
        loads.phases(),
        decimal(1e3 * scale * loads.mean_phase_s(), 1)
    ));
    Ok(loads)
}

fn file(stem: &str, rank: u32, format: LoadFormat) -> String {
    format!("{stem}.{rank}.{}", format.extension())
}

/// The format of the files of `stem`, and their number of ranks.
fn find(stem: &str) -> Result<(LoadFormat, u32), String> {
    let (folder, prefix) = stem.rsplit_once('/').map_or((".", stem), |(folder, prefix)| match folder {
        "" => ("/", prefix),
        folder => (folder, prefix),
    });
    let entries = fs::read_dir(folder).map_err(|error| format!("{folder} cannot be read: {error}"))?;
    let mut found: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
    for entry in entries {
        let entry = entry.map_err(|error| format!("{folder} cannot be read: {error}"))?;
        let name = entry.file_name();
        let Some((rank, format)) = name.to_str().and_then(|name| rank_of(name, prefix)) else { continue };
        found.entry(format.extension()).or_default().insert(rank);
    }
    let formats = LoadFormat::ALL.map(|format| found.get(format.extension()).map(|ranks| (format, ranks)));
    let (format, ranks) = match formats {
        [Some(one), None] | [None, Some(one)] => one,
        [Some(_), Some(_)] => {
            return Err(format!("{stem}.RANK.vom and {stem}.RANK.json are both there, expected one kind"));
        }
        [None, None] => return Err(format!("no file {stem}.0.vom or {stem}.0.json")),
    };
    let count = ranks.len() as u32;
    if let Some(missing) = (0..count).find(|rank| !ranks.contains(rank)) {
        let last = ranks.last().copied().unwrap_or(0);
        let name = file(stem, missing, format);
        return Err(format!("{name} is missing, expected a file for each rank from 0 to {last}"));
    }
    if count > RANKS_MOST {
        return Err(format!("files of {count} ranks, expected {RANKS_MOST} at most"));
    }
    Ok((format, count))
}

/// The rank and the format in a name `PREFIX.RANK.FORMAT`.
fn rank_of(name: &str, prefix: &str) -> Option<(u32, LoadFormat)> {
    let (number, extension) = name.strip_prefix(prefix)?.strip_prefix('.')?.split_once('.')?;
    let format = LoadFormat::ALL.into_iter().find(|format| format.extension() == extension)?;
    let rank = number.parse().ok().filter(|rank: &u32| rank.to_string() == number)?;
    Some((rank, format))
}

/// The text of a file, decompressed if necessary.
fn content(file: &str, format: LoadFormat) -> Result<Vec<u8>, String> {
    let bytes = input::read(Path::new(file)).map_err(|error| format!("cannot be read: {error}"))?;
    let text = input::without_mark(&bytes);
    let is_text = text.trim_ascii_start().first().is_none_or(|&first| first == b'{');
    if format == LoadFormat::Vom || is_text {
        return Ok(text.to_vec());
    }
    decompressed(&bytes, BYTES_MAX)
}

fn decompressed(compressed: &[u8], bytes_max: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let decompressor = brotli_decompressor::Decompressor::new(compressed, 4096);
    let read = decompressor.take(bytes_max + 1).read_to_end(&mut bytes);
    read.map_err(|_| "neither JSON nor compressed by brotli".to_owned())?;
    if bytes.len() as u64 > bytes_max {
        return Err(format!("more than {bytes_max} bytes after decompression"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_a_stem_a_rank_and_a_format() {
        assert_eq!(rank_of("data.12.vom", "data"), Some((12, LoadFormat::Vom)));
        assert_eq!(rank_of("data.0.json", "data"), Some((0, LoadFormat::Json)));
        for other in ["data.01.vom", "data.+1.vom", "data.1.vom.gz", "data.vom", "data.x.vom", "date.1.vom"] {
            assert_eq!(rank_of(other, "data"), None, "{other}");
        }
    }

    #[test]
    fn what_does_not_decompress_or_grows_too_long_is_refused() {
        // A brotli stream of one stored block that holds "{}".
        let stream = [0x8b, 0x00, 0x80, b'{', b'}', 0x03];
        assert_eq!(decompressed(&stream, 100).as_deref(), Ok(&b"{}"[..]));
        assert_eq!(decompressed(&stream, 1).unwrap_err(), "more than 1 bytes after decompression");
        assert_eq!(decompressed(&[0xff; 9], 100).unwrap_err(), "neither JSON nor compressed by brotli");
        assert!(decompressed(&stream[..3], 100).is_err(), "cut short");
    }
}
