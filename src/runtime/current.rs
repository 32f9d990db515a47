//! What is current on a thread: the runtime, and of each runtime the device and the streams.

use std::cell::RefCell;
use std::sync::{Arc, OnceLock};

use super::scope::ScopeStack;
use super::{Runtime, RuntimeBuilder, Slot, Stream};
use crate::alloc::PoolId;
use crate::base::gate;

thread_local! {
    static THREAD: RefCell<Thread> = RefCell::default();
}

/// What is current on one thread.
#[derive(Default)]
struct Thread {
    entered: Option<Runtime>,
    entered_scopes: ScopeStack<Option<Runtime>>,
    runtimes: Vec<OfRuntime>,
}

/// What is current of one runtime.
struct OfRuntime {
    id: u64,
    /// Whether the thread entered it; what is current ends when the thread leaves it for good.
    entered: bool,
    device: u32,
    device_scopes: ScopeStack<u32>,
    devices: Vec<OfDevice>,
}

/// What is current for one device.
#[derive(Default)]
struct OfDevice {
    index: u32,
    /// The stream that was set; the device's default one without.
    stream: Option<Stream>,
    scopes: ScopeStack<Option<Stream>>,
    /// The private pool that memory comes from; the device's shared ones without.
    pool: Option<PoolId>,
    pool_scopes: ScopeStack<Option<PoolId>>,
}

impl OfDevice {
    fn has_no_scopes(&self) -> bool {
        self.scopes.is_empty() && self.pool_scopes.is_empty()
    }
}

/// Names a scope of a stream on its thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct StreamScope {
    runtime: u64,
    device: u32,
    device_scope: u64,
    stream_scope: u64,
}

impl Thread {
    fn find(&mut self, id: u64) -> Option<&mut OfRuntime> {
        self.runtimes.iter_mut().find(|runtime| runtime.id == id)
    }

    /// Whether a runtime is entered, or will be current again when a guard is dropped.
    fn returns_to(&self, id: u64) -> bool {
        let before = self.entered_scopes.saved().chain([&self.entered]);
        before.flatten().any(|runtime| runtime.id() == id)
    }

    /// Takes out the runtimes that the thread has left, with their current devices and streams.
    fn take_left(&mut self) -> Vec<OfRuntime> {
        // Mostly there is none.
        if !self.runtimes.iter().any(|runtime| self.is_left(runtime)) {
            return Vec::new();
        }
        let all = core::mem::take(&mut self.runtimes);
        let (left, kept) = all.into_iter().partition(|runtime| self.is_left(runtime));
        self.runtimes = kept;
        left
    }

    fn is_left(&self, runtime: &OfRuntime) -> bool {
        (runtime.entered || runtime.has_no_scopes())
            && !is_process(runtime.id)
            && !self.returns_to(runtime.id)
    }

    fn of(&mut self, id: u64) -> &mut OfRuntime {
        let index = match self.runtimes.iter().position(|runtime| runtime.id == id) {
            Some(index) => index,
            None => {
                self.runtimes.push(OfRuntime {
                    id,
                    entered: false,
                    device: 0,
                    device_scopes: ScopeStack::default(),
                    devices: Vec::new(),
                });
                self.runtimes.len() - 1
            }
        };
        &mut self.runtimes[index]
    }
}

impl OfRuntime {
    fn of(&mut self, device: u32) -> &mut OfDevice {
        let index = match self.devices.iter().position(|of| of.index == device) {
            Some(index) => index,
            None => {
                self.devices.push(OfDevice {
                    index: device,
                    ..OfDevice::default()
                });
                self.devices.len() - 1
            }
        };
        &mut self.devices[index]
    }

    fn has_no_scopes(&self) -> bool {
        self.device_scopes.is_empty() && self.devices.iter().all(OfDevice::has_no_scopes)
    }

    fn open_device_scope(&mut self, device: u32) -> u64 {
        let before = core::mem::replace(&mut self.device, device);
        self.device_scopes.open(before)
    }

    fn close_device_scope(&mut self, scope: u64) {
        if let Some(before) = self.device_scopes.close(scope) {
            self.device = before;
        }
    }
}

/// Runs `f` on the thread's state; gives nothing where the thread is ending or, which no caller
/// does, the state is in use.
fn with<R>(f: impl FnOnce(&mut Thread) -> R) -> Option<R> {
    THREAD
        .try_with(|thread| {
            thread
                .try_borrow_mut()
                .ok()
                .map(|mut thread| f(&mut thread))
        })
        .ok()?
}

/// The process's own runtime, and the one after it once it is shut down. No lock stands before it,
/// which a forked child could find taken.
struct OfProcess {
    runtime: Runtime,
    next: OnceLock<Box<OfProcess>>,
}

static PROCESS: OnceLock<Box<OfProcess>> = OnceLock::new();

impl OfProcess {
    fn new() -> Box<Self> {
        Box::new(Self {
            runtime: RuntimeBuilder::default().build(),
            next: OnceLock::new(),
        })
    }

    /// The runtime in use.
    fn newest() -> &'static Runtime {
        let mut newest = Self::made(&PROCESS);
        while newest.runtime.is_over() {
            newest = Self::made(&newest.next);
        }
        &newest.runtime
    }

    fn made(place: &'static OnceLock<Box<Self>>) -> &'static Self {
        place.get().unwrap_or_else(|| {
            // A fork in the midst of it would leave the child waiting for ever.
            let _inside = gate::enter();
            place.get_or_init(Self::new)
        })
    }
}

/// Whether it is the process's own runtime, in use or shut down.
pub(super) fn is_process(id: u64) -> bool {
    let mut next = PROCESS.get();
    while let Some(one) = next {
        if one.runtime.id() == id {
            return true;
        }
        next = one.next.get();
    }
    false
}

/// The entered runtime, else the process's own, also where the entered one is its parent's.
pub(crate) fn current_runtime() -> Runtime {
    with(|thread| thread.entered.clone())
        .flatten()
        .filter(|entered| !entered.is_past())
        .unwrap_or_else(|| OfProcess::newest().clone())
}

pub(super) fn enter_runtime(runtime: &Runtime) -> Option<u64> {
    with(|thread| {
        thread.of(runtime.id()).entered = true;
        let before = thread.entered.replace(runtime.clone());
        thread.entered_scopes.open(before)
    })
}

pub(super) fn leave_runtime(scope: u64) {
    // What is forgotten is dropped behind the borrow: it may be the last of its device.
    let _forgotten = with(|thread| {
        let closed = thread.entered_scopes.close(scope);
        let left = closed.map(|before| core::mem::replace(&mut thread.entered, before));
        (left, thread.take_left())
    });
}

pub(super) fn device(runtime: &Runtime) -> u32 {
    with(|thread| thread.find(runtime.id()).map(|of| of.device))
        .flatten()
        .unwrap_or(0)
}

pub(super) fn set_device(runtime: &Runtime, index: u32) {
    with(|thread| thread.of(runtime.id()).device = index);
}

pub(super) fn open_device_scope(runtime: &Runtime, device: u32) -> Option<u64> {
    with(|thread| thread.of(runtime.id()).open_device_scope(device))
}

pub(super) fn close_device_scope(runtime: u64, scope: u64) {
    with(|thread| {
        if let Some(of) = thread.find(runtime) {
            of.close_device_scope(scope);
        }
    });
}

/// The stream that was set for a device, else its default one.
pub(super) fn stream(slot: &Arc<Slot>) -> Stream {
    with(|thread| {
        let current = thread
            .runtimes
            .iter()
            .find(|runtime| runtime.id == slot.runtime_id())?;
        let of_device = current.devices.iter().find(|of| of.index == slot.index())?;
        of_device.stream.clone()
    })
    .flatten()
    .unwrap_or_else(|| Stream::default_in(slot))
}

pub(super) fn set_stream(stream: &Stream) {
    // The one before is dropped behind the borrow: it may be the last of its device.
    let _before = with(|thread| {
        let current = thread.of(stream.slot().runtime_id());
        current.device = stream.slot().index();
        current
            .of(stream.slot().index())
            .stream
            .replace(stream.clone())
    });
}

pub(super) fn open_stream_scope(stream: &Stream) -> Option<StreamScope> {
    with(|thread| {
        let (runtime, device) = (stream.slot().runtime_id(), stream.slot().index());
        let current = thread.of(runtime);
        let device_scope = current.open_device_scope(device);
        let of_device = current.of(device);
        let before = of_device.stream.replace(stream.clone());
        let stream_scope = of_device.scopes.open(before);
        StreamScope {
            runtime,
            device,
            device_scope,
            stream_scope,
        }
    })
}

pub(super) fn close_stream_scope(scope: StreamScope) {
    let _forgotten = with(|thread| {
        let current = thread.find(scope.runtime)?;
        current.close_device_scope(scope.device_scope);
        let of_device = current.of(scope.device);
        let closed = of_device.scopes.close(scope.stream_scope);
        let before = closed.map(|before| core::mem::replace(&mut of_device.stream, before));
        Some((before, thread.take_left()))
    });
}

/// The private pool that the thread takes memory of a device from, where one is entered.
pub(super) fn pool(slot: &Slot) -> Option<PoolId> {
    with(|thread| {
        let current = thread.find(slot.runtime_id())?;
        let of_device = current.devices.iter().find(|of| of.index == slot.index())?;
        of_device.pool
    })
    .flatten()
}

/// Names a scope of a private pool on its thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct PoolScope {
    runtime: u64,
    device: u32,
    scope: u64,
}

pub(super) fn open_pool_scope(slot: &Slot, pool: PoolId) -> Option<PoolScope> {
    let (runtime, device) = (slot.runtime_id(), slot.index());
    with(|thread| {
        let of_device = thread.of(runtime).of(device);
        let before = of_device.pool.replace(pool);
        let scope = of_device.pool_scopes.open(before);
        PoolScope {
            runtime,
            device,
            scope,
        }
    })
}

pub(super) fn close_pool_scope(scope: PoolScope) {
    let _forgotten = with(|thread| {
        let of_device = thread.find(scope.runtime)?.of(scope.device);
        if let Some(before) = of_device.pool_scopes.close(scope.scope) {
            of_device.pool = before;
        }
        Some(thread.take_left())
    });
}
