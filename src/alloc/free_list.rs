//! Free blocks in the order in which they are chosen: by size, then by the age of their segment, then
//! by offset.
//!
//! Sorted chunks of bounded length: finding is two binary searches, inserting and removing move at
//! most a chunk, and nothing is allocated while the number of chunks stays the same.

use super::block::BlockId;

/// The most entries of a chunk.
const CHUNK: usize = 64;

/// A free block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub(super) size: u64,
    /// The rank of its segment.
    pub(super) rank: u64,
    pub(super) offset: u64,
    pub(super) block: BlockId,
}

/// Where an entry is, until the list changes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    chunk: usize,
    entry: usize,
}

/// The free blocks of one size class of one stream.
#[derive(Debug, Default)]
pub(super) struct FreeList {
    /// None is empty.
    chunks: Vec<Vec<Entry>>,
    /// An empty chunk, so that a list that is used up and filled again allocates nothing.
    spare: Option<Vec<Entry>>,
}

impl FreeList {
    /// The first entry of at least this size.
    pub(super) fn fit(&self, size: u64) -> Option<(Place, Entry)> {
        let below = |entry: &Entry| entry.size < size;
        let chunk = match self.chunks.as_slice() {
            [_] => 0,
            chunks => chunks.partition_point(|chunk| chunk.last().is_some_and(below)),
        };
        let entries = self.chunks.get(chunk)?;
        let entry = entries.partition_point(below);
        let found = *entries.get(entry)?;
        Some((Place { chunk, entry }, found))
    }

    /// The last entry: the largest block.
    pub(super) fn largest(&self) -> Option<Entry> {
        self.chunks.last().and_then(|chunk| chunk.last()).copied()
    }

    pub(super) fn insert(&mut self, entry: Entry) {
        let chunk = self.chunk_of(&entry);
        let Some(entries) = self.chunks.get_mut(chunk) else {
            let mut fresh = self.spare.take();
            fresh
                .get_or_insert_with(|| Vec::with_capacity(CHUNK))
                .push(entry);
            self.chunks.extend(fresh);
            return;
        };
        let place = entries.partition_point(|other| *other < entry);
        entries.insert(place, entry);
        if entries.len() == CHUNK {
            let mut upper = self
                .spare
                .take()
                .unwrap_or_else(|| Vec::with_capacity(CHUNK));
            upper.extend(entries.drain(CHUNK / 2..));
            self.chunks.insert(chunk + 1, upper);
        }
    }

    /// Takes an entry out, which is there.
    pub(super) fn remove(&mut self, entry: &Entry) {
        if let Some(place) = self.find(entry) {
            self.remove_at(place);
        }
    }

    /// Puts an entry in the place of one that is there.
    pub(super) fn replace(&mut self, old: &Entry, new: Entry) {
        match self.find(old) {
            Some(place) => self.replace_at(place, new),
            None => self.insert(new),
        }
    }

    /// Puts an entry in the place of the one that was just found there. Where they are neighbours,
    /// only what lies between their sizes moves.
    pub(super) fn replace_at(&mut self, place: Place, new: Entry) {
        let Place { chunk, entry: old } = place;
        let entries = &mut self.chunks[chunk];
        if new > entries[old] {
            let over = entries[old + 1..].partition_point(|other| *other < new);
            let is_inside = old + 1 + over < entries.len() || chunk + 1 == self.chunks.len();
            if is_inside
                || self.chunks[chunk + 1]
                    .first()
                    .is_none_or(|next| new < *next)
            {
                let entries = &mut self.chunks[chunk];
                entries.copy_within(old + 1..old + 1 + over, old);
                entries[old + over] = new;
                return;
            }
        } else {
            let target = entries[..old].partition_point(|other| *other < new);
            if target > 0
                || chunk == 0
                || self.chunks[chunk - 1].last().is_none_or(|last| *last < new)
            {
                let entries = &mut self.chunks[chunk];
                entries.copy_within(target..old, target + 1);
                entries[target] = new;
                return;
            }
        }
        self.remove_at(place);
        self.insert(new);
    }

    /// Where an entry is, which is there.
    fn find(&self, entry: &Entry) -> Option<Place> {
        let chunk = self.chunk_of(entry);
        let entries = self.chunks.get(chunk)?;
        let place = entries.partition_point(|other| other < entry);
        let is_there = entries.get(place) == Some(entry);
        debug_assert!(is_there, "{entry:?}");
        is_there.then_some(Place {
            chunk,
            entry: place,
        })
    }

    /// Takes out the entry at a place that was just found.
    pub(super) fn remove_at(&mut self, place: Place) {
        let entries = &mut self.chunks[place.chunk];
        entries.remove(place.entry);
        if entries.is_empty() {
            self.spare = Some(self.chunks.remove(place.chunk));
        }
    }

    /// Every entry, smallest first.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = Entry> + '_ {
        self.chunks.iter().flatten().copied()
    }

    /// The chunk that holds an entry, or would; the last one for the largest of all.
    fn chunk_of(&self, entry: &Entry) -> usize {
        match self.chunks.as_slice() {
            [] | [_] => 0,
            chunks => {
                let below = |chunk: &Vec<Entry>| chunk.last().is_some_and(|last| last < entry);
                chunks.partition_point(below).min(chunks.len() - 1)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn entry(number: u64) -> Entry {
        Entry {
            size: number % 97,
            rank: number % 7,
            offset: number,
            block: BlockId(0),
        }
    }

    /// The list and a sorted set agree, chunks are bounded, and none is empty.
    fn check(list: &FreeList, set: &BTreeSet<Entry>) {
        assert!(list.iter().eq(set.iter().copied()));
        assert!(list.iter().rev().eq(set.iter().rev().copied()));
        assert_eq!(list.largest(), set.last().copied());
        let lengths = list.chunks.iter().map(Vec::len);
        assert!(lengths.clone().all(|length| length > 0 && length < CHUNK));
        for size in 0..98 {
            let expected = set.iter().find(|entry| entry.size >= size);
            assert_eq!(list.fit(size).map(|(_, entry)| entry), expected.copied());
        }
    }

    #[test]
    fn the_list_is_a_sorted_set_through_inserts_removals_and_replacements() {
        let (mut list, mut set) = (FreeList::default(), BTreeSet::new());
        let mut state = 1_u64;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            state >> 33
        };
        check(&list, &set);
        for step in 0..6000 {
            let fresh = entry(next());
            // It grows at first, and shrinks in the end.
            let grows = next() % 6000 > step;
            let old = set.range(entry(next())..).next().copied();
            match old {
                Some(old) if next() % 3 == 0 && set.insert(fresh) => {
                    set.remove(&old);
                    list.replace(&old, fresh);
                }
                Some(old) if !grows => {
                    set.remove(&old);
                    list.remove(&old);
                }
                _ => {
                    if set.insert(fresh) {
                        list.insert(fresh);
                    }
                }
            }
            if step % 50 == 0 {
                check(&list, &set);
            }
        }
        for old in std::mem::take(&mut set) {
            list.remove(&old);
        }
        check(&list, &set);
        list.insert(entry(5));
        assert_eq!(list.largest(), Some(entry(5)));
    }

    #[test]
    fn a_list_that_is_filled_and_emptied_over_and_over_keeps_its_room() {
        let mut list = FreeList::default();
        list.insert(entry(1));
        let room = list.chunks[0].as_ptr();
        for _ in 0..3 {
            list.remove(&entry(1));
            assert_eq!(list.largest(), None);
            list.insert(entry(1));
            assert_eq!(list.chunks[0].as_ptr(), room);
        }
    }
}
