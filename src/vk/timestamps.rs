//! Timestamps: places that the device writes the time of a point to.
//!
//! # Safety
//!
//! A place belongs to one [`Stamp`] until that is dropped. The recording that writes it keeps the
//! stamp until its commands have finished, so that no command ever uses a place that is free.
#![allow(unsafe_code)]

use std::sync::Arc;

use ash::vk;

use super::device::Device;
use crate::base::sync::Mutex;
use crate::error::Result;

/// How many places are made at once.
const POOL_PLACES: u32 = 64;

/// The places of a device.
#[derive(Debug)]
pub(crate) struct Timestamps {
    free: Mutex<Vec<Place>>,
    device: Arc<Device>,
}

/// A query of a pool.
#[derive(Clone, Debug)]
struct Place {
    pool: Arc<Pool>,
    index: u32,
}

#[derive(Debug)]
struct Pool {
    raw: vk::QueryPool,
    device: Arc<Device>,
}

/// The time of one point, once its commands have finished.
#[derive(Debug)]
pub(crate) struct Stamp {
    place: Place,
    home: Arc<Timestamps>,
}

impl Timestamps {
    pub(crate) fn new(device: &Arc<Device>) -> Arc<Self> {
        Arc::new(Self {
            free: Mutex::new(Vec::new()),
            device: Arc::clone(device),
        })
    }

    /// A place for one time.
    pub(crate) fn take(self: &Arc<Self>) -> Result<Arc<Stamp>> {
        let mut free = self.free.lock();
        if free.is_empty() {
            let pool = Arc::new(Pool::new(&self.device)?);
            free.extend((0..POOL_PLACES).rev().map(|index| Place {
                pool: Arc::clone(&pool),
                index,
            }));
        }
        let place = free.pop();
        drop(free);
        // There is one: the list was filled if it was empty.
        match place {
            Some(place) => Ok(Arc::new(Stamp {
                place,
                home: Arc::clone(self),
            })),
            None => self.take(),
        }
    }
}

impl Pool {
    fn new(device: &Arc<Device>) -> Result<Self> {
        let info = vk::QueryPoolCreateInfo::default()
            .query_type(vk::QueryType::TIMESTAMP)
            .query_count(POOL_PLACES);
        // SAFETY: the device is alive.
        let raw = unsafe { device.raw().create_query_pool(&info, None) };
        Ok(Self {
            raw: device.during("vkCreateQueryPool", raw)?,
            device: Arc::clone(device),
        })
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if self.device.may_call_driver() {
            // SAFETY: all its places are free, so that no command uses one.
            unsafe { self.device.raw().destroy_query_pool(self.raw, None) };
        }
    }
}

impl Stamp {
    /// Records that the time is written behind all commands so far.
    pub(super) fn record(&self, commands: vk::CommandBuffer) {
        let Place { pool, index } = &self.place;
        let device = pool.device.raw();
        // SAFETY: the buffer is being recorded for a queue that computes, outside of a render pass;
        // no other command uses the place.
        unsafe { device.cmd_reset_query_pool(commands, pool.raw, *index, 1) };
        // SAFETY: as above, and the place was just reset; the queue writes timestamps, as the caller
        // has looked.
        unsafe {
            device.cmd_write_timestamp(
                commands,
                vk::PipelineStageFlags::BOTTOM_OF_PIPE,
                pool.raw,
                *index,
            );
        }
    }

    /// The time, in the device's own steps, for a point that was reached.
    pub(crate) fn read(&self) -> Result<u64> {
        let Place { pool, index } = &self.place;
        let device = &pool.device;
        device.check()?;
        let mut time = [0u64];
        // SAFETY: the pool is alive, and has the place; there is room for one number.
        let answer = unsafe {
            device.raw().get_query_pool_results(
                pool.raw,
                *index,
                &mut time,
                vk::QueryResultFlags::TYPE_64,
            )
        };
        device.during("vkGetQueryPoolResults", answer)?;
        Ok(time[0])
    }
}

impl Drop for Stamp {
    fn drop(&mut self) {
        // In a forked child, a thread that is not there any more may hold the lock for ever.
        if self.place.pool.device.may_call_driver() {
            self.home.free.lock().push(self.place.clone());
        }
    }
}
