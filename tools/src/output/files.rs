//! The files to which a command writes its results: JSON, CSV and a plot. Commands say in their help what each has.

use std::path::PathBuf;

use crate::Error;

/// Where results go.
#[derive(clap::Args)]
#[group(skip)]
pub(crate) struct Files {
    /// Write all figures as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write a line per result, as CSV.
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// Draw a plot.
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) plot: Option<PathBuf>,
}

impl Files {
    /// True if there is a file to write.
    pub(crate) fn any(&self) -> bool {
        self.json.is_some() || self.csv.is_some() || self.plot.is_some()
    }

    /// Checks that the files differ and can be written, before a long computation.
    ///
    /// # Errors
    /// One line with the options, or with the file that cannot be written.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let all = [("--json", &self.json), ("--csv", &self.csv), ("--plot", &self.plot)];
        for (place, (option, path)) in all.iter().enumerate() {
            let same = all[..place].iter().find(|(_, other)| path.is_some() && other == path);
            if let (Some((other, _)), Some(path)) = (same, path) {
                return Err(Error::Usage(format!(
                    "{other} and {option} name the same file, {}",
                    path.display()
                )));
            }
        }
        all.into_iter().filter_map(|(_, path)| path.as_deref()).try_for_each(super::check)
    }
}
