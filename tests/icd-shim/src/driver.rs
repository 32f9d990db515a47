//! The real driver's library.
//!
//! # Safety
//!
//! The library is a Vulkan driver, as whoever set the variable vouches for. It is never unloaded.

use core::ffi::{CStr, c_char, c_void};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use ash::vk;
use libloading::Library;

use crate::VoidFunction;

const VARIABLE: &str = "VKACCEL_SHIM_DRIVER";

type Negotiate = unsafe extern "system" fn(*mut u32) -> vk::Result;

/// What a driver exports.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Driver {
    get: vk::PFN_vkGetInstanceProcAddr,
    get_physical: Option<vk::PFN_vkGetInstanceProcAddr>,
    negotiate: Option<Negotiate>,
}

/// The driver; nothing, after a line on the error output, if it can't be loaded.
pub(crate) fn get() -> Option<Driver> {
    static DRIVER: OnceLock<Option<Driver>> = OnceLock::new();
    *DRIVER.get_or_init(|| match Driver::load() {
        Ok(driver) => Some(driver),
        Err(fault) => {
            eprintln!("vkaccel-icd-shim: {fault}");
            None
        }
    })
}

impl Driver {
    fn load() -> Result<Self, String> {
        let path = std::env::var_os(VARIABLE)
            .map(PathBuf::from)
            .ok_or_else(|| format!("{VARIABLE} names no driver"))?;
        let library = if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            let text = std::fs::read_to_string(&path)
                .map_err(|cause| format!("{}: {cause}", path.display()))?;
            library_of(&path, &text)
                .ok_or_else(|| format!("{}: it names no library", path.display()))?
        } else {
            path
        };
        // SAFETY: see the top of the file.
        let opened = unsafe { Library::new(&library) };
        let opened = opened.map_err(|cause| format!("{}: {cause}", library.display()))?;
        // A driver leaves threads and handlers behind, so that it stays.
        let opened: &'static Library = Box::leak(Box::new(opened));
        // SAFETY: the name says which type the function has.
        let get =
            unsafe { opened.get::<vk::PFN_vkGetInstanceProcAddr>(b"vk_icdGetInstanceProcAddr\0") };
        let get = get.map_err(|cause| format!("{}: {cause}", library.display()))?;
        // SAFETY: as above.
        let get_physical = unsafe { opened.get(b"vk_icdGetPhysicalDeviceProcAddr\0") };
        // SAFETY: as above.
        let negotiate = unsafe { opened.get(b"vk_icdNegotiateLoaderICDInterfaceVersion\0") };
        Ok(Self {
            get: *get,
            get_physical: get_physical.ok().map(|function| *function),
            negotiate: negotiate.ok().map(|function| *function),
        })
    }

    pub(crate) fn negotiate(self, version: &mut u32) -> vk::Result {
        match self.negotiate {
            // SAFETY: a number to read and write.
            Some(negotiate) => unsafe { negotiate(version) },
            None => {
                *version = 1;
                vk::Result::SUCCESS
            }
        }
    }

    /// The driver's function of this name; no instance for the global ones.
    ///
    /// # Safety
    ///
    /// The name is a string, the instance alive.
    pub(crate) unsafe fn instance_function(
        self,
        instance: vk::Instance,
        name: *const c_char,
    ) -> VoidFunction {
        // SAFETY: as the caller says.
        unsafe { (self.get)(instance, name) }
    }

    /// The driver's function of this name, if it is one of physical devices.
    ///
    /// # Safety
    ///
    /// As for [`instance_function`](Self::instance_function).
    pub(crate) unsafe fn physical_function(
        self,
        instance: vk::Instance,
        name: *const c_char,
    ) -> VoidFunction {
        let get = self.get_physical?;
        // SAFETY: as the caller says.
        unsafe { get(instance, name) }
    }

    /// The same as `instance_function`, in the form that ash's tables are filled with.
    pub(crate) fn pointer(self, instance: vk::Instance, name: &CStr) -> *const c_void {
        // SAFETY: a string; the instance is alive, or none.
        let function = unsafe { self.instance_function(instance, name.as_ptr()) };
        function.map_or(core::ptr::null(), |function| function as *const c_void)
    }
}

/// The library that a manifest names.
fn library_of(manifest: &Path, text: &str) -> Option<PathBuf> {
    let (_, rest) = text.split_once("\"library_path\"")?;
    let rest = rest
        .trim_start()
        .strip_prefix(':')?
        .trim_start()
        .strip_prefix('"')?;
    let (value, _) = rest.split_once('"')?;
    let path = PathBuf::from(value.replace("\\/", "/"));
    // A bare name is looked up by the system, any other path starts at the manifest.
    Some(match manifest.parent() {
        Some(folder) if path.components().count() > 1 => folder.join(path),
        _ => path,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifests_library_is_found_from_where_the_manifest_lies() {
        let library = |path: &str| {
            let text = format!(
                "{{\"ICD\": {{\n\"library_path\" : \"{path}\", \"api_version\": \"1.3.0\"}}}}"
            );
            library_of(Path::new("/a/b/driver.json"), &text).unwrap()
        };
        assert_eq!(library("./lib.so"), Path::new("/a/b/./lib.so"));
        assert_eq!(library("/usr\\/lib/lib.so"), Path::new("/usr/lib/lib.so"));
        assert_eq!(library("lib.so"), Path::new("lib.so"));
        assert_eq!(library_of(Path::new("/a/driver.json"), "{}"), None);
    }
}
