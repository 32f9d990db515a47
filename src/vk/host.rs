//! The host's side of segments: copies through the mapping, and what memory that is not coherent
//! needs of them.
//!
//! # Safety
//!
//! A mapping covers its whole segment and stays valid as long as that. Who reads or writes through
//! it guarantees that no unfinished command and no other thread does otherwise meanwhile.
#![allow(unsafe_code)]

use core::ptr::NonNull;

use ash::vk;

use super::segment::{Memory, Segment};
use crate::error::{Error, ErrorKind, Result};

impl Segment {
    /// Copies `bytes` to `offset`.
    ///
    /// # Safety
    ///
    /// No unfinished command and no other thread uses these bytes.
    pub(crate) unsafe fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let target = self.host_range(offset, bytes.len())?;
        // SAFETY: `host_range` checked that the range lies in the mapping; the caller keeps others away.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), target.as_ptr(), bytes.len()) };
        self.flush(offset, bytes.len() as u64)
    }

    /// Copies from `offset` into `out`.
    ///
    /// # Safety
    ///
    /// No unfinished command and no other thread writes these bytes.
    pub(crate) unsafe fn read(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let source = self.host_range(offset, out.len())?;
        self.invalidate(offset, out.len() as u64)?;
        // SAFETY: as in `write`.
        unsafe { core::ptr::copy_nonoverlapping(source.as_ptr(), out.as_mut_ptr(), out.len()) };
        Ok(())
    }

    /// Copies `len` bytes from `start` on in another segment to `offset`.
    ///
    /// # Safety
    ///
    /// No unfinished command and no other thread uses the bytes that are written, or writes those that are
    /// read.
    pub(crate) unsafe fn write_from(
        &self,
        offset: u64,
        src: &Self,
        start: u64,
        len: usize,
    ) -> Result<()> {
        let target = self.host_range(offset, len)?;
        let source = src.host_range(start, len)?;
        src.invalidate(start, len as u64)?;
        // SAFETY: as in `write`, on both sides; two mappings have no byte in common.
        unsafe { core::ptr::copy_nonoverlapping(source.as_ptr(), target.as_ptr(), len) };
        self.flush(offset, len as u64)
    }

    /// Where the host finds `len` bytes from `offset` on; an error where it doesn't.
    pub(crate) fn host_range(&self, offset: u64, len: usize) -> Result<NonNull<u8>> {
        let Some(mapping) = self.mapping else {
            return Err(Error::new(
                ErrorKind::Driver,
                "memory planned for the host is not mapped",
            ));
        };
        let fits = offset
            .checked_add(len as u64)
            .is_some_and(|end| end <= self.size_bytes());
        match usize::try_from(offset) {
            // SAFETY: the range lies in the segment, all of which is mapped.
            Ok(offset) if fits => Ok(unsafe { mapping.0.add(offset) }),
            _ => Err(Error::new(
                ErrorKind::InvalidArgument,
                "a copy past the end of a segment",
            )),
        }
    }

    /// Lets commands that are submitted from now on see what the host wrote.
    pub(crate) fn flush(&self, offset: u64, len: u64) -> Result<()> {
        let Some(range) = self.mapped_range(offset, len) else {
            return Ok(());
        };
        // SAFETY: the memory is mapped, and the range is of whole atoms.
        let flushed = unsafe { self.device().raw().flush_mapped_memory_ranges(&[range]) };
        self.device().during("vkFlushMappedMemoryRanges", flushed)
    }

    /// Lets the host see what finished commands wrote.
    pub(crate) fn invalidate(&self, offset: u64, len: u64) -> Result<()> {
        let Some(range) = self.mapped_range(offset, len) else {
            return Ok(());
        };
        // SAFETY: as in `flush`.
        let seen = unsafe {
            self.device()
                .raw()
                .invalidate_mapped_memory_ranges(&[range])
        };
        self.device().during("vkInvalidateMappedMemoryRanges", seen)
    }

    /// The atoms that hold these bytes; none where host and device need not be told.
    fn mapped_range(&self, offset: u64, len: u64) -> Option<vk::MappedMemoryRange<'static>> {
        let Memory::Planned(allocation, _) = &*self.memory else {
            return None;
        };
        if self.coherent || len == 0 {
            return None;
        }
        let atom = self.device().plan().limits.non_coherent_atom_size;
        let start = allocation.offset() + offset;
        let (start, len) = atoms(start, len, atom, allocation.offset() + allocation.size());
        // SAFETY: the memory stays the allocation's own.
        let memory = unsafe { allocation.memory() };
        let range = vk::MappedMemoryRange::default().memory(memory);
        Some(range.offset(start).size(len))
    }
}

/// The start and length of the whole atoms around a range, in memory that ends at `end`.
fn atoms(start: u64, len: u64, atom: u64, end: u64) -> (u64, u64) {
    let atom = atom.max(1);
    let first = start - start % atom;
    let last = (start + len).next_multiple_of(atom).min(end);
    (first, last - first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_become_whole_atoms_and_end_with_the_memory() {
        for (start, len, range) in [
            (0, 64, (0, 64)),
            (1, 1, (0, 64)),
            (63, 2, (0, 128)),
            (64, 64, (64, 64)),
            (130, 60, (128, 64)),
            // The last atom is cut off, which is allowed at the end alone.
            (190, 10, (128, 72)),
        ] {
            assert_eq!(
                atoms(start, len, 64, 200),
                range,
                "{len} bytes from {start}"
            );
        }
        assert_eq!(atoms(7, 3, 1, 200), (7, 3));
        // A driver that gives no atom has atoms of a byte.
        assert_eq!(atoms(7, 3, 0, 200), (7, 3));
    }
}
