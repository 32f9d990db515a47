//! Looking at what there is, without changing it.

use super::Core;
use crate::alloc::block::{Block, State};
use crate::alloc::history::Context;
use crate::alloc::ids::{PoolId, StreamKey};
use crate::alloc::stats::Pool;

/// A segment, as it is now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SegmentView<'a, S> {
    pub(crate) handle: &'a S,
    /// How many segments were made before it: PyTorch's `registration_counter`.
    pub(crate) rank: u64,
    pub(crate) bytes: u64,
    pub(crate) stream: StreamKey,
    pub(crate) pool: Pool,
    /// `None` in the pool that serves everyone.
    pub(crate) private_pool: Option<PoolId>,
    /// Who caused it, where that was recorded.
    pub(crate) context: &'a Context,
}

/// A block, as it is now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockView<'a> {
    pub(crate) offset: u64,
    pub(crate) size: u64,
    /// What was asked for; 0 while it is free.
    pub(crate) requested: u64,
    pub(crate) state: State,
    /// The searches of its pool since it became free: PyTorch's `gc_counter`.
    pub(crate) age: u64,
    /// Who allocated it, where that was recorded.
    pub(crate) context: &'a Context,
}

impl<S, T> Core<S, T> {
    /// Every segment with its blocks in order; the oldest segment first.
    pub(crate) fn segments(
        &self,
    ) -> impl Iterator<Item = (SegmentView<'_, S>, impl Iterator<Item = BlockView<'_>>)> {
        let mut segments: Vec<_> = self.segments.iter().map(|(_, segment)| segment).collect();
        segments.sort_by_key(|segment| segment.rank);
        segments.into_iter().map(|segment| {
            let shelf = &self.shelves[segment.shelf];
            let pool = &self.pools[shelf.pool];
            let view = SegmentView {
                handle: &segment.handle,
                rank: segment.rank,
                bytes: segment.bytes,
                stream: shelf.stream,
                pool: segment.pool,
                private_pool: pool.id,
                context: &segment.context,
            };
            let searches = pool.searches(segment.pool);
            let first = Some(&self.blocks[segment.first]);
            let next = |block: &&Block| block.after.map(|after| &self.blocks[after]);
            let blocks = std::iter::successors(first, next);
            (view, blocks.map(move |block| block_view(block, searches)))
        })
    }
}

fn block_view(block: &Block, searches: u64) -> BlockView<'_> {
    let age = match block.state {
        State::Free => searches - block.freed_at,
        State::Allocated | State::Pending => 0,
    };
    BlockView {
        offset: block.offset,
        size: block.size,
        requested: block.requested,
        state: block.state,
        age,
        context: &block.context,
    }
}
