//! Events: points of streams, to wait for and to measure time between.

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use super::{Runtime, Slot, Stream};
use crate::base::{fork::Life, sync::Mutex};
use crate::device::DeviceArg;
use crate::error::{Error, ErrorKind, Result};
use crate::exec::{Call, Mark, Time, elapsed};

/// A point of a stream that can be waited for. A handle: clones are the same event.
///
/// Recording puts it after all commands that the stream has so far; recording again moves it. A wait
/// is for where the event was when the wait was made: moving it later changes nothing about that. An
/// event that was never recorded counts as reached, and waiting for it does nothing. It keeps neither
/// its stream nor any memory, and may be dropped at any moment.
///
/// Recorded on a stream that a [`Graph`](crate::Graph) captures, it orders what is captured: a stream that
/// waits for it is captured too. It is then reached at each replay anew, so that asking whether it is, or
/// waiting for it on the host, is an error of kind [`Capture`](ErrorKind::Capture).
///
/// # Example
///
/// ```
/// # if vkaccel::device_count() == 0 { return Ok(()); }
/// let (producer, consumer) = (vkaccel::Stream::new(0)?, vkaccel::Stream::new(0)?);
/// let buffer = producer.upload(&[1u32, 2, 3])?;
/// let uploaded = producer.record_event()?;
/// consumer.wait_event(&uploaded)?;
/// assert_eq!(consumer.to_vec(&buffer)?, [1, 2, 3]);
/// # Ok::<(), vkaccel::Error>(())
/// ```
#[doc(alias = "torch.Event")]
#[doc(alias = "VkSemaphore")]
#[derive(Clone)]
pub struct Event(Arc<Inner>);

struct Inner {
    has_timing: bool,
    life: Life,
    recorded: Mutex<Option<Recorded>>,
}

/// Where an event was recorded.
#[derive(Clone)]
struct Recorded {
    mark: Mark,
    time: Option<Time>,
    slot: Arc<Slot>,
}

impl Event {
    /// An event to wait for, not yet recorded.
    ///
    /// It belongs to no device until it is.
    ///
    /// In PyTorch: `torch.Event`.
    #[expect(
        clippy::new_without_default,
        reason = "an event is an identity, not a value: no two of them are equal"
    )]
    pub fn new() -> Self {
        Self::with(false)
    }

    /// An event that also knows the device's time when it is reached, for
    /// [`elapsed_time`](Self::elapsed_time).
    ///
    /// In PyTorch: `torch.Event` with `enable_timing=True`.
    ///
    /// # Example
    ///
    /// ```
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// use vkaccel::Event;
    ///
    /// let stream = vkaccel::Stream::new(0)?;
    /// let (start, end) = (Event::with_timing(), Event::with_timing());
    /// start.record(&stream)?;
    /// let buffer = stream.zeroed::<u32>(1 << 20)?;
    /// end.record(&stream)?;
    /// end.synchronize()?;
    /// match start.elapsed_time(&end) {
    ///     Ok(milliseconds) => println!("{milliseconds} ms"),
    ///     Err(error) => println!("{error}"), // a device without timestamps
    /// }
    /// # Ok::<(), vkaccel::Error>(())
    /// ```
    #[doc(alias = "enable_timing")]
    pub fn with_timing() -> Self {
        Self::with(true)
    }

    fn with(has_timing: bool) -> Self {
        Self(Arc::new(Inner {
            has_timing,
            life: Life::now(),
            recorded: Mutex::new(None),
        }))
    }

    /// Puts the event after all commands that a stream has so far; `None` means the current stream of
    /// the current device.
    ///
    /// Does not wait, and submits nothing that would not be submitted anyway.
    ///
    /// In PyTorch: `torch.Event.record`.
    ///
    /// # Errors
    ///
    /// With `None`, [`NoDriver`](crate::ErrorKind::NoDriver), [`NoDevice`](crate::ErrorKind::NoDevice) or
    /// [`Config`](crate::ErrorKind::Config) where there is no device. Also what [any command](crate#errors)
    /// may give.
    ///
    /// # Example
    ///
    /// ```
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let event = vkaccel::Event::new();
    /// event.record(None)?;
    /// event.record(&vkaccel::Stream::new(0)?)?;
    /// event.synchronize()?;
    /// # Ok::<(), vkaccel::Error>(())
    /// ```
    #[doc(alias = "torch.Event.record")]
    pub fn record<'a>(&self, stream: impl Into<Option<&'a Stream>>) -> Result<()> {
        self.0.life.check()?;
        with_stream(stream.into(), |stream| {
            let recorded = self.recorded_on(stream)?;
            // What it was before is let go of behind the lock.
            let before = self.0.recorded.lock().replace(recorded);
            drop(before);
            Ok(())
        })
    }

    fn recorded_on(&self, stream: &Stream) -> Result<Recorded> {
        let (mark, time) = if self.0.has_timing {
            let (core, _opened) = stream.open()?;
            core.mark_timed()?
        } else {
            (stream.mark()?, None)
        };
        Ok(Recorded {
            mark,
            time,
            slot: Arc::clone(stream.slot()),
        })
    }

    /// Has all commands to come on a stream wait for the event, as it is now; `None` means the current
    /// stream of the current device.
    ///
    /// The host does not wait. What leads to the event is submitted, so that no order of waits can hang.
    ///
    /// In PyTorch: `torch.Event.wait`.
    ///
    /// # Errors
    ///
    /// As [`Stream::wait_event`]; with `None`, also [`NoDriver`](crate::ErrorKind::NoDriver),
    /// [`NoDevice`](crate::ErrorKind::NoDevice) or [`Config`](crate::ErrorKind::Config) where there is no
    /// device.
    ///
    /// # Example
    ///
    /// ```
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let stream = vkaccel::Stream::new(0)?;
    /// let event = stream.record_event()?;
    /// event.wait(None)?;
    /// event.wait(&vkaccel::Stream::new(0)?)?;
    /// # Ok::<(), vkaccel::Error>(())
    /// ```
    #[doc(alias = "torch.Event.wait")]
    #[track_caller]
    pub fn wait<'a>(&self, stream: impl Into<Option<&'a Stream>>) -> Result<()> {
        let call = Call::new("Event::wait");
        with_stream(stream.into(), |stream| self.hold_back(stream, call))
    }

    /// Has all commands to come on the stream wait for the event.
    pub(crate) fn hold_back(&self, stream: &Stream, call: Call) -> Result<()> {
        stream.slot().shared().check()?;
        let Some(recorded) = self.recorded()? else {
            return Ok(());
        };
        if !Arc::ptr_eq(&recorded.slot, stream.slot()) {
            return Err(wrong_device(stream.slot(), &recorded.slot));
        }
        stream.wait_for(&recorded.mark, call)
    }

    /// Where it was recorded.
    fn recorded(&self) -> Result<Option<Recorded>> {
        // A forked child must not meet a lock that a thread of its parent held.
        self.0.life.check()?;
        let recorded = self.0.recorded.lock().clone();
        if let Some(recorded) = &recorded {
            recorded.slot.shared().check()?;
        }
        Ok(recorded)
    }

    pub(crate) fn has_finished(&self) -> Result<bool> {
        let recorded = self.recorded()?;
        recorded.map_or(Ok(true), |recorded| recorded.mark.ticket()?.is_reached())
    }

    /// Waits on the host; `false` if `timeout` ran out.
    pub(crate) fn wait_on_host(&self, timeout: Option<Duration>, call: Call) -> Result<bool> {
        let Some(recorded) = self.recorded()? else {
            return Ok(true);
        };
        let ticket = recorded.mark.ticket()?;
        recorded.slot.permit(call)?;
        ticket.wait(timeout)
    }

    /// The milliseconds from this event to `end`.
    pub(crate) fn milliseconds_to(&self, end: &Self) -> Result<f64> {
        let has_timing = |one: &Self| one.0.has_timing.then_some(());
        both(has_timing(self), has_timing(end)).map_err(|which| {
            Error::new(
                ErrorKind::TimingNotEnabled,
                format!("{which} was made without timing; make both with `Event::with_timing`"),
            )
        })?;
        let (from, to) = both(self.recorded()?, end.recorded()?).map_err(|which| {
            Error::new(
                ErrorKind::NotRecorded,
                format!(
                    "{which} was never recorded; record both before asking for the time between them"
                ),
            )
        })?;
        from.milliseconds_to(&to)
    }
}

impl Recorded {
    fn milliseconds_to(&self, end: &Self) -> Result<f64> {
        for recorded in [self, end] {
            recorded.mark.ticket()?;
        }
        if !Arc::ptr_eq(&self.slot, &end.slot) {
            return Err(Error::new(
                ErrorKind::InvalidDevice,
                format!(
                    "this event is of {}, `end` of {}; devices have clocks of their own",
                    self.slot.device(),
                    end.slot.device()
                ),
            ));
        }
        let (from, to) = both(self.time.as_ref(), end.time.as_ref()).map_err(|which| {
            Error::new(
                ErrorKind::Unsupported,
                format!(
                    "the queue that {which} was recorded on writes no timestamps; measure on the default \
                     stream of {}, whose queue does if any does",
                    self.slot.device()
                ),
            )
        })?;
        let opened = self.slot.open()?;
        let plan = opened.device.plan();
        if from.lane != to.lane && !plan.has_device_clock {
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!(
                    "the events were recorded on different queues of {}, which does not promise that \
                     their timestamps count the same time; record both on one stream",
                    self.slot.device()
                ),
            ));
        }
        let is_reached =
            |one: &Self| Ok::<_, Error>(one.mark.ticket()?.is_reached()?.then_some(()));
        both(is_reached(self)?, is_reached(end)?).map_err(|which| {
            Error::new(
                ErrorKind::NotReady,
                format!("{which} is not reached yet; wait for both with `Event::synchronize`"),
            )
        })?;
        if Arc::ptr_eq(&from.stamp, &to.stamp) {
            return Ok(0.0);
        }
        let valid_bits = from.valid_bits.min(to.valid_bits);
        let (start, end) = (from.stamp.read()?, to.stamp.read()?);
        let period = plan.limits.timestamp_period;
        Ok(elapsed::milliseconds(start, end, valid_bits, period))
    }
}

/// What both events have, or else the first one that lacks it, as texts call it.
fn both<T>(from: Option<T>, end: Option<T>) -> core::result::Result<(T, T), &'static str> {
    Ok((from.ok_or("this event")?, end.ok_or("`end`")?))
}

/// Runs `f` with the stream, or with the current one of the current device.
fn with_stream(stream: Option<&Stream>, f: impl FnOnce(&Stream) -> Result<()>) -> Result<()> {
    match stream {
        Some(stream) => f(stream),
        None => f(&Runtime::current().current_stream_of(&DeviceArg::CURRENT)?),
    }
}

#[cold]
fn wrong_device(stream: &Slot, event: &Slot) -> Error {
    let text = if stream.runtime_id() == event.runtime_id() {
        format!(
            "the stream is on {}, but the event was recorded on {}; wait for it on the host, with \
             `Event::synchronize`",
            stream.device(),
            event.device()
        )
    } else {
        "the stream and the event belong to different runtimes; wait for the event on the host, with \
         `Event::synchronize`"
            .to_owned()
    };
    Error::new(ErrorKind::InvalidDevice, text)
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event")
            .field("has_timing", &self.0.has_timing)
            .finish_non_exhaustive()
    }
}
