//! Private pools: memory that is cached apart from the rest.

use core::fmt;
use std::sync::Arc;

use super::surface::MemPoolBodies;
use crate::alloc::PoolId;
use crate::device::{Device, DeviceArg};
use crate::error::Result;
use crate::runtime::{PoolGuard, Runtime, Slot};

/// A private pool of device memory. A cheap handle: clones are the same pool.
///
/// What is allocated in its [scope](Self::scope) lies in segments of its own, which nothing else uses, so
/// that it neither fragments the rest nor is fragmented by it. While a handle lives, the pool's memory
/// stays with it, also through [`empty_cache`](crate::empty_cache) and on a full device. Dropping the last
/// handle gives nothing back by itself: from then on the pool's memory is cached memory that serves no
/// request, and the next `empty_cache`, or request that finds the device full, gives the driver those of its
/// segments back that no buffer lies in. It is what `torch.cuda.MemPool` is.
///
/// # Example
///
/// ```
/// # if vkaccel::device_count() == 0 { return Ok(()); }
/// use vkaccel::{Buffer, MemPool};
///
/// let pool = MemPool::new(None)?;
/// let buffer = pool.scope(|| Buffer::<f32>::zeroed(1000))?;
/// assert_eq!(vkaccel::memory::private_pool_bytes(None)?, [(pool.id(), 2 << 20)]);
/// # drop(buffer);
/// # Ok::<(), vkaccel::Error>(())
/// ```
#[doc(alias = "torch.cuda.MemPool")]
#[derive(Clone)]
pub struct MemPool(Arc<Inner>);

struct Inner {
    id: PoolId,
    slot: Arc<Slot>,
}

impl fmt::Debug for MemPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemPool")
            .field("id", &self.0.id)
            .field("device", &self.device())
            .finish()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.slot.release_pool(self.id);
    }
}

impl MemPoolBodies for MemPool {
    fn id(&self) -> PoolId {
        self.0.id
    }
}

impl MemPool {
    /// A pool of a device's memory; opens nothing, and holds nothing yet.
    ///
    /// In PyTorch: `torch.cuda.MemPool`, not in `torch.accelerator`.
    ///
    /// # Errors
    ///
    /// [`InvalidDevice`](crate::ErrorKind::InvalidDevice) if `device` names no visible device;
    /// [`NoDriver`](crate::ErrorKind::NoDriver), [`NoDevice`](crate::ErrorKind::NoDevice) or
    /// [`Config`](crate::ErrorKind::Config) if none can be visible. Also what [any call](crate#errors) may
    /// give.
    pub fn new(device: impl Into<DeviceArg>) -> Result<Self> {
        let slot = Arc::clone(Runtime::current().slot(&device.into())?);
        Ok(Self(Arc::new(Inner {
            id: PoolId::fresh(),
            slot,
        })))
    }

    /// The device whose memory it holds.
    pub fn device(&self) -> Device {
        self.0.slot.device()
    }

    /// Runs `f` with the pool in place of the device's shared ones, on this thread.
    ///
    /// Scopes nest: the innermost one of a device counts. They end on return and panic.
    pub fn scope<R>(&self, f: impl FnOnce() -> R) -> R {
        let _entered = PoolGuard::new(&self.0.slot, self.0.id);
        f()
    }
}
