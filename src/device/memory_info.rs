//! How much memory a device has, and how much of it is free.

/// The memory of a device, in bytes.
///
/// It is that of the device's largest local heap; `free` never exceeds `total`.
///
/// # Example
///
/// ```no_run
/// let (free, total) = vkaccel::get_memory_info(None)?.into();
/// println!("{free} of {total} bytes are free");
/// # Ok::<(), vkaccel::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryInfo {
    /// What can still be allocated, as far as `source` knows.
    pub free: u64,
    /// What there is in all.
    pub total: u64,
    /// Where `free` comes from.
    pub source: MemoryInfoSource,
}

/// Where the number of free bytes comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemoryInfoSource {
    /// The driver's budget for this process less its usage; other processes are accounted for.
    MemoryBudget,
    /// The driver does not say: all there is less what this runtime holds. Other users of the device
    /// are not seen.
    OwnAccounting,
}

/// What a driver with `VK_EXT_memory_budget` says about a heap, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeapBudget {
    /// What this process can have, with what it has.
    pub budget: u64,
    /// What this process has.
    pub usage: u64,
}

impl MemoryInfo {
    /// From the heap's size, what the driver says about it, and what this runtime holds of it.
    pub(crate) fn new(total: u64, budget: Option<HeapBudget>, held: u64) -> Self {
        let (free, source) = match budget {
            // No heap has a budget of 0; a driver that says so says nothing.
            Some(HeapBudget { budget, usage }) if budget > 0 => {
                (budget.saturating_sub(usage), MemoryInfoSource::MemoryBudget)
            }
            _ => (total.saturating_sub(held), MemoryInfoSource::OwnAccounting),
        };
        Self {
            // Drivers have been seen to give budgets above the heap's size.
            free: free.min(total),
            total,
            source,
        }
    }
}

impl From<MemoryInfo> for (u64, u64) {
    /// Free and total, in this order.
    fn from(info: MemoryInfo) -> Self {
        (info.free, info.total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_budget(budget: u64, usage: u64) -> u64 {
        MemoryInfo::new(100, Some(HeapBudget { budget, usage }), 0).free
    }

    #[test]
    fn free_is_the_budget_less_the_usage_and_never_leaves_the_heap() {
        assert_eq!(with_budget(80, 30), 50);
        assert_eq!(with_budget(30, 80), 0);
        assert_eq!(with_budget(500, 30), 100);
    }

    #[test]
    fn without_a_budget_our_own_share_counts_and_the_source_says_so() {
        let info = MemoryInfo::new(100, None, 30);
        assert_eq!(<(u64, u64)>::from(info), (70, 100));
        assert_eq!(info.source, MemoryInfoSource::OwnAccounting);
        assert_eq!(MemoryInfo::new(100, None, 130).free, 0);
        let unsaid = Some(HeapBudget {
            budget: 0,
            usage: 0,
        });
        assert_eq!(MemoryInfo::new(100, unsaid, 30), info);
    }
}
