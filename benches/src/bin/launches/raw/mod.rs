//! The same work in raw Vulkan, as one would write it by hand who knows all of it beforehand: sets and
//! command buffers are made once, a pipeline is bound once a command buffer, barriers stand where the
//! work needs them and nowhere else.
//!
//! # Safety
//!
//! One thread uses all of this, and waits for all that it has submitted before it records a command
//! buffer anew, reads memory or ends. Kernels get pieces that lie in their buffers.
#![allow(unsafe_code)]

mod setup;

use ash::vk;
use vkaccel::bytemuck;

use crate::work::{Abi, BUFFER_BYTES, Launch, PIECE_BYTES, PIECE_WORDS, PIECES, Result, Work};

/// How many command buffers are in use at once where each launch is submitted by itself.
const RING: usize = 64;

/// A device by hand, with all that the work needs.
pub struct Raw {
    device: ash::Device,
    instance: ash::Instance,
    _entry: ash::Entry,
    queue: vk::Queue,
    timeline: vk::Semaphore,
    /// The last value that was submitted.
    last: u64,
    pool: vk::CommandPool,
    commands: Vec<vk::CommandBuffer>,
    /// The value behind each of them.
    values: [u64; RING],
    kernels: [RawKernel; 2],
    set_layout: vk::DescriptorSetLayout,
    sets_pool: vk::DescriptorPool,
    /// Of each piece: from the first buffer to the second, and back.
    sets: Vec<[vk::DescriptorSet; 2]>,
    buffers: [RawBuffer; 2],
    seen: RawBuffer,
}

struct RawKernel {
    pipeline: vk::Pipeline,
    layout: vk::PipelineLayout,
}

struct RawBuffer {
    buffer: vk::Buffer,
    memory: vk::DeviceMemory,
    address: u64,
}

/// A command buffer that is submitted again and again.
pub struct Recorded(vk::CommandBuffer);

impl Raw {
    /// Opens the first device.
    pub fn open(entry: ash::Entry) -> Result<Self> {
        let app = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_2);
        let info = vk::InstanceCreateInfo::default().application_info(&app);
        // SAFETY: `info` and what it points to are valid.
        let instance = unsafe { entry.create_instance(&info, None) }?;
        // SAFETY: the instance is there.
        let found = unsafe { instance.enumerate_physical_devices() }?;
        let physical = *found.first().ok_or("no device")?;
        let (device, family) = setup::open_device(&instance, physical)?;
        // SAFETY: the device was opened with one queue of the family.
        let queue = unsafe { device.get_device_queue(family, 0) };
        let mut kind =
            vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
        let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
        // SAFETY: the device is there, with timelines.
        let timeline = unsafe { device.create_semaphore(&info, None) }?;
        let info = vk::CommandPoolCreateInfo::default()
            .queue_family_index(family)
            .flags(vk::CommandPoolCreateFlags::RESET_COMMAND_BUFFER);
        // SAFETY: the device is there.
        let pool = unsafe { device.create_command_pool(&info, None) }?;
        // SAFETY: the physical device is the instance's own.
        let types = unsafe { instance.get_physical_device_memory_properties(physical) };
        let buffer = |flags| setup::make_buffer(&device, &types, flags);
        let buffers = [
            buffer(vk::MemoryPropertyFlags::DEVICE_LOCAL)?,
            buffer(vk::MemoryPropertyFlags::DEVICE_LOCAL)?,
        ];
        let seen =
            buffer(vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT)?;
        let set_layout = setup::make_set_layout(&device)?;
        let kernels = [
            setup::make_kernel(&device, Abi::Descriptors, set_layout)?,
            setup::make_kernel(&device, Abi::Addresses, set_layout)?,
        ];
        let (sets_pool, sets) = setup::make_sets(&device, set_layout, &buffers)?;
        let mut raw = Self {
            device,
            instance,
            _entry: entry,
            queue,
            timeline,
            last: 0,
            pool,
            commands: Vec::new(),
            values: [0; RING],
            kernels,
            set_layout,
            sets_pool,
            sets,
            buffers,
            seen,
        };
        raw.commands = raw.allocate(u32::try_from(RING)?)?;
        Ok(raw)
    }

    fn allocate(&self, count: u32) -> Result<Vec<vk::CommandBuffer>> {
        let info = vk::CommandBufferAllocateInfo::default()
            .command_pool(self.pool)
            .command_buffer_count(count);
        // SAFETY: the pool is there.
        Ok(unsafe { self.device.allocate_command_buffers(&info) }?)
    }

    /// Records, submits and waits for a list of launches.
    pub fn run(&mut self, work: &Work) -> Result<()> {
        let commands = self.commands[0];
        let usage = vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT;
        self.record(commands, usage, work.abi, &work.launches, work.is_chained)?;
        let value = self.submit(commands)?;
        self.wait(value)
    }

    /// The same with a command buffer and a submission for each launch.
    pub fn run_one_by_one(&mut self, work: &Work) -> Result<()> {
        let usage = vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT;
        for (at, launch) in work.launches.iter().enumerate() {
            let slot = at % RING;
            self.wait(self.values[slot])?;
            let commands = self.commands[slot];
            let launches = core::slice::from_ref(launch);
            self.record(commands, usage, work.abi, launches, work.is_chained)?;
            self.values[slot] = self.submit(commands)?;
        }
        self.wait(self.last)
    }

    /// Records a list of launches for good.
    pub fn recorded(&self, work: &Work) -> Result<Recorded> {
        let commands = self.allocate(1)?[0];
        let usage = vk::CommandBufferUsageFlags::empty();
        self.record(commands, usage, work.abi, &work.launches, work.is_chained)?;
        Ok(Recorded(commands))
    }

    /// Submits them once more, and waits.
    pub fn replay(&mut self, recorded: &Recorded) -> Result<()> {
        let value = self.submit(recorded.0)?;
        self.wait(value)
    }

    fn record(
        &self,
        commands: vk::CommandBuffer,
        usage: vk::CommandBufferUsageFlags,
        abi: Abi,
        launches: &[Launch],
        is_chained: bool,
    ) -> Result<()> {
        let device = &self.device;
        let info = vk::CommandBufferBeginInfo::default().flags(usage);
        // SAFETY: the commands are not pending, as the callers see to; this resets them.
        unsafe { device.begin_command_buffer(commands, &info) }?;
        let kernel = &self.kernels[abi as usize];
        let point = vk::PipelineBindPoint::COMPUTE;
        // SAFETY: the commands are being recorded; the pipeline stays.
        unsafe { device.cmd_bind_pipeline(commands, point, kernel.pipeline) };
        for launch in launches {
            if is_chained {
                self.barrier(commands);
            }
            let stage = vk::ShaderStageFlags::COMPUTE;
            match abi {
                Abi::Descriptors => {
                    let sets = [self.sets[launch.piece][usize::from(launch.goes_back)]];
                    // SAFETY: the set is of the layout, and stays as it is.
                    unsafe {
                        device.cmd_bind_descriptor_sets(
                            commands,
                            point,
                            kernel.layout,
                            0,
                            &sets,
                            &[],
                        )
                    };
                    let push = bytes_of(&launch.numbers);
                    // SAFETY: the layout has a range of this size.
                    unsafe { device.cmd_push_constants(commands, kernel.layout, stage, 0, push) };
                }
                Abi::Addresses => {
                    let push = self.push(launch);
                    // SAFETY: as above.
                    unsafe { device.cmd_push_constants(commands, kernel.layout, stage, 0, &push) };
                }
            }
            // SAFETY: all that the kernel takes is there.
            unsafe { device.cmd_dispatch(commands, 1, 1, 1) };
        }
        // SAFETY: the commands are being recorded.
        Ok(unsafe { device.end_command_buffer(commands) }?)
    }

    fn barrier(&self, commands: vk::CommandBuffer) {
        let stage = vk::PipelineStageFlags::COMPUTE_SHADER;
        let barrier = [vk::MemoryBarrier::default()
            .src_access_mask(vk::AccessFlags::SHADER_WRITE)
            .dst_access_mask(vk::AccessFlags::SHADER_READ | vk::AccessFlags::SHADER_WRITE)];
        let flags = vk::DependencyFlags::empty();
        // SAFETY: the commands are being recorded.
        unsafe {
            self.device
                .cmd_pipeline_barrier(commands, stage, stage, flags, &barrier, &[], &[])
        };
    }

    /// Two addresses and three words.
    fn push(&self, launch: &Launch) -> [u8; 28] {
        let [first, second] = [0, 1].map(|at: usize| {
            let buffer = &self.buffers[at ^ usize::from(launch.goes_back)];
            buffer.address + PIECE_BYTES * launch.piece as u64
        });
        let mut push = [0; 28];
        push[..8].copy_from_slice(&first.to_ne_bytes());
        push[8..16].copy_from_slice(&second.to_ne_bytes());
        push[16..].copy_from_slice(bytes_of(&launch.numbers));
        push
    }

    fn submit(&mut self, commands: vk::CommandBuffer) -> Result<u64> {
        let value = [self.last + 1];
        let (commands, signalled) = ([commands], [self.timeline]);
        let mut timeline =
            vk::TimelineSemaphoreSubmitInfo::default().signal_semaphore_values(&value);
        let info = vk::SubmitInfo::default()
            .command_buffers(&commands)
            .signal_semaphores(&signalled)
            .push_next(&mut timeline);
        // SAFETY: the commands are recorded and not pending.
        unsafe {
            self.device
                .queue_submit(self.queue, &[info], vk::Fence::null())
        }?;
        self.last = value[0];
        Ok(self.last)
    }

    fn wait(&self, value: u64) -> Result<()> {
        let (semaphores, values) = ([self.timeline], [value]);
        let info = vk::SemaphoreWaitInfo::default()
            .semaphores(&semaphores)
            .values(&values);
        // SAFETY: the value was submitted.
        Ok(unsafe { self.device.wait_semaphores(&info, u64::MAX) }?)
    }

    /// Sets every word of the first buffer; the second has the content that it has.
    pub fn fill(&mut self, word: u32) -> Result<()> {
        let buffer = self.buffers[0].buffer;
        self.transfer(|device, commands| {
            // SAFETY: the buffer has these bytes; the commands are being recorded.
            unsafe { device.cmd_fill_buffer(commands, buffer, 0, BUFFER_BYTES, word) };
        })
    }

    /// The words of the first buffer.
    pub fn words(&mut self) -> Result<Vec<u32>> {
        let (from, to) = (self.buffers[0].buffer, self.seen.buffer);
        self.transfer(|device, commands| {
            let region = [vk::BufferCopy::default().size(BUFFER_BYTES)];
            // SAFETY: the buffers have these bytes; the commands are being recorded.
            unsafe { device.cmd_copy_buffer(commands, from, to, &region) };
        })?;
        let flags = vk::MemoryMapFlags::empty();
        // SAFETY: the memory is the host's too, and mapped nowhere else.
        let mapped = unsafe {
            self.device
                .map_memory(self.seen.memory, 0, BUFFER_BYTES, flags)
        }?;
        // SAFETY: so many words are mapped, and nobody writes to them.
        let words =
            unsafe { core::slice::from_raw_parts(mapped.cast::<u32>(), PIECES * PIECE_WORDS) };
        let words = words.to_vec();
        // SAFETY: nothing points there any more.
        unsafe { self.device.unmap_memory(self.seen.memory) };
        Ok(words)
    }

    fn transfer(&mut self, record: impl FnOnce(&ash::Device, vk::CommandBuffer)) -> Result<()> {
        let commands = self.commands[0];
        let info = vk::CommandBufferBeginInfo::default();
        // SAFETY: everything that was submitted has finished.
        unsafe { self.device.begin_command_buffer(commands, &info) }?;
        self.full_barrier(commands);
        record(&self.device, commands);
        self.full_barrier(commands);
        // SAFETY: the commands are being recorded.
        unsafe { self.device.end_command_buffer(commands) }?;
        let value = self.submit(commands)?;
        self.wait(value)
    }

    /// Between all that was done before and all that comes, on the host too.
    fn full_barrier(&self, commands: vk::CommandBuffer) {
        let stages = vk::PipelineStageFlags::ALL_COMMANDS | vk::PipelineStageFlags::HOST;
        let barrier = [vk::MemoryBarrier::default()
            .src_access_mask(vk::AccessFlags::MEMORY_WRITE)
            .dst_access_mask(vk::AccessFlags::MEMORY_READ | vk::AccessFlags::MEMORY_WRITE)];
        let flags = vk::DependencyFlags::empty();
        // SAFETY: the commands are being recorded.
        unsafe {
            self.device
                .cmd_pipeline_barrier(commands, stages, stages, flags, &barrier, &[], &[])
        };
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let device = &self.device;
        // SAFETY: this waits for all that was submitted; an error means that nothing runs any more.
        let _ = unsafe { device.device_wait_idle() };
        for kernel in &self.kernels {
            // SAFETY: nothing uses it.
            unsafe { device.destroy_pipeline(kernel.pipeline, None) };
            // SAFETY: as above.
            unsafe { device.destroy_pipeline_layout(kernel.layout, None) };
        }
        for buffer in self.buffers.iter().chain([&self.seen]) {
            // SAFETY: as above.
            unsafe { device.destroy_buffer(buffer.buffer, None) };
            // SAFETY: as above.
            unsafe { device.free_memory(buffer.memory, None) };
        }
        // SAFETY: as above.
        unsafe { device.destroy_descriptor_pool(self.sets_pool, None) };
        // SAFETY: as above.
        unsafe { device.destroy_descriptor_set_layout(self.set_layout, None) };
        // SAFETY: as above.
        unsafe { device.destroy_command_pool(self.pool, None) };
        // SAFETY: as above.
        unsafe { device.destroy_semaphore(self.timeline, None) };
        // SAFETY: all that was made of it is gone.
        unsafe { device.destroy_device(None) };
        // SAFETY: as above.
        unsafe { self.instance.destroy_instance(None) };
    }
}

fn bytes_of(words: &[u32; 3]) -> &[u8] {
    bytemuck::cast_slice(words)
}
