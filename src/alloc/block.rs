//! Blocks, in a slab: places are used again, and neighbours are places.

use core::ops::{Index, IndexMut};

use super::free_list::Entry;
use super::history::Context;
use super::ids::StreamKey;
use super::stats::Pool;

/// The place of a block: whoever holds an allocated block is the only one to hold it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct BlockId(pub(super) u32);

/// What a block is used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
    /// Nothing; it is in a free list.
    #[default]
    Free,
    /// It was handed out.
    Allocated,
    /// It was given back, while commands of other streams still use it.
    Pending,
}

/// A piece of a segment.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) offset: u64,
    pub(super) size: u64,
    /// The rank of its segment.
    pub(super) rank: u64,
    /// What was asked for; 0 while it is free.
    pub(super) requested: u64,
    /// The caller's number for the last use by its own stream.
    pub(super) mark: u64,
    /// The searches that its pool had seen when it became free.
    pub(super) freed_at: u64,
    /// Where its segment is in the slab of segments.
    pub(super) segment: u32,
    /// Where its stream is in the slab of shelves.
    pub(super) shelf: u32,
    pub(super) before: Option<BlockId>,
    pub(super) after: Option<BlockId>,
    pub(super) pool: Pool,
    pub(super) state: State,
    /// Whether it was counted among the oversize ones when it was handed out.
    pub(super) oversize: bool,
    /// Tickets that it waits for.
    pub(super) waits: u32,
    /// Other streams whose commands used it.
    pub(super) uses: Vec<StreamKey>,
    /// Who allocated it, while that is recorded.
    pub(super) context: Context,
}

impl Block {
    /// A free block that is all of a segment; whose place in the slab of segments is set later.
    pub(super) fn whole(size: u64, rank: u64, shelf: u32, pool: Pool) -> Self {
        Self {
            offset: 0,
            size,
            rank,
            requested: 0,
            mark: 0,
            freed_at: 0,
            segment: 0,
            shelf,
            before: None,
            after: None,
            pool,
            state: State::Free,
            oversize: false,
            waits: 0,
            uses: Vec::new(),
            context: Context::default(),
        }
    }

    /// What the list of free blocks knows of it.
    pub(super) fn entry(&self, id: BlockId) -> Entry {
        Entry {
            size: self.size,
            rank: self.rank,
            offset: self.offset,
            block: id,
        }
    }

    /// Whether it shares its segment with others.
    pub(super) fn is_split(&self) -> bool {
        self.before.is_some() || self.after.is_some()
    }
}

/// The blocks of a device.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    blocks: Vec<Block>,
    vacant: Vec<BlockId>,
}

impl Blocks {
    /// Adds a block.
    pub(super) fn add(&mut self, block: Block) -> BlockId {
        if let Some(id) = self.vacant.pop() {
            self[id] = block;
            return id;
        }
        self.blocks.push(block);
        // Host memory ends long before so many blocks are there.
        BlockId(u32::try_from(self.blocks.len() - 1).unwrap_or(u32::MAX))
    }

    /// Cuts a block: what is behind its new end becomes a block of its own, in the same state, which
    /// the neighbour behind it does not know of yet.
    pub(super) fn cut_off(&mut self, id: BlockId, size: u64) -> BlockId {
        let front = &self[id];
        let fresh = (front.rank, front.shelf, front.pool);
        let rest = match self.vacant.pop() {
            Some(rest) => rest,
            None => self.add(Block::whole(0, fresh.0, fresh.1, fresh.2)),
        };
        let front = &mut self[id];
        let (offset, whole) = (front.offset, front.size);
        let (rank, mark, segment, shelf) = (front.rank, front.mark, front.segment, front.shelf);
        let (after, pool, state) = (front.after, front.pool, front.state);
        front.size = size;
        front.after = Some(rest);
        // Field by field, so that the room of its list stays.
        let block = &mut self[rest];
        block.offset = offset + size;
        block.size = whole - size;
        block.rank = rank;
        block.requested = 0;
        block.mark = mark;
        block.segment = segment;
        block.shelf = shelf;
        block.before = Some(id);
        block.after = after;
        block.pool = pool;
        block.state = state;
        block.oversize = false;
        block.waits = 0;
        rest
    }

    /// Takes a free block out, whose neighbours no longer lead to it. Nothing but room is in its list
    /// of uses.
    pub(super) fn remove(&mut self, id: BlockId) {
        self.vacant.push(id);
    }
}

impl Index<BlockId> for Blocks {
    type Output = Block;

    fn index(&self, id: BlockId) -> &Block {
        &self.blocks[id.0 as usize]
    }
}

impl IndexMut<BlockId> for Blocks {
    fn index_mut(&mut self, id: BlockId) -> &mut Block {
        &mut self.blocks[id.0 as usize]
    }
}
