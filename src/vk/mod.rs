//! Owns every call to Vulkan; nothing above this folder names ash.

pub(crate) mod command;
pub(crate) mod debug;
pub(crate) mod descriptor;
pub(crate) mod device;
pub(crate) mod entry;
mod features;
mod host;
mod import;
pub(crate) mod instance;
mod known_sets;
pub(crate) mod lane;
pub(crate) mod pipeline;
mod query;
pub(crate) mod result;
pub(crate) mod segment;
mod stages;
pub(crate) mod timestamps;

pub(crate) use command::Commands;
pub(crate) use device::Device;
pub(crate) use instance::Instance;
pub(crate) use lane::Lane;
pub(crate) use pipeline::Pipeline;
pub(crate) use segment::Segment;
pub(crate) use timestamps::Stamp;

/// A physical device, for the folders above to pass around.
pub(crate) type PhysicalDevice = ash::vk::PhysicalDevice;
