//! The functions that an entry stands before.
//!
//! # Safety
//!
//! As at the top of `mod.rs`.

use core::any::Any;
use core::ffi::c_void;

use ash::vk::{self, AllocationCallbacks, Handle};

use super::{Chain, chain};

/// A function.
pub(super) struct Call {
    pub(super) name: &'static str,
    /// Whether it has a result, which a rule can choose.
    pub(super) is_fallible: bool,
    /// What ends the life of what it makes.
    pub(super) undone_by: Option<&'static str>,
    /// Ours.
    pub(super) function: unsafe extern "system" fn(),
}

/// Where a function is in the list.
#[track_caller]
pub(super) fn place(name: &str) -> usize {
    let place = CALLS.iter().position(|call| call.name == name);
    place.unwrap_or_else(|| panic!("no entry stands before {name}"))
}

/// What a function gives.
pub(super) trait Answer: Copy {
    const IS_FALLIBLE: bool;

    fn from_rule(result: vk::Result) -> Self;

    fn is_success(self) -> bool;

    /// Shows a hook what there is behind the call: the arguments, and the value where one is given.
    fn shown<A: Any + Copy>(self, args: &mut A, hook: impl FnOnce(&mut dyn Any)) {
        hook(args);
    }
}

impl Answer for vk::Result {
    const IS_FALLIBLE: bool = true;

    fn from_rule(result: vk::Result) -> Self {
        result
    }

    fn is_success(self) -> bool {
        self == Self::SUCCESS
    }
}

impl Answer for () {
    const IS_FALLIBLE: bool = false;

    fn from_rule(_: vk::Result) {}

    fn is_success(self) -> bool {
        true
    }
}

impl Answer for u64 {
    const IS_FALLIBLE: bool = false;

    fn from_rule(_: vk::Result) -> Self {
        0
    }

    fn is_success(self) -> bool {
        true
    }

    fn shown<A: Any + Copy>(self, args: &mut A, hook: impl FnOnce(&mut dyn Any)) {
        hook(&mut (*args, self));
    }
}

/// Calls the function next down as the rules say.
fn through<A: Any + Copy, R: Answer>(
    chain: &Chain,
    place: usize,
    mut args: A,
    real: impl FnOnce(*mut c_void, &A) -> R,
) -> R {
    let Some(entry) = &chain.entry else {
        return real(chain.real(place), &args);
    };
    if let Some(result) = entry.before(place, &mut args) {
        return R::from_rule(result);
    }
    let answer = real(chain.real(place), &args);
    if answer.is_success() {
        answer.shown(&mut args, |shown| entry.after(place, shown));
    }
    answer
}

/// Each line: the name of the arguments' type, Vulkan's name, the arguments, what is given, what ends
/// the life of what is made, which argument's life it ends, and which list it clears first. The first argument says whose function it is.
macro_rules! calls {
    ($($args:ident = $name:literal(
        $first:ident: $object:ty $(, $argument:ident: $kind:ty)* $(,)?
    ) -> $answer:ty $(, undone by $end:literal)? $(, ends $victim:ident)? $(, clears $list:ident[$many:ident])?;)*) => {
        /// The arguments of the functions, for hooks.
        pub mod args {
            use super::*;

            /// See `vkCreateInstance`.
            pub type CreateInstance = (
                *const vk::InstanceCreateInfo<'static>,
                *const AllocationCallbacks<'static>,
                *mut vk::Instance,
            );

            $(#[doc = concat!("See `", $name, "`.")]
            pub type $args = ($object, $($kind,)*);)*
        }

        pub(super) static CALLS: &[Call] = &[
            Call {
                name: "vkCreateInstance",
                is_fallible: true,
                undone_by: Some("vkDestroyInstance"),
                // Handed out by the entry itself.
                function: never,
            },
            $(Call {
                name: $name,
                is_fallible: <$answer as Answer>::IS_FALLIBLE,
                undone_by: calls!(@end $($end)?),
                function: {
                    unsafe extern "system" fn ours(
                        $first: $object, $($argument: $kind),*
                    ) -> $answer {
                        // What ends nothing is nothing to count.
                        $(if $victim.is_null() {
                            return;
                        })?
                        // A function that makes several says by null which of them failed.
                        $(for place in 0..$many as usize {
                            // SAFETY: there is room for so many, as Vulkan was called.
                            let place = unsafe { $list.add(place) };
                            // SAFETY: as above.
                            unsafe { place.write(Default::default()) };
                        })?
                        // SAFETY: an object that is alive, as Vulkan was called.
                        let chain = unsafe { chain($first) };
                        let args: args::$args = ($first, $($argument,)*);
                        through(&chain, place($name), args, |real, args| {
                            type Real = unsafe extern "system" fn($object, $($kind),*) -> $answer;
                            // SAFETY: the name says which type the function has.
                            let real = unsafe { core::mem::transmute::<*mut c_void, Real>(real) };
                            let ($first, $($argument,)*) = *args;
                            // SAFETY: as Vulkan was called, or as the test has it.
                            unsafe { real($first, $($argument),*) }
                        })
                    }
                    type Ours = unsafe extern "system" fn($object, $($kind),*) -> $answer;
                    // SAFETY: Vulkan hands out all functions as pointers to ones without arguments.
                    unsafe { core::mem::transmute::<Ours, unsafe extern "system" fn()>(ours) }
                },
            },)*
        ];
    };
    (@end) => { None };
    (@end $end:literal) => { Some($end) };
}

unsafe extern "system" fn never() {}

calls! {
    DestroyInstance = "vkDestroyInstance"(
        instance: vk::Instance, allocator: *const AllocationCallbacks<'static>) -> ();
    EnumeratePhysicalDevices = "vkEnumeratePhysicalDevices"(
        instance: vk::Instance, count: *mut u32, out: *mut vk::PhysicalDevice) -> vk::Result;
    EnumerateDeviceExtensionProperties = "vkEnumerateDeviceExtensionProperties"(
        physical: vk::PhysicalDevice, layer: *const core::ffi::c_char, count: *mut u32,
        out: *mut vk::ExtensionProperties) -> vk::Result;
    GetPhysicalDeviceProperties = "vkGetPhysicalDeviceProperties"(
        physical: vk::PhysicalDevice, out: *mut vk::PhysicalDeviceProperties) -> ();
    GetPhysicalDeviceMemoryProperties = "vkGetPhysicalDeviceMemoryProperties"(
        physical: vk::PhysicalDevice, out: *mut vk::PhysicalDeviceMemoryProperties) -> ();
    CreateDevice = "vkCreateDevice"(
        physical: vk::PhysicalDevice, info: *const vk::DeviceCreateInfo<'static>,
        allocator: *const AllocationCallbacks<'static>, out: *mut vk::Device) -> vk::Result,
        undone by "vkDestroyDevice";
    DestroyDevice = "vkDestroyDevice"(
        device: vk::Device, allocator: *const AllocationCallbacks<'static>) -> ();
    GetDeviceQueue = "vkGetDeviceQueue"(
        device: vk::Device, family: u32, index: u32, out: *mut vk::Queue) -> ();

    AllocateMemory = "vkAllocateMemory"(
        device: vk::Device, info: *const vk::MemoryAllocateInfo<'static>,
        allocator: *const AllocationCallbacks<'static>, out: *mut vk::DeviceMemory) -> vk::Result,
        undone by "vkFreeMemory";
    FreeMemory = "vkFreeMemory"(
        device: vk::Device, memory: vk::DeviceMemory,
        allocator: *const AllocationCallbacks<'static>) -> (), ends memory;
    MapMemory = "vkMapMemory"(
        device: vk::Device, memory: vk::DeviceMemory, offset: u64, size: u64,
        flags: vk::MemoryMapFlags, out: *mut *mut c_void) -> vk::Result;
    FlushMappedMemoryRanges = "vkFlushMappedMemoryRanges"(
        device: vk::Device, count: u32, ranges: *const vk::MappedMemoryRange<'static>) -> vk::Result;
    InvalidateMappedMemoryRanges = "vkInvalidateMappedMemoryRanges"(
        device: vk::Device, count: u32, ranges: *const vk::MappedMemoryRange<'static>) -> vk::Result;
    CreateBuffer = "vkCreateBuffer"(
        device: vk::Device, info: *const vk::BufferCreateInfo<'static>,
        allocator: *const AllocationCallbacks<'static>, out: *mut vk::Buffer) -> vk::Result,
        undone by "vkDestroyBuffer";
    DestroyBuffer = "vkDestroyBuffer"(
        device: vk::Device, buffer: vk::Buffer,
        allocator: *const AllocationCallbacks<'static>) -> (), ends buffer;
    BindBufferMemory = "vkBindBufferMemory"(
        device: vk::Device, buffer: vk::Buffer, memory: vk::DeviceMemory, offset: u64) -> vk::Result;
    GetBufferDeviceAddress = "vkGetBufferDeviceAddress"(
        device: vk::Device, info: *const vk::BufferDeviceAddressInfo<'static>) -> u64;

    CreateCommandPool = "vkCreateCommandPool"(
        device: vk::Device, info: *const vk::CommandPoolCreateInfo<'static>,
        allocator: *const AllocationCallbacks<'static>, out: *mut vk::CommandPool) -> vk::Result,
        undone by "vkDestroyCommandPool";
    DestroyCommandPool = "vkDestroyCommandPool"(
        device: vk::Device, pool: vk::CommandPool,
        allocator: *const AllocationCallbacks<'static>) -> (), ends pool;
    AllocateCommandBuffers = "vkAllocateCommandBuffers"(
        device: vk::Device, info: *const vk::CommandBufferAllocateInfo<'static>,
        out: *mut vk::CommandBuffer) -> vk::Result;
    ResetCommandPool = "vkResetCommandPool"(
        device: vk::Device, pool: vk::CommandPool,
        flags: vk::CommandPoolResetFlags) -> vk::Result;
    BeginCommandBuffer = "vkBeginCommandBuffer"(
        commands: vk::CommandBuffer,
        info: *const vk::CommandBufferBeginInfo<'static>) -> vk::Result;
    EndCommandBuffer = "vkEndCommandBuffer"(commands: vk::CommandBuffer) -> vk::Result;
    CmdPipelineBarrier = "vkCmdPipelineBarrier"(
        commands: vk::CommandBuffer, from: vk::PipelineStageFlags, to: vk::PipelineStageFlags,
        flags: vk::DependencyFlags, count: u32, barriers: *const vk::MemoryBarrier<'static>,
        buffer_count: u32, buffers: *const vk::BufferMemoryBarrier<'static>, image_count: u32,
        images: *const vk::ImageMemoryBarrier<'static>) -> ();
    CmdCopyBuffer = "vkCmdCopyBuffer"(
        commands: vk::CommandBuffer, from: vk::Buffer, to: vk::Buffer, count: u32,
        regions: *const vk::BufferCopy) -> ();
    CmdFillBuffer = "vkCmdFillBuffer"(
        commands: vk::CommandBuffer, to: vk::Buffer, offset: u64, size: u64, word: u32) -> ();
    CmdUpdateBuffer = "vkCmdUpdateBuffer"(
        commands: vk::CommandBuffer, to: vk::Buffer, offset: u64, size: u64,
        data: *const c_void) -> ();
    CmdBindPipeline = "vkCmdBindPipeline"(
        commands: vk::CommandBuffer, point: vk::PipelineBindPoint, pipeline: vk::Pipeline) -> ();
    CmdBindDescriptorSets = "vkCmdBindDescriptorSets"(
        commands: vk::CommandBuffer, point: vk::PipelineBindPoint, layout: vk::PipelineLayout,
        first: u32, count: u32, sets: *const vk::DescriptorSet, offset_count: u32,
        offsets: *const u32) -> ();
    CmdPushConstants = "vkCmdPushConstants"(
        commands: vk::CommandBuffer, layout: vk::PipelineLayout, stages: vk::ShaderStageFlags,
        offset: u32, size: u32, values: *const c_void) -> ();
    CmdDispatch = "vkCmdDispatch"(commands: vk::CommandBuffer, x: u32, y: u32, z: u32) -> ();
    CmdDispatchIndirect = "vkCmdDispatchIndirect"(
        commands: vk::CommandBuffer, counts: vk::Buffer, offset: u64) -> ();

    CreateShaderModule = "vkCreateShaderModule"(
        device: vk::Device, info: *const vk::ShaderModuleCreateInfo<'static>,
        allocator: *const AllocationCallbacks<'static>, out: *mut vk::ShaderModule) -> vk::Result,
        undone by "vkDestroyShaderModule";
    DestroyShaderModule = "vkDestroyShaderModule"(
        device: vk::Device, module: vk::ShaderModule,
        allocator: *const AllocationCallbacks<'static>) -> (), ends module;
    CreatePipelineLayout = "vkCreatePipelineLayout"(
        device: vk::Device, info: *const vk::PipelineLayoutCreateInfo<'static>,
        allocator: *const AllocationCallbacks<'static>, out: *mut vk::PipelineLayout) -> vk::Result,
        undone by "vkDestroyPipelineLayout";
    DestroyPipelineLayout = "vkDestroyPipelineLayout"(
        device: vk::Device, layout: vk::PipelineLayout,
        allocator: *const AllocationCallbacks<'static>) -> (), ends layout;
    CreateComputePipelines = "vkCreateComputePipelines"(
        device: vk::Device, cache: vk::PipelineCache, count: u32,
        infos: *const vk::ComputePipelineCreateInfo<'static>,
        allocator: *const AllocationCallbacks<'static>, out: *mut vk::Pipeline) -> vk::Result,
        undone by "vkDestroyPipeline", clears out[count];
    DestroyPipeline = "vkDestroyPipeline"(
        device: vk::Device, pipeline: vk::Pipeline,
        allocator: *const AllocationCallbacks<'static>) -> (), ends pipeline;
    CreateDescriptorSetLayout = "vkCreateDescriptorSetLayout"(
        device: vk::Device, info: *const vk::DescriptorSetLayoutCreateInfo<'static>,
        allocator: *const AllocationCallbacks<'static>,
        out: *mut vk::DescriptorSetLayout) -> vk::Result,
        undone by "vkDestroyDescriptorSetLayout";
    DestroyDescriptorSetLayout = "vkDestroyDescriptorSetLayout"(
        device: vk::Device, layout: vk::DescriptorSetLayout,
        allocator: *const AllocationCallbacks<'static>) -> (), ends layout;
    CreateDescriptorPool = "vkCreateDescriptorPool"(
        device: vk::Device, info: *const vk::DescriptorPoolCreateInfo<'static>,
        allocator: *const AllocationCallbacks<'static>, out: *mut vk::DescriptorPool) -> vk::Result,
        undone by "vkDestroyDescriptorPool";
    DestroyDescriptorPool = "vkDestroyDescriptorPool"(
        device: vk::Device, pool: vk::DescriptorPool,
        allocator: *const AllocationCallbacks<'static>) -> (), ends pool;
    ResetDescriptorPool = "vkResetDescriptorPool"(
        device: vk::Device, pool: vk::DescriptorPool,
        flags: vk::DescriptorPoolResetFlags) -> vk::Result;
    AllocateDescriptorSets = "vkAllocateDescriptorSets"(
        device: vk::Device, info: *const vk::DescriptorSetAllocateInfo<'static>,
        out: *mut vk::DescriptorSet) -> vk::Result;
    UpdateDescriptorSets = "vkUpdateDescriptorSets"(
        device: vk::Device, count: u32, writes: *const vk::WriteDescriptorSet<'static>,
        copy_count: u32, copies: *const vk::CopyDescriptorSet<'static>) -> ();

    CreateSemaphore = "vkCreateSemaphore"(
        device: vk::Device, info: *const vk::SemaphoreCreateInfo<'static>,
        allocator: *const AllocationCallbacks<'static>, out: *mut vk::Semaphore) -> vk::Result,
        undone by "vkDestroySemaphore";
    DestroySemaphore = "vkDestroySemaphore"(
        device: vk::Device, semaphore: vk::Semaphore,
        allocator: *const AllocationCallbacks<'static>) -> (), ends semaphore;
    GetSemaphoreCounterValue = "vkGetSemaphoreCounterValue"(
        device: vk::Device, semaphore: vk::Semaphore, out: *mut u64) -> vk::Result;
    WaitSemaphores = "vkWaitSemaphores"(
        device: vk::Device, info: *const vk::SemaphoreWaitInfo<'static>, timeout: u64) -> vk::Result;
    QueueSubmit = "vkQueueSubmit"(
        queue: vk::Queue, count: u32, infos: *const vk::SubmitInfo<'static>,
        fence: vk::Fence) -> vk::Result;
}
