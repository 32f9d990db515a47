//! The settings of a runtime.

use super::Runtime;
use crate::device::{Feature, FeatureSet};
use crate::vk::entry::{EntrySource, GetInstanceProcAddr};

/// Settings that a runtime is made with.
#[derive(Clone, Debug, Default)]
pub(super) struct Config {
    pub(super) entry: EntrySource,
    /// Takes the place of the environment's list.
    pub(super) visible_devices: Option<String>,
    pub(super) validation: bool,
    pub(super) without: FeatureSet,
    /// Takes the place of the environment's settings of the allocator.
    pub(super) alloc_conf: Option<String>,
    /// Takes the place of the environment's limit on the memory of a device.
    pub(super) memory_limit: Option<u64>,
}

/// Makes a [`Runtime`] with settings of its own.
///
/// # Example
///
/// ```
/// let runtime = vkaccel::Runtime::builder().visible_devices("0").build();
/// let _entered = runtime.enter();
/// assert!(vkaccel::device_count() <= 1);
/// ```
#[must_use = "nothing happens before `build`"]
#[derive(Clone, Debug, Default)]
pub struct RuntimeBuilder(Config);

impl RuntimeBuilder {
    /// Takes Vulkan's functions from `entry` instead of a loader library.
    ///
    /// # Safety
    ///
    /// `entry` is a conforming `vkGetInstanceProcAddr` for as long as the process lives.
    #[allow(unsafe_code)]
    pub unsafe fn entry(mut self, entry: GetInstanceProcAddr) -> Self {
        self.0.entry = EntrySource::Custom(entry);
        self
    }

    /// Makes only these devices visible, in this order: indexes and UUID prefixes, separated by commas.
    ///
    /// It takes the place of the environment variable `VKACCEL_VISIBLE_DEVICES`, with the same rules:
    /// the list ends before its first entry that names no device, and an empty one makes none visible.
    ///
    /// # Example
    ///
    /// ```
    /// // The second device becomes `vulkan:0`, the first one `vulkan:1`.
    /// let runtime = vkaccel::Runtime::builder().visible_devices("1,0").build();
    /// # let _ = runtime;
    /// ```
    pub fn visible_devices(mut self, list: impl Into<String>) -> Self {
        self.0.visible_devices = Some(list.into());
        self
    }

    /// Runs the devices under the validation layer, with its synchronization checks.
    ///
    /// What the layer says comes from [`Runtime::take_validation_messages`]. If the layer is not
    /// installed, the first call that needs a device fails.
    ///
    /// # Example
    ///
    /// ```
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// use vkaccel::{Buffer, ErrorKind, Runtime};
    ///
    /// let runtime = Runtime::builder().validation(true).build();
    /// let _entered = runtime.enter();
    /// match Buffer::from_slice(&[1u32, 2, 3]) {
    ///     Ok(buffer) => assert_eq!(buffer.to_vec()?, [1, 2, 3]),
    ///     Err(error) => assert_eq!(error.kind(), ErrorKind::Config), // the layer is not installed
    /// }
    /// for message in runtime.take_validation_messages() {
    ///     eprintln!("{:?} {}: {}", message.severity, message.id, message.text);
    /// }
    /// # Ok::<(), vkaccel::Error>(())
    /// ```
    pub fn validation(mut self, on: bool) -> Self {
        self.0.validation = on;
        self
    }

    /// Opens devices without these features, as if they did not have them.
    ///
    /// Kernels that need one of them are refused. Without
    /// [`RobustBufferAccess`](Feature::RobustBufferAccess), only unchecked kernels can be built.
    ///
    /// # Example
    ///
    /// ```
    /// use vkaccel::{Feature, Runtime};
    ///
    /// // How does the program do on devices without 16-bit floats?
    /// let runtime = Runtime::builder().without_features([Feature::ShaderFloat16]).build();
    /// # let _ = runtime;
    /// # Ok::<(), vkaccel::Error>(())
    /// ```
    pub fn without_features(mut self, features: impl IntoIterator<Item = Feature>) -> Self {
        for feature in features {
            self.0.without.insert(feature);
        }
        self
    }

    /// Sets how device memory is cached, in the words of `PYTORCH_ALLOC_CONF`.
    ///
    /// It takes the place of the environment variable `VKACCEL_ALLOC_CONF`; see
    /// [`AllocConf`](crate::alloc::AllocConf) for the keys. Settings that make no sense hide no device: they fail
    /// each call that opens one, and each that asks for or changes the settings of its memory.
    ///
    /// # Example
    ///
    /// ```
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let runtime = vkaccel::Runtime::builder().alloc_conf("max_split_size_mb:64").build();
    /// let _entered = runtime.enter();
    /// assert_eq!(vkaccel::memory::allocator_settings(None)?, "max_split_size_mb:64");
    /// # Ok::<(), vkaccel::Error>(())
    /// ```
    pub fn alloc_conf(mut self, settings: impl Into<String>) -> Self {
        self.0.alloc_conf = Some(settings.into());
        self
    }

    /// Sets the most bytes that the process may hold of each device's memory.
    ///
    /// It takes the place of the environment variable `VKACCEL_MEMORY_LIMIT`, and
    /// [`set_memory_limit`](crate::memory::set_memory_limit) changes it for one device.
    ///
    /// # Example
    ///
    /// ```
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let runtime = vkaccel::Runtime::builder().memory_limit(1 << 30).build();
    /// let _entered = runtime.enter();
    /// assert_eq!(vkaccel::memory::memory_limit(None)?, Some(1 << 30));
    /// # Ok::<(), vkaccel::Error>(())
    /// ```
    pub fn memory_limit(mut self, bytes: u64) -> Self {
        self.0.memory_limit = Some(bytes);
        self
    }

    /// Makes the runtime. Nothing is loaded or opened before it is used.
    pub fn build(self) -> Runtime {
        Runtime::with_config(self.0)
    }
}
