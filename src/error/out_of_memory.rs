//! The figures of an out-of-memory error.

/// Why memory could not be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OutOfMemoryReason {
    /// The request is larger than the device could ever hold in one piece.
    NeverFits,
    /// The request would fit an emptier device.
    FullNow,
    /// A limit that the program set stands in the way.
    OverLimit,
    /// The device holds as many allocations as it can.
    TooManyAllocations,
    /// The driver refused, although its own figures left room.
    RefusedByDriver,
}

/// The figures of an out-of-memory error, in bytes; from [`Error::out_of_memory`](crate::Error::out_of_memory).
///
/// # Example
///
/// ```
/// # if vkaccel::device_count() == 0 { return Ok(()); }
/// use vkaccel::{Buffer, OutOfMemoryReason};
///
/// let error = Buffer::<u8>::zeroed(1 << 60).unwrap_err();
/// if let Some(figures) = error.out_of_memory() {
///     match figures.reason {
///         OutOfMemoryReason::NeverFits => println!("no device has {} bytes in one piece", figures.requested),
///         OutOfMemoryReason::FullNow => println!("only {} bytes are free", figures.free),
///         _ => println!("{error}"), // more reasons may come
///     }
/// }
/// assert!(error.is_out_of_memory());
/// # Ok::<(), vkaccel::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutOfMemory {
    /// Why the memory could not be had.
    pub reason: OutOfMemoryReason,
    /// What was asked for.
    pub requested: u64,
    /// What the device has free.
    pub free: u64,
    /// What the device has in all.
    pub total: u64,
    /// What buffers of this process hold.
    pub allocated: u64,
    /// What this process holds from the driver.
    pub reserved: u64,
    /// What this process holds from the driver and no buffer uses.
    pub cached: u64,
    /// The largest piece of the cached memory, of whatever stream and pool.
    pub largest_free_block: u64,
    /// The limit in force, where one is set.
    pub limit: Option<u64>,
}

impl OutOfMemory {
    /// Figures with the reason and the request set, and all else 0.
    pub(crate) const fn new(reason: OutOfMemoryReason, requested: u64) -> Self {
        Self {
            reason,
            requested,
            free: 0,
            total: 0,
            allocated: 0,
            reserved: 0,
            cached: 0,
            largest_free_block: 0,
            limit: None,
        }
    }
}
