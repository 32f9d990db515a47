//! Where free blocks are: a shelf for each stream of each pool, and what private pools there are.

use ::core::ops::{Index, IndexMut};

use crate::alloc::free_list::FreeList;
use crate::alloc::ids::{PoolId, StreamKey};
use crate::alloc::stats::Pool;

/// The free blocks of one stream in one pool, with both sizes of blocks.
#[derive(Debug)]
pub(super) struct Shelf {
    pub(super) stream: StreamKey,
    /// The place of its pool.
    pub(super) pool: u32,
    /// The segments of its stream and pool.
    pub(super) segments: u64,
    small: FreeList,
    large: FreeList,
}

impl Shelf {
    pub(super) fn list(&self, pool: Pool) -> &FreeList {
        match pool {
            Pool::SmallPool => &self.small,
            Pool::LargePool => &self.large,
        }
    }

    pub(super) fn list_mut(&mut self, pool: Pool) -> &mut FreeList {
        match pool {
            Pool::SmallPool => &mut self.small,
            Pool::LargePool => &mut self.large,
        }
    }
}

/// All shelves, found by pool and stream.
#[derive(Debug, Default)]
pub(super) struct Shelves {
    shelves: Vec<Shelf>,
    vacant: Vec<u32>,
    /// Pool, stream and place of each shelf in use, sorted.
    index: Vec<(u32, StreamKey, u32)>,
    /// Where in `index` the last one was.
    last: usize,
}

impl Shelves {
    /// The place of a shelf, which is made if it isn't there.
    pub(super) fn place(&mut self, pool: u32, stream: StreamKey) -> u32 {
        if let Some(&(last_pool, last_stream, place)) = self.index.get(self.last)
            && (last_pool, last_stream) == (pool, stream)
        {
            return place;
        }
        let key = |&(pool, stream, _): &(u32, StreamKey, u32)| (pool, stream);
        let at = self.index.binary_search_by_key(&(pool, stream), key);
        self.last = at.unwrap_or_else(|at| {
            let place = self.vacant_place(pool, stream);
            self.index.insert(at, (pool, stream, place));
            at
        });
        self.index[self.last].2
    }

    /// Forgets a shelf that has no segments.
    pub(super) fn remove(&mut self, place: u32) {
        debug_assert_eq!(self[place].segments, 0);
        self.index.retain(|(.., other)| *other != place);
        self.vacant.push(place);
    }

    /// Forgets shelves without segments, which only failed requests leave.
    pub(super) fn forget_unused(&mut self) {
        let unused = |place: &u32| self[*place].segments == 0;
        let places = self.index.iter().map(|(.., place)| *place);
        let places: Vec<u32> = places.filter(unused).collect();
        for place in places {
            self.remove(place);
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Shelf> {
        self.index.iter().map(|(.., place)| &self[*place])
    }

    fn vacant_place(&mut self, pool: u32, stream: StreamKey) -> u32 {
        if let Some(place) = self.vacant.pop() {
            let shelf = &mut self[place];
            (shelf.pool, shelf.stream) = (pool, stream);
            return place;
        }
        self.shelves.push(Shelf {
            stream,
            pool,
            segments: 0,
            small: FreeList::default(),
            large: FreeList::default(),
        });
        // Host memory ends long before so many streams are there.
        u32::try_from(self.shelves.len() - 1).unwrap_or(u32::MAX)
    }
}

impl Index<u32> for Shelves {
    type Output = Shelf;

    fn index(&self, place: u32) -> &Shelf {
        &self.shelves[place as usize]
    }
}

impl IndexMut<u32> for Shelves {
    fn index_mut(&mut self, place: u32) -> &mut Shelf {
        &mut self.shelves[place as usize]
    }
}

/// What all streams of a pool have in common.
#[derive(Debug, Default)]
pub(super) struct PoolInfo {
    /// `None` for the pool that serves everyone, and for places that are not in use.
    pub(super) id: Option<PoolId>,
    pub(super) holders: u64,
    /// The bytes of its segments.
    pub(super) reserved: u64,
    /// The searches of each size of blocks, for the age of those that are free.
    small_searches: u64,
    large_searches: u64,
}

impl PoolInfo {
    pub(super) fn searches(&self, pool: Pool) -> u64 {
        match pool {
            Pool::SmallPool => self.small_searches,
            Pool::LargePool => self.large_searches,
        }
    }

    pub(super) fn count_search(&mut self, pool: Pool) {
        match pool {
            Pool::SmallPool => self.small_searches += 1,
            Pool::LargePool => self.large_searches += 1,
        }
    }
}

/// The pool that serves everyone, at place 0, and private ones.
#[derive(Debug)]
pub(super) struct Pools(Vec<PoolInfo>);

/// The place of the pool that serves everyone.
pub(super) const COMMON: u32 = 0;

impl Default for Pools {
    fn default() -> Self {
        Self(vec![PoolInfo::default()])
    }
}

impl Pools {
    /// The place of a private pool.
    pub(super) fn find(&self, id: PoolId) -> Option<u32> {
        let mut places = (0..).zip(&self.0);
        let found = places.find(|(_, pool)| pool.id == Some(id));
        found.map(|(place, _)| place)
    }

    /// The place of a private pool, which is made if it isn't there.
    pub(super) fn place(&mut self, id: PoolId) -> u32 {
        if let Some(place) = self.find(id) {
            return place;
        }
        let fresh = PoolInfo {
            id: Some(id),
            ..PoolInfo::default()
        };
        let mut places = (0..).zip(&mut self.0).skip(1);
        if let Some((place, vacant)) = places.find(|(_, pool)| pool.id.is_none()) {
            *vacant = fresh;
            return place;
        }
        self.0.push(fresh);
        // Host memory ends long before so many pools are there.
        u32::try_from(self.0.len() - 1).unwrap_or(u32::MAX)
    }

    /// Forgets private pools that nobody holds and that have no segments. Their places serve others
    /// from then on, so that no request may be between its search and its segment.
    pub(super) fn forget_unused(&mut self) {
        for pool in &mut self.0 {
            if pool.holders == 0 && pool.reserved == 0 {
                pool.id = None;
            }
        }
    }

    /// Whether the free segments of a pool may go back to the driver.
    pub(super) fn is_held(&self, place: u32) -> bool {
        self[place].holders > 0
    }

    /// The private pools with the bytes of their segments.
    pub(super) fn private(&self) -> impl Iterator<Item = (PoolId, u64)> {
        let named = self.0.iter().filter_map(|pool| pool.id.zip(Some(pool)));
        named.map(|(id, pool)| (id, pool.reserved))
    }
}

impl Index<u32> for Pools {
    type Output = PoolInfo;

    fn index(&self, place: u32) -> &PoolInfo {
        &self.0[place as usize]
    }
}

impl IndexMut<u32> for Pools {
    fn index_mut(&mut self, place: u32) -> &mut PoolInfo {
        &mut self.0[place as usize]
    }
}
