//! Merges several sorted sequences into one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Yields the items of all sources by ascending key; for equal keys by source. Stores one item per source.
pub(crate) struct Merge<S: Iterator> {
    sources: Vec<S>,
    heads: Vec<Option<S::Item>>,
    /// The key of each head, and its source.
    order: BinaryHeap<Reverse<(u64, usize)>>,
    key: fn(&S::Item) -> u64,
}

impl<S: Iterator> Merge<S> {
    pub(crate) fn new(mut sources: Vec<S>, key: fn(&S::Item) -> u64) -> Merge<S> {
        let heads: Vec<Option<S::Item>> = sources.iter_mut().map(Iterator::next).collect();
        let keys = heads.iter().enumerate();
        let order = keys.filter_map(|(source, head)| Some(Reverse((key(head.as_ref()?), source)))).collect();
        Merge { sources, heads, order, key }
    }

    pub(crate) fn sources(&self) -> &[S] {
        &self.sources
    }
}

/// Yields the index of a source, and its next item.
impl<S: Iterator> Iterator for Merge<S> {
    type Item = (usize, S::Item);

    fn next(&mut self) -> Option<(usize, S::Item)> {
        let Reverse((_, source)) = self.order.pop()?;
        let after = self.sources[source].next();
        self.order.extend(after.as_ref().map(|item| Reverse(((self.key)(item), source))));
        let item = std::mem::replace(&mut self.heads[source], after);
        Some((source, item.expect("what is in the order is there")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_take_turns_by_their_keys_and_the_first_comes_first() {
        let sources = [vec![1, 4, 4], vec![], vec![2, 4, 9]].map(Vec::into_iter).into();
        let merged: Vec<(usize, u64)> = Merge::new(sources, |&key| key).collect();
        assert_eq!(merged, [(0, 1), (2, 2), (0, 4), (0, 4), (2, 4), (2, 9)]);
    }
}
