//! The table of the policies for supersteps.

use crate::entry::Entry;
use crate::supersteps::policy::SuperstepStrategy;
use crate::supersteps::{adaptive, des, dlb_jr, equal, load_factor, replicate};

/// All policies for supersteps, simplest first.
pub(crate) const ENTRIES: &[Entry<dyn SuperstepStrategy>] =
    &[equal::ENTRY, load_factor::ENTRY, des::ENTRY, replicate::ENTRY, dlb_jr::ENTRY, adaptive::ENTRY];
