//! The name of a device: a kind and, where it is given, an index.

use core::fmt;
use core::str::FromStr;

use crate::error::{Error, ErrorKind, Result};

/// The one kind of device that the crate drives.
pub(crate) const KIND: &str = "vulkan";

/// The name of a device: `vulkan:1`, or `vulkan` without an index.
///
/// It is a name and no handle: making, copying or printing one opens nothing, and the device need
/// not exist. Indexes count the devices that the process sees, from 0.
///
/// # Example
///
/// ```
/// use vkaccel::Device;
///
/// let device: Device = "vulkan:1".parse()?;
/// assert_eq!(device, Device::new(1));
/// assert_eq!(device.index(), Some(1));
/// assert_eq!(Device::any().to_string(), "vulkan");
/// # Ok::<(), vkaccel::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Device {
    index: Option<u32>,
}

impl Device {
    /// The device with this index.
    pub const fn new(index: u32) -> Self {
        Self { index: Some(index) }
    }

    /// The kind without an index, as [`current_accelerator`](crate::current_accelerator) returns it.
    pub const fn any() -> Self {
        Self { index: None }
    }

    /// The index, where the name has one.
    pub const fn index(self) -> Option<u32> {
        self.index
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.index {
            Some(index) => write!(f, "{KIND}:{index}"),
            None => f.write_str(KIND),
        }
    }
}

impl FromStr for Device {
    type Err = Error;

    /// Reads `vulkan` or `vulkan:N`, N in decimal digits without leading zeros.
    fn from_str(text: &str) -> Result<Self> {
        let (kind, index) = match text.split_once(':') {
            Some((kind, index)) => (kind, Some(index)),
            None => (text, None),
        };
        if kind != KIND {
            return Err(wrong_kind(text, kind));
        }
        match index {
            None => Ok(Self::any()),
            Some(digits) => match read_index(digits) {
                Some(index) => Ok(Self::new(index)),
                None => Err(malformed(text)),
            },
        }
    }
}

fn read_index(digits: &str) -> Option<u32> {
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let leading_zero = digits.len() > 1 && digits.starts_with('0');
    if plain && !leading_zero {
        digits.parse().ok()
    } else {
        None
    }
}

#[cold]
fn malformed(text: &str) -> Error {
    Error::new(
        ErrorKind::InvalidDevice,
        format!(
            "{text:?} is not the name of a device; write \"{KIND}\" for the current device or \
             \"{KIND}:N\" with an index in decimal digits, as in \"{KIND}:0\""
        ),
    )
}

#[cold]
fn wrong_kind(text: &str, kind: &str) -> Error {
    let looks_like_a_kind = !kind.is_empty()
        && !kind.starts_with(|first: char| first.is_ascii_digit())
        && kind
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    if !looks_like_a_kind {
        return malformed(text);
    }
    Error::new(
        ErrorKind::InvalidDevice,
        format!(
            "{text:?} names a device of the kind \"{kind}\", but this crate drives devices of the \
             kind \"{KIND}\"; write \"{KIND}\" or \"{KIND}:N\""
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_print_as_they_are_read() {
        for text in ["vulkan", "vulkan:0", "vulkan:17", "vulkan:4294967295"] {
            assert_eq!(text.parse::<Device>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_wrong_kind_names_both_kinds() {
        for (text, kind) in [("cuda:0", "cuda"), ("cpu", "cpu"), ("Vulkan:0", "Vulkan")] {
            let error = text.parse::<Device>().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidDevice);
            let message = error.to_string();
            assert!(message.contains(&format!("kind \"{kind}\"")), "{message}");
            assert!(message.contains("kind \"vulkan\""), "{message}");
        }
    }

    #[test]
    fn bad_texts_are_refused_and_quoted() {
        for text in [
            "",
            "0",
            ":0",
            "vulkan:",
            "vulkan:-1",
            "vulkan:+1",
            "vulkan:01",
            "vulkan: 1",
            " vulkan",
            "vulkan:1:2",
            "vulkan:4294967296",
            "vulkan:x",
            "vulkan:١",
            "a\nb",
        ] {
            let error = text.parse::<Device>().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidDevice, "{text:?}");
            let message = error.to_string();
            assert!(message.contains(&format!("{text:?}")), "{message}");
            assert!(message.contains("\"vulkan:0\""), "{message}");
        }
    }
}
