//! The one map from Vulkan's codes to errors.

use ash::vk;

use crate::error::{Error, ErrorKind, OutOfMemory, OutOfMemoryReason, Result};

/// What to do on a machine with a loader and nothing behind it.
const NO_DRIVER: &str = "the Vulkan loader found no driver that it can use; install your vendor's \
     driver, or a software one (mesa-vulkan-drivers on Debian), and see that VK_DRIVER_FILES and \
     VK_ICD_FILENAMES, if set, name its manifest";

/// An error for `code`, which the function `call` gave.
#[cold]
pub(crate) fn error(call: &str, code: vk::Result) -> Error {
    let (kind, advice) = match code {
        vk::Result::ERROR_OUT_OF_HOST_MEMORY => (
            ErrorKind::OutOfHostMemory,
            "the host has no memory left for the driver",
        ),
        vk::Result::ERROR_OUT_OF_DEVICE_MEMORY => {
            (ErrorKind::OutOfMemory, "the device has no memory left")
        }
        vk::Result::ERROR_TOO_MANY_OBJECTS => (
            ErrorKind::OutOfMemory,
            "the device holds as many allocations as it can",
        ),
        vk::Result::ERROR_DEVICE_LOST => (
            ErrorKind::DeviceLost,
            "the device was lost; what it held is gone, and every later call that uses it fails",
        ),
        vk::Result::ERROR_INCOMPATIBLE_DRIVER => (ErrorKind::NoDevice, NO_DRIVER),
        vk::Result::ERROR_LAYER_NOT_PRESENT => (
            ErrorKind::Config,
            "a layer that was asked for is not installed",
        ),
        vk::Result::ERROR_EXTENSION_NOT_PRESENT | vk::Result::ERROR_FEATURE_NOT_PRESENT => (
            ErrorKind::Unsupported,
            "the driver does not have what it said it has",
        ),
        vk::Result::ERROR_INITIALIZATION_FAILED => {
            (ErrorKind::Driver, "the driver could not start")
        }
        _ => (ErrorKind::Driver, "the driver refused"),
    };
    let error = Error::new(kind, format!("{call} failed with {code:?}: {advice}"));
    let error = error.with_raw(code.as_raw());
    if kind == ErrorKind::OutOfMemory {
        let reason = if code == vk::Result::ERROR_TOO_MANY_OBJECTS {
            OutOfMemoryReason::TooManyAllocations
        } else {
            OutOfMemoryReason::RefusedByDriver
        };
        return error.with_out_of_memory(OutOfMemory::new(reason, 0));
    }
    error
}

/// Turns a driver's answer into ours.
pub(crate) trait During<T> {
    /// The value, or the error of the function `call`.
    fn during(self, call: &str) -> Result<T>;
}

impl<T> During<T> for Result<T, vk::Result> {
    fn during(self, call: &str) -> Result<T> {
        self.map_err(|code| error(call, code))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_and_kind_are_kept() {
        let lost = error("vkQueueSubmit", vk::Result::ERROR_DEVICE_LOST);
        assert!(lost.is_device_lost());
        assert_eq!(lost.raw(), Some(vk::Result::ERROR_DEVICE_LOST.as_raw()));
        let full = error("vkAllocateMemory", vk::Result::ERROR_TOO_MANY_OBJECTS);
        assert_eq!(
            full.out_of_memory().map(|figures| figures.reason),
            Some(OutOfMemoryReason::TooManyAllocations)
        );
        let other = error("vkCreateDevice", vk::Result::ERROR_UNKNOWN);
        assert_eq!(other.kind(), ErrorKind::Driver);
    }
}
