//! Streams as their users hold them: names, until the first command opens their device.

use core::fmt;
use core::hash::{Hash, Hasher};
use core::time::Duration;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use super::guard::StreamGuard;
use super::{Opened, Runtime, Slot};
use crate::device::{Device, DeviceArg};
use crate::error::{Error, ErrorKind, Result};
use crate::exec::{Call, Mark, StreamCore};
use crate::mem::Home;

/// An in-order sequence of commands on a device. A handle: clones are the same stream.
///
/// Commands on one stream take effect in the order they were made; between streams there is no
/// order but what waiting makes. A stream is only a name until its first command opens the device.
/// Its methods read neither the thread's current device nor its current stream.
///
/// # Example
///
/// ```
/// # if vkaccel::device_count() == 0 { return Ok(()); }
/// let stream = vkaccel::Stream::new(0)?;
/// let buffer = stream.upload(&[1u32, 2, 3])?;
/// stream.fill(&buffer, 7)?;
/// assert_eq!(stream.to_vec(&buffer)?, [7, 7, 7]);
/// # Ok::<(), vkaccel::Error>(())
/// ```
#[doc(alias = "torch.Stream")]
#[derive(Clone)]
pub struct Stream {
    named: Arc<NamedStream>,
    slot: Arc<Slot>,
}

/// What the handles of one stream share.
#[derive(Debug)]
pub(crate) struct NamedStream {
    id: u64,
    priority: i32,
    /// Which of the device's streams it is, by the order in which they were made; 0: its default one.
    place: usize,
    open: OnceLock<OpenStream>,
}

/// What a stream is once it has had a command.
#[derive(Debug)]
struct OpenStream {
    home: Arc<Home>,
    opened: Weak<Opened>,
}

impl NamedStream {
    pub(super) fn new(priority: i32, place: usize) -> Arc<Self> {
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        Arc::new(Self {
            id,
            priority,
            place,
            open: OnceLock::new(),
        })
    }
}

impl Drop for NamedStream {
    fn drop(&mut self) {
        if let Some(open) = self.open.take()
            && open.home.stream.device().may_call_driver()
        {
            open.home.memory.retire(&open.home.stream);
        }
    }
}

impl Stream {
    /// Makes a stream on a device; opens nothing.
    ///
    /// In PyTorch: `torch.Stream`.
    ///
    /// # Errors
    ///
    /// [`InvalidDevice`](crate::ErrorKind::InvalidDevice) if `device` names no visible device;
    /// [`NoDriver`](crate::ErrorKind::NoDriver), [`NoDevice`](crate::ErrorKind::NoDevice) or
    /// [`Config`](crate::ErrorKind::Config) if none can be visible. Also what [any call](crate#errors) may
    /// give.
    pub fn new(device: impl Into<DeviceArg>) -> Result<Self> {
        Self::with_priority(device, 0)
    }

    /// Makes a stream with a priority: lower numbers are more urgent.
    ///
    /// The priority is kept and can be asked for. The device runs all streams alike: which of its
    /// queues a stream goes to is settled by the order in which streams are made.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    ///
    /// # Example
    ///
    /// ```
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let urgent = vkaccel::Stream::with_priority(0, -1)?;
    /// assert_eq!(urgent.priority(), -1);
    /// # Ok::<(), vkaccel::Error>(())
    /// ```
    pub fn with_priority(device: impl Into<DeviceArg>, priority: i32) -> Result<Self> {
        let runtime = Runtime::current();
        let slot = runtime.slot(&device.into())?;
        Ok(Self {
            named: NamedStream::new(priority, slot.next_place()),
            slot: Arc::clone(slot),
        })
    }

    /// The default stream of a device, which is current where none was set; opens nothing.
    ///
    /// In PyTorch: `torch.cuda.default_stream`, not in `torch.accelerator`.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    ///
    /// # Example
    ///
    /// ```
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// use vkaccel::Stream;
    ///
    /// vkaccel::set_stream(&Stream::new(0)?)?;
    /// vkaccel::set_stream(&Stream::default_of(0)?)?;
    /// assert_eq!(vkaccel::current_stream(0)?, Stream::default_of(0)?);
    /// # Ok::<(), vkaccel::Error>(())
    /// ```
    #[doc(alias = "torch.cuda.default_stream")]
    pub fn default_of(device: impl Into<DeviceArg>) -> Result<Self> {
        let runtime = Runtime::current();
        Ok(Self::default_in(runtime.slot(&device.into())?))
    }

    pub(super) fn default_in(slot: &Arc<Slot>) -> Self {
        Self {
            named: slot.default_stream(),
            slot: Arc::clone(slot),
        }
    }

    /// The device that the stream belongs to.
    pub fn device(&self) -> Device {
        self.slot.device()
    }

    /// A number that no other stream of the process has.
    pub fn id(&self) -> u64 {
        self.named.id
    }

    /// The priority it was made with; 0 for a default stream.
    pub fn priority(&self) -> i32 {
        self.named.priority
    }

    /// Submits what the stream has recorded, without waiting.
    ///
    /// Never needed for progress: recorded commands are submitted by themselves before long.
    ///
    /// # Errors
    ///
    /// What [any command](crate#errors) may give.
    pub fn flush(&self) -> Result<()> {
        self.existing()?.map_or(Ok(()), |core| core.flush())
    }

    /// Waits until all commands so far have finished, or until the time has run out: `false`.
    ///
    /// Running out of time is no error.
    ///
    /// # Errors
    ///
    /// What [any wait](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let stream = vkaccel::Stream::new(0)?;
    /// assert!(stream.synchronize_timeout(core::time::Duration::ZERO)?);
    /// # Ok::<(), vkaccel::Error>(())
    /// ```
    #[track_caller]
    pub fn synchronize_timeout(&self, timeout: Duration) -> Result<bool> {
        self.wait(Some(timeout), Call::new("Stream::synchronize_timeout"))
    }

    /// Runs a function on the host once all commands so far have finished.
    ///
    /// It runs on a thread of the runtime, after the callbacks that the stream was given before. It may
    /// record commands, but may not wait for the device, and holds up other callbacks and idle streams
    /// while it runs, so keep it short. Commands that come after it do not wait for it, nor does waiting
    /// for the stream; [`Runtime::shutdown`] does. It is dropped without being called if the device is
    /// lost. If it panics, the next call that uses the stream says so.
    ///
    /// # Errors
    ///
    /// [`NotPermitted`](crate::ErrorKind::NotPermitted) on a stream that is captured. Inside of `f`, what
    /// would wait fails so too. Also what [any command](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let stream = vkaccel::Stream::new(0)?;
    /// let buffer = stream.upload(&[1u32, 2, 3])?;
    /// let (sender, receiver) = std::sync::mpsc::channel();
    /// stream.add_callback(move || sender.send("uploaded").unwrap_or_default())?;
    /// assert_eq!(receiver.recv(), Ok("uploaded"));
    /// # Ok::<(), vkaccel::Error>(())
    /// ```
    #[doc(alias = "cudaLaunchHostFunc")]
    #[track_caller]
    pub fn add_callback(&self, f: impl FnOnce() + Send + 'static) -> Result<()> {
        let (core, _opened) = self.open()?;
        core.call(Box::new(f), Call::new("Stream::add_callback"))
    }

    /// Makes the stream, and its device, current on this thread until the guard is dropped.
    ///
    /// # Errors
    ///
    /// What [any call](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let stream = vkaccel::Stream::new(0)?;
    /// let entered = stream.enter()?;
    /// assert_eq!(vkaccel::current_stream(None)?, stream);
    /// drop(entered);
    /// assert_ne!(vkaccel::current_stream(None)?, stream);
    /// # Ok::<(), vkaccel::Error>(())
    /// ```
    pub fn enter(&self) -> Result<StreamGuard> {
        self.slot.shared().check()?;
        Ok(StreamGuard::new(self))
    }

    /// Runs `f` with the stream current, and restores the one before on return, error and panic.
    ///
    /// # Errors
    ///
    /// Whatever `f` returns. Also what [any call](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// use vkaccel::{Buffer, Stream};
    ///
    /// let stream = Stream::new(0)?;
    /// let numbers = stream.scope(|| {
    ///     let numbers = Buffer::from_slice(&[1u32, 2, 3])?; // on `stream`
    ///     numbers.fill(7)?;
    ///     Ok(numbers)
    /// })?;
    /// assert_eq!(stream.to_vec(&numbers)?, [7, 7, 7]);
    /// # Ok::<(), vkaccel::Error>(())
    /// ```
    pub fn scope<R>(&self, f: impl FnOnce() -> Result<R>) -> Result<R> {
        let _entered = self.enter()?;
        f()
    }

    /// Runs `f`, in which launches on this stream by this thread are independent of each other.
    ///
    /// No barriers are put between them, however many there are and whatever they use: say so only of
    /// launches of which none needs another's results. They are ordered with all that is before and after
    /// the scope; other commands in the scope, as copies, take effect in order, and so do launches on both
    /// sides of an allocation, which may get memory that was dropped in between. Without a scope, launches
    /// are ordered where one writes what another uses.
    ///
    /// # Errors
    ///
    /// Whatever `f` returns. In a build with debug assertions, a launch in the scope that writes what
    /// another of them uses, or uses what another writes, is an
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument); other builds don't look, and the results are
    /// then unspecified. Also what [any command](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let stream = vkaccel::Stream::new(0)?;
    /// let done = stream.concurrent(|| {
    ///     // launches of kernels on parts of a buffer
    ///     Ok("recorded")
    /// })?;
    /// assert_eq!(done, "recorded");
    /// # Ok::<(), vkaccel::Error>(())
    /// ```
    pub fn concurrent<R>(&self, f: impl FnOnce() -> Result<R>) -> Result<R> {
        let (core, _opened) = self.open()?;
        let _scope = core.open_scope();
        f()
    }

    pub(crate) fn slot(&self) -> &Arc<Slot> {
        &self.slot
    }

    /// The opened stream with its opened device.
    pub(crate) fn open(&self) -> Result<(Arc<StreamCore>, Arc<Opened>)> {
        self.slot.shared().check()?;
        if let Some(open) = self.named.open.get()
            && let Some(opened) = open.opened.upgrade()
        {
            return Ok((Arc::clone(&open.home.stream), opened));
        }
        let (open, opened) = self.open_now()?;
        Ok((Arc::clone(&open.home.stream), opened))
    }

    /// The opened stream alone, for what needs nothing else of its device.
    pub(crate) fn core(&self) -> Result<&Arc<StreamCore>> {
        self.home().map(|home| &home.stream)
    }

    /// The opened stream with the memory of its device, for memory on it.
    pub(crate) fn home(&self) -> Result<&Arc<Home>> {
        self.slot.shared().check()?;
        match self.named.open.get() {
            Some(open) => Ok(&open.home),
            None => self.open_now().map(|(open, _)| &open.home),
        }
    }

    #[cold]
    fn open_now(&self) -> Result<(&OpenStream, Arc<Opened>)> {
        let opened = self.slot.open()?;
        let open = self.named.open.get_or_init(|| OpenStream {
            home: Arc::new(Home {
                stream: StreamCore::new(&opened.exec, self.named.id, self.named.place),
                memory: Arc::clone(&opened.memory),
            }),
            opened: Arc::downgrade(&opened),
        });
        Ok((open, opened))
    }

    /// The opened stream, if it has had a command.
    fn existing(&self) -> Result<Option<&Arc<StreamCore>>> {
        self.slot.shared().check()?;
        Ok(self.named.open.get().map(|open| &open.home.stream))
    }

    /// Waits for all commands so far; `false` if `timeout` ran out.
    pub(crate) fn wait(&self, timeout: Option<Duration>, call: Call) -> Result<bool> {
        let Some(core) = self.existing()? else {
            return Ok(true);
        };
        core.permit_on_captured(call)?;
        core.permit(call)?;
        core.device().counts().host_waits_asked.add(1);
        core.synchronize(timeout)
    }

    /// A point behind all commands so far.
    pub(super) fn mark(&self) -> Result<Mark> {
        let core = self.existing()?;
        core.map_or(Ok(Mark::Nothing), |core| core.mark())
    }

    /// Has all commands to come wait for a point of a stream of the same device.
    pub(super) fn wait_for(&self, mark: &Mark, call: Call) -> Result<()> {
        self.slot.shared().check()?;
        if mark.leads_nowhere() {
            return Ok(());
        }
        let (core, _opened) = self.open()?;
        core.wait(mark, call)
    }

    /// Has all commands to come wait for all that another stream has so far.
    pub(crate) fn hold_back_for(&self, other: &Self, call: Call) -> Result<()> {
        if !Arc::ptr_eq(&self.slot, &other.slot) {
            self.slot.shared().check()?;
            other.slot.shared().check()?;
            return Err(Error::new(
                ErrorKind::InvalidDevice,
                format!(
                    "one stream is on {}, the other on {}{}; wait for the other on the host, with \
                     `Stream::synchronize`",
                    self.device(),
                    other.device(),
                    if self.slot.runtime_id() == other.slot.runtime_id() {
                        ""
                    } else {
                        " of another runtime"
                    }
                ),
            ));
        }
        if self == other {
            return self.slot.shared().check();
        }
        self.wait_for(&other.mark()?, call)
    }

    /// Whether all commands so far have finished.
    #[track_caller]
    pub(crate) fn has_finished(&self) -> Result<bool> {
        let Some(core) = self.existing()? else {
            return Ok(true);
        };
        core.permit_on_captured(Call::new("Stream::query"))?;
        core.query()
    }

    /// The check that opens the capture of a stream.
    pub(crate) fn check_not_captured(&self, call: Call) -> Result<()> {
        self.existing()?
            .map_or(Ok(()), |core| core.check_not_captured(call))
    }

    /// Whether what is put on it is captured.
    pub(crate) fn is_taken_up(&self) -> bool {
        self.existing()
            .is_ok_and(|core| core.is_some_and(|core| core.is_captured()))
    }
}

impl PartialEq for Stream {
    fn eq(&self, other: &Self) -> bool {
        self.id() == other.id()
    }
}

impl Eq for Stream {}

impl Hash for Stream {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id().hash(state);
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream")
            .field("id", &self.id())
            .field("device", &self.device())
            .finish()
    }
}
