//! Owns the public surface: what the spec declares, and the handles that users hold.

mod buffer;
mod kernel;
mod stream;
mod view;

use crate::device::{Device, DeviceArg, DeviceCapability, MemoryInfo};
use crate::error::Result;
use crate::runtime::{DeviceIndexGuard, Runtime, Stream};

pub use buffer::{Buffer, Download};
pub use kernel::{Kernel, KernelBuilder};
pub use view::View;
