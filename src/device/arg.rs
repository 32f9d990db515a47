//! What a call that takes a device accepts.
//!
//! The argument is owned and free of lifetimes, and texts are parsed at once: a borrowing argument
//! would put a lifetime on every function of the surface.

use core::fmt;

use super::name::{Device, KIND};
use crate::error::{Error, ErrorKind, Result};

/// A device as an argument: nothing, an index, a text or a [`Device`].
///
/// | given | means |
/// | --- | --- |
/// | `None`, `DeviceArg::CURRENT`, `"vulkan"`, [`Device::any()`] | the calling thread's current device |
/// | `1`, `Some(1)`, any of `i32 i64 isize u32 u64 usize` | the device with that index |
/// | `"vulkan:1"`, [`Device::new(1)`](Device::new) | the same |
///
/// Anything else (another kind, a malformed text, a negative index, one past the end) is an error of
/// kind [`ErrorKind::InvalidDevice`] that says what was given and what exists. A negative index is
/// accepted, and changes nothing, where the current device is set:
/// [`set_device_index`](crate::set_device_index) and [`device_index`](crate::device_index). There,
/// a device without an index is an error.
///
/// # Example
///
/// ```no_run
/// vkaccel::synchronize(None)?;
/// vkaccel::synchronize(0)?;
/// vkaccel::synchronize("vulkan:0")?;
/// for index in 0..vkaccel::device_count() {
///     vkaccel::synchronize(index)?;
/// }
/// # Ok::<(), vkaccel::Error>(())
/// ```
///
/// Other types are refused by the compiler:
///
/// ```compile_fail,E0277
/// vkaccel::synchronize(3.5)?;
/// # Ok::<(), vkaccel::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct DeviceArg(Given);

#[derive(Clone, Debug)]
enum Given {
    Current,
    Index(i128),
    Device(Device),
    /// A text that names no device; parsed again for the error.
    BadText(Box<str>),
}

impl DeviceArg {
    /// The calling thread's current device.
    pub const CURRENT: DeviceArg = DeviceArg(Given::Current);

    /// Finds what is wrong with the argument whatever devices exist: its text, its kind, its sign.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidDevice`].
    pub(crate) fn check(&self) -> Result<()> {
        match &self.0 {
            Given::Index(index) if *index < 0 => Err(negative(*index)),
            Given::BadText(text) => text.parse::<Device>().map(drop),
            _ => Ok(()),
        }
    }

    /// The index that is meant, among `count` devices, where `current` is the current one.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidDevice`]; [`ErrorKind::NoDevice`] where the argument is sound but `count`
    /// is 0 (a caller that knows why there is none calls [`check`](Self::check) and says so itself).
    pub(crate) fn index(&self, current: u32, count: u32) -> Result<u32> {
        self.check()?;
        match self.given_index() {
            Some(index) => in_range(index, count),
            None => in_range(i128::from(current), count),
        }
    }

    /// The device to switch to, for a call that sets the current device; nothing where a negative
    /// index asks for no change. Asks for the number of devices only where it matters, so that what is
    /// wrong with the argument itself is found first, and a no-op needs no device.
    ///
    /// # Errors
    ///
    /// As [`index`](Self::index), [`ErrorKind::InvalidDevice`] for an argument without an index, and
    /// what `count` gives.
    pub(crate) fn switch(&self, count: impl FnOnce() -> Result<u32>) -> Result<Option<u32>> {
        match self.given_index() {
            Some(index) if index < 0 => Ok(None),
            Some(index) => in_range(index, count()?).map(Some),
            None => {
                self.check()?;
                Err(index_needed())
            }
        }
    }

    /// The device that a guard switches to; nothing where the argument is absent or negative.
    ///
    /// # Errors
    ///
    /// As [`switch`](Self::switch), but an absent argument is accepted.
    pub(crate) fn guard(&self, count: impl FnOnce() -> Result<u32>) -> Result<Option<u32>> {
        if self.is_current() {
            return Ok(None);
        }
        self.switch(count)
    }

    /// Whether the argument is absent.
    pub(crate) fn is_current(&self) -> bool {
        matches!(self.0, Given::Current)
    }

    fn given_index(&self) -> Option<i128> {
        match &self.0 {
            Given::Index(index) => Some(*index),
            Given::Device(device) => device.index().map(i128::from),
            Given::Current | Given::BadText(_) => None,
        }
    }
}

fn in_range(index: i128, count: u32) -> Result<u32> {
    match u32::try_from(index) {
        Ok(index) if index < count => Ok(index),
        _ => Err(past_the_end(index, count)),
    }
}

/// What devices exist, as the end of a sentence.
struct Existing(u32);

impl fmt::Display for Existing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("this process sees no device"),
            1 => write!(f, "this process sees one device, {KIND}:0"),
            count => write!(
                f,
                "this process sees {count} devices, {KIND}:0 to {KIND}:{}",
                count - 1
            ),
        }
    }
}

#[cold]
fn past_the_end(index: i128, count: u32) -> Error {
    if count == 0 {
        return Error::new(
            ErrorKind::NoDevice,
            "no Vulkan device is visible to this process; Runtime::selection says why each one \
             that exists was left out",
        );
    }
    Error::new(
        ErrorKind::InvalidDevice,
        format!("{KIND}:{index} does not exist; {}", Existing(count)),
    )
}

#[cold]
fn negative(index: i128) -> Error {
    Error::new(
        ErrorKind::InvalidDevice,
        format!(
            "{index} is not the index of a device; indexes start at 0, and only set_device_index \
             and device_index take a negative one, which changes nothing"
        ),
    )
}

#[cold]
fn index_needed() -> Error {
    Error::new(
        ErrorKind::InvalidDevice,
        format!(
            "a device without an index can't be made the current one; give its index, as 0 or \
             \"{KIND}:0\""
        ),
    )
}

// There is one `Option` impl; a second one breaks `None`: the type of a bare `None` could no longer
// be inferred, in every program that passes one.
impl From<Option<i32>> for DeviceArg {
    fn from(index: Option<i32>) -> Self {
        index.map_or(Self::CURRENT, Self::from)
    }
}

macro_rules! from_integers {
    ($($integer:ty),* $(,)?) => {$(
        impl From<$integer> for DeviceArg {
            fn from(index: $integer) -> Self {
                // Every integer of up to 64 bits fits.
                Self(Given::Index(index as i128))
            }
        }
    )*};
}

from_integers!(i32, i64, isize, u32, u64, usize);

impl From<&str> for DeviceArg {
    fn from(text: &str) -> Self {
        Self(match text.parse() {
            Ok(device) => Given::Device(device),
            Err(_) => Given::BadText(text.into()),
        })
    }
}

impl From<&String> for DeviceArg {
    fn from(text: &String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<String> for DeviceArg {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<Device> for DeviceArg {
    fn from(device: Device) -> Self {
        Self(Given::Device(device))
    }
}

impl From<&Device> for DeviceArg {
    fn from(device: &Device) -> Self {
        Self::from(*device)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(arg: impl Into<DeviceArg>) -> Result<u32> {
        arg.into().index(2, 4)
    }

    fn switch(arg: impl Into<DeviceArg>) -> Result<Option<u32>> {
        arg.into().switch(|| Ok(4))
    }

    /// A number of devices that must not be asked for.
    fn unasked() -> Result<u32> {
        panic!("the argument alone decides");
    }

    #[test]
    fn every_form_is_accepted() {
        for current in [
            index(None),
            index("vulkan"),
            index(Device::any()),
            index(DeviceArg::CURRENT),
        ] {
            assert_eq!(current.unwrap(), 2);
        }
        let device = Device::new(1);
        let by_reference = &device;
        let text = String::from("vulkan:1");
        for one in [
            index(1),
            index(Some(1)),
            index(1i64),
            index(1isize),
            index(1u32),
            index(1u64),
            index(1usize),
            index("vulkan:1"),
            index(&text),
            index(text),
            index(device),
            index(by_reference),
        ] {
            assert_eq!(one.unwrap(), 1);
        }
    }

    #[test]
    fn an_index_past_the_end_says_what_exists() {
        for error in [
            index(4).unwrap_err(),
            index(u64::MAX).unwrap_err(),
            index("vulkan:4").unwrap_err(),
            switch(4).unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::InvalidDevice);
            assert!(
                error
                    .to_string()
                    .ends_with("does not exist; this process sees 4 devices, vulkan:0 to vulkan:3"),
                "{error}"
            );
        }
        let error = DeviceArg::from(1).index(0, 1).unwrap_err();
        assert_eq!(
            error.to_string(),
            "vulkan:1 does not exist; this process sees one device, vulkan:0"
        );
    }

    #[test]
    fn without_devices_a_sound_argument_is_no_device_and_a_bad_one_is_invalid() {
        for sound in [
            DeviceArg::CURRENT,
            DeviceArg::from(0),
            DeviceArg::from("vulkan"),
        ] {
            assert!(sound.check().is_ok());
            let error = sound.index(0, 0).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NoDevice);
        }
        for bad in [DeviceArg::from("cuda:0"), DeviceArg::from(-1)] {
            let error = bad.index(0, 0).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidDevice);
        }
    }

    #[test]
    fn a_negative_index_changes_nothing_where_a_device_is_set_and_is_refused_elsewhere() {
        for negative in [-1, i32::MIN] {
            assert_eq!(DeviceArg::from(negative).switch(unasked).unwrap(), None);
            assert_eq!(DeviceArg::from(negative).guard(unasked).unwrap(), None);
            let error = index(negative).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidDevice);
        }
        let error = index(i64::MIN).unwrap_err();
        assert!(error.to_string().starts_with(&i64::MIN.to_string()));
    }

    #[test]
    fn setting_a_device_needs_an_index() {
        for indexless in [
            DeviceArg::from(Device::any()),
            DeviceArg::from("vulkan"),
            DeviceArg::CURRENT,
        ] {
            let error = indexless.switch(unasked).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidDevice);
            assert!(error.to_string().contains("without an index"), "{error}");
        }
        let error = DeviceArg::from("cuda:0").switch(unasked).unwrap_err();
        assert!(error.to_string().contains("\"cuda\""), "{error}");
        assert_eq!(switch("vulkan:3").unwrap(), Some(3));
    }

    #[test]
    fn a_guard_of_nothing_switches_nothing() {
        assert_eq!(DeviceArg::CURRENT.guard(unasked).unwrap(), None);
        assert_eq!(DeviceArg::from(1).guard(|| Ok(4)).unwrap(), Some(1));
        assert!(DeviceArg::from(Device::any()).guard(unasked).is_err());
    }
}
