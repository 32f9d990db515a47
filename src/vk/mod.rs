//! Owns every call to Vulkan; nothing above this folder names ash.

pub(crate) mod features;
pub(crate) mod query;
