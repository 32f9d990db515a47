//! The bodies of the functions at the crate's root, and of `Stream`'s documented methods.

use super::surface::{RootBodies, StreamBodies};
use crate::device::{Device, DeviceArg, DeviceCapability};
use crate::error::Result;
use crate::exec::Call;
use crate::runtime::{DeviceIndexGuard, Event, Runtime, Stream};

impl RootBodies for Runtime {
    fn is_available(&self) -> bool {
        self.visible_count() > 0
    }

    fn device_count(&self) -> usize {
        self.visible_count()
    }

    fn current_accelerator(&self, check_available: bool) -> Option<Device> {
        self.accelerator(check_available)
    }

    fn current_device_index(&self) -> Result<usize> {
        self.current_index().map(|index| index as usize)
    }

    fn set_device_index(&self, device: DeviceArg) -> Result<()> {
        self.set_current(&device)
    }

    fn get_device_capability(&self, device: DeviceArg) -> Result<DeviceCapability> {
        self.slot(&device).map(|slot| slot.capability().clone())
    }

    fn current_stream(&self, device: DeviceArg) -> Result<Stream> {
        self.current_stream_of(&device)
    }

    fn set_stream(&self, stream: &Stream) -> Result<()> {
        self.set_current_stream(stream)
    }

    fn synchronize(&self, device: DeviceArg) -> Result<()> {
        self.synchronize_device(&device)
    }

    fn device_index(&self, device: DeviceArg) -> Result<DeviceIndexGuard> {
        self.device_guard(&device)
    }
}

impl StreamBodies for Stream {
    fn query(&self) -> Result<bool> {
        self.has_finished()
    }

    fn is_capturing(&self) -> bool {
        self.is_taken_up()
    }

    fn synchronize(&self) -> Result<()> {
        self.wait(None, Call::new("Stream::synchronize")).map(drop)
    }

    fn record_event(&self) -> Result<Event> {
        let event = Event::new();
        event.record(self)?;
        Ok(event)
    }

    fn wait_event(&self, event: &Event) -> Result<()> {
        event.hold_back(self, Call::new("Stream::wait_event"))
    }

    fn wait_stream(&self, other: &Stream) -> Result<()> {
        self.hold_back_for(other, Call::new("Stream::wait_stream"))
    }
}

/// Runs `f` with `device` current, and restores the one before on return, error and panic.
///
/// It does what [`device_index`](crate::device_index) does, with no guard to hold.
///
/// # Errors
///
/// [`InvalidDevice`](crate::ErrorKind::InvalidDevice) if `device` names no visible device;
/// [`NoDriver`](crate::ErrorKind::NoDriver), [`NoDevice`](crate::ErrorKind::NoDevice) or
/// [`Config`](crate::ErrorKind::Config) without a device; whatever `f` returns. Also what [any
/// call](crate#errors) may give.
///
/// # Example
///
/// ```
/// # if vkaccel::device_count() == 0 { return Ok(()); }
/// let index = vkaccel::with_device(0, vkaccel::current_device_index)?;
/// assert_eq!(index, 0);
/// # Ok::<(), vkaccel::Error>(())
/// ```
pub fn with_device<R>(device: impl Into<DeviceArg>, f: impl FnOnce() -> Result<R>) -> Result<R> {
    let _guard = Runtime::current().device_guard(&device.into())?;
    f()
}
