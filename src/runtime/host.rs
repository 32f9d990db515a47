//! The pinned host memory of a runtime's devices.

use super::{Runtime, Slot};
use crate::error::Result;
use crate::mem::HostMemory;
use crate::mem::ledger::RuntimeMemory;

impl Runtime {
    /// The pinned host memory; an error where the runtime is closed.
    pub(crate) fn host_memory(&self) -> Result<&HostMemory> {
        self.0.shared.check()?;
        Ok(&self.0.shared.host)
    }

    /// Gives cached host memory back, but for what queued copies use; waits for nothing.
    pub(crate) fn empty_host_caches(&self) -> Result<()> {
        let host = self.host_memory()?;
        let slots = self.0.probed.get().map_or(&[][..], |probed| &probed.slots);
        let mut result = Ok(());
        for slot in slots {
            // The first error is the one to report; the others still get their turn.
            result = result.and(slot.let_go_of_host_memory());
        }
        host.empty_cache();
        result
    }
}

impl Slot {
    /// What the runtime holds of the device for itself; nothing while it is not open.
    pub(crate) fn runtime_memory(&self) -> Result<RuntimeMemory> {
        let opened = self.existing()?;
        Ok(opened.map_or_else(RuntimeMemory::default, |opened| opened.staging.ledger()))
    }

    /// Lets go of what finished copies kept, and of idle staging.
    fn let_go_of_host_memory(&self) -> Result<()> {
        if let Some(opened) = self.existing()? {
            opened.exec.let_go()?;
            opened.staging.trim();
        }
        Ok(())
    }
}
