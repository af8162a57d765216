//! `caribou trace chunks`.

use std::io::Write;

use super::open::Input;
use crate::Error;

/// What to show.
#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    input: Input,
}

pub(crate) fn run(options: &Options, _out: &mut dyn Write) -> Result<(), Error> {
    options.input.open()?;
    Err(Error::Usage("not there yet".into()))
}

/// Whether people may mean this chunk: `Block[3]`, `Block[3, 4]` or all of `Block`.
pub(super) fn is_called(trace: &caribou::trace::Trace, chunk: caribou::trace::ChunkId, name: &str) -> bool {
    let plain = plain(name);
    plain == self::plain(&trace.chunk_name(chunk)) || plain == trace.array_name(chunk.array)
}

/// A name without blanks, and with one kind of bracket: an index is printed as `Block[[3, 4]]` or `Block[(3, 4)]`.
fn plain(name: &str) -> String {
    let mut plain = String::new();
    for letter in name.chars().filter(|letter| !letter.is_whitespace()) {
        let letter = match letter {
            '(' => '[',
            ')' => ']',
            other => other,
        };
        if !(matches!(letter, '[' | ']') && plain.ends_with(letter)) {
            plain.push(letter);
        }
    }
    plain
}
