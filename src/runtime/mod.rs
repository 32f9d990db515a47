//! Owns runtimes: which devices a process or a thread sees, when they are opened, and what is
//! current on a thread.

mod builder;
mod current;
mod event;
mod fork;
mod guard;
mod host;
mod memory;
mod scope;
mod slot;
mod stream;

use core::fmt;
use std::ffi::OsStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use crate::alloc::PoolId;
use crate::base::counters::Counters;
use crate::base::{fork::Life, gate, sync::Mutex};
use crate::device::select::{self, Candidate, Selection};
use crate::device::{Device, DeviceArg, MemoryInfo, mask};
use crate::error::{Error, ErrorKind, Result};
use crate::exec::{Call, callback};
use crate::mem::{HostMemory, MemorySettings};
use crate::rng::generator::Defaults;
use crate::vk::Instance;
use crate::vk::debug::{MessageSink, ValidationMessage};
use crate::vk::entry;

pub use builder::RuntimeBuilder;
pub(crate) use current::current_runtime;
pub use event::Event;
pub(crate) use guard::PoolGuard;
pub use guard::{DeviceIndexGuard, RuntimeGuard, StreamGuard};
pub(crate) use slot::{Opened, Slot};
pub use stream::Stream;

use builder::Config;

/// One Vulkan instance with its devices. A cheap handle: clones are the same runtime.
///
/// A process has one of its own, made on first use from the environment; global functions mean
/// that one, unless the calling thread has [entered](Self::enter) another. Making a runtime or
/// asking it about devices opens none.
///
/// # Example
///
/// ```
/// let runtime = vkaccel::Runtime::builder().build();
/// let _entered = runtime.enter();
/// println!("{} devices", vkaccel::device_count());
/// assert!(!runtime.is_initialized());
/// # Ok::<(), vkaccel::Error>(())
/// ```
#[derive(Clone)]
pub struct Runtime(Arc<Inner>);

struct Inner {
    shared: Arc<Shared>,
    /// What enumerating found; a failure is not kept, so that it can be mended and tried again.
    probed: OnceLock<Probed>,
    /// One thread enumerates, the others wait for what it finds.
    probing: Mutex<()>,
}

/// What a runtime and its devices have in common.
pub(crate) struct Shared {
    /// A number no other runtime of the process has.
    pub(crate) id: u64,
    config: Config,
    messages: Arc<MessageSink>,
    /// The default random generators of the devices.
    generators: Defaults,
    /// The pinned host memory of the devices.
    pub(crate) host: Arc<HostMemory>,
    /// How the memory of each device is set at the start, once it was read.
    memory_settings: Mutex<Option<MemorySettings>>,
    /// The instance of the opened devices, which they keep alive.
    instance: Mutex<Weak<Instance>>,
    closed: AtomicBool,
    life: Life,
}

/// The devices that the runtime found.
struct Probed {
    selection: Selection,
    slots: Vec<Arc<Slot>>,
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime")
            .field("id", &self.0.shared.id)
            .finish_non_exhaustive()
    }
}

impl Shared {
    /// The check that opens every call that needs the runtime.
    pub(crate) fn check(&self) -> Result<()> {
        self.life.check()?;
        if self.closed.load(Ordering::Relaxed) {
            return Err(self.shut_down());
        }
        Ok(())
    }

    #[cold]
    fn shut_down(&self) -> Error {
        let text = match current::is_process(self.id) {
            true => {
                "this belongs to what was before `shutdown`, which ended the process's own runtime of that time; \
                 make it anew, in the one that the next call starts by itself"
            }
            false => {
                "the runtime that this belongs to was shut down; make another with `Runtime::builder`, and in that \
                 what it had"
            }
        };
        Error::new(ErrorKind::ShutDown, text)
    }

    /// The instance of the opened devices, or a fresh one.
    fn instance(&self) -> Result<Arc<Instance>> {
        let mut kept = self.instance.lock();
        if let Some(instance) = kept.upgrade() {
            return Ok(instance);
        }
        let instance = Arc::new(self.new_instance()?);
        *kept = Arc::downgrade(&instance);
        Ok(instance)
    }

    fn new_instance(&self) -> Result<Instance> {
        let entry = entry::load(self.config.entry)?;
        Instance::new(&entry, self.config.validation.then_some(&self.messages))
    }
}

impl Runtime {
    /// A builder, for a runtime with its own settings.
    pub fn builder() -> RuntimeBuilder {
        RuntimeBuilder::default()
    }

    fn with_config(config: Config) -> Self {
        static NEXT_ID: core::sync::atomic::AtomicU64 = core::sync::atomic::AtomicU64::new(1);
        Self(Arc::new(Inner {
            shared: Arc::new(Shared {
                id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
                config,
                messages: Arc::default(),
                generators: Defaults::default(),
                host: HostMemory::new(),
                memory_settings: Mutex::new(None),
                instance: Mutex::new(Weak::new()),
                closed: AtomicBool::new(false),
                life: Life::now(),
            }),
            probed: OnceLock::new(),
            probing: Mutex::new(()),
        }))
    }

    /// The runtime that global functions mean on this thread: the entered one, else the process's
    /// own.
    pub fn current() -> Self {
        current_runtime()
    }

    /// Makes this the runtime of the calling thread until the guard is dropped.
    ///
    /// Objects keep the runtime they were made in. Other threads enter for themselves.
    ///
    /// # Example
    ///
    /// ```
    /// let runtime = vkaccel::Runtime::builder().visible_devices("").build();
    /// let entered = runtime.enter();
    /// assert_eq!(vkaccel::device_count(), 0);
    /// drop(entered);
    /// ```
    pub fn enter(&self) -> RuntimeGuard {
        RuntimeGuard::new(self)
    }

    /// Whether a device of this runtime is open.
    pub fn is_initialized(&self) -> bool {
        self.0
            .probed
            .get()
            .is_some_and(|probed| probed.slots.iter().any(|slot| slot.is_open()))
    }

    /// Opens a device, which its first command would else do.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidDevice`] if `device` names no visible device, [`ErrorKind::NoDriver`] or
    /// [`ErrorKind::NoDevice`] if there is none, [`ErrorKind::Config`] if the list of visible devices or the
    /// settings of its memory make no sense or the validation layer is missing, [`ErrorKind::Driver`] if the
    /// driver refuses. Also what [any command](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let runtime = vkaccel::Runtime::builder().build();
    /// runtime.init(0)?;
    /// assert!(runtime.is_initialized());
    /// # Ok::<(), vkaccel::Error>(())
    /// ```
    pub fn init(&self, device: impl Into<DeviceArg>) -> Result<()> {
        self.slot(&device.into())?.open().map(drop)
    }

    /// Waits for all work, then gives the devices back.
    ///
    /// Every later call that uses it or its objects fails with [`ErrorKind::ShutDown`], but for downloads
    /// that were under way, which give their content. Buffers, streams and kernels that the program still
    /// holds stay valid to drop; what they keep of a device goes with the last of them.
    ///
    /// Where it is the process's own, the process starts anew: the next call that needs a runtime makes
    /// another, with the environment's settings and seeds that nobody has set.
    ///
    /// # Errors
    ///
    /// [`DeviceLost`](crate::ErrorKind::DeviceLost) if a device was lost,
    /// [`NotPermitted`](crate::ErrorKind::NotPermitted) inside of a host callback, which leaves the runtime
    /// as it was; after any other error it is shut down nevertheless. Also what [any wait](crate#errors)
    /// may give.
    pub fn shutdown(&self) -> Result<()> {
        self.0.shared.life.check()?;
        callback::check()?;
        self.0.shared.closed.store(true, Ordering::Relaxed);
        let slots = self
            .0
            .probed
            .get()
            .map_or(&[][..], |probed| &probed.slots[..]);
        let mut result = Ok(());
        for slot in slots {
            // The first error is the one to report; the others still get their turn.
            result = result.and(slot.close());
        }
        result
    }

    /// Says of each physical device whether it is visible, and why or why not.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoDriver`] or [`ErrorKind::NoDevice`] if there is nothing to ask, [`ErrorKind::Config`]
    /// if the list of visible devices makes no sense. Also what [any call](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// if let Ok(candidates) = vkaccel::Runtime::current().selection() {
    ///     for candidate in candidates {
    ///         println!("{}: {}", candidate.name, candidate.reason);
    ///     }
    /// }
    /// ```
    pub fn selection(&self) -> Result<Vec<Candidate>> {
        Ok(self.probe()?.selection.candidates.clone())
    }

    /// What the runtime has done on its open devices: launches, submissions, waits and their causes.
    ///
    /// For tests and for tuning: the difference of two readings says what a piece of a program costs.
    /// Zeros where no device is open.
    ///
    /// # Example
    ///
    /// ```
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let runtime = vkaccel::Runtime::current();
    /// let stream = vkaccel::Stream::new(0)?;
    /// let buffer = stream.zeroed::<u32>(100)?;
    /// let before = runtime.counters();
    /// stream.fill(&buffer, 7)?;
    /// stream.synchronize()?;
    /// let done = runtime.counters().since(&before);
    /// println!("{} submissions for {} fills and copies", done.submits, done.transfers);
    /// # Ok::<(), vkaccel::Error>(())
    /// ```
    pub fn counters(&self) -> Counters {
        let mut sum = Counters::default();
        if let Some(probed) = self.0.probed.get() {
            for slot in &probed.slots {
                sum.add(&slot.counters());
            }
        }
        sum
    }

    /// Takes what validation layers have said since the last call, oldest first.
    ///
    /// Empty unless the runtime was built with [`RuntimeBuilder::validation`]. The newest 1024 are
    /// kept.
    pub fn take_validation_messages(&self) -> Vec<ValidationMessage> {
        self.0.shared.messages.take()
    }

    /// Whether it was shut down, or belongs to what the process was before it started anew.
    pub(crate) fn is_over(&self) -> bool {
        self.0.shared.closed.load(Ordering::Relaxed) || self.is_past()
    }

    /// Whether it belongs to what the process was before it started anew.
    pub(crate) fn is_past(&self) -> bool {
        self.0.shared.life.is_past()
    }

    pub(crate) fn id(&self) -> u64 {
        self.0.shared.id
    }

    /// How many devices are visible; in a forked child, how many were when the process knew.
    pub(crate) fn visible_count(&self) -> usize {
        if self.0.shared.life.ended_by_fork() {
            return self.0.probed.get().map_or(0, |probed| probed.slots.len());
        }
        self.probe().map_or(0, |probed| probed.slots.len())
    }

    fn probe(&self) -> Result<&Probed> {
        self.0.shared.check()?;
        if let Some(probed) = self.0.probed.get() {
            return Ok(probed);
        }
        // A fork waits until it is known, and meets no instance.
        let _inside = gate::enter();
        let _probing = self.0.probing.lock();
        if let Some(probed) = self.0.probed.get() {
            return Ok(probed);
        }
        let probed = self.probe_now()?;
        Ok(self.0.probed.get_or_init(|| probed))
    }

    fn probe_now(&self) -> Result<Probed> {
        let shared = &self.0.shared;
        let infos = shared.new_instance()?.physical_infos()?;
        // What is not Unicode is no entry either, and said so.
        let variable = std::env::var_os(mask::VARIABLE);
        let variable = variable.as_deref().map(OsStr::to_string_lossy);
        let list = match (&shared.config.visible_devices, &variable) {
            (Some(list), _) => Some(mask::List::of_builder(list)),
            (None, Some(list)) => Some(mask::List::of_environment(list)),
            (None, None) => None,
        };
        let selection = select::select(&infos, list)?;
        let slots = selection
            .visible
            .iter()
            .zip(0u32..)
            .map(|(&position, index)| Slot::new(shared, index, position, &infos[position]))
            .collect();
        Ok(Probed { selection, slots })
    }

    /// Gives what is cached on any device that is open back to its driver.
    #[track_caller]
    pub(crate) fn empty_caches(&self) -> Result<()> {
        self.0.shared.check()?;
        let slots = self.0.probed.get().map_or(&[][..], |probed| &probed.slots);
        // The first error is the one to report; the others still get their turn.
        let (mut result, call) = (Ok(()), Call::new("empty_cache"));
        for slot in slots {
            result = result.and(slot.empty_cache(call));
        }
        result
    }

    /// All visible devices; an error that says why where there is none.
    pub(crate) fn slots(&self) -> Result<&[Arc<Slot>]> {
        let probed = self.probe()?;
        if probed.slots.is_empty() {
            return Err(probed.selection.no_device());
        }
        Ok(&probed.slots)
    }

    /// The device that an argument means; opens nothing.
    pub(crate) fn slot(&self, device: &DeviceArg) -> Result<&Arc<Slot>> {
        device.check()?;
        let slots = self.slots()?;
        let index = device.index(current::device(self), count(slots))?;
        Ok(&slots[index as usize])
    }

    /// The same; nothing where there is no device at all.
    pub(crate) fn slot_if_any(&self, device: &DeviceArg) -> Result<Option<&Arc<Slot>>> {
        match self.slot(device) {
            Ok(slot) => Ok(Some(slot)),
            Err(error) if matches!(error.kind(), ErrorKind::NoDriver | ErrorKind::NoDevice) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    pub(crate) fn current_index(&self) -> Result<u32> {
        self.slots()?;
        Ok(current::device(self))
    }

    /// The thread's current device, whether or not there are devices; asks no driver.
    pub(crate) fn thread_device(&self) -> u32 {
        current::device(self)
    }

    /// The default random generators of the devices.
    pub(crate) fn generators(&self) -> Result<&Defaults> {
        self.0.shared.check()?;
        Ok(&self.0.shared.generators)
    }

    /// Switches the thread's current device; a negative index changes nothing.
    pub(crate) fn set_current(&self, device: &DeviceArg) -> Result<()> {
        if let Some(index) = device.switch(|| self.slots().map(count))? {
            current::set_device(self, index);
        }
        Ok(())
    }

    pub(crate) fn device_guard(&self, device: &DeviceArg) -> Result<DeviceIndexGuard> {
        let index = device.guard(|| self.slots().map(count))?;
        Ok(DeviceIndexGuard::new(self, index))
    }

    /// The thread's current stream of a device.
    pub(crate) fn current_stream_of(&self, device: &DeviceArg) -> Result<Stream> {
        Ok(current::stream(self.slot(device)?))
    }

    pub(crate) fn set_current_stream(&self, stream: &Stream) -> Result<()> {
        self.0.shared.check()?;
        stream.slot().shared().check()?;
        if stream.slot().runtime_id() != self.id() {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                "the stream belongs to another runtime than the thread's current one; enter that \
                 runtime first",
            ));
        }
        current::set_stream(stream);
        Ok(())
    }

    /// Waits for all work of a device; for one that is not open there is none.
    #[track_caller]
    pub(crate) fn synchronize_device(&self, device: &DeviceArg) -> Result<()> {
        self.0.shared.check()?;
        if device.is_current() && !self.is_initialized() {
            return Ok(());
        }
        self.slot(device)?.synchronize(Call::new("synchronize"))
    }

    pub(crate) fn memory_info(&self, device: &DeviceArg) -> Result<MemoryInfo> {
        self.slot(device)?.memory_info()
    }

    /// The kind of device that this build drives.
    pub(crate) fn accelerator(&self, check_available: bool) -> Option<Device> {
        (!check_available || self.visible_count() > 0).then_some(Device::any())
    }
}

fn count(slots: &[Arc<Slot>]) -> u32 {
    u32::try_from(slots.len()).unwrap_or(u32::MAX)
}

/// The thread's current stream of a device.
pub(crate) fn current_stream(slot: &Arc<Slot>) -> Stream {
    current::stream(slot)
}

/// The private pool that the thread takes memory of a device from, where one is entered.
pub(crate) fn current_pool(slot: &Slot) -> Option<PoolId> {
    current::pool(slot)
}
