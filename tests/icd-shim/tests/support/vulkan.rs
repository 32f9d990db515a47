//! An instance, a device and buffers, with as little as the tests need.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use ash::vk;

/// How many messages a validation layer has sent.
static MESSAGES: AtomicU32 = AtomicU32::new(0);

/// The system's loader, which stays: devices outlive what they were opened through.
fn loader() -> &'static ash::Entry {
    static LOADER: OnceLock<ash::Entry> = OnceLock::new();
    // SAFETY: the system's loader.
    LOADER.get_or_init(|| unsafe { ash::Entry::load() }.unwrap())
}

unsafe extern "system" fn message(
    _: vk::DebugUtilsMessageSeverityFlagsEXT,
    _: vk::DebugUtilsMessageTypeFlagsEXT,
    data: *const vk::DebugUtilsMessengerCallbackDataEXT<'_>,
    _: *mut core::ffi::c_void,
) -> vk::Bool32 {
    MESSAGES.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the layer passes one that lives through the call.
    let data = unsafe { &*data };
    // SAFETY: as above.
    let text = unsafe { data.message_as_c_str() };
    eprintln!("validation: {text:?}");
    vk::FALSE
}

/// An instance with its first physical device, under the validation layer if the environment says
/// so; a message fails the test.
pub struct Vulkan {
    pub instance: ash::Instance,
    pub physical: vk::PhysicalDevice,
    /// Whether a layer watches.
    pub validated: bool,
}

impl Vulkan {
    pub fn try_new() -> Result<Self, vk::Result> {
        Self::make(std::env::var("VKACCEL_TEST_VALIDATION").is_ok_and(|value| value == "1"))
    }

    pub fn new() -> Self {
        Self::try_new().unwrap()
    }

    /// Without a layer: the one that distributions ship takes work of a lost device for unfinished.
    pub fn without_layer() -> Self {
        Self::make(false).unwrap()
    }

    fn make(validated: bool) -> Result<Self, vk::Result> {
        let entry = loader();
        let layers = [c"VK_LAYER_KHRONOS_validation".as_ptr()];
        let extensions = [ash::ext::debug_utils::NAME.as_ptr()];
        let application = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_3);
        let mut messenger = vk::DebugUtilsMessengerCreateInfoEXT::default()
            .message_severity(
                vk::DebugUtilsMessageSeverityFlagsEXT::ERROR
                    | vk::DebugUtilsMessageSeverityFlagsEXT::WARNING,
            )
            .message_type(vk::DebugUtilsMessageTypeFlagsEXT::VALIDATION)
            .pfn_user_callback(Some(message));
        let mut info = vk::InstanceCreateInfo::default().application_info(&application);
        if validated {
            info = info
                .enabled_layer_names(&layers)
                .enabled_extension_names(&extensions)
                .push_next(&mut messenger);
        }
        // SAFETY: all that `info` points to lives through the call.
        let instance = unsafe { entry.create_instance(&info, None) }?;
        if validated {
            let functions = ash::ext::debug_utils::Instance::new(entry, &instance);
            // SAFETY: the instance is alive; the messenger lives as long as the process.
            unsafe { functions.create_debug_utils_messenger(&messenger, None) }.unwrap();
        }
        // SAFETY: the instance is alive.
        let physical = unsafe { instance.enumerate_physical_devices() }.unwrap()[0];
        Ok(Self {
            instance,
            physical,
            validated,
        })
    }

    pub fn families(&self) -> Vec<vk::QueueFamilyProperties> {
        // SAFETY: the physical device is the instance's.
        unsafe {
            self.instance
                .get_physical_device_queue_family_properties(self.physical)
        }
    }

    /// A device with all queues of all families.
    pub fn try_open(&self, extensions: &[*const core::ffi::c_char]) -> Result<Opened, vk::Result> {
        let families = self.families();
        let priorities: Vec<_> = families
            .iter()
            .map(|family| vec![1.0; family.queue_count as usize])
            .collect();
        let queues: Vec<_> = priorities
            .iter()
            .zip(0..)
            .map(|(priorities, family)| {
                vk::DeviceQueueCreateInfo::default()
                    .queue_family_index(family)
                    .queue_priorities(priorities)
            })
            .collect();
        let mut newer = vk::PhysicalDeviceVulkan12Features::default().timeline_semaphore(true);
        let mut newest = vk::PhysicalDeviceVulkan13Features::default().synchronization2(true);
        let info = vk::DeviceCreateInfo::default()
            .queue_create_infos(&queues)
            .enabled_extension_names(extensions)
            .push_next(&mut newer)
            .push_next(&mut newest);
        // SAFETY: all that `info` points to lives through the call.
        let raw = unsafe { self.instance.create_device(self.physical, &info, None) }?;
        let queues = families.iter().zip(0..).map(|(family, index)| {
            // SAFETY: the device was opened with these.
            let get = |queue| unsafe { raw.get_device_queue(index, queue) };
            (0..family.queue_count).map(get).collect()
        });
        // SAFETY: the physical device is the instance's.
        let memory = unsafe {
            self.instance
                .get_physical_device_memory_properties(self.physical)
        };
        let wanted = vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT;
        let types = memory.memory_types_as_slice();
        let memory_type = types
            .iter()
            .zip(0..)
            .find(|(kind, _)| kind.property_flags.contains(wanted));
        Ok(Opened {
            queues: queues.collect(),
            memory_type: memory_type.unwrap().1,
            raw,
        })
    }

    pub fn open(&self) -> Opened {
        self.try_open(&[]).unwrap()
    }
}

impl Drop for Vulkan {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(
                MESSAGES.load(Ordering::Relaxed),
                0,
                "the layer has said something"
            );
        }
    }
}

/// A device, with its queues by family.
pub struct Opened {
    pub raw: ash::Device,
    pub queues: Vec<Vec<vk::Queue>>,
    pub memory_type: u32,
}

impl Drop for Opened {
    fn drop(&mut self) {
        // SAFETY: the tests destroy nothing that is made from it before, and use nothing after.
        let _ = unsafe { self.raw.device_wait_idle() };
        // SAFETY: as above.
        unsafe { self.raw.destroy_device(None) };
    }
}

/// A buffer of one word, with memory that the host sees.
pub struct Buffer {
    pub raw: vk::Buffer,
    memory: vk::DeviceMemory,
    mapping: *mut u32,
}

impl Buffer {
    pub fn read(&self) -> u32 {
        // SAFETY: mapped memory of four bytes; the tests wait for what writes to it.
        unsafe { self.mapping.read_volatile() }
    }

    pub fn destroy(self, device: &Opened) {
        // SAFETY: the tests have waited for what uses it.
        unsafe { device.raw.destroy_buffer(self.raw, None) };
        // SAFETY: as above.
        unsafe { device.raw.free_memory(self.memory, None) };
    }
}

impl Opened {
    pub fn allocate(&self, bytes: u64) -> Result<vk::DeviceMemory, vk::Result> {
        let info = vk::MemoryAllocateInfo::default()
            .allocation_size(bytes)
            .memory_type_index(self.memory_type);
        // SAFETY: the device is alive.
        unsafe { self.raw.allocate_memory(&info, None) }
    }

    pub fn free(&self, memory: vk::DeviceMemory) {
        // SAFETY: nothing uses it.
        unsafe { self.raw.free_memory(memory, None) };
    }

    /// A buffer, shared by all families.
    pub fn buffer(&self) -> Buffer {
        let families: Vec<u32> = (0..self.queues.len())
            .filter_map(|at| at.try_into().ok())
            .collect();
        let mut info = vk::BufferCreateInfo::default()
            .size(4)
            .usage(vk::BufferUsageFlags::TRANSFER_SRC | vk::BufferUsageFlags::TRANSFER_DST);
        if families.len() > 1 {
            info = info
                .sharing_mode(vk::SharingMode::CONCURRENT)
                .queue_family_indices(&families);
        }
        // SAFETY: the device is alive.
        let raw = unsafe { self.raw.create_buffer(&info, None) }.unwrap();
        // SAFETY: the buffer is alive.
        let needs = unsafe { self.raw.get_buffer_memory_requirements(raw) };
        let memory = self.allocate(needs.size).unwrap();
        // SAFETY: both are fresh.
        unsafe { self.raw.bind_buffer_memory(raw, memory, 0) }.unwrap();
        let flags = vk::MemoryMapFlags::empty();
        // SAFETY: the memory is the host's to see.
        let mapping = unsafe { self.raw.map_memory(memory, 0, vk::WHOLE_SIZE, flags) }.unwrap();
        Buffer {
            raw,
            memory,
            mapping: mapping.cast(),
        }
    }

    pub fn timeline(&self) -> vk::Semaphore {
        let mut kind =
            vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
        let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
        // SAFETY: the device is alive.
        unsafe { self.raw.create_semaphore(&info, None) }.unwrap()
    }

    pub fn pool(&self, family: u32) -> vk::CommandPool {
        let info = vk::CommandPoolCreateInfo::default().queue_family_index(family);
        // SAFETY: the device is alive.
        unsafe { self.raw.create_command_pool(&info, None) }.unwrap()
    }

    /// Commands of a pool, as `record` says, with a barrier for all before and behind them.
    pub fn commands(
        &self,
        pool: vk::CommandPool,
        record: impl FnOnce(vk::CommandBuffer),
    ) -> vk::CommandBuffer {
        let info = vk::CommandBufferAllocateInfo::default()
            .command_pool(pool)
            .command_buffer_count(1);
        // SAFETY: the pool is alive.
        let commands = unsafe { self.raw.allocate_command_buffers(&info) }.unwrap()[0];
        // SAFETY: the commands are new.
        unsafe { self.raw.begin_command_buffer(commands, &Default::default()) }.unwrap();
        self.barrier(commands);
        record(commands);
        self.barrier(commands);
        // SAFETY: the commands are being recorded.
        unsafe { self.raw.end_command_buffer(commands) }.unwrap();
        commands
    }

    fn barrier(&self, commands: vk::CommandBuffer) {
        let all = vk::AccessFlags::MEMORY_READ | vk::AccessFlags::MEMORY_WRITE;
        let barrier = [vk::MemoryBarrier::default()
            .src_access_mask(all)
            .dst_access_mask(all)];
        let stages = vk::PipelineStageFlags::ALL_COMMANDS | vk::PipelineStageFlags::HOST;
        let flags = vk::DependencyFlags::empty();
        // SAFETY: the commands are being recorded.
        unsafe {
            self.raw
                .cmd_pipeline_barrier(commands, stages, stages, flags, &barrier, &[], &[])
        };
    }

    /// Commands that write a word to a buffer.
    pub fn fill(&self, pool: vk::CommandPool, buffer: &Buffer, word: u32) -> vk::CommandBuffer {
        self.commands(pool, |commands| {
            // SAFETY: the tests keep the buffer until the commands have run.
            unsafe { self.raw.cmd_fill_buffer(commands, buffer.raw, 0, 4, word) };
        })
    }

    /// Commands that copy a buffer to another.
    pub fn copy(&self, pool: vk::CommandPool, from: &Buffer, to: &Buffer) -> vk::CommandBuffer {
        let region = [vk::BufferCopy::default().size(4)];
        self.commands(pool, |commands| {
            // SAFETY: as in `fill`.
            unsafe {
                self.raw
                    .cmd_copy_buffer(commands, from.raw, to.raw, &region)
            };
        })
    }

    /// Submits commands between a wait and a signal.
    pub fn try_submit(
        &self,
        queue: vk::Queue,
        wait: Option<(vk::Semaphore, u64)>,
        commands: &[vk::CommandBuffer],
        signal: Option<(vk::Semaphore, u64)>,
        fence: vk::Fence,
    ) -> Result<(), vk::Result> {
        let waits: Vec<_> = wait.iter().map(|wait| wait.0).collect();
        let wait_values: Vec<_> = wait.iter().map(|wait| wait.1).collect();
        let stages = vec![vk::PipelineStageFlags::ALL_COMMANDS; waits.len()];
        let signals: Vec<_> = signal.iter().map(|signal| signal.0).collect();
        let signal_values: Vec<_> = signal.iter().map(|signal| signal.1).collect();
        let mut values = vk::TimelineSemaphoreSubmitInfo::default()
            .wait_semaphore_values(&wait_values)
            .signal_semaphore_values(&signal_values);
        let info = vk::SubmitInfo::default()
            .wait_semaphores(&waits)
            .wait_dst_stage_mask(&stages)
            .command_buffers(commands)
            .signal_semaphores(&signals)
            .push_next(&mut values);
        // SAFETY: the tests keep what this uses until it has run, and use a queue on one thread.
        unsafe { self.raw.queue_submit(queue, &[info], fence) }
    }

    pub fn submit(
        &self,
        queue: vk::Queue,
        wait: Option<(vk::Semaphore, u64)>,
        commands: &[vk::CommandBuffer],
        signal: (vk::Semaphore, u64),
    ) {
        self.try_submit(queue, wait, commands, Some(signal), vk::Fence::null())
            .unwrap();
    }

    pub fn reached(&self, semaphore: vk::Semaphore) -> Result<u64, vk::Result> {
        // SAFETY: the semaphore is alive.
        unsafe { self.raw.get_semaphore_counter_value(semaphore) }
    }

    /// Waits for a value, ten seconds at most.
    pub fn wait(&self, semaphore: vk::Semaphore, value: u64) -> Result<(), vk::Result> {
        let (semaphores, values) = ([semaphore], [value]);
        let info = vk::SemaphoreWaitInfo::default()
            .semaphores(&semaphores)
            .values(&values);
        // SAFETY: the semaphore is alive.
        unsafe { self.raw.wait_semaphores(&info, 10_000_000_000) }
    }

    pub fn destroy(&self, semaphores: &[vk::Semaphore], pools: &[vk::CommandPool]) {
        // SAFETY: the tests have waited for what uses them, but for what this waits for.
        let _ = unsafe { self.raw.device_wait_idle() };
        for semaphore in semaphores {
            // SAFETY: as above.
            unsafe { self.raw.destroy_semaphore(*semaphore, None) };
        }
        for pool in pools {
            // SAFETY: as above.
            unsafe { self.raw.destroy_command_pool(*pool, None) };
        }
    }
}
