//! The rules at an entry that write a log.
//!
//! # Safety
//!
//! The hooks read what Vulkan was called with, as long as the call lasts, and what the driver has just
//! answered where it succeeded. Calls are right, which the validation layers see to.
#![allow(unsafe_code)]

use core::ffi::{CStr, c_char};
use std::any::Any;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use ash::vk::{self, AccessFlags, Handle};

use super::history::{Barrier, Command, Event, MemoryBarrier};
use super::objects::{Batch, Bound, Kind, Objects};
use crate::support::entry::{Entry, args};

/// Has an entry write into `objects`.
pub fn install(entry: &Entry, objects: &Arc<Mutex<Objects>>) {
    let hooks = Hooks { entry, objects };
    hooks.memory();
    hooks.programs();
    hooks.pools();
    hooks.commands();
    hooks.launches();
    hooks.queues();
    hooks.host();
}

struct Hooks<'a> {
    entry: &'a Entry,
    objects: &'a Arc<Mutex<Objects>>,
}

impl Hooks<'_> {
    /// Before a call, for what ends with it.
    fn before<T: Any>(
        &self,
        name: &str,
        mut note: impl FnMut(&mut Objects, &T) + Send + 'static,
    ) -> &Self {
        let objects = Arc::clone(self.objects);
        self.entry.alter(name, move |args: &mut T| {
            note(
                &mut objects.lock().unwrap_or_else(PoisonError::into_inner),
                args,
            );
        });
        self
    }

    /// After a call that has succeeded.
    fn after<T: Any>(
        &self,
        name: &str,
        mut note: impl FnMut(&mut Objects, &T) + Send + 'static,
    ) -> &Self {
        let objects = Arc::clone(self.objects);
        self.entry.answer(name, move |args: &mut T| {
            note(
                &mut objects.lock().unwrap_or_else(PoisonError::into_inner),
                args,
            );
        });
        self
    }

    fn memory(&self) {
        self.after(
            "vkAllocateMemory",
            |objects, args: &args::AllocateMemory| {
                objects.add(args.0.as_raw(), Kind::Memory, made(args.3));
            },
        );
        self.before("vkFreeMemory", |objects, args: &args::FreeMemory| {
            objects.device(args.0.as_raw()).end_memory(args.1.as_raw());
        });
        self.after("vkCreateBuffer", |objects, args: &args::CreateBuffer| {
            let info = one(args.1);
            objects.add_buffer(args.0.as_raw(), made(args.3), info.size);
        });
        self.before("vkDestroyBuffer", |objects, args: &args::DestroyBuffer| {
            objects.device(args.0.as_raw()).end_buffer(args.1.as_raw());
        });
        self.after(
            "vkBindBufferMemory",
            |objects, args: &args::BindBufferMemory| {
                let device = objects.device(args.0.as_raw());
                device.bind(args.1.as_raw(), args.2.as_raw(), args.3);
            },
        );
        self.after(
            "vkGetBufferDeviceAddress",
            |objects, (args, address): &(args::GetBufferDeviceAddress, u64)| {
                let device = objects.device(args.0.as_raw());
                device.address(one(args.1).buffer.as_raw(), *address);
            },
        );
        self.before("vkDestroyDevice", |objects, args: &args::DestroyDevice| {
            objects.end_device(args.0.as_raw());
        });
    }

    fn programs(&self) {
        self.after(
            "vkCreateShaderModule",
            |objects, args: &args::CreateShaderModule| {
                let info = one(args.1);
                let words = many(info.p_code, info.code_size / 4).to_vec();
                let device = objects.device(args.0.as_raw());
                device.add_module(made(args.3), words);
            },
        );
        self.after(
            "vkCreateComputePipelines",
            |objects, args: &args::CreateComputePipelines| {
                let infos = many(args.3, args.2 as usize);
                let pipelines = many(args.5, args.2 as usize);
                for (info, pipeline) in infos.iter().zip(pipelines) {
                    let (module, name) = (info.stage.module.as_raw(), text(info.stage.p_name));
                    objects.add_pipeline(args.0.as_raw(), pipeline.as_raw(), module, &name);
                }
            },
        );
        self.before(
            "vkDestroyPipeline",
            |objects, args: &args::DestroyPipeline| {
                objects
                    .device(args.0.as_raw())
                    .end_pipeline(args.1.as_raw());
            },
        );
    }

    fn pools(&self) {
        self.after(
            "vkCreateCommandPool",
            |objects, args: &args::CreateCommandPool| {
                objects.add(args.0.as_raw(), Kind::CommandPool, made(args.3));
            },
        );
        self.before(
            "vkResetCommandPool",
            |objects, args: &args::ResetCommandPool| {
                objects.device(args.0.as_raw()).end_lists(args.1.as_raw());
            },
        );
        self.before(
            "vkDestroyCommandPool",
            |objects, args: &args::DestroyCommandPool| {
                objects.device(args.0.as_raw()).end_lists(args.1.as_raw());
            },
        );
        self.after(
            "vkAllocateCommandBuffers",
            |objects, args: &args::AllocateCommandBuffers| {
                let info = one(args.1);
                for list in many(args.2, info.command_buffer_count as usize) {
                    let pool = info.command_pool.as_raw();
                    objects.add_list(args.0.as_raw(), pool, list.as_raw());
                }
            },
        );
        self.after(
            "vkCreateDescriptorPool",
            |objects, args: &args::CreateDescriptorPool| {
                objects.add(args.0.as_raw(), Kind::DescriptorPool, made(args.3));
            },
        );
        self.before(
            "vkResetDescriptorPool",
            |objects, args: &args::ResetDescriptorPool| {
                objects.device(args.0.as_raw()).end_sets(args.1.as_raw());
            },
        );
        self.before(
            "vkDestroyDescriptorPool",
            |objects, args: &args::DestroyDescriptorPool| {
                objects.device(args.0.as_raw()).end_sets(args.1.as_raw());
            },
        );
        self.after(
            "vkAllocateDescriptorSets",
            |objects, args: &args::AllocateDescriptorSets| {
                let info = one(args.1);
                let device = objects.device(args.0.as_raw());
                for set in many(args.2, info.descriptor_set_count as usize) {
                    device.add_set(info.descriptor_pool.as_raw(), set.as_raw());
                }
            },
        );
        self.after(
            "vkUpdateDescriptorSets",
            |objects, args: &args::UpdateDescriptorSets| {
                assert_eq!(args.3, 0, "no set is copied from another");
                for write in many(args.2, args.1 as usize) {
                    write_set(objects, args.0.as_raw(), write);
                }
            },
        );
    }

    fn commands(&self) {
        self.after(
            "vkBeginCommandBuffer",
            |objects, args: &args::BeginCommandBuffer| {
                let again = vk::CommandBufferUsageFlags::SIMULTANEOUS_USE;
                let again = one(args.1).flags.contains(again);
                let raw = args.0.as_raw();
                let label = objects.label;
                objects.home(raw).begin(raw, again, label);
            },
        );
        self.after(
            "vkCmdPipelineBarrier",
            |objects, args: &args::CmdPipelineBarrier| {
                let raw = args.0.as_raw();
                let barrier = barrier(args);
                let device = objects.home(raw);
                device.record(raw, Command::Barrier(barrier), BTreeSet::new());
            },
        );
        self.after("vkCmdCopyBuffer", |objects, args: &args::CmdCopyBuffer| {
            let (from, to) = (args.1.as_raw(), args.2.as_raw());
            let regions = many(args.4, args.3 as usize);
            let touched: Vec<_> = (regions.iter())
                .flat_map(|one| {
                    [
                        (from, one.src_offset, one.size, AccessFlags::TRANSFER_READ),
                        (to, one.dst_offset, one.size, AccessFlags::TRANSFER_WRITE),
                    ]
                })
                .collect();
            let raw = args.0.as_raw();
            objects.home(raw).command(raw, "a copy", &touched);
        });
        self.after("vkCmdFillBuffer", |objects, args: &args::CmdFillBuffer| {
            let touched = (args.1.as_raw(), args.2, args.3, AccessFlags::TRANSFER_WRITE);
            let raw = args.0.as_raw();
            objects.home(raw).command(raw, "a fill", &[touched]);
        });
        self.after(
            "vkCmdUpdateBuffer",
            |objects, args: &args::CmdUpdateBuffer| {
                let touched = (args.1.as_raw(), args.2, args.3, AccessFlags::TRANSFER_WRITE);
                let raw = args.0.as_raw();
                objects.home(raw).command(raw, "an update", &[touched]);
            },
        );
    }

    fn launches(&self) {
        self.after(
            "vkCmdBindPipeline",
            |objects, args: &args::CmdBindPipeline| {
                let raw = args.0.as_raw();
                objects.home(raw).bind_pipeline(raw, args.2.as_raw());
            },
        );
        self.after(
            "vkCmdBindDescriptorSets",
            |objects, args: &args::CmdBindDescriptorSets| {
                assert_eq!(args.6, 0, "no offset comes with the call");
                let raw = args.0.as_raw();
                for (index, set) in (args.3..).zip(many(args.5, args.4 as usize)) {
                    objects.home(raw).bind_set(raw, index, set.as_raw());
                }
            },
        );
        self.after(
            "vkCmdPushConstants",
            |objects, args: &args::CmdPushConstants| {
                let values = many(args.5.cast::<u8>(), args.4 as usize);
                let raw = args.0.as_raw();
                objects.home(raw).push(raw, args.3 as usize, values);
            },
        );
        self.after("vkCmdDispatch", |objects, args: &args::CmdDispatch| {
            objects.launch(args.0.as_raw(), Some([args.1, args.2, args.3]), None);
        });
        self.after(
            "vkCmdDispatchIndirect",
            |objects, args: &args::CmdDispatchIndirect| {
                let counts = (args.1.as_raw(), args.2);
                objects.launch(args.0.as_raw(), None, Some(counts));
            },
        );
    }

    fn queues(&self) {
        self.after(
            "vkGetDeviceQueue",
            |objects, args: &args::GetDeviceQueue| {
                objects.add_queue(args.0.as_raw(), made(args.3));
            },
        );
        self.after(
            "vkCreateSemaphore",
            |objects, args: &args::CreateSemaphore| {
                objects.add(args.0.as_raw(), Kind::Semaphore, made(args.3));
            },
        );
        self.before("vkQueueSubmit", |objects, _: &args::QueueSubmit| {
            objects.submit_calls += 1;
        });
        self.after("vkQueueSubmit", |objects, args: &args::QueueSubmit| {
            let queue = args.0.as_raw();
            for info in many(args.2, args.1 as usize) {
                objects.home(queue).submit(queue, batch(info));
            }
        });
        self.after(
            "vkGetSemaphoreCounterValue",
            |objects, args: &args::GetSemaphoreCounterValue| {
                let device = objects.device(args.0.as_raw());
                device.see(args.1.as_raw(), *one(args.2));
            },
        );
        self.after(
            "vkWaitSemaphores",
            |objects, args: &args::WaitSemaphores| {
                let info = one(args.1);
                let count = info.semaphore_count as usize;
                let is_any = info.flags.contains(vk::SemaphoreWaitFlags::ANY);
                assert!(count == 1 || !is_any, "which of them was it?");
                let values = many(info.p_values, count);
                for (semaphore, value) in many(info.p_semaphores, count).iter().zip(values) {
                    let device = objects.device(args.0.as_raw());
                    device.see(semaphore.as_raw(), *value);
                }
            },
        );
    }

    /// What is not coherent is flushed behind what the host writes, and invalidated before what it reads.
    fn host(&self) {
        self.after(
            "vkFlushMappedMemoryRanges",
            |objects, args: &args::FlushMappedMemoryRanges| {
                for range in many(args.2, args.1 as usize) {
                    let device = objects.device(args.0.as_raw());
                    let range = device.mapped(range.memory.as_raw(), range.offset, range.size);
                    device.note(Event::HostWrites(range));
                }
            },
        );
        self.after(
            "vkInvalidateMappedMemoryRanges",
            |objects, args: &args::InvalidateMappedMemoryRanges| {
                for range in many(args.2, args.1 as usize) {
                    let device = objects.device(args.0.as_raw());
                    let range = device.mapped(range.memory.as_raw(), range.offset, range.size);
                    device.note(Event::HostReads(range));
                }
            },
        );
    }
}

/// What a pointer of a call points to.
fn one<'a, T>(pointer: *const T) -> &'a T {
    // SAFETY: see the top of the file.
    unsafe { &*pointer }
}

/// What a list of a call holds.
fn many<'a, T>(first: *const T, count: usize) -> &'a [T] {
    if count == 0 {
        return &[];
    }
    // SAFETY: see the top of the file.
    unsafe { core::slice::from_raw_parts(first, count) }
}

/// The handle that a call has made.
fn made<T: Handle + Copy>(out: *mut T) -> u64 {
    one(out.cast_const()).as_raw()
}

fn text(name: *const c_char) -> String {
    // SAFETY: see the top of the file.
    unsafe { CStr::from_ptr(name) }
        .to_string_lossy()
        .into_owned()
}

fn write_set(objects: &mut Objects, device: u64, write: &vk::WriteDescriptorSet<'_>) {
    let is_uniform = match write.descriptor_type {
        vk::DescriptorType::UNIFORM_BUFFER => true,
        vk::DescriptorType::STORAGE_BUFFER => false,
        other => panic!("no test binds {other:?}"),
    };
    let infos = many(write.p_buffer_info, write.descriptor_count as usize);
    for (element, info) in (write.dst_array_element..).zip(infos) {
        let bound = Bound {
            buffer: info.buffer.as_raw(),
            offset: info.offset,
            bytes: info.range,
            is_uniform,
        };
        let (set, binding) = (write.dst_set.as_raw(), write.dst_binding);
        objects
            .device(device)
            .write_set(set, binding, element, bound);
    }
}

fn barrier(args: &args::CmdPipelineBarrier) -> Barrier {
    assert_eq!((args.6, args.8), (0, 0), "barriers are of all memory");
    let memory = many(args.5, args.4 as usize)
        .iter()
        .map(|one| MemoryBarrier {
            from: one.src_access_mask,
            to: one.dst_access_mask,
            range: None,
        });
    Barrier {
        from: args.1,
        to: args.2,
        memory: memory.collect(),
    }
}

/// A batch with its waits and signals, which are all of timelines.
fn batch(info: &vk::SubmitInfo<'_>) -> Batch {
    let (mut wait_values, mut signal_values) = (&[][..], &[][..]);
    let mut next = info.p_next.cast::<vk::BaseInStructure<'_>>();
    while !next.is_null() {
        let base = one(next);
        if base.s_type == vk::StructureType::TIMELINE_SEMAPHORE_SUBMIT_INFO {
            let timeline = one(next.cast::<vk::TimelineSemaphoreSubmitInfo<'_>>());
            let (waits, signals) = (
                timeline.wait_semaphore_value_count,
                timeline.signal_semaphore_value_count,
            );
            wait_values = many(timeline.p_wait_semaphore_values, waits as usize);
            signal_values = many(timeline.p_signal_semaphore_values, signals as usize);
        }
        next = base.p_next;
    }
    let waited = many(info.p_wait_semaphores, info.wait_semaphore_count as usize);
    let stages = many(
        info.p_wait_dst_stage_mask,
        info.wait_semaphore_count as usize,
    );
    let waits = waited.iter().zip(wait_values).zip(stages);
    let signalled = many(
        info.p_signal_semaphores,
        info.signal_semaphore_count as usize,
    );
    let lists = many(info.p_command_buffers, info.command_buffer_count as usize);
    assert_eq!(waited.len(), wait_values.len());
    assert_eq!(signalled.len(), signal_values.len());
    Batch {
        waits: waits
            .map(|((semaphore, value), stages)| (semaphore.as_raw(), *value, *stages))
            .collect(),
        lists: lists.iter().map(|list| list.as_raw()).collect(),
        signals: (signalled.iter().zip(signal_values))
            .map(|(semaphore, value)| (semaphore.as_raw(), *value))
            .collect(),
    }
}
