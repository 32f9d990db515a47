//! Slots: what a runtime keeps of each visible device, open or not.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::Shared;
use super::stream::NamedStream;
use crate::base::{counters::Counters, fork, gate, sync::Mutex};
use crate::device::info::PhysicalInfo;
use crate::device::plan::Plan;
use crate::device::{Device, DeviceCapability, MemoryInfo};
use crate::error::{Error, ErrorKind, Result};
use crate::exec::{Call, ExecDevice};
use crate::graph;
use crate::kernel::indirect::Indirect;
use crate::mem::pressure::Callbacks;
use crate::mem::{DeviceHost, DeviceMemory, MemorySettings, Staging, Through};
use crate::rng::generator::GeneratorState;
use crate::rng::kernels::Kernels;
use crate::vk;

/// A visible device of a runtime.
pub(crate) struct Slot {
    index: u32,
    /// Where it stood when the devices were enumerated.
    position: usize,
    info: PhysicalInfo,
    capability: DeviceCapability,
    /// Made when it is first asked for, and let go of by a runtime that shuts down: it keeps its device.
    default_stream: Mutex<Option<Arc<NamedStream>>>,
    /// How many streams were made beside the default one.
    places: AtomicUsize,
    /// Those of the start until they are changed; nothing before they are first needed.
    pub(super) memory_settings: Mutex<Option<MemorySettings>>,
    /// Held while they are changed and put in force.
    pub(super) changing_settings: Mutex<()>,
    pub(super) pressure: Arc<Callbacks>,
    opened: Mutex<Option<Arc<Opened>>>,
    shared: Arc<Shared>,
}

/// What a device is once it is open.
///
/// Fields are in the order of teardown: what uses the device goes before it.
#[derive(Debug)]
pub(crate) struct Opened {
    /// The shaders that make random numbers.
    pub(crate) random: Kernels,
    /// The pools that graphs hold.
    pub(crate) graph_pools: graph::Pools,
    /// What checks the group counts of launches that take them from memory.
    pub(crate) indirect: Indirect,
    pub(crate) staging: Arc<Staging>,
    pub(crate) host: Arc<DeviceHost>,
    pub(crate) memory: Arc<DeviceMemory>,
    pub(crate) exec: Arc<ExecDevice>,
    pub(crate) device: Arc<vk::Device>,
}

impl Opened {
    /// What copies go through.
    pub(crate) fn through(&self) -> Through<'_> {
        Through {
            staging: &self.staging,
            host: &self.host,
        }
    }
}

impl core::fmt::Debug for Slot {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Slot")
            .field("device", &self.device())
            .field("name", &self.info.name)
            .finish_non_exhaustive()
    }
}

impl Slot {
    pub(super) fn new(
        shared: &Arc<Shared>,
        index: u32,
        position: usize,
        info: &PhysicalInfo,
    ) -> Arc<Self> {
        Arc::new(Self {
            index,
            position,
            info: info.clone(),
            capability: DeviceCapability::new(info),
            default_stream: Mutex::new(None),
            places: AtomicUsize::new(0),
            memory_settings: Mutex::new(None),
            changing_settings: Mutex::default(),
            pressure: Arc::default(),
            opened: Mutex::new(None),
            shared: Arc::clone(shared),
        })
    }

    pub(crate) fn index(&self) -> u32 {
        self.index
    }

    pub(crate) fn device(&self) -> Device {
        Device::new(self.index)
    }

    pub(crate) fn runtime_id(&self) -> u64 {
        self.shared.id
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    pub(crate) fn capability(&self) -> &DeviceCapability {
        &self.capability
    }

    /// The default random generator.
    pub(crate) fn generator(&self) -> Arc<GeneratorState> {
        self.shared.generators.of(self.index)
    }

    pub(super) fn default_stream(&self) -> Arc<NamedStream> {
        // As in `is_open`; no call of such a stream is permitted.
        if !self.shared.life.may_call_driver() {
            return NamedStream::new(0, 0);
        }
        let mut stream = self.default_stream.lock();
        Arc::clone(stream.get_or_insert_with(|| NamedStream::new(0, 0)))
    }

    /// The place of a stream that is being made; places are spread over the device's lanes.
    pub(super) fn next_place(&self) -> usize {
        self.places.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }

    pub(super) fn is_open(&self) -> bool {
        // A forked child must not meet a lock that a thread of its parent held.
        self.shared.life.may_call_driver() && self.opened.lock().is_some()
    }

    /// The opened device; opens it the first time. A failure can be tried again.
    pub(crate) fn open(&self) -> Result<Arc<Opened>> {
        self.shared.check()?;
        let mut slot = self.opened.lock();
        if let Some(opened) = &*slot {
            return Ok(Arc::clone(opened));
        }
        let opened = Arc::new(self.open_now()?);
        *slot = Some(Arc::clone(&opened));
        Ok(opened)
    }

    #[cold]
    fn open_now(&self) -> Result<Opened> {
        // Loaders and drivers have been seen to race when devices are opened side by side.
        static OPENING: Mutex<()> = Mutex::new(());
        let _inside = gate::enter();
        fork::begin_opening();
        let _opening = OPENING.lock();
        let settings = self.memory_settings()?;
        let name = self.device().to_string();
        let plan = Plan::new(&self.info, self.shared.config.without)
            .map_err(|error| error.context(&name))?;
        let instance = self.shared.instance()?;
        let physical = self.find(&instance)?;
        let device = vk::Device::open(&instance, physical, plan, name)?;
        let exec = ExecDevice::new(&device)?;
        let staging = Staging::new(&device)?;
        let host = DeviceHost::new(&self.shared.host, self.index, &device);
        let pressure = Arc::clone(&self.pressure);
        let idle = (Arc::clone(&staging), Arc::clone(&host));
        Ok(Opened {
            random: Kernels::default(),
            graph_pools: graph::Pools::default(),
            indirect: Indirect::new(&device),
            staging,
            host,
            memory: DeviceMemory::new(&device, &exec, &self.info, idle, &settings, pressure),
            exec,
            device,
        })
    }

    /// The opened device, where it is open.
    pub(super) fn existing(&self) -> Result<Option<Arc<Opened>>> {
        self.shared.check()?;
        Ok(self.opened.lock().clone())
    }

    /// Finds the device again in another instance.
    fn find(&self, instance: &vk::Instance) -> Result<vk::PhysicalDevice> {
        let is_same = |info: &PhysicalInfo| {
            info.uuid == self.info.uuid
                && info.driver.uuid == self.info.driver.uuid
                && info.name == self.info.name
        };
        let found = instance.physical_devices()?;
        let mut infos = Vec::with_capacity(found.len());
        for &physical in &found {
            infos.push(instance.physical_info(physical)?);
        }
        let at_position = infos.get(self.position).filter(|info| is_same(info));
        let position = match at_position {
            Some(_) => Some(self.position),
            None => infos.iter().position(is_same),
        };
        position.map(|position| found[position]).ok_or_else(|| {
            Error::new(
                ErrorKind::NoDevice,
                format!(
                    "{} ({}) is gone since the devices were enumerated",
                    self.device(),
                    self.info.name
                ),
            )
        })
    }

    /// The check that opens what a capture may forbid.
    pub(crate) fn permit(&self, call: Call) -> Result<()> {
        match self.existing()? {
            Some(opened) => opened.exec.permit(call),
            None => Ok(()),
        }
    }

    /// Waits for all work of the device; there is none while it is not open.
    pub(super) fn synchronize(&self, call: Call) -> Result<()> {
        let Some(opened) = self.existing()? else {
            return Ok(());
        };
        opened.exec.permit(call)?;
        opened.device.counts().host_waits_asked.add(1);
        opened.exec.synchronize_and_tell()
    }

    /// Waits for all work of the device and gives all that is cached back, for a capture to begin.
    pub(crate) fn settle(&self, call: Call) -> Result<()> {
        self.synchronize(call)?;
        self.empty_cache(call)?;
        self.shared.host.empty_cache();
        Ok(())
    }

    /// What its device has done; zeros while it is not open.
    pub(super) fn counters(&self) -> Counters {
        // As in `is_open`.
        let open = self.shared.life.may_call_driver();
        let opened = open.then(|| self.opened.lock().clone());
        let opened = opened.flatten();
        opened.map_or_else(Counters::default, |opened| opened.device.counts().read())
    }

    /// Free and total memory, from queries alone.
    pub(super) fn memory_info(&self) -> Result<MemoryInfo> {
        if let Some(opened) = self.existing()? {
            return Ok(opened.memory.info());
        }
        let _inside = gate::enter();
        let instance = self.shared.instance()?;
        let physical = self.find(&instance)?;
        Ok(instance.memory_info(physical, &self.info, 0))
    }

    /// Waits for all work and gives the device back.
    pub(super) fn close(&self) -> Result<()> {
        let opened = self.opened.lock().take();
        let result = opened.as_ref().map_or(Ok(()), |opened| {
            let closed = opened.exec.close();
            opened.host.trim();
            closed
        });
        let default_stream = self.default_stream.lock().take();
        drop(default_stream);
        result
    }
}
