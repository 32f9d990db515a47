//! Raw Vulkan with as little around it as the programs need: nothing here orders anything unless a
//! program says so.
//!
//! # Safety
//!
//! Objects are of one device, live as long as the [`Lab`], and are destroyed after all work has been
//! waited for, but where a program does otherwise on purpose. What such a program breaks are rules
//! that drivers put up with: no memory is touched that isn't there.
#![allow(unsafe_code)]

use core::cell::RefCell;
use core::ffi::{CStr, c_void};
use std::collections::BTreeSet;
use std::sync::{Mutex, OnceLock, PoisonError};

use ash::vk;

use crate::recorder::Recorder;
use crate::support;

pub const LAYER: &CStr = c"VK_LAYER_KHRONOS_validation";

/// The most queues of its family that a device is opened with.
const MOST_QUEUES: u32 = 3;

/// What kernels get their buffers by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum By {
    Descriptors,
    Addresses,
}

impl By {
    pub fn name(self) -> &'static str {
        match self {
            Self::Descriptors => "descriptors",
            Self::Addresses => "addresses",
        }
    }
}

/// The system's loader, which stays: layers have threads.
pub fn loader() -> Option<&'static ash::Entry> {
    static LOADER: OnceLock<Option<ash::Entry>> = OnceLock::new();
    // SAFETY: the system's loader.
    let load = || unsafe { ash::Entry::load() }.ok();
    LOADER.get_or_init(load).as_ref()
}

/// What the layer has said, by the ids of its messages.
type Messages = Mutex<BTreeSet<String>>;

unsafe extern "system" fn message(
    _: vk::DebugUtilsMessageSeverityFlagsEXT,
    _: vk::DebugUtilsMessageTypeFlagsEXT,
    data: *const vk::DebugUtilsMessengerCallbackDataEXT<'_>,
    user: *mut c_void,
) -> vk::Bool32 {
    // SAFETY: the layer passes one that lives through the call.
    let data = unsafe { &*data };
    // SAFETY: as above.
    let id = unsafe { data.message_id_name_as_c_str() }.unwrap_or_default();
    // SAFETY: the lab's, which outlives its instance.
    let messages = unsafe { &*user.cast::<Messages>().cast_const() };
    let mut messages = messages.lock().unwrap_or_else(PoisonError::into_inner);
    // The layers disagree about how they write it.
    messages.insert(id.to_string_lossy().replace('_', "-"));
    vk::FALSE
}

/// A part of a buffer.
#[derive(Clone, Copy)]
pub struct Range {
    pub raw: vk::Buffer,
    pub address: u64,
    pub offset: u64,
    pub bytes: u64,
    memory: vk::DeviceMemory,
    mapping: *mut u32,
}

impl Range {
    pub fn part(self, offset: u64, bytes: u64) -> Self {
        assert!(offset + bytes <= self.bytes);
        let offset = self.offset + offset;
        Self {
            offset,
            bytes,
            ..self
        }
    }

    /// How many words there are.
    pub fn words(self) -> u32 {
        u32::try_from(self.bytes / 4).unwrap()
    }

    fn first_word(self) -> *mut u32 {
        let words = usize::try_from(self.offset / 4).unwrap();
        // SAFETY: inside of the mapping, which is as long as the buffer.
        unsafe { self.mapping.add(words) }
    }

    /// The first word, as the host sees it now.
    pub fn read(self) -> u32 {
        // SAFETY: mapped memory, as the top of the file says.
        unsafe { self.first_word().read_volatile() }
    }

    pub fn write(self, words: &[u32]) {
        assert!(words.len() as u64 * 4 <= self.bytes);
        for (at, word) in words.iter().enumerate() {
            // SAFETY: inside of the mapping.
            let place = unsafe { self.first_word().add(at) };
            // SAFETY: as above.
            unsafe { place.write_volatile(*word) };
        }
    }
}

/// A value of a timeline.
#[derive(Clone, Copy)]
pub struct Point(pub vk::Semaphore, pub u64);

/// The kernels, with the layout that all of them share.
pub struct Kernels {
    pub store: vk::Pipeline,
    pub map: vk::Pipeline,
    pub layout: vk::PipelineLayout,
    pub set_layout: vk::DescriptorSetLayout,
    pub sets: vk::DescriptorPool,
}

/// What has to be destroyed.
#[derive(Default)]
struct Made {
    buffers: Vec<vk::Buffer>,
    memory: Vec<vk::DeviceMemory>,
    timelines: Vec<vk::Semaphore>,
}

/// A device under a validation layer, opened for one program.
pub struct Lab {
    pub by: By,
    pub raw: ash::Device,
    pub kernels: Kernels,
    queues: Vec<vk::Queue>,
    memory_type: u32,
    pool: vk::CommandPool,
    made: RefCell<Made>,
    instance: ash::Instance,
    messenger: vk::DebugUtilsMessengerEXT,
    debug: ash::ext::debug_utils::Instance,
    messages: Box<Messages>,
}

/// What a device is, to those who read a table.
pub struct Identity {
    pub name: String,
    pub driver: String,
    /// Of the first family that computes, up to those that the programs use.
    pub queues: u32,
}

fn make_instance(
    entry: &ash::Entry,
    messages: &Messages,
) -> Result<(ash::Instance, vk::DebugUtilsMessengerCreateInfoEXT<'static>), vk::Result> {
    let application = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_2);
    let layers = [LAYER.as_ptr()];
    let extensions = [
        ash::ext::debug_utils::NAME.as_ptr(),
        ash::ext::validation_features::NAME.as_ptr(),
    ];
    let enabled = [vk::ValidationFeatureEnableEXT::SYNCHRONIZATION_VALIDATION];
    let mut features = vk::ValidationFeaturesEXT::default().enabled_validation_features(&enabled);
    let messenger = vk::DebugUtilsMessengerCreateInfoEXT::default()
        .message_severity(
            vk::DebugUtilsMessageSeverityFlagsEXT::ERROR
                | vk::DebugUtilsMessageSeverityFlagsEXT::WARNING,
        )
        .message_type(vk::DebugUtilsMessageTypeFlagsEXT::VALIDATION)
        .pfn_user_callback(Some(message))
        .user_data(core::ptr::from_ref(messages).cast_mut().cast());
    let info = vk::InstanceCreateInfo::default()
        .application_info(&application)
        .enabled_layer_names(&layers)
        .enabled_extension_names(&extensions)
        .push_next(&mut features);
    // SAFETY: all that `info` points to lives through the call.
    let instance = unsafe { entry.create_instance(&info, None) }?;
    Ok((instance, messenger))
}

/// The devices that there are, in the loader's order.
pub fn devices(entry: &ash::Entry) -> Result<Vec<Identity>, vk::Result> {
    let messages = Messages::default();
    let (instance, _) = make_instance(entry, &messages)?;
    // SAFETY: the instance is alive.
    let found = unsafe { instance.enumerate_physical_devices() }.unwrap();
    let identify = |physical: &vk::PhysicalDevice| {
        let mut driver = vk::PhysicalDeviceDriverProperties::default();
        let mut properties = vk::PhysicalDeviceProperties2::default().push_next(&mut driver);
        // SAFETY: the instance's device.
        unsafe { instance.get_physical_device_properties2(*physical, &mut properties) };
        let name = properties.properties.device_name_as_c_str().unwrap();
        let name = name.to_string_lossy().into_owned();
        let told = |text: Result<&CStr, _>| text.map_or_else(|_| String::new(), text_of);
        let driver = format!(
            "{} {}",
            told(driver.driver_name_as_c_str()),
            told(driver.driver_info_as_c_str())
        );
        let queues = family(&instance, *physical).1;
        Identity {
            name,
            driver,
            queues,
        }
    };
    let identities = found.iter().map(identify).collect();
    // SAFETY: nothing was made of it.
    unsafe { instance.destroy_instance(None) };
    Ok(identities)
}

fn text_of(text: &CStr) -> String {
    text.to_string_lossy().into_owned()
}

/// The first family that computes, and how many of its queues the programs use.
fn family(instance: &ash::Instance, physical: vk::PhysicalDevice) -> (u32, u32) {
    // SAFETY: the instance's device.
    let families = unsafe { instance.get_physical_device_queue_family_properties(physical) };
    let computes = |family: &vk::QueueFamilyProperties| {
        family.queue_flags.contains(vk::QueueFlags::COMPUTE) && family.queue_count > 0
    };
    let (at, family) = (0..).zip(&families).find(|(_, one)| computes(one)).unwrap();
    (at, family.queue_count.min(MOST_QUEUES))
}

impl Lab {
    pub fn open(entry: &ash::Entry, index: usize, by: By) -> Self {
        let messages = Box::new(Messages::default());
        let (instance, messenger) = make_instance(entry, &messages).unwrap();
        let debug = ash::ext::debug_utils::Instance::new(entry, &instance);
        // SAFETY: the instance is alive; the messages outlive it.
        let messenger = unsafe { debug.create_debug_utils_messenger(&messenger, None) }.unwrap();
        // SAFETY: the instance is alive.
        let physical = unsafe { instance.enumerate_physical_devices() }.unwrap()[index];
        let (family, count) = family(&instance, physical);
        let priorities = vec![1.0; count as usize];
        let queue_info = [vk::DeviceQueueCreateInfo::default()
            .queue_family_index(family)
            .queue_priorities(&priorities)];
        let mut features = vk::PhysicalDeviceVulkan12Features::default()
            .timeline_semaphore(true)
            .buffer_device_address(true);
        let info = vk::DeviceCreateInfo::default()
            .queue_create_infos(&queue_info)
            .push_next(&mut features);
        // SAFETY: all that `info` points to lives through the call.
        let raw = unsafe { instance.create_device(physical, &info, None) }.unwrap();
        // SAFETY: the device was opened with these.
        let queue = |index| unsafe { raw.get_device_queue(family, index) };
        // SAFETY: the instance's device.
        let memory = unsafe { instance.get_physical_device_memory_properties(physical) };
        let wanted = vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT;
        let types = memory.memory_types_as_slice();
        let mut fitting = (0..)
            .zip(types)
            .filter(|(_, one)| one.property_flags.contains(wanted));
        let pool = vk::CommandPoolCreateInfo::default().queue_family_index(family);
        Self {
            by,
            queues: (0..count).map(queue).collect(),
            memory_type: fitting.next().unwrap().0,
            kernels: Kernels::new(&raw, by),
            // SAFETY: the device is alive.
            pool: unsafe { raw.create_command_pool(&pool, None) }.unwrap(),
            raw,
            made: RefCell::default(),
            instance,
            messenger,
            debug,
            messages,
        }
    }

    /// A buffer, with memory of its own.
    pub fn buffer(&self, bytes: u64) -> Range {
        self.make_buffer(bytes, None)
    }

    /// Another buffer on the same memory.
    pub fn alias(&self, range: Range) -> Range {
        self.make_buffer(range.bytes, Some(range))
    }

    fn make_buffer(&self, bytes: u64, shared: Option<Range>) -> Range {
        let info = vk::BufferCreateInfo::default().size(bytes).usage(
            vk::BufferUsageFlags::STORAGE_BUFFER
                | vk::BufferUsageFlags::INDIRECT_BUFFER
                | vk::BufferUsageFlags::TRANSFER_SRC
                | vk::BufferUsageFlags::TRANSFER_DST
                | vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS,
        );
        // SAFETY: the device is alive.
        let raw = unsafe { self.raw.create_buffer(&info, None) }.unwrap();
        // SAFETY: the buffer is alive.
        let needs = unsafe { self.raw.get_buffer_memory_requirements(raw) };
        let mut flags =
            vk::MemoryAllocateFlagsInfo::default().flags(vk::MemoryAllocateFlags::DEVICE_ADDRESS);
        let info = vk::MemoryAllocateInfo::default()
            .allocation_size(needs.size)
            .memory_type_index(self.memory_type)
            .push_next(&mut flags);
        let memory = shared.map_or_else(
            // SAFETY: the device is alive.
            || unsafe { self.raw.allocate_memory(&info, None) }.unwrap(),
            |range| range.memory,
        );
        // SAFETY: the buffer is new, and the memory large enough.
        unsafe { self.raw.bind_buffer_memory(raw, memory, 0) }.unwrap();
        let map = || {
            let flags = vk::MemoryMapFlags::empty();
            // SAFETY: the memory is new, and the host's to see.
            let mapping = unsafe { self.raw.map_memory(memory, 0, vk::WHOLE_SIZE, flags) };
            mapping.unwrap().cast()
        };
        let mapping = shared.map_or_else(map, |range| range.mapping);
        let info = vk::BufferDeviceAddressInfo::default().buffer(raw);
        let mut made = self.made.borrow_mut();
        made.buffers.push(raw);
        made.memory.extend(shared.is_none().then_some(memory));
        Range {
            raw,
            // SAFETY: the buffer has memory, and the usage for it.
            address: unsafe { self.raw.get_buffer_device_address(&info) },
            offset: 0,
            bytes,
            memory,
            mapping,
        }
    }

    pub fn timeline(&self) -> vk::Semaphore {
        let mut kind =
            vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
        let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
        // SAFETY: the device is alive.
        let timeline = unsafe { self.raw.create_semaphore(&info, None) }.unwrap();
        self.made.borrow_mut().timelines.push(timeline);
        timeline
    }

    /// Commands that may be submitted again before they have finished.
    pub fn record(&self, record: impl FnOnce(&Recorder<'_>)) -> vk::CommandBuffer {
        let info = vk::CommandBufferAllocateInfo::default()
            .command_pool(self.pool)
            .command_buffer_count(1);
        // SAFETY: the pool is alive.
        let raw = unsafe { self.raw.allocate_command_buffers(&info) }.unwrap()[0];
        let info = vk::CommandBufferBeginInfo::default()
            .flags(vk::CommandBufferUsageFlags::SIMULTANEOUS_USE);
        // SAFETY: the commands are new.
        unsafe { self.raw.begin_command_buffer(raw, &info) }.unwrap();
        record(&Recorder { lab: self, raw });
        // SAFETY: the commands are being recorded.
        unsafe { self.raw.end_command_buffer(raw) }.unwrap();
        raw
    }

    pub fn submit(
        &self,
        queue: usize,
        commands: Option<vk::CommandBuffer>,
        wait: Option<Point>,
        signal: Point,
    ) {
        let waits: Vec<_> = wait.iter().map(|wait| wait.0).collect();
        let wait_values: Vec<_> = wait.iter().map(|wait| wait.1).collect();
        let stages = vec![vk::PipelineStageFlags::ALL_COMMANDS; waits.len()];
        let (signals, values) = ([signal.0], [signal.1]);
        let commands: Vec<_> = commands.into_iter().collect();
        let mut points = vk::TimelineSemaphoreSubmitInfo::default()
            .wait_semaphore_values(&wait_values)
            .signal_semaphore_values(&values);
        let info = vk::SubmitInfo::default()
            .wait_semaphores(&waits)
            .wait_dst_stage_mask(&stages)
            .command_buffers(&commands)
            .signal_semaphores(&signals)
            .push_next(&mut points);
        let (queue, fence) = (self.queues[queue], vk::Fence::null());
        // SAFETY: all that `info` points to lives through the call.
        unsafe { self.raw.queue_submit(queue, &[info], fence) }.unwrap();
    }

    pub fn wait(&self, point: Point) {
        let (semaphores, values) = ([point.0], [point.1]);
        let info = vk::SemaphoreWaitInfo::default()
            .semaphores(&semaphores)
            .values(&values);
        let second = 1_000_000_000;
        // SAFETY: the semaphore is alive.
        unsafe { self.raw.wait_semaphores(&info, 20 * second) }.unwrap();
    }

    /// Destroys a buffer, whether or not it is used.
    pub fn destroy(&self, range: Range) {
        self.forget(range);
        // SAFETY: the caller's business.
        unsafe { self.raw.destroy_buffer(range.raw, None) };
    }

    /// Leaves a buffer to be destroyed by nobody.
    pub fn forget(&self, range: Range) {
        let mut made = self.made.borrow_mut();
        made.buffers.retain(|buffer| *buffer != range.raw);
    }

    /// Waits for everything and destroys everything; gives what the layer has said.
    pub fn close(self) -> BTreeSet<String> {
        let device = &self.raw;
        // SAFETY: the device is alive.
        unsafe { device.device_wait_idle() }.unwrap();
        let made = self.made.take();
        for buffer in made.buffers {
            // SAFETY: nothing uses it any more; so below.
            unsafe { device.destroy_buffer(buffer, None) };
        }
        for memory in made.memory {
            // SAFETY: as above.
            unsafe { device.free_memory(memory, None) };
        }
        for timeline in made.timelines {
            // SAFETY: as above.
            unsafe { device.destroy_semaphore(timeline, None) };
        }
        // SAFETY: as above.
        unsafe { device.destroy_command_pool(self.pool, None) };
        self.kernels.destroy(device);
        // SAFETY: as above; a program may have left something on purpose.
        unsafe { device.destroy_device(None) };
        // SAFETY: nothing is left that could send a message.
        unsafe {
            self.debug
                .destroy_debug_utils_messenger(self.messenger, None)
        };
        // SAFETY: its only device is gone.
        unsafe { self.instance.destroy_instance(None) };
        core::mem::take(&mut *self.messages.lock().unwrap())
    }
}

impl Kernels {
    fn new(device: &ash::Device, by: By) -> Self {
        let binding = |at| {
            vk::DescriptorSetLayoutBinding::default()
                .binding(at)
                .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
                .descriptor_count(1)
                .stage_flags(vk::ShaderStageFlags::COMPUTE)
        };
        let bindings = [binding(0), binding(1)];
        let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
        // SAFETY: the device is alive; so below.
        let set_layout = unsafe { device.create_descriptor_set_layout(&info, None) }.unwrap();
        let (set_layouts, push) = (
            [set_layout],
            [vk::PushConstantRange::default()
                .stage_flags(vk::ShaderStageFlags::COMPUTE)
                .size(32)],
        );
        let info = vk::PipelineLayoutCreateInfo::default()
            .set_layouts(&set_layouts)
            .push_constant_ranges(&push);
        // SAFETY: as above.
        let layout = unsafe { device.create_pipeline_layout(&info, None) }.unwrap();
        let sizes = [vk::DescriptorPoolSize::default()
            .ty(vk::DescriptorType::STORAGE_BUFFER)
            .descriptor_count(64)];
        let info = vk::DescriptorPoolCreateInfo::default()
            .max_sets(32)
            .pool_sizes(&sizes);
        let (store, map) = match by {
            By::Descriptors => ("store", "affine_map"),
            By::Addresses => ("store_at", "affine_at"),
        };
        Self {
            store: pipeline(device, layout, store),
            map: pipeline(device, layout, map),
            layout,
            set_layout,
            // SAFETY: as above.
            sets: unsafe { device.create_descriptor_pool(&info, None) }.unwrap(),
        }
    }

    fn destroy(&self, device: &ash::Device) {
        // SAFETY: nothing uses them any more; so below.
        unsafe { device.destroy_pipeline(self.store, None) };
        // SAFETY: as above.
        unsafe { device.destroy_pipeline(self.map, None) };
        // SAFETY: as above.
        unsafe { device.destroy_descriptor_pool(self.sets, None) };
        // SAFETY: as above.
        unsafe { device.destroy_pipeline_layout(self.layout, None) };
        // SAFETY: as above.
        unsafe { device.destroy_descriptor_set_layout(self.set_layout, None) };
    }
}

/// The pipeline of a committed module.
fn pipeline(device: &ash::Device, layout: vk::PipelineLayout, module: &str) -> vk::Pipeline {
    let bytes = support::spirv(module);
    let words: Vec<u32> = (bytes.as_chunks::<4>().0.iter())
        .map(|word| u32::from_ne_bytes(*word))
        .collect();
    let info = vk::ShaderModuleCreateInfo::default().code(&words);
    // SAFETY: the device is alive, and the module valid.
    let module = unsafe { device.create_shader_module(&info, None) }.unwrap();
    let stage = vk::PipelineShaderStageCreateInfo::default()
        .stage(vk::ShaderStageFlags::COMPUTE)
        .module(module)
        .name(c"main");
    let info = vk::ComputePipelineCreateInfo::default()
        .stage(stage)
        .layout(layout);
    let cache = vk::PipelineCache::null();
    // SAFETY: all that `info` names is alive, and the layout has what the module declares.
    let made = unsafe { device.create_compute_pipelines(cache, &[info], None) };
    // SAFETY: pipelines don't need their modules.
    unsafe { device.destroy_shader_module(module, None) };
    made.unwrap()[0]
}
