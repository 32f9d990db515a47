//! What the runtime holds for itself, apart from what its users hold.

/// The memory that the runtime holds of a device for itself, in bytes.
///
/// It is in no statistics of buffers or pinned memory.
///
/// # Example
///
/// ```
/// # if vkaccel::device_count() == 0 { return Ok(()); }
/// // A pattern that is no whole word is copied in from the host.
/// let pixels = vkaccel::Buffer::<[u8; 3]>::zeroed(1000)?;
/// pixels.fill([1, 2, 3])?;
/// assert!(vkaccel::runtime_memory(None)?.staging_bytes > 0);
/// # Ok::<(), vkaccel::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuntimeMemory {
    /// The host memory that copies from and to slices go through, used or idle.
    pub staging_bytes: u64,
}
