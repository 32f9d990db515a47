//! What is set for a device's memory and asked about it, open or not.

use std::sync::Arc;

use super::builder::Config;
use super::{Shared, Slot};
use crate::alloc::{self, AllocConf, HistoryOptions, MemorySnapshot, MemoryStats, PoolId};
use crate::error::{Error, ErrorKind, Result};
use crate::exec::Call;
use crate::mem::pressure::Callbacks;
use crate::mem::{MemorySettings, limit};

impl Slot {
    /// The statistics; empty while the device is not open.
    pub(crate) fn memory_stats(&self) -> Result<MemoryStats> {
        Ok(self
            .existing()?
            .map_or_else(MemoryStats::default, |opened| opened.memory.stats()))
    }

    /// Changes the statistics, where there are any.
    pub(crate) fn change_memory_stats(&self, change: fn(&mut MemoryStats)) -> Result<()> {
        if let Some(opened) = self.existing()? {
            opened.memory.change_stats(change);
        }
        Ok(())
    }

    /// Gives what is cached back to the driver.
    pub(crate) fn empty_cache(&self, call: Call) -> Result<()> {
        let Some(opened) = self.existing()? else {
            return Ok(());
        };
        opened.exec.permit(call)?;
        opened.memory.empty_cache()
    }

    /// The segments and blocks, and what was recorded; nothing while the device is not open.
    pub(crate) fn memory_snapshot(&self) -> Result<MemorySnapshot> {
        let index = self.index();
        let unopened = || MemorySnapshot {
            device: index,
            ..MemorySnapshot::default()
        };
        let opened = self.existing()?;
        Ok(opened.map_or_else(unopened, |opened| opened.memory.snapshot(index)))
    }

    /// A table for people.
    pub(crate) fn memory_summary(&self, abbreviated: bool) -> Result<String> {
        let (stats, snapshot) = (self.memory_stats()?, self.memory_snapshot()?);
        let name = format!("{} ({})", self.device(), self.capability().name());
        Ok(alloc::memory_summary(&name, &stats, &snapshot, abbreviated))
    }

    /// Records what the allocator does from now on, or no longer.
    pub(crate) fn record_memory_history(&self, options: Option<HistoryOptions>) -> Result<()> {
        self.change_settings(|settings| settings.history = options)
    }

    pub(crate) fn private_pool_bytes(&self) -> Result<Vec<(PoolId, u64)>> {
        Ok(self
            .existing()?
            .map_or_else(Vec::new, |opened| opened.memory.private_pool_bytes()))
    }

    /// Gives up a private pool, for its owner.
    pub(crate) fn release_pool(&self, pool: PoolId) {
        // A runtime that was shut down, or a forked child, has nothing left to give back.
        if let Ok(Some(opened)) = self.existing() {
            opened.memory.release_pool(pool);
        }
    }

    pub(crate) fn memory_fraction(&self) -> Result<f64> {
        let settings = self.memory_settings()?;
        let default = settings.conf.per_process_memory_fraction();
        Ok(settings.fraction.unwrap_or(default))
    }

    pub(crate) fn set_memory_fraction(&self, fraction: f64) -> Result<()> {
        if !(0.0..=1.0).contains(&fraction) {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("a part of the memory is a number from 0 to 1, not {fraction}"),
            ));
        }
        self.change_settings(|settings| settings.fraction = Some(fraction))
    }

    pub(crate) fn memory_limit(&self) -> Result<Option<u64>> {
        Ok(self.memory_settings()?.limit)
    }

    pub(crate) fn set_memory_limit(&self, limit: Option<u64>) -> Result<()> {
        self.change_settings(|settings| settings.limit = limit)
    }

    pub(crate) fn allocator_settings(&self) -> Result<String> {
        Ok(self.memory_settings()?.conf.to_string())
    }

    pub(crate) fn set_allocator_settings(&self, text: &str) -> Result<()> {
        let conf: AllocConf = text.parse()?;
        // Those of the start come first, so that they don't take the place of these.
        self.memory_settings()?;
        self.shared().host.apply(&conf);
        // The last word on the fraction counts, whichever way it was said.
        let fraction = conf.per_process_memory_fraction();
        self.change_settings(|settings| {
            settings.conf = conf;
            if fraction < 1.0 {
                settings.fraction = Some(fraction);
            }
        })
    }

    /// The callbacks for when memory is exhausted.
    pub(crate) fn pressure(&self) -> &Arc<Callbacks> {
        &self.pressure
    }

    /// What is in force.
    ///
    /// # Errors
    ///
    /// `Config` if nothing is, as what the builder or the environment says makes no sense.
    pub(super) fn memory_settings(&self) -> Result<MemorySettings> {
        let mut kept = self.memory_settings.lock();
        match &*kept {
            Some(settings) => Ok(settings.clone()),
            None => Ok(kept.insert(self.shared().memory_settings()?).clone()),
        }
    }

    fn change_settings(&self, change: impl FnOnce(&mut MemorySettings)) -> Result<()> {
        self.shared().check()?;
        // Two changes at once are put in force in the order in which they are remembered.
        let _changing = self.changing_settings.lock();
        let mut settings = self.memory_settings()?;
        change(&mut settings);
        *self.memory_settings.lock() = Some(settings.clone());
        // A device that is being opened reads them before or is open behind this call.
        if let Some(opened) = self.existing()? {
            opened.memory.apply(&settings);
        }
        Ok(())
    }
}

impl Shared {
    /// How the memory of each device is set at the start.
    ///
    /// They are read when they are first needed, as a fault in them must hide no device. It is not kept, so that
    /// it can be mended and the call tried again.
    fn memory_settings(&self) -> Result<MemorySettings> {
        let mut kept = self.memory_settings.lock();
        if let Some(settings) = &*kept {
            return Ok(settings.clone());
        }
        let settings = read(&self.config)?;
        self.host.apply(&settings.conf);
        Ok(kept.insert(settings).clone())
    }
}

/// What the builder says of memory, or else the environment.
fn read(config: &Config) -> Result<MemorySettings> {
    let variable = |name| std::env::var_os(name).map(|text| text.to_string_lossy().into_owned());
    let conf = match &config.alloc_conf {
        Some(conf) => Some(("RuntimeBuilder::alloc_conf", conf.clone())),
        None => variable(alloc::VARIABLE).map(|conf| (alloc::VARIABLE, conf)),
    };
    let conf = conf.map(|(name, conf)| {
        let conf: Result<AllocConf> = conf.parse();
        conf.map_err(|error| error.context(name))
    });
    let limit = match config.memory_limit {
        Some(bytes) => Some(bytes),
        None => variable(limit::VARIABLE)
            .map(|text| limit::parse(&text))
            .transpose()?,
    };
    Ok(MemorySettings {
        conf: conf.transpose()?.unwrap_or_default(),
        fraction: None,
        limit,
        history: None,
    })
}
