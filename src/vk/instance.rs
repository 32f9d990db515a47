//! One Vulkan instance.
//!
//! # Safety
//!
//! Every call here passes structures that live through the call, to an instance that is alive
//! until [`Instance`] is dropped; physical devices come from that same instance.
#![allow(unsafe_code)]

use core::ffi::{CStr, c_char};
use std::sync::Arc;

use ash::vk;

use super::debug::{self, MessageSink, Messenger};
use super::query;
use super::result::During;
use crate::base::{fork::Life, gate};
use crate::device::MemoryInfo;
use crate::device::info::{PhysicalInfo, Version};
use crate::error::{Error, ErrorKind, Result};

const VALIDATION_LAYER: &CStr = c"VK_LAYER_KHRONOS_validation";

/// An instance; destroyed with the last of its devices.
pub(crate) struct Instance {
    raw: ash::Instance,
    /// The version it was made for.
    version: Version,
    life: Life,
    messenger: Option<Messenger>,
}

impl core::fmt::Debug for Instance {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Instance")
            .field("raw", &self.raw.handle())
            .finish_non_exhaustive()
    }
}

impl Instance {
    /// Makes an instance; with `validation`, one under the validation layer whose messages go there.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoDevice`] if the loader finds no driver, [`ErrorKind::NoDriver`] if it is older
    /// than Vulkan 1.2, [`ErrorKind::Config`] if validation is asked for and the layer is missing.
    pub(crate) fn new(entry: &ash::Entry, validation: Option<&Arc<MessageSink>>) -> Result<Self> {
        let _inside = gate::enter();
        let version = loader_version(entry)?;
        let mut flags = vk::InstanceCreateFlags::empty();
        let mut extensions: Vec<*const c_char> = Vec::new();
        let mut layers: Vec<*const c_char> = Vec::new();
        if has_extension(entry, None, ash::khr::portability_enumeration::NAME)? {
            extensions.push(ash::khr::portability_enumeration::NAME.as_ptr());
            flags |= vk::InstanceCreateFlags::ENUMERATE_PORTABILITY_KHR;
        }
        let mut validation_features = false;
        if validation.is_some() {
            require_layer(entry)?;
            layers.push(VALIDATION_LAYER.as_ptr());
            extensions.push(ash::ext::debug_utils::NAME.as_ptr());
            validation_features = has_extension(
                entry,
                Some(VALIDATION_LAYER),
                ash::ext::validation_features::NAME,
            )?;
            if validation_features {
                extensions.push(ash::ext::validation_features::NAME.as_ptr());
            }
        }
        let application = vk::ApplicationInfo::default()
            .engine_name(c"vkaccel")
            .api_version(version);
        let mut info = vk::InstanceCreateInfo::default()
            .flags(flags)
            .application_info(&application)
            .enabled_extension_names(&extensions)
            .enabled_layer_names(&layers);
        let mut messages = validation.map(debug::create_info);
        if let Some(messages) = &mut messages {
            info = info.push_next(messages);
        }
        let enabled = [vk::ValidationFeatureEnableEXT::SYNCHRONIZATION_VALIDATION];
        let mut features =
            vk::ValidationFeaturesEXT::default().enabled_validation_features(&enabled);
        if validation_features {
            info = info.push_next(&mut features);
        }
        // SAFETY: all that `info` points to lives until the end of this function.
        let raw = unsafe { entry.create_instance(&info, None) }.during("vkCreateInstance")?;
        let version = Version::from_packed(version);
        let mut instance = Self {
            raw,
            version,
            life: Life::now(),
            messenger: None,
        };
        if let Some(sink) = validation {
            instance.messenger = Some(Messenger::new(entry, &instance.raw, sink)?);
        }
        Ok(instance)
    }

    /// The life of the process that it was made in.
    pub(super) fn life(&self) -> Life {
        self.life
    }

    /// The functions of the instance.
    pub(crate) fn raw(&self) -> &ash::Instance {
        &self.raw
    }

    /// The physical devices, in the loader's order.
    pub(crate) fn physical_devices(&self) -> Result<Vec<vk::PhysicalDevice>> {
        // SAFETY: see the top of the file.
        unsafe { self.raw.enumerate_physical_devices() }.during("vkEnumeratePhysicalDevices")
    }
}

impl Instance {
    /// What a physical device of this instance reports.
    pub(crate) fn physical_info(&self, physical: vk::PhysicalDevice) -> Result<PhysicalInfo> {
        query::physical_info(&self.raw, physical, self.version)
            .during("vkEnumerateDeviceExtensionProperties")
    }

    /// Free and total memory of a device that reported `info`, of which we hold `held` bytes.
    pub(crate) fn memory_info(
        &self,
        physical: vk::PhysicalDevice,
        info: &PhysicalInfo,
        held: u64,
    ) -> MemoryInfo {
        let budget = query::heap_budget(&self.raw, physical, info);
        MemoryInfo::new(info.device_memory(), budget, held)
    }

    /// What all of them report, in the loader's order.
    pub(crate) fn physical_infos(&self) -> Result<Vec<PhysicalInfo>> {
        let physical = self.physical_devices()?;
        physical
            .into_iter()
            .map(|physical| self.physical_info(physical))
            .collect()
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        if !self.life.may_call_driver() {
            return;
        }
        let _inside = gate::enter();
        self.messenger = None;
        // SAFETY: devices hold an `Arc` of their instance, so none is left.
        unsafe { self.raw.destroy_instance(None) };
    }
}

/// The version to ask for: what we know of, or what the loader has.
fn loader_version(entry: &ash::Entry) -> Result<u32> {
    // SAFETY: see the top of the file.
    let version = unsafe { entry.try_enumerate_instance_version() }
        .during("vkEnumerateInstanceVersion")?
        .unwrap_or(vk::API_VERSION_1_0);
    if version < vk::API_VERSION_1_2 {
        return Err(Error::new(
            ErrorKind::NoDriver,
            format!(
                "the Vulkan loader has version {}.{}, but 1.2 is needed; install a newer loader",
                vk::api_version_major(version),
                vk::api_version_minor(version),
            ),
        ));
    }
    Ok(version.min(vk::API_VERSION_1_3))
}

fn has_extension(entry: &ash::Entry, layer: Option<&CStr>, name: &CStr) -> Result<bool> {
    // SAFETY: see the top of the file.
    let extensions = unsafe { entry.enumerate_instance_extension_properties(layer) };
    match extensions {
        Ok(extensions) => Ok(extensions
            .iter()
            .any(|extension| extension.extension_name_as_c_str() == Ok(name))),
        // The loader answers so where it has no driver at all.
        Err(vk::Result::ERROR_INITIALIZATION_FAILED) => Err(super::result::error(
            "vkEnumerateInstanceExtensionProperties",
            vk::Result::ERROR_INCOMPATIBLE_DRIVER,
        )),
        Err(code @ vk::Result::ERROR_OUT_OF_HOST_MEMORY) => Err(unreadable_manifest(code)),
        Err(code) => Err(super::result::error(
            "vkEnumerateInstanceExtensionProperties",
            code,
        )),
    }
}

/// Loaders take a driver's manifest that is no JSON for a want of memory, and then use no driver.
#[cold]
fn unreadable_manifest(code: vk::Result) -> Error {
    Error::new(
        ErrorKind::NoDevice,
        format!(
            "the Vulkan loader found no driver: vkEnumerateInstanceExtensionProperties failed with \
             {code:?}, which it answers where a driver's manifest is no JSON file; look at the \
             files named in VK_DRIVER_FILES and VK_ICD_FILENAMES, and at those in vulkan/icd.d"
        ),
    )
    .with_raw(code.as_raw())
}

fn require_layer(entry: &ash::Entry) -> Result<()> {
    // SAFETY: see the top of the file.
    let layers = unsafe { entry.enumerate_instance_layer_properties() }
        .during("vkEnumerateInstanceLayerProperties")?;
    if layers
        .iter()
        .any(|layer| layer.layer_name_as_c_str() == Ok(VALIDATION_LAYER))
    {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Config,
        "validation was asked for, but the layer VK_LAYER_KHRONOS_validation is not installed; \
         install vulkan-validationlayers or the Vulkan SDK, or name its folder in VK_LAYER_PATH",
    ))
}
