//! Snapshots: taken under the lock, made readable without it.

use super::{Addressed, Core};
use crate::alloc::block::State;
use crate::alloc::history::{Context, FrameCache, History};
use crate::alloc::snapshot::{BlockInfo, BlockState, MemorySnapshot, SegmentInfo, SettingsInfo};
use crate::alloc::stats::Pool;

/// What there was at a moment. Looking up the names of a stack takes milliseconds, so that is left
/// for later.
#[derive(Debug)]
pub(crate) struct Picture {
    total: u64,
    settings: SettingsInfo,
    segments: Vec<SegmentInfo>,
    /// Who caused each segment and each of its blocks, while anything is recorded.
    causes: Vec<(Context, Vec<Context>)>,
    history: Option<History>,
}

impl<S: Addressed, T> Core<S, T> {
    /// What there is now.
    pub(crate) fn picture(&self) -> Picture {
        let history = self.history().cloned();
        let mut picture = Picture {
            total: self.allowed.limits.total,
            settings: self.settings(),
            segments: Vec::new(),
            causes: Vec::new(),
            history,
        };
        for (segment, blocks) in self.segments() {
            let address = segment.handle.address();
            let mut causes = Vec::new();
            let mut info = SegmentInfo {
                registration_counter: segment.rank,
                address,
                total_size: segment.bytes,
                stream: segment.stream.0,
                is_large: segment.pool == Pool::LargePool,
                pool: segment.private_pool.map_or((0, 0), |pool| (pool.0, pool.1)),
                ..SegmentInfo::default()
            };
            for block in blocks {
                info.blocks.push(BlockInfo {
                    address: address.saturating_add(block.offset),
                    size: block.size,
                    requested_size: block.requested,
                    gc_counter: block.age,
                    state: match block.state {
                        State::Allocated => BlockState::ActiveAllocated,
                        State::Pending => BlockState::ActivePendingFree,
                        State::Free => BlockState::Inactive,
                    },
                    ..BlockInfo::default()
                });
                if picture.history.is_some() {
                    causes.push(block.context.clone());
                }
            }
            info.sum_blocks();
            picture.segments.push(info);
            if picture.history.is_some() {
                picture.causes.push((segment.context.clone(), causes));
            }
        }
        picture
    }

    fn settings(&self) -> SettingsInfo {
        SettingsInfo {
            conf: self.conf.clone(),
            memory_fraction: self.allowed.fraction.map(|(fraction, _)| fraction),
            limit_bytes: self.allowed.cap,
        }
    }
}

impl Picture {
    /// The snapshot, of the device with this index.
    pub(crate) fn develop(self, device: u32) -> MemorySnapshot {
        let mut frames = FrameCache::default();
        let mut segments = self.segments;
        for (segment, (cause, causes)) in segments.iter_mut().zip(&self.causes) {
            segment.frames = frames.frames(cause);
            for (block, cause) in segment.blocks.iter_mut().zip(causes) {
                block.frames = frames.frames(cause);
            }
        }
        let history = self.history.as_ref();
        MemorySnapshot {
            device,
            total_bytes: self.total,
            segments,
            settings: self.settings,
            history: history.map_or_else(Vec::new, |history| history.entries(&mut frames)),
            history_dropped: history.map_or(0, History::dropped),
        }
    }
}
