//! Blocks, in a slab: places are used again, and neighbours are places.

use core::ops::{Index, IndexMut};

use super::history::Context;
use super::ids::StreamKey;
use super::stats::Pool;

/// The place of a block: whoever holds an allocated block is the only one to hold it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct BlockId(pub(super) u32);

/// What a block is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Nothing; it is in a free list.
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
    /// Adds a block. Its list of uses must be empty: it gets one that has room already, if there is.
    pub(super) fn add(&mut self, mut block: Block) -> BlockId {
        if let Some(id) = self.vacant.pop() {
            let place = &mut self[id];
            std::mem::swap(&mut block.uses, &mut place.uses);
            *place = block;
            return id;
        }
        self.blocks.push(block);
        // Host memory ends long before so many blocks are there.
        BlockId(u32::try_from(self.blocks.len() - 1).unwrap_or(u32::MAX))
    }

    /// Takes a block out, whose neighbours no longer lead to it.
    pub(super) fn remove(&mut self, id: BlockId) {
        let block = &mut self[id];
        block.uses.clear();
        block.context = Context::default();
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
