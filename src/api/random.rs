//! The bodies of the functions of `random`.

use super::surface::random::RandomBodies;
use crate::device::DeviceArg;
use crate::error::text::count;
use crate::error::{Error, ErrorKind, Result};
use crate::rng::{RngState, generator, state};
use crate::runtime::Runtime;

impl RandomBodies for Runtime {
    fn initial_seed(&self, device: DeviceArg) -> Result<u64> {
        self.get_rng_state(device).map(|state| state.seed())
    }

    fn get_rng_state(&self, device: DeviceArg) -> Result<RngState> {
        let slot = self.slot(&device)?;
        slot.open()?;
        Ok(slot.generator().get())
    }

    fn get_rng_state_all(&self) -> Result<Vec<RngState>> {
        self.slot(&DeviceArg::CURRENT)?.open()?;
        let count = u32::try_from(self.slots()?.len()).unwrap_or(u32::MAX);
        Ok(self.generators()?.states(count))
    }

    fn manual_seed(&self, seed: u64) -> Result<()> {
        let generators = self.generators()?;
        generators.of(self.thread_device()).seed(seed);
        Ok(())
    }

    fn manual_seed_all(&self, seed: u64) -> Result<()> {
        self.generators()?.seed_all(seed);
        Ok(())
    }

    fn seed(&self) -> Result<u64> {
        let seed = generator::fresh_seed();
        self.manual_seed(seed).map(|()| seed)
    }

    fn seed_all(&self) -> Result<u64> {
        let seed = generator::fresh_seed();
        self.manual_seed_all(seed).map(|()| seed)
    }

    fn set_rng_state(&self, state: &RngState, device: DeviceArg) -> Result<()> {
        state::check_offset(state.offset())?;
        match self.seedable(&device)? {
            Some(index) => self.generators()?.of(index).set(state),
            None => Ok(()),
        }
    }

    fn set_rng_state_all(&self, states: &[RngState]) -> Result<()> {
        let generators = self.generators()?;
        let count = self.visible()?;
        if count.is_some_and(|count| count as usize != states.len()) {
            return Err(wrong_count(states.len(), count.unwrap_or_default()));
        }
        match count {
            Some(_) => generators.set_states(states),
            None => states
                .iter()
                .try_for_each(|state| state::check_offset(state.offset())),
        }
    }

    fn get_offset(&self, device: DeviceArg) -> Result<u64> {
        Ok(self.slot(&device)?.generator().get().offset())
    }

    fn set_offset(&self, offset: u64, device: DeviceArg) -> Result<()> {
        state::check_offset(offset)?;
        match self.seedable(&device)? {
            Some(index) => self.generators()?.of(index).set_offset(offset),
            None => Ok(()),
        }
    }
}

impl Runtime {
    /// How many devices there are; nothing where there is none.
    fn visible(&self) -> Result<Option<u32>> {
        match self.slots() {
            Ok(slots) => Ok(u32::try_from(slots.len()).ok()),
            Err(error) if matches!(error.kind(), ErrorKind::NoDriver | ErrorKind::NoDevice) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// The device whose generator an argument means; nothing where there is no device at all. Asks
    /// no driver for the current one.
    fn seedable(&self, device: &DeviceArg) -> Result<Option<u32>> {
        self.generators()?;
        device.check()?;
        if device.is_current() {
            return Ok(Some(self.thread_device()));
        }
        match self.visible()? {
            Some(count) => device.index(self.thread_device(), count).map(Some),
            None => Ok(None),
        }
    }
}

#[cold]
fn wrong_count(given: usize, devices: u32) -> Error {
    Error::new(
        ErrorKind::InvalidArgument,
        format!(
            "{} {} given for {}; pass one for each, by their index, as `get_rng_state_all` gives them",
            count(given, "state"),
            if given == 1 { "was" } else { "were" },
            count(devices, "visible device")
        ),
    )
}

/// The seed that a text means.
///
/// A decimal number from -2^63 to 2^64 - 1, or a hexadecimal one after `0x`. A negative number
/// means the seed with the same 64 bits: `-1` is 2^64 - 1.
///
/// # Errors
///
/// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for anything else.
///
/// # Example
///
/// ```
/// assert_eq!(vkaccel::random::parse_seed("-1")?, u64::MAX);
/// assert_eq!(vkaccel::random::parse_seed("0x10")?, 16);
/// # Ok::<(), vkaccel::Error>(())
/// ```
pub fn parse_seed(text: &str) -> Result<u64> {
    state::parse_seed(text)
}
