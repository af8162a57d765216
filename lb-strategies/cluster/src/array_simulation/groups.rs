//! Stores a list of chunks for each chunk or rank, all in one piece of memory.

/// Lists of numbers, by the number of the list.
pub(super) struct Groups {
    /// The place of the first member of each list; the last element is the number of members.
    firsts: Vec<u32>,
    members: Vec<u32>,
}

impl Groups {
    /// The lists in this order.
    pub(super) fn of(lists: impl Iterator<Item = Vec<u32>>) -> Groups {
        let mut groups = Groups { firsts: vec![0], members: Vec::new() };
        for list in lists {
            groups.members.extend(list);
            groups.firsts.push(groups.members.len() as u32);
        }
        groups
    }

    /// The numbers 0, 1, 2.. by the list that each is on, ascending; a number with none is on no list.
    pub(super) fn by(lists: usize, list_of: impl Iterator<Item = Option<u32>> + Clone) -> Groups {
        let mut firsts = vec![0; lists + 1];
        list_of.clone().flatten().for_each(|list| firsts[list as usize + 1] += 1);
        for list in 0..lists {
            firsts[list + 1] += firsts[list];
        }
        let mut members = vec![0; firsts[lists] as usize];
        let mut ends = firsts.clone();
        for (number, list) in (0..).zip(list_of) {
            let Some(list) = list else { continue };
            members[ends[list as usize] as usize] = number;
            ends[list as usize] += 1;
        }
        Groups { firsts, members }
    }

    /// The places of the members of a list, for [`member`](Self::member).
    pub(super) fn places(&self, list: u32) -> std::ops::Range<usize> {
        self.firsts[list as usize] as usize..self.firsts[list as usize + 1] as usize
    }

    /// The member at a place.
    pub(super) fn member(&self, place: usize) -> u32 {
        self.members[place]
    }

    /// All members of all lists.
    pub(super) fn members(&self) -> &[u32] {
        &self.members
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_on_its_list_and_on_no_other() {
        let groups = Groups::by(3, [Some(2), None, Some(0), Some(2)].into_iter());
        let of = |list| groups.places(list).map(|place| groups.member(place)).collect::<Vec<_>>();
        assert_eq!([of(0), of(1), of(2)], [vec![2], vec![], vec![0, 3]]);
        let groups = Groups::of([vec![7, 8], vec![], vec![7]].into_iter());
        assert_eq!(groups.places(2).map(|place| groups.member(place)).collect::<Vec<_>>(), [7]);
        assert_eq!(groups.members(), [7, 8, 7]);
    }
}
