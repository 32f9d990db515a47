//! Chains of structures.

use core::ffi::c_void;

use ash::vk;

/// The structure of a type in a chain.
///
/// # Safety
///
/// A chain as Vulkan has them, alive for as long as the answer is used.
pub(crate) unsafe fn find<'a, T: vk::TaggedStructure>(head: *const c_void) -> Option<&'a T> {
    // SAFETY: as the caller says; what was passed to be read is only read.
    let found = unsafe { locate(head, T::STRUCTURE_TYPE) };
    // SAFETY: the tag says which type the structure has.
    unsafe { found.cast::<T>().as_ref() }
}

/// The same of a chain that is written to.
///
/// # Safety
///
/// As for [`find`], and nobody else uses the chain meanwhile.
pub(crate) unsafe fn find_mut<'a, T: vk::TaggedStructure>(head: *mut c_void) -> Option<&'a mut T> {
    // SAFETY: as the caller says.
    let found = unsafe { locate(head, T::STRUCTURE_TYPE) };
    // SAFETY: as in `find`.
    unsafe { found.cast_mut().cast::<T>().as_mut() }
}

/// # Safety
///
/// As for [`find`].
unsafe fn locate(head: *const c_void, kind: vk::StructureType) -> *const c_void {
    let mut next = head.cast::<vk::BaseInStructure<'_>>();
    // SAFETY: every structure of a chain starts like this one.
    while let Some(structure) = unsafe { next.as_ref() } {
        if structure.s_type == kind {
            break;
        }
        next = structure.p_next;
    }
    next.cast()
}
