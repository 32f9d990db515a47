//! The entry: the loader library, or a replacement that the runtime's builder was given.
//!
//! # Safety
//!
//! Loading a library runs its initialisers. The name is the system's own loader or the one that
//! the user put into `VKACCEL_LOADER`; who can set that variable can run code in the process
//! anyway. A loaded library is kept for the life of the process, because drivers leave threads and
//! exit handlers behind.
#![allow(unsafe_code)]

use core::ffi::{c_char, c_void};
use std::ffi::OsString;

use ash::vk;

use crate::base::{gate, sync::Mutex};
use crate::error::{Error, ErrorKind, Result};

/// The type of `vkGetInstanceProcAddr`, without naming a Vulkan crate.
pub type GetInstanceProcAddr =
    unsafe extern "system" fn(*mut c_void, *const c_char) -> Option<unsafe extern "system" fn()>;

/// The environment variable that names another loader library.
pub(crate) const LOADER_VARIABLE: &str = "VKACCEL_LOADER";

/// Where Vulkan's functions come from.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum EntrySource {
    /// The loader that the system or the environment names.
    #[default]
    Loader,
    /// A function that whoever built the runtime vouched for.
    Custom(GetInstanceProcAddr),
}

/// Loaders already in the process, by name; never unloaded.
static LOADED: Mutex<Vec<(Option<OsString>, ash::Entry)>> = Mutex::new(Vec::new());

/// Gives Vulkan's global functions.
///
/// # Errors
///
/// [`ErrorKind::NoDriver`] if there is no loader, or what is there is none.
pub(crate) fn load(source: EntrySource) -> Result<ash::Entry> {
    match source {
        EntrySource::Custom(function) => Ok(from_function(function)),
        EntrySource::Loader => load_library(std::env::var_os(LOADER_VARIABLE)),
    }
}

fn load_library(name: Option<OsString>) -> Result<ash::Entry> {
    let name = name.filter(|name| !name.is_empty());
    let _inside = gate::enter();
    let mut loaded = LOADED.lock();
    if let Some((_, entry)) = loaded.iter().find(|(known, _)| *known == name) {
        return Ok(entry.clone());
    }
    let entry = match &name {
        // SAFETY: the file's `# Safety` says who vouches for the library.
        Some(path) => unsafe { ash::Entry::load_from(path) },
        // SAFETY: as above.
        None => unsafe { ash::Entry::load() },
    }
    .map_err(|cause| no_loader(name.as_ref(), cause))?;
    loaded.push((name, entry.clone()));
    Ok(entry)
}

fn from_function(function: GetInstanceProcAddr) -> ash::Entry {
    // SAFETY: both are pointers to functions of the same ABI; `vk::Instance` is a transparent
    // wrapper over a pointer, and Vulkan's void function is our result type.
    let get_instance_proc_addr = unsafe {
        core::mem::transmute::<GetInstanceProcAddr, vk::PFN_vkGetInstanceProcAddr>(function)
    };
    // SAFETY: `RuntimeBuilder::entry` is unsafe and demands a conforming function.
    unsafe {
        ash::Entry::from_static_fn(ash::StaticFn {
            get_instance_proc_addr,
        })
    }
}

#[cold]
fn no_loader(name: Option<&OsString>, cause: ash::LoadingError) -> Error {
    let which = match name {
        Some(name) => format!("{} (from {LOADER_VARIABLE})", name.to_string_lossy()),
        None => "the system's Vulkan loader".to_owned(),
    };
    Error::new(
        ErrorKind::NoDriver,
        format!(
            "{which} could not be loaded: {cause}; install the Vulkan loader (libvulkan1, \
             vulkan-loader or the Vulkan SDK) and a driver, or name a loader library in \
             {LOADER_VARIABLE}"
        ),
    )
}
