//! Which memory types serve which use.

use core::cmp::Reverse;

use super::info::{MemoryFlags, PhysicalInfo};

/// Types that no buffer of ours belongs in: memory that needn't exist, that the host and ordinary
/// queues can't touch, or that trades speed for coherence or for being seen by other devices.
const NEVER: MemoryFlags = MemoryFlags(
    MemoryFlags::LAZILY_ALLOCATED.0
        | MemoryFlags::PROTECTED.0
        | MemoryFlags::DEVICE_COHERENT_AMD.0
        | MemoryFlags::DEVICE_UNCACHED_AMD.0
        | MemoryFlags::RDMA_CAPABLE_NV.0,
);

/// A memory type that serves a use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoryChoice {
    /// The index of the type.
    pub type_index: u32,
    /// The index of its heap.
    pub heap: u32,
    /// The size of that heap in bytes.
    pub heap_bytes: u64,
    pub flags: MemoryFlags,
}

impl MemoryChoice {
    /// Whether the host can map it.
    pub(crate) const fn is_mappable(&self) -> bool {
        self.flags.contains(MemoryFlags::HOST_VISIBLE)
    }

    /// Whether host accesses need no flush and no invalidation.
    pub(crate) const fn is_coherent(&self) -> bool {
        self.flags.contains(MemoryFlags::HOST_COHERENT)
    }

    /// Whether the host reads it at full speed.
    pub(crate) const fn is_cached(&self) -> bool {
        self.flags.contains(MemoryFlags::HOST_CACHED)
    }
}

/// What memory is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum MemoryRole {
    /// Where buffers live.
    Device,
    /// What the host writes and the device reads; always mappable and coherent.
    Upload,
    /// What the device writes and the host reads; always mappable, not always coherent.
    Readback,
}

impl MemoryRole {
    /// The name, for messages.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::Upload => "upload",
            Self::Readback => "readback",
        }
    }
}

/// The memory types that serve a role, best first; never empty.
///
/// Which of them buffers may be bound to is known only from a buffer of the opened device (older
/// drivers keep types for images apart), so that the rest of the list is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Choices {
    best: MemoryChoice,
    others: Vec<MemoryChoice>,
}

impl Choices {
    /// The types that pass, sorted by the key; nothing where none passes.
    fn new<K: Ord>(
        types: &[MemoryChoice],
        passes: impl Fn(MemoryFlags) -> bool,
        key: impl Fn(&MemoryChoice) -> K,
    ) -> Option<Self> {
        let mut choices: Vec<MemoryChoice> = types
            .iter()
            .copied()
            .filter(|choice| passes(choice.flags))
            .collect();
        choices.sort_by_key(key);
        let mut choices = choices.into_iter();
        Some(Self {
            best: choices.next()?,
            others: choices.collect(),
        })
    }
}

/// The memory types for each role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemoryPlan {
    device: Choices,
    upload: Choices,
    readback: Choices,
}

impl MemoryPlan {
    /// Plans for the device; nothing where a use has no type, which Vulkan's rules exclude.
    pub(crate) fn new(info: &PhysicalInfo) -> Option<Self> {
        let types: Vec<MemoryChoice> = (0u32..)
            .zip(&info.memory_types)
            .filter(|(_, kind)| !kind.flags.intersects(NEVER))
            .filter_map(|(type_index, kind)| {
                Some(MemoryChoice {
                    type_index,
                    heap: kind.heap,
                    heap_bytes: info.memory_heaps.get(kind.heap as usize)?.size,
                    flags: kind.flags,
                })
            })
            .collect();
        let unified = info.is_unified();

        // The heap that counts as the device's memory first, so that what is said of that memory is
        // said of buffers; on a card with a small window for the host, that is not the window. Where
        // memory is shared, a type that the host can map saves copies; on a card, one that it can't
        // leaves the window to those who need it.
        let device_heap = info.device_heap();
        let device = Choices::new(
            &types,
            |flags| flags.contains(MemoryFlags::DEVICE_LOCAL),
            |choice| {
                let mappable = choice.is_mappable();
                (
                    Some(choice.heap) != device_heap,
                    Reverse(choice.heap_bytes),
                    mappable != unified,
                    mappable && !choice.is_coherent(),
                    mappable && !choice.is_cached(),
                )
            },
        )?;
        // Host memory rather than the window; uncached memory is written at full speed, and
        // spares the device from asking the host's caches.
        let upload = Choices::new(
            &types,
            |flags| flags.contains(MemoryFlags::HOST_VISIBLE | MemoryFlags::HOST_COHERENT),
            |choice| {
                (
                    choice.flags.contains(MemoryFlags::DEVICE_LOCAL) && !unified,
                    choice.is_cached(),
                    Reverse(choice.heap_bytes),
                )
            },
        )?;
        // Reading uncached memory is up to a hundred times slower, so that cached memory that needs
        // invalidation comes before coherent memory that isn't cached.
        let readback = Choices::new(
            &types,
            |flags| flags.contains(MemoryFlags::HOST_VISIBLE),
            |choice| {
                (
                    !choice.is_cached(),
                    !choice.is_coherent(),
                    choice.flags.contains(MemoryFlags::DEVICE_LOCAL) && !unified,
                    Reverse(choice.heap_bytes),
                )
            },
        )?;
        Some(Self {
            device,
            upload,
            readback,
        })
    }

    /// The best type for the role.
    pub(crate) const fn best(&self, role: MemoryRole) -> MemoryChoice {
        self.choices(role).best
    }

    /// The best type for the role among those of the bit mask, which is a buffer's `memoryTypeBits`.
    pub(crate) fn pick(&self, role: MemoryRole, memory_type_bits: u32) -> Option<MemoryChoice> {
        let choices = self.choices(role);
        core::iter::once(&choices.best)
            .chain(&choices.others)
            .find(|choice| memory_type_bits >> choice.type_index & 1 != 0)
            .copied()
    }

    const fn choices(&self, role: MemoryRole) -> &Choices {
        match role {
            MemoryRole::Device => &self.device,
            MemoryRole::Upload => &self.upload,
            MemoryRole::Readback => &self.readback,
        }
    }
}
