//! Chooses one position for each atom of a PDB residue, where the file has several.
//!
//! A residue is a run of records. It ends with `TER`, with another chain, number or segment, and where an atom comes
//! again under the same letter. So numbers that begin again after 9999 are other residues. Within a residue an atom's
//! first position counts, and of alternative residues (microheterogeneity) the positions of the first name.

use std::collections::{BTreeMap, BTreeSet};

use super::pdb::Atom;

/// The residue that is being read.
#[derive(Default)]
pub(super) struct Residue<'f> {
    place: [&'f [u8]; 2],
    name: &'f [u8],
    /// The letter of each atom's first position.
    first: BTreeMap<&'f [u8], u8>,
    /// All of these letters.
    letters: BTreeSet<u8>,
}

impl<'f> Residue<'f> {
    /// True if this position of an atom counts. O(log atoms of the residue).
    pub(super) fn is_first(&mut self, atom: Atom<'f>) -> bool {
        if self.place != atom.place || self.is_over(atom) {
            *self = Self { place: atom.place, name: atom.residue, ..Self::default() };
        }
        if self.first.contains_key(atom.name) || self.name != atom.residue {
            return false;
        }
        self.first.insert(atom.name, atom.alternative);
        self.letters.insert(atom.alternative);
        true
    }

    /// True if the atom begins another residue with the same number.
    fn is_over(&self, atom: Atom<'f>) -> bool {
        let comes_again = self.first.get(atom.name) == Some(&atom.alternative);
        let is_another = self.name != atom.residue
            && (atom.alternative == b' ' || self.letters.contains(&atom.alternative));
        comes_again || is_another
    }
}
