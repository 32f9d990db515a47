//! What is current on a thread: the runtime, and of each runtime the device and the streams.

use std::cell::RefCell;
use std::sync::{Arc, OnceLock};

use super::scope::ScopeStack;
use super::{Runtime, RuntimeBuilder, Slot, Stream};

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
    device: u32,
    device_scopes: ScopeStack<u32>,
    streams: Vec<OfDevice>,
}

/// The stream that is current for one device.
struct OfDevice {
    index: u32,
    /// The stream that was set; the device's default one without.
    stream: Option<Stream>,
    scopes: ScopeStack<Option<Stream>>,
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
    fn of(&mut self, id: u64) -> &mut OfRuntime {
        let index = match self.runtimes.iter().position(|runtime| runtime.id == id) {
            Some(index) => index,
            None => {
                self.runtimes.push(OfRuntime {
                    id,
                    device: 0,
                    device_scopes: ScopeStack::default(),
                    streams: Vec::new(),
                });
                self.runtimes.len() - 1
            }
        };
        &mut self.runtimes[index]
    }
}

impl OfRuntime {
    fn of(&mut self, device: u32) -> &mut OfDevice {
        let index = match self.streams.iter().position(|of| of.index == device) {
            Some(index) => index,
            None => {
                let scopes = ScopeStack::default();
                self.streams.push(OfDevice {
                    index: device,
                    stream: None,
                    scopes,
                });
                self.streams.len() - 1
            }
        };
        &mut self.streams[index]
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

/// The entered runtime, else the process's own.
pub(crate) fn current_runtime() -> Runtime {
    static PROCESS: OnceLock<Runtime> = OnceLock::new();
    with(|thread| thread.entered.clone())
        .flatten()
        .unwrap_or_else(|| {
            PROCESS
                .get_or_init(|| RuntimeBuilder::default().build())
                .clone()
        })
}

pub(super) fn enter_runtime(runtime: &Runtime) -> Option<u64> {
    with(|thread| {
        let before = thread.entered.replace(runtime.clone());
        thread.entered_scopes.open(before)
    })
}

pub(super) fn leave_runtime(scope: u64) {
    // What is forgotten is dropped behind the borrow: it may be the last of its device.
    let _forgotten = with(|thread| {
        let before = thread.entered_scopes.close(scope)?;
        let left = core::mem::replace(&mut thread.entered, before)?;
        if !thread.entered_scopes.is_empty() {
            return Some((left, None));
        }
        // The thread leaves it for good, so its current device and streams end with it.
        let index = thread
            .runtimes
            .iter()
            .position(|runtime| runtime.id == left.id());
        let runtime = index.map(|index| thread.runtimes.swap_remove(index));
        Some((left, runtime))
    });
}

pub(super) fn device(runtime: &Runtime) -> u32 {
    with(|thread| thread.of(runtime.id()).device).unwrap_or(0)
}

pub(super) fn set_device(runtime: &Runtime, index: u32) {
    with(|thread| thread.of(runtime.id()).device = index);
}

pub(super) fn open_device_scope(runtime: &Runtime, device: u32) -> Option<u64> {
    with(|thread| thread.of(runtime.id()).open_device_scope(device))
}

pub(super) fn close_device_scope(runtime: u64, scope: u64) {
    with(|thread| thread.of(runtime).close_device_scope(scope));
}

/// The stream that was set for a device, else its default one.
pub(super) fn stream(slot: &Arc<Slot>) -> Stream {
    with(|thread| {
        let current = thread
            .runtimes
            .iter()
            .find(|runtime| runtime.id == slot.runtime_id())?;
        let of_device = current.streams.iter().find(|of| of.index == slot.index())?;
        of_device.stream.clone()
    })
    .flatten()
    .unwrap_or_else(|| Stream::default_of(slot))
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
        let current = thread.of(scope.runtime);
        current.close_device_scope(scope.device_scope);
        let of_device = current.of(scope.device);
        let before = of_device.scopes.close(scope.stream_scope)?;
        core::mem::replace(&mut of_device.stream, before)
    });
}
