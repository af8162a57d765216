//! `caribou trace outliers`.

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
