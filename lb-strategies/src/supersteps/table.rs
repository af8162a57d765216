//! The policies for programs in supersteps, in order.

use crate::entry::Entry;
use crate::supersteps::equal;
use crate::supersteps::policy::SuperstepStrategy;

/// Every policy for programs in supersteps, simplest first.
pub(crate) const ENTRIES: &[Entry<dyn SuperstepStrategy>] = &[equal::ENTRY];
