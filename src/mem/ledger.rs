//! What the runtime holds for itself, apart from what its users hold.

/// The memory that the runtime holds of a device for itself, in bytes.
///
/// It is in no statistics of buffers or pinned memory.
///
/// # Example
///
/// ```
/// # if vkaccel::device_count() == 0 { return Ok(()); }
/// let buffer = vkaccel::Buffer::from_slice(&[1u8; 100_000])?;
/// assert!(vkaccel::runtime_memory(None)?.staging_bytes >= 100_000);
/// # drop(buffer);
/// # Ok::<(), vkaccel::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuntimeMemory {
    /// The host memory that copies from and to slices go through, used or idle.
    pub staging_bytes: u64,
}
