//! Guards: a runtime, a device or a stream that is current until they are dropped.

use core::marker::PhantomData;

use super::current::{self, PoolScope, StreamScope};
use super::{Runtime, Slot, Stream};
use crate::alloc::PoolId;

/// Keeps a runtime current on its thread; see [`Runtime::enter`].
///
/// Guards belong to the thread that made them:
///
/// ```compile_fail,E0277
/// fn send<T: Send>(_: T) {}
/// send(vkaccel::Runtime::current().enter());
/// ```
#[must_use = "the runtime is left as soon as this is dropped; bind it to a name"]
#[derive(Debug)]
pub struct RuntimeGuard {
    scope: Option<u64>,
    thread: PhantomData<*const ()>,
}

impl RuntimeGuard {
    pub(super) fn new(runtime: &Runtime) -> Self {
        Self {
            scope: current::enter_runtime(runtime),
            thread: PhantomData,
        }
    }
}

impl Drop for RuntimeGuard {
    fn drop(&mut self) {
        if let Some(scope) = self.scope {
            current::leave_runtime(scope);
        }
    }
}

/// Keeps a device current on its thread; see [`device_index`](crate::device_index).
///
/// Guards may be dropped in any order: one that ends before another inside it changes nothing
/// now, and the device from before both is restored when the inner one ends. A guard that is
/// forgotten leaves its device current.
///
/// `let _ = device_index(1)?;` drops the guard at once, and no compiler warning says so;
/// [`with_device`](crate::with_device) has no such trap.
///
/// ```compile_fail,E0277
/// fn send<T: Send>(_: T) {}
/// send(vkaccel::device_index(0));
/// ```
#[must_use = "the device is switched back as soon as this is dropped; bind it to a name"]
#[derive(Debug)]
pub struct DeviceIndexGuard {
    scope: Option<(u64, u64)>,
    thread: PhantomData<*const ()>,
}

impl DeviceIndexGuard {
    /// Without an index it switches nothing and restores nothing.
    pub(super) fn new(runtime: &Runtime, index: Option<u32>) -> Self {
        let scope = index.and_then(|index| current::open_device_scope(runtime, index));
        Self {
            scope: scope.map(|scope| (runtime.id(), scope)),
            thread: PhantomData,
        }
    }
}

impl Drop for DeviceIndexGuard {
    fn drop(&mut self) {
        if let Some((runtime, scope)) = self.scope {
            current::close_device_scope(runtime, scope);
        }
    }
}

/// Keeps a stream, and its device, current on its thread; see [`Stream::enter`].
///
/// Ends like a [`DeviceIndexGuard`]: in any order, and on a panic too.
///
/// ```compile_fail,E0277
/// fn send<T: Send>(_: T) {}
/// send(vkaccel::Stream::new(0).and_then(|stream| stream.enter()));
/// ```
#[must_use = "the stream is left as soon as this is dropped; bind it to a name"]
#[derive(Debug)]
pub struct StreamGuard {
    scope: Option<StreamScope>,
    thread: PhantomData<*const ()>,
}

impl StreamGuard {
    pub(super) fn new(stream: &Stream) -> Self {
        Self {
            scope: current::open_stream_scope(stream),
            thread: PhantomData,
        }
    }
}

impl Drop for StreamGuard {
    fn drop(&mut self) {
        if let Some(scope) = self.scope {
            current::close_stream_scope(scope);
        }
    }
}

/// Takes memory of a device from a private pool, on its thread, until it is dropped.
#[derive(Debug)]
pub(crate) struct PoolGuard {
    scope: Option<PoolScope>,
    thread: PhantomData<*const ()>,
}

impl PoolGuard {
    pub(crate) fn new(slot: &Slot, pool: PoolId) -> Self {
        Self {
            scope: current::open_pool_scope(slot, pool),
            thread: PhantomData,
        }
    }
}

impl Drop for PoolGuard {
    fn drop(&mut self) {
        if let Some(scope) = self.scope {
            current::close_pool_scope(scope);
        }
    }
}
