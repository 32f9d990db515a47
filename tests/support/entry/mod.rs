//! The entry under a test's control: it counts Vulkan's calls, and fails, delays or alters the ones
//! that the test names.
//!
//! It stands between the crate and the loader, above all layers. Each test has an [`Entry`] of its
//! own, so that tests run side by side in one process: an instance belongs to the entry that was
//! made last on the thread that makes the instance, and devices belong to their instance's.
//!
//! # Safety
//!
//! Every function is handed out under the name whose type it has, and passes what it was called
//! with to the loader's function of that name, unless a rule of the test says otherwise; the test
//! that sets the rule answers for what becomes of it. Objects that can be dispatched start with a
//! pointer of the loader's that tells devices apart: layers rely on that, too.
#![allow(unsafe_code)]

mod calls;
pub mod hold;
mod rules;

use core::any::Any;
use core::ffi::{CStr, c_char, c_void};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use ash::vk::{self, Handle};
use vkaccel::RuntimeBuilder;

pub use calls::args;
use calls::{CALLS, place};
use rules::{Rule, Rules};

type Void = Option<unsafe extern "system" fn()>;

/// An entry with rules of its own.
#[derive(Clone)]
pub struct Entry(Arc<Shared>);

/// What an entry's functions share.
struct Shared {
    /// How many calls there were, also where a forked child finds the lock taken.
    calls: AtomicU64,
    rules: Mutex<Rules>,
    /// The devices that were opened, with what waits for each.
    devices: Mutex<Vec<(vk::Device, vk::PFN_vkDeviceWaitIdle)>>,
}

thread_local! {
    static NEWEST: RefCell<Option<Arc<Shared>>> = const { RefCell::new(None) };
}

impl Entry {
    /// An entry without rules; nothing where there is no loader.
    pub fn new() -> Option<Self> {
        loader()?;
        let shared = Arc::new(Shared {
            calls: AtomicU64::new(0),
            rules: Mutex::new(Rules::new(CALLS.len())),
            devices: Mutex::default(),
        });
        Some(Self(shared))
    }

    /// A builder for a runtime that is first used on this thread, with what the environment asks for.
    pub fn builder(&self) -> RuntimeBuilder {
        NEWEST.set(Some(Arc::clone(&self.0)));
        // SAFETY: the loader's functions but for the rules, as the top of the file says.
        unsafe { super::builder().entry(get_instance_proc_addr) }
    }

    fn rules<T>(&self, with: impl FnOnce(&mut Rules) -> T) -> T {
        with(&mut self.0.rules.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How often a function was called.
    pub fn calls(&self, name: &str) -> u64 {
        self.rules(|rules| rules.counts[place(name)].called)
    }

    /// How many calls there were of all functions; takes no lock.
    pub fn all_calls(&self) -> u64 {
        self.0.calls.load(Ordering::Relaxed)
    }

    /// How many calls there were that could have failed.
    pub fn fallible_calls(&self) -> u64 {
        self.rules(|rules| rules.fallible)
    }

    /// Fails the `n`-th call of a function from now, from 1.
    pub fn fail(&self, name: &str, n: u64, result: vk::Result) {
        self.rules(|rules| {
            let from = rules.counts[place(name)].called + n;
            rules
                .list
                .push(Rule::fail(place(name), from..=from, result));
        });
    }

    /// Fails every call of a function from now.
    pub fn fail_all(&self, name: &str, result: vk::Result) {
        self.rules(|rules| {
            rules
                .list
                .push(Rule::fail(place(name), 0..=u64::MAX, result))
        });
    }

    /// Leaves out every call of a function without a result from now.
    pub fn leave_out(&self, name: &str) {
        assert!(
            !CALLS[place(name)].is_fallible,
            "{name} must give something"
        );
        self.fail_all(name, vk::Result::SUCCESS);
    }

    /// Leaves out the `n`-th call from now, from 1, of a function without a result.
    pub fn leave_out_one(&self, name: &str, n: u64) {
        assert!(
            !CALLS[place(name)].is_fallible,
            "{name} must give something"
        );
        self.fail(name, n, vk::Result::SUCCESS);
    }

    /// The functions that destroy what a device has made.
    pub fn ends_of_device_objects() -> Vec<&'static str> {
        let ends = CALLS.iter().filter_map(|call| call.undone_by);
        let ends = ends.filter(|end| !["vkDestroyInstance", "vkDestroyDevice"].contains(end));
        ends.collect()
    }

    /// Fails the `n`-th call from now, from 1, of those that can fail.
    pub fn fail_any(&self, n: u64, result: vk::Result) {
        self.rules(|rules| rules.any = Some((rules.fallible + n, result)));
    }

    /// Waits for all that the devices do in truth, whatever rules say; the test sees to it that all are open
    /// and nobody submits.
    pub fn wait_idle(&self) {
        let devices = self
            .0
            .devices
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for (device, wait_idle) in devices.iter() {
            // SAFETY: the test's word.
            let waited = unsafe { wait_idle(*device) };
            assert_eq!(waited, vk::Result::SUCCESS);
        }
    }

    /// Holds back each call of a function.
    pub fn delay(&self, name: &str, time: Duration) {
        self.rules(|rules| rules.list.push(Rule::delay(place(name), time)));
    }

    /// Changes what a function is called with: see [`args`].
    pub fn alter<T: Any>(&self, name: &str, change: impl FnMut(&mut T) + Send + 'static) {
        self.rules(|rules| rules.list.push(Rule::hook(place(name), false, change)));
    }

    /// Looks at what a function was called with once it has succeeded, and may change its answers; for
    /// one that gives a value, at both, `(arguments, value)`.
    pub fn answer<T: Any>(&self, name: &str, change: impl FnMut(&mut T) + Send + 'static) {
        self.rules(|rules| rules.list.push(Rule::hook(place(name), true, change)));
    }

    /// Has every counter of a semaphore say this.
    pub fn let_counters_say(&self, value: u64) {
        self.answer(
            "vkGetSemaphoreCounterValue",
            move |args: &mut args::GetSemaphoreCounterValue| {
                // SAFETY: the driver has just written its answer there.
                unsafe { *args.2 = value };
            },
        );
    }

    /// Has every heap of a device that is enumerated from now on show this size.
    pub fn let_heaps_have(&self, bytes: u64) {
        self.answer(
            "vkGetPhysicalDeviceMemoryProperties",
            move |args: &mut args::GetPhysicalDeviceMemoryProperties| {
                // SAFETY: the driver has just written its answer there.
                let properties = unsafe { &mut *args.1 };
                for heap in &mut properties.memory_heaps {
                    heap.size = bytes;
                }
            },
        );
    }

    /// Has every device that is enumerated from now on flush and invalidate single bytes of memory that is
    /// not coherent: for drivers that can.
    pub fn let_atoms_be_bytes(&self) {
        self.answer(
            "vkGetPhysicalDeviceProperties",
            move |args: &mut args::GetPhysicalDeviceProperties| {
                // SAFETY: the driver has just written its answer there.
                let properties = unsafe { &mut *args.1 };
                properties.limits.non_coherent_atom_size = 1;
            },
        );
    }

    /// Forgets all rules, and what they failed; counts stay.
    pub fn forget_rules(&self) {
        self.rules(|rules| {
            rules.list.clear();
            rules.any = None;
            rules.failed = None;
        });
    }

    /// The function that a rule failed last.
    pub fn failed(&self) -> Option<&'static str> {
        self.rules(|rules| rules.failed.map(|place| CALLS[place].name))
    }

    /// What was made and not destroyed, as the names of the functions that made it.
    pub fn leaked(&self) -> Vec<&'static str> {
        self.rules(|rules| {
            let leaks = |made: &&calls::Call| {
                let Some(end) = made.undone_by else {
                    return false;
                };
                let made = rules.counts[place(made.name)].succeeded;
                made != rules.counts[place(end)].called
            };
            CALLS.iter().filter(leaks).map(|made| made.name).collect()
        })
    }
}

impl Shared {
    /// Counts a call and applies the rules for it; gives what it must give instead of the answer.
    fn before(&self, place: usize, args: &mut dyn Any) -> Option<vk::Result> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        let fails = rules.before(place, CALLS[place].is_fallible, args);
        let delay = rules.delay(place);
        drop(rules);
        if let Some(time) = delay {
            std::thread::sleep(time);
        }
        fails
    }

    fn after(&self, place: usize, args: &mut dyn Any) {
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        rules.after(place, args);
    }
}

/// The system's loader, or the one that the environment names.
fn loader() -> Option<&'static ash::Entry> {
    static LOADER: OnceLock<Option<ash::Entry>> = OnceLock::new();
    let load = || match std::env::var_os("VKACCEL_LOADER").filter(|path| !path.is_empty()) {
        // SAFETY: a loader, which stays.
        Some(path) => unsafe { ash::Entry::load_from(path) }.ok(),
        // SAFETY: as above.
        None => unsafe { ash::Entry::load() }.ok(),
    };
    LOADER.get_or_init(load).as_ref()
}

/// What is known of an instance or a device.
struct Chain {
    /// Nothing for an instance that no entry has claimed.
    entry: Option<Arc<Shared>>,
    /// How the next one down is asked for a device's functions.
    get_device: Option<vk::PFN_vkGetDeviceProcAddr>,
    /// The functions next down, by their places, as far as they were asked for.
    real: Vec<AtomicPtr<c_void>>,
}

/// By the pointer that an object starts with.
static CHAINS: RwLock<BTreeMap<usize, Arc<Chain>>> = RwLock::new(BTreeMap::new());

/// The pointer that an object starts with.
///
/// # Safety
///
/// An object that is alive, of a kind that can be dispatched.
unsafe fn key(object: impl Handle) -> usize {
    let address = usize::try_from(object.as_raw()).unwrap_or(0);
    let first = core::ptr::with_exposed_provenance::<usize>(address);
    // SAFETY: as the top of the file says.
    unsafe { first.read() }
}

/// # Safety
///
/// As for [`key`].
unsafe fn chain(object: impl Handle) -> Arc<Chain> {
    // SAFETY: as the caller says.
    let key = unsafe { key(object) };
    let chains = CHAINS.read().unwrap_or_else(PoisonError::into_inner);
    Arc::clone(&chains[&key])
}

impl Chain {
    fn new(
        entry: Option<Arc<Shared>>,
        get_device: Option<vk::PFN_vkGetDeviceProcAddr>,
    ) -> Arc<Self> {
        Arc::new(Self {
            entry,
            get_device,
            real: CALLS.iter().map(|_| AtomicPtr::default()).collect(),
        })
    }

    fn insert(self: Arc<Self>, key: usize) {
        let mut chains = CHAINS.write().unwrap_or_else(PoisonError::into_inner);
        chains.insert(key, self);
    }

    /// The function next down.
    fn real(&self, place: usize) -> *mut c_void {
        let real = self.real[place].load(Ordering::Acquire);
        assert!(!real.is_null(), "{} was never asked for", CALLS[place].name);
        real
    }

    /// The function to hand out for the one next down.
    fn shown(&self, name: &CStr, real: Void) -> Void {
        let place = CALLS
            .iter()
            .position(|call| call.name.as_bytes() == name.to_bytes());
        let Some(place) = place else {
            return real;
        };
        let pointer = real? as *mut c_void;
        self.real[place].store(pointer, Ordering::Release);
        if name == c"vkCreateDevice" {
            return void(create_device as *const c_void);
        }
        Some(CALLS[place].function)
    }
}

/// The entry that the crate is given.
unsafe extern "system" fn get_instance_proc_addr(
    instance: *mut c_void,
    name: *const c_char,
) -> Void {
    let get = loader()?.static_fn().get_instance_proc_addr;
    let instance = vk::Instance::from_raw(instance.expose_provenance() as u64);
    // SAFETY: as Vulkan was called.
    let real = unsafe { get(instance, name) };
    // SAFETY: Vulkan passes strings.
    let name = unsafe { CStr::from_ptr(name) };
    if name == c"vkCreateInstance" {
        return void(create_instance as *const c_void);
    }
    if instance == vk::Instance::null() {
        return real;
    }
    // SAFETY: an instance that is alive, as Vulkan was called.
    let chain = unsafe { chain(instance) };
    if name == c"vkGetDeviceProcAddr" {
        return void(get_device_proc_addr as *const c_void);
    }
    chain.shown(name, real)
}

unsafe extern "system" fn get_device_proc_addr(device: vk::Device, name: *const c_char) -> Void {
    // SAFETY: a device that is alive, as Vulkan was called.
    let chain = unsafe { chain(device) };
    let get = chain.get_device?;
    // SAFETY: as Vulkan was called.
    let real = unsafe { get(device, name) };
    // SAFETY: Vulkan passes strings.
    chain.shown(unsafe { CStr::from_ptr(name) }, real)
}

unsafe extern "system" fn create_instance(
    info: *const vk::InstanceCreateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    out: *mut vk::Instance,
) -> vk::Result {
    let Some(loader) = loader() else {
        return vk::Result::ERROR_INITIALIZATION_FAILED;
    };
    let entry = NEWEST.with_borrow(Clone::clone);
    let mut args: args::CreateInstance = (info.cast(), allocator.cast(), out);
    let place = place("vkCreateInstance");
    if let Some(result) = entry
        .as_ref()
        .and_then(|entry| entry.before(place, &mut args))
    {
        return result;
    }
    // SAFETY: as Vulkan was called.
    let result = unsafe { (loader.fp_v1_0().create_instance)(info, allocator, out) };
    if result != vk::Result::SUCCESS {
        return result;
    }
    if let Some(entry) = &entry {
        entry.after(place, &mut args);
    }
    // SAFETY: the loader has just written it.
    let instance = unsafe { *out };
    let get = loader.static_fn().get_instance_proc_addr;
    // SAFETY: an instance that was just made, and a string.
    let get_device = unsafe { get(instance, c"vkGetDeviceProcAddr".as_ptr()) };
    // SAFETY: the name says which type the function has.
    let get_device =
        unsafe { core::mem::transmute::<Void, Option<vk::PFN_vkGetDeviceProcAddr>>(get_device) };
    // SAFETY: an instance that was just made.
    Chain::new(entry, get_device).insert(unsafe { key(instance) });
    result
}

unsafe extern "system" fn create_device(
    physical: vk::PhysicalDevice,
    info: *const vk::DeviceCreateInfo<'static>,
    allocator: *const vk::AllocationCallbacks<'static>,
    out: *mut vk::Device,
) -> vk::Result {
    let ours = CALLS[place("vkCreateDevice")].function;
    // SAFETY: the name says which type the function has.
    let ours = unsafe {
        core::mem::transmute::<unsafe extern "system" fn(), vk::PFN_vkCreateDevice>(ours)
    };
    // SAFETY: as Vulkan was called.
    let result = unsafe { ours(physical, info, allocator, out) };
    if result == vk::Result::SUCCESS {
        // SAFETY: a physical device that is alive, as Vulkan was called.
        let parent = unsafe { chain(physical) };
        // SAFETY: the function has just written it.
        let device = unsafe { *out };
        // SAFETY: a device that was just made.
        Chain::new(parent.entry.clone(), parent.get_device).insert(unsafe { key(device) });
        if let (Some(entry), Some(get)) = (&parent.entry, parent.get_device) {
            // SAFETY: as above, and a string.
            let wait_idle = unsafe { get(device, c"vkDeviceWaitIdle".as_ptr()) };
            // SAFETY: the name says which type the function has.
            let wait_idle = unsafe {
                core::mem::transmute::<Void, Option<vk::PFN_vkDeviceWaitIdle>>(wait_idle)
            };
            let mut devices = entry.devices.lock().unwrap_or_else(PoisonError::into_inner);
            devices.extend(wait_idle.map(|wait_idle| (device, wait_idle)));
        }
    }
    result
}

/// A function in the form in which Vulkan hands out all of them.
fn void(function: *const c_void) -> Void {
    // SAFETY: a pointer to a function, which is called as what its name says.
    Some(unsafe { core::mem::transmute::<*const c_void, unsafe extern "system" fn()>(function) })
}
