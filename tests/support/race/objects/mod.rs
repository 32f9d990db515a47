//! The objects of Vulkan that a log knows, and what they say of commands.

mod launch;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ash::vk::{self, AccessFlags, PipelineStageFlags};

use super::history::{
    Command, Event, History, List, Object, Point, Range, Submission, Touch, Wait, Work,
};
use super::reach::{self, Launch};
use super::shader::{self, Uses};

/// All objects that were made through an entry, by their handles.
#[derive(Default)]
pub struct Objects {
    devices: BTreeMap<u64, Device>,
    /// What devices did that are gone.
    past: Vec<History>,
    /// The device of a queue or a command buffer.
    homes: BTreeMap<u64, u64>,
    /// How often something was submitted, or tried to be.
    pub submit_calls: u64,
    /// What lists that are begun are labelled with.
    pub label: usize,
    /// What can't be told from outside.
    pub unknown: BTreeSet<String>,
    newest: u64,
}

#[derive(Default)]
pub struct Device {
    history: History,
    /// All commands in the order in which they were recorded, but for those of lists that are submitted
    /// again and again.
    recorded: Vec<Command>,
    memories: BTreeMap<u64, u64>,
    buffers: BTreeMap<u64, Buffer>,
    modules: BTreeMap<u64, Arc<Vec<u32>>>,
    pipelines: BTreeMap<u64, Arc<Program>>,
    sets: BTreeMap<u64, Set>,
    semaphores: BTreeMap<u64, u64>,
    queues: BTreeMap<u64, u64>,
    pools: BTreeMap<u64, u64>,
    set_pools: BTreeMap<u64, u64>,
    lists: BTreeMap<u64, Recorded>,
    /// What the host has seen of each semaphore.
    seen: BTreeMap<u64, u64>,
    /// Address and length of memory that the test knows.
    known: Vec<(u64, u64)>,
}

struct Buffer {
    id: u64,
    size: u64,
    /// The memory, and where in it.
    memory: Option<(u64, u64)>,
    address: Option<u64>,
}

struct Program {
    id: u64,
    uses: Uses,
    /// How far it reaches behind addresses, where that is known.
    rule: Option<fn(Launch<'_>) -> (u64, u64)>,
}

struct Set {
    pool: u64,
    /// By binding and element.
    bound: BTreeMap<(u32, u32), Bound>,
}

#[derive(Clone, Copy)]
pub struct Bound {
    pub buffer: u64,
    pub offset: u64,
    pub bytes: u64,
    pub is_uniform: bool,
}

/// A command buffer, and what is bound in it.
#[derive(Default)]
struct Recorded {
    pool: u64,
    list: Arc<List>,
    pipeline: Option<Arc<Program>>,
    sets: BTreeMap<u32, u64>,
    push: Vec<u8>,
}

/// A batch as it was submitted: semaphores by their handles.
pub struct Batch {
    pub waits: Vec<(u64, u64, PipelineStageFlags)>,
    pub lists: Vec<u64>,
    pub signals: Vec<(u64, u64)>,
}

/// Kinds of objects that can be asked after.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Memory,
    Semaphore,
    CommandPool,
    DescriptorPool,
}

impl Objects {
    pub fn histories(&self) -> Vec<History> {
        let living = self.devices.values().map(|device| device.history.clone());
        self.past.iter().cloned().chain(living).collect()
    }

    /// What was recorded on the devices that are there, in this order.
    pub fn recorded(&self) -> Vec<Command> {
        let living = self.devices.values();
        living.flat_map(|device| device.recorded.clone()).collect()
    }

    fn number(&mut self) -> u64 {
        self.newest += 1;
        self.newest
    }

    /// The device of that handle.
    pub fn device(&mut self, raw: u64) -> &mut Device {
        self.devices.entry(raw).or_default()
    }

    /// The device of a queue or a command buffer.
    pub fn home(&mut self, raw: u64) -> &mut Device {
        let device = self.homes[&raw];
        self.device(device)
    }

    pub fn end_device(&mut self, raw: u64) {
        if let Some(device) = self.devices.remove(&raw) {
            self.past.push(device.history);
        }
        self.homes.retain(|_, device| *device != raw);
    }

    pub fn know_memory(&mut self, address: u64, bytes: u64) {
        for device in self.devices.values_mut() {
            device.known.push((address, bytes));
        }
    }

    pub fn add_queue(&mut self, device: u64, queue: u64) {
        if self.homes.insert(queue, device).is_none() {
            let id = self.number();
            self.device(device).queues.insert(queue, id);
        }
    }

    pub fn add_buffer(&mut self, device: u64, raw: u64, size: u64) {
        let id = self.number();
        let buffer = Buffer {
            id,
            size,
            memory: None,
            address: None,
        };
        self.device(device).buffers.insert(raw, buffer);
    }

    /// Something that needs no more than a number.
    pub fn add(&mut self, device: u64, kind: Kind, raw: u64) {
        let id = self.number();
        let device = self.device(device);
        let map = match kind {
            Kind::Memory => &mut device.memories,
            Kind::Semaphore => &mut device.semaphores,
            Kind::CommandPool => &mut device.pools,
            Kind::DescriptorPool => &mut device.set_pools,
        };
        map.insert(raw, id);
    }

    pub fn add_pipeline(&mut self, device: u64, raw: u64, module: u64, entry: &str) {
        let id = self.number();
        let device = self.device(device);
        let words = &device.modules[&module];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let uses = shader::uses(words, entry);
        let rule = match uses.addresses.is_empty() {
            true => None,
            false => reach::rule(&bytes),
        };
        let program = Arc::new(Program { id, uses, rule });
        device.pipelines.insert(raw, program);
    }

    pub fn add_list(&mut self, device: u64, pool: u64, raw: u64) {
        self.homes.insert(raw, device);
        let device = self.device(device);
        let list = Recorded {
            pool: device.pools[&pool],
            ..Recorded::default()
        };
        device.lists.insert(raw, list);
    }

    /// Adds a launch to a command buffer; what can't be told of it is kept for the test.
    pub fn launch(&mut self, raw: u64, groups: Option<[u32; 3]>, counts: Option<(u64, u64)>) {
        if let Err(unknown) = self.home(raw).launch(raw, groups, counts) {
            self.unknown.insert(unknown);
        }
    }
}

impl Device {
    pub fn note(&mut self, event: Event) {
        self.history.events.push(event);
    }

    pub fn bind(&mut self, buffer: u64, memory: u64, offset: u64) {
        let memory = self.memories[&memory];
        if let Some(buffer) = self.buffers.get_mut(&buffer) {
            buffer.memory = Some((memory, offset));
        }
    }

    pub fn address(&mut self, buffer: u64, address: u64) {
        if let Some(buffer) = self.buffers.get_mut(&buffer) {
            buffer.address = Some(address);
        }
    }

    pub fn add_module(&mut self, raw: u64, words: Vec<u32>) {
        self.modules.insert(raw, Arc::new(words));
    }

    pub fn end_buffer(&mut self, raw: u64) {
        if let Some(buffer) = self.buffers.remove(&raw) {
            self.note(Event::Ends(Object::Buffer(buffer.id)));
        }
    }

    pub fn end_memory(&mut self, raw: u64) {
        if let Some(id) = self.memories.remove(&raw) {
            self.note(Event::Ends(Object::Memory(id)));
        }
    }

    pub fn end_pipeline(&mut self, raw: u64) {
        if let Some(program) = self.pipelines.remove(&raw) {
            self.note(Event::Ends(Object::Pipeline(program.id)));
        }
    }

    /// What was recorded from a command pool is gone, and so perhaps is the pool.
    pub fn end_lists(&mut self, pool: u64) {
        let id = self.pools[&pool];
        for list in self.lists.values_mut().filter(|list| list.pool == id) {
            *list = Recorded {
                pool: id,
                ..Recorded::default()
            };
        }
        self.note(Event::Ends(Object::CommandPool(id)));
    }

    pub fn add_set(&mut self, pool: u64, raw: u64) {
        let set = Set {
            pool: self.set_pools[&pool],
            bound: BTreeMap::new(),
        };
        self.sets.insert(raw, set);
    }

    /// The sets of a pool are gone, and so perhaps is the pool.
    pub fn end_sets(&mut self, pool: u64) {
        let id = self.set_pools[&pool];
        self.sets.retain(|_, set| set.pool != id);
        self.note(Event::Ends(Object::DescriptorPool(id)));
    }

    pub fn write_set(&mut self, set: u64, binding: u32, element: u32, bound: Bound) {
        if let Some(set) = self.sets.get_mut(&set) {
            set.bound.insert((binding, element), bound);
        }
    }

    pub fn begin(&mut self, raw: u64, again: bool, label: usize) {
        let pool = self.lists[&raw].pool;
        let list = List {
            again,
            label,
            uses: BTreeSet::from([Object::CommandPool(pool)]),
            ..List::default()
        };
        let recorded = Recorded {
            pool,
            list: Arc::new(list),
            ..Recorded::default()
        };
        self.lists.insert(raw, recorded);
    }

    fn list(&mut self, raw: u64) -> &mut Recorded {
        self.lists
            .get_mut(&raw)
            .expect("a command buffer that was made")
    }

    pub fn bind_pipeline(&mut self, raw: u64, pipeline: u64) {
        let program = Arc::clone(&self.pipelines[&pipeline]);
        self.list(raw).pipeline = Some(program);
    }

    pub fn bind_set(&mut self, raw: u64, index: u32, set: u64) {
        self.list(raw).sets.insert(index, set);
    }

    pub fn push(&mut self, raw: u64, offset: usize, values: &[u8]) {
        let push = &mut self.list(raw).push;
        push.resize(push.len().max(offset + values.len()), 0);
        push[offset..offset + values.len()].copy_from_slice(values);
    }

    /// Adds a command that is no launch: what it touches is a buffer's bytes.
    pub fn command(
        &mut self,
        raw: u64,
        name: &'static str,
        touched: &[(u64, u64, u64, AccessFlags)],
    ) {
        let mut touches = Vec::new();
        let mut used = BTreeSet::new();
        for &(buffer, offset, bytes, access) in touched {
            let range = self.range(buffer, offset, bytes, &mut used);
            touches.push(Touch {
                range,
                stage: PipelineStageFlags::TRANSFER,
                access,
            });
        }
        self.record(raw, Command::Work(Work { name, touches }), used);
    }

    pub fn record(&mut self, raw: u64, command: Command, used: BTreeSet<Object>) {
        let list = Arc::make_mut(&mut self.list(raw).list);
        list.commands.push(command.clone());
        list.uses.extend(used);
        if !list.again {
            self.recorded.push(command);
        }
    }

    /// Bytes of a buffer in its memory; notes that both are used.
    fn range(&self, raw: u64, offset: u64, bytes: u64, used: &mut BTreeSet<Object>) -> Range {
        let buffer = &self.buffers[&raw];
        let (memory, start) = buffer.memory.expect("a buffer with memory");
        used.insert(Object::Buffer(buffer.id));
        used.insert(Object::Memory(memory));
        let bytes = match bytes {
            vk::WHOLE_SIZE => buffer.size - offset,
            bytes => bytes,
        };
        Range {
            memory,
            lo: start + offset,
            hi: start + offset + bytes,
        }
    }

    /// What memory a mapped range is.
    pub fn mapped(&self, memory: u64, offset: u64, bytes: u64) -> Range {
        Range {
            memory: self.memories[&memory],
            lo: offset,
            hi: offset.saturating_add(bytes),
        }
    }

    /// The submission that a batch is.
    pub fn submit(&mut self, queue: u64, batch: Batch) {
        let wait = |(semaphore, value, stages): (u64, u64, _)| Wait {
            point: self.point(semaphore, value),
            stages,
        };
        let waits = batch.waits.into_iter().map(wait).collect();
        let signals = batch.signals.iter();
        let submission = Submission {
            queue: self.queues[&queue],
            waits,
            lists: (batch.lists.iter())
                .map(|list| Arc::clone(&self.lists[list].list))
                .collect(),
            signals: signals
                .map(|(semaphore, value)| self.point(*semaphore, *value))
                .collect(),
        };
        self.note(Event::Submission(submission));
    }

    /// The host has seen a value, which may be news.
    pub fn see(&mut self, semaphore: u64, value: u64) {
        let point = self.point(semaphore, value);
        let seen = self.seen.entry(point.semaphore).or_default();
        if value > *seen {
            *seen = value;
            self.note(Event::Seen(point));
        }
    }

    pub fn point(&self, semaphore: u64, value: u64) -> Point {
        Point {
            semaphore: self.semaphores[&semaphore],
            value,
        }
    }
}
