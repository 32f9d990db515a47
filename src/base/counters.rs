//! What is counted of a device's work, to see what the runtime does behind the calls.

use core::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What the runtime has done on its open devices; see [`Runtime::counters`](crate::Runtime::counters).
        ///
        /// Numbers only ever grow while a device is open. Commands are counted once their recording is
        /// sealed.
        ///
        /// # Example
        ///
        /// ```
        /// # if vkaccel::device_count() == 0 { return Ok(()); }
        /// let runtime = vkaccel::Runtime::current();
        /// let stream = vkaccel::Stream::new(0)?;
        /// let before = runtime.counters();
        /// let numbers = stream.zeroed::<u32>(100)?;
        /// stream.fill(&numbers, 7)?;
        /// stream.synchronize()?;
        /// let done = runtime.counters().since(&before);
        /// assert_eq!((done.transfers, done.host_waits_asked), (2, 1));
        /// # Ok::<(), vkaccel::Error>(())
        /// ```
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub struct Counters {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counters {
            /// What was counted since `earlier`, an older reading.
            ///
            /// A number that is smaller now, as a device was closed in between, counts as none.
            pub fn since(&self, earlier: &Self) -> Self {
                Self { $($name: self.$name.saturating_sub(earlier.$name),)* }
            }

            /// Adds what another device has done.
            pub(crate) fn add(&mut self, other: &Self) {
                $(self.$name += other.$name;)*
            }
        }

        /// The counters of one device, for all threads.
        #[derive(Debug, Default)]
        pub(crate) struct Counts {
            $(pub(crate) $name: Count,)*
        }

        impl Counts {
            pub(crate) fn read(&self) -> Counters {
                Counters { $($name: self.$name.0.load(Ordering::Relaxed),)* }
            }
        }
    };
}

counters! {
    /// Launches of kernels.
    launches,
    /// Copies and fills.
    transfers,
    /// Replays of graphs; what is in them is counted each time.
    replays,
    /// Pipeline barriers that were recorded, between commands of one stream.
    barriers,
    /// Submissions that began with a barrier, as another stream had submitted to the lane before.
    dividers,
    /// Descriptor sets that were written.
    descriptor_sets,
    /// Recordings that were submitted; each is a command buffer of its own.
    recordings,
    /// Calls of `vkQueueSubmit`, each with one recording or more.
    submits,
    /// Waits between lanes that went with submissions.
    waits,
    /// Recordings that were sealed because they had enough commands.
    ///
    /// Enough is one command at first, and again when the host has waited for the stream; with each such
    /// seal it is four times as many, up to 256.
    seals_by_size,
    /// Recordings that were sealed by an event after them.
    seals_by_event,
    /// Recordings that were sealed because what follows waits for another stream.
    seals_by_wait,
    /// Recordings that were sealed because somebody waits for them or asks whether they have finished.
    seals_by_host,
    /// Recordings that were sealed by a flush, of the program or of another stream that waits for them.
    seals_by_flush,
    /// Recordings that were sealed by the replay of a graph at their end.
    seals_by_replay,
    /// Recordings that the pacer sealed, as nobody else did in time.
    seals_by_pacer,
    /// Times that the program asked to wait for the device.
    host_waits_asked,
    /// Times that a stream waited since too much of its work was in flight.
    host_waits_in_flight,
    /// Times that staging memory was waited for: by an upload for room in it, by a copy to another device for
    /// what it holds.
    host_waits_staging,
    /// Times that memory was waited for: exhausted memory, or memory given back.
    host_waits_memory,
    /// Memory that was taken from the driver, in calls.
    driver_allocations,
    /// Memory that was given back to the driver, in calls.
    driver_frees,
    /// Pipelines that the driver made.
    pipeline_compiles,
    /// Host callbacks that were run.
    callbacks,
}

/// One counter.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, by: u64) {
        if by > 0 {
            self.0.fetch_add(by, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_can_be_compared_and_summed() {
        let counts = Counts::default();
        counts.launches.add(3);
        let before = counts.read();
        counts.launches.add(4);
        counts.submits.add(1);
        let since = counts.read().since(&before);
        assert_eq!((since.launches, since.submits, since.barriers), (4, 1, 0));
        assert_eq!(before.since(&counts.read()).launches, 0);
        let mut sum = before;
        sum.add(&since);
        assert_eq!(sum, counts.read());
    }
}
