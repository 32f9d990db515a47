//! What a device can do, as its users see it.

use core::fmt;
use std::sync::Arc;

use super::dtype::DTypeSet;
use super::feature::FeatureSet;
use super::info::{DeviceType, PhysicalInfo, Version};
use super::limits::DeviceLimits;

/// What a device can do.
///
/// It comes from queries alone, which open nothing, and is cheap to clone.
///
/// # Example
///
/// ```no_run
/// let capability = vkaccel::get_device_capability(None)?;
/// println!("{}", capability.name());
/// if !capability.supported_dtypes().contains(vkaccel::DType::F64) {
///     println!("no 64-bit floats");
/// }
/// # Ok::<(), vkaccel::Error>(())
/// ```
#[derive(Clone)]
pub struct DeviceCapability(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    name: String,
    uuid: [u8; 16],
    device_type: DeviceType,
    vendor_id: u32,
    device_id: u32,
    api_version: Version,
    driver_name: String,
    driver_version: String,
    total_memory: u64,
    unified_memory: bool,
    features: FeatureSet,
    limits: DeviceLimits,
}

impl DeviceCapability {
    pub(crate) fn new(info: &PhysicalInfo) -> Self {
        let driver_version = if info.driver.info.is_empty() {
            Version::from_packed(info.driver.version).to_string()
        } else {
            info.driver.info.clone()
        };
        Self(Arc::new(Inner {
            name: info.name.clone(),
            uuid: info.uuid,
            device_type: info.device_type,
            vendor_id: info.vendor_id,
            device_id: info.device_id,
            api_version: info.api_version,
            driver_name: info.driver.name.clone(),
            driver_version,
            total_memory: info.device_memory(),
            unified_memory: info.is_unified(),
            features: info.features,
            limits: info.limits,
        }))
    }

    /// The element types that can be allocated on the device and converted among each other there.
    ///
    /// `u32`, `i32` and `f32` always are. 8- and 16-bit types need the device to read and write
    /// single elements of that width in buffers, 64-bit ones to calculate with them; where a type is
    /// missing, a kernel can still carry it as plain words.
    pub fn supported_dtypes(&self) -> DTypeSet {
        DTypeSet::of_features(self.0.features)
    }

    /// The name that the driver gives the device.
    #[doc(alias = "deviceName")]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The device's identity, the same in every process and under every driver; all 0 where the
    /// driver gives none.
    #[doc(alias = "deviceUUID")]
    pub fn uuid(&self) -> [u8; 16] {
        self.0.uuid
    }

    /// What sort of device it is.
    #[doc(alias = "deviceType")]
    pub fn device_type(&self) -> DeviceType {
        self.0.device_type
    }

    /// The vendor's PCI id, or one that Khronos gave.
    #[doc(alias = "vendorID")]
    pub fn vendor_id(&self) -> u32 {
        self.0.vendor_id
    }

    /// The vendor's id of the model.
    #[doc(alias = "deviceID")]
    pub fn device_id(&self) -> u32 {
        self.0.device_id
    }

    /// The version of Vulkan that the device reports.
    #[doc(alias = "apiVersion")]
    pub fn api_version(&self) -> Version {
        self.0.api_version
    }

    /// The name of the driver, as `radv`.
    #[doc(alias = "driverName")]
    pub fn driver_name(&self) -> &str {
        &self.0.driver_name
    }

    /// The version of the driver in its own words, as `Mesa 22.3.6`.
    #[doc(alias = "driverInfo")]
    pub fn driver_version(&self) -> &str {
        &self.0.driver_version
    }

    /// The size of the device's largest local heap, in bytes.
    pub fn total_memory(&self) -> u64 {
        self.0.total_memory
    }

    /// Whether the device works in the host's memory.
    pub fn has_unified_memory(&self) -> bool {
        self.0.unified_memory
    }

    /// The features that the device has.
    pub fn features(&self) -> FeatureSet {
        self.0.features
    }

    /// The numbers that bound what the device takes.
    pub fn limits(&self) -> &DeviceLimits {
        &self.0.limits
    }
}

impl fmt::Debug for DeviceCapability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &*self.0;
        f.debug_struct("DeviceCapability")
            .field("name", &inner.name)
            .field("uuid", &super::uuid::Hex(&inner.uuid))
            .field("device_type", &inner.device_type)
            .field("vendor_id", &format_args!("{:#x}", inner.vendor_id))
            .field("device_id", &format_args!("{:#x}", inner.device_id))
            .field("api_version", &format_args!("{}", inner.api_version))
            .field("driver_name", &inner.driver_name)
            .field("driver_version", &inner.driver_version)
            .field("total_memory", &inner.total_memory)
            .field("has_unified_memory", &inner.unified_memory)
            .field("supported_dtypes", &self.supported_dtypes())
            .field("features", &inner.features)
            .field("limits", &inner.limits)
            .finish()
    }
}
