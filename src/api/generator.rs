//! Generators, and what fills memory with their numbers.

use core::fmt;
use core::ops::RangeBounds;
use std::sync::Arc;

use bytemuck::Pod;

use super::View;
use super::stream::Whose;
use crate::device::{Device, DeviceArg};
use crate::error::Result;
use crate::mem::Block;
use crate::rng::fill::Fill;
use crate::rng::generator::GeneratorState;
use crate::rng::{RandomFloat, RandomInteger, RandomTruth, RngState, draws};
use crate::runtime::{Runtime, Slot, Stream, current_stream};

/// A source of random numbers for the memory of one device: a seed and an offset.
///
/// Clones share one state, as everybody shares the default generator of a device. The state is the
/// host's: no call here opens the device but the fills, and they do when there is something to fill.
///
/// A fill takes its draws when it is called, whichever stream it runs on, and what two threads take
/// from one generator never overlaps. Element `i` of a buffer or view depends on seed, offset and `i`
/// alone: the bits are the same on every device and driver, and those of [`Philox`](crate::Philox).
/// Fills here run on the current stream of the generator's device; [`Stream`] has a form of each that
/// names the stream. An empty buffer or view is filled without a draw.
///
/// # Example
///
/// ```
/// # if vkaccel::device_count() == 0 { return Ok(()); }
/// use vkaccel::{Buffer, Generator, Philox};
///
/// let generator = Generator::new(42, None)?;
/// let numbers = Buffer::<f32>::uninit(1000)?;
/// generator.fill_uniform(&numbers)?;
///
/// let mut expected = vec![0.0; 1000];
/// Philox::new(42).fill_uniform(&mut expected)?;
/// assert_eq!(numbers.to_vec()?, expected);
/// assert_eq!(generator.offset()?, 1000);
/// # Ok::<(), vkaccel::Error>(())
/// ```
#[derive(Clone)]
pub struct Generator {
    state: Arc<GeneratorState>,
    slot: Arc<Slot>,
}

impl Generator {
    /// A generator of its own with a seed, for the memory of a device.
    ///
    /// # Errors
    ///
    /// [`InvalidDevice`](crate::ErrorKind::InvalidDevice) if `device` names no visible device;
    /// [`NoDriver`](crate::ErrorKind::NoDriver), [`NoDevice`](crate::ErrorKind::NoDevice) or
    /// [`Config`](crate::ErrorKind::Config) if none can be visible. Also what [any call](crate#errors) may
    /// give.
    pub fn new(seed: u64, device: impl Into<DeviceArg>) -> Result<Self> {
        Ok(Self {
            state: GeneratorState::new(seed),
            slot: Arc::clone(Runtime::current().slot(&device.into())?),
        })
    }

    /// The default generator of a device, which the functions of [`random`](crate::random) seed.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn default_of(device: impl Into<DeviceArg>) -> Result<Self> {
        let runtime = Runtime::current();
        let slot = runtime.slot(&device.into())?;
        Ok(Self {
            state: slot.generator(),
            slot: Arc::clone(slot),
        })
    }

    /// The device whose memory it fills.
    pub fn device(&self) -> Device {
        self.slot.device()
    }

    /// Where it stands.
    ///
    /// # Errors
    ///
    /// What [any call](crate#errors) may give.
    pub fn state(&self) -> Result<RngState> {
        self.slot.shared().check()?;
        Ok(self.state.get())
    }

    /// Puts it where it stood, or elsewhere.
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) unless the offset is a multiple of 4; the
    /// state is then what it was. Also what [any call](crate#errors) may give.
    pub fn set_state(&self, state: &RngState) -> Result<()> {
        self.slot.shared().check()?;
        self.state.set(state)
    }

    /// The seed.
    ///
    /// # Errors
    ///
    /// As [`state`](Self::state).
    pub fn seed(&self) -> Result<u64> {
        self.state().map(|state| state.seed())
    }

    /// Sets the seed, and the offset to 0.
    ///
    /// # Errors
    ///
    /// As [`state`](Self::state).
    pub fn set_seed(&self, seed: u64) -> Result<()> {
        self.slot.shared().check()?;
        self.state.seed(seed);
        Ok(())
    }

    /// How many 32-bit draws it has made since it was seeded: a multiple of 4.
    ///
    /// # Errors
    ///
    /// As [`state`](Self::state).
    pub fn offset(&self) -> Result<u64> {
        self.state().map(|state| state.offset())
    }

    /// Sets the offset; the seed stays.
    ///
    /// # Errors
    ///
    /// As [`set_state`](Self::set_state).
    pub fn set_offset(&self, offset: u64) -> Result<()> {
        self.slot.shared().check()?;
        self.state.set_offset(offset)
    }

    /// The current stream of its device.
    fn stream(&self) -> Stream {
        current_stream(&self.slot)
    }

    /// Random bits: a draw for each element of 32 bits, two with the low one first for 64.
    ///
    /// # Errors
    ///
    /// [`InvalidDevice`](crate::ErrorKind::InvalidDevice) if the memory is on another device,
    /// [`LimitExceeded`](crate::ErrorKind::LimitExceeded) if the seed has not so many draws left. Also what
    /// [any command](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let words = vkaccel::Buffer::<u32>::uninit(4)?;
    /// vkaccel::Generator::new(0, None)?.fill_bits(&words)?;
    /// assert_eq!(words.to_vec()?, vkaccel::Philox::block([0; 2], [0; 4]));
    /// # Ok::<(), vkaccel::Error>(())
    /// ```
    pub fn fill_bits<'a, T: RandomInteger>(&self, out: impl Into<View<'a, T>>) -> Result<()> {
        self.stream().fill_bits(self, out)
    }

    /// Uniform numbers in [0, 1): the upper 24 bits of a draw for each `f32`, the upper 53 bits of two
    /// for each `f64`, as parts of 1.
    ///
    /// # Errors
    ///
    /// As [`fill_bits`](Self::fill_bits).
    pub fn fill_uniform<'a, T: RandomFloat>(&self, out: impl Into<View<'a, T>>) -> Result<()> {
        self.stream().fill_uniform(self, out)
    }

    /// Uniform 16-bit floats in [0, 1), for elements of any type of 2 bytes: the upper 11 bits of a
    /// draw each, as parts of 1.
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) if an element has not 2 bytes, and as
    /// [`fill_bits`](Self::fill_bits).
    pub fn fill_uniform_f16<'a, T: Pod>(&self, out: impl Into<View<'a, T>>) -> Result<()> {
        self.stream().fill_uniform_f16(self, out)
    }

    /// Uniform integers of a range, without bias; one draw for each of 32 bits, two for each of 64.
    ///
    /// `..` is the whole type. A draw that would favour some integers is replaced by one of a
    /// subsequence that nothing else uses, so that other elements and the offset do not depend on it.
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) if the range is empty, and as
    /// [`fill_bits`](Self::fill_bits).
    ///
    /// # Example
    ///
    /// ```
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let dice = vkaccel::Buffer::<i32>::uninit(100)?;
    /// vkaccel::Generator::default_of(None)?.fill_integers(&dice, 1..=6)?;
    /// assert!(dice.to_vec()?.iter().all(|eyes| (1..=6).contains(eyes)));
    /// # Ok::<(), vkaccel::Error>(())
    /// ```
    pub fn fill_integers<'a, T: RandomInteger>(
        &self,
        out: impl Into<View<'a, T>>,
        range: impl RangeBounds<T>,
    ) -> Result<()> {
        self.stream().fill_integers(self, out, range)
    }

    /// Normal numbers with a mean and a standard deviation, always finite; one draw for each `f32`, two
    /// for each `f64`.
    ///
    /// They are at most 6.661 (`f32`) or 8.573 deviations (`f64`) away from the mean.
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) unless the deviation is 0 or more and so many
    /// deviations away from the mean there are finite numbers,
    /// [`Unsupported`](crate::ErrorKind::Unsupported) for `f64` on a device without
    /// [`Feature::ShaderFloat64`](crate::Feature::ShaderFloat64), and as [`fill_bits`](Self::fill_bits).
    pub fn fill_normal<'a, T: RandomFloat>(
        &self,
        out: impl Into<View<'a, T>>,
        mean: T,
        deviation: T,
    ) -> Result<()> {
        self.stream().fill_normal(self, out, mean, deviation)
    }

    /// Ones with probability `p`, to the nearest 2^-32, else zeros; a draw for each.
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) unless `p` is from 0 to 1, and as
    /// [`fill_bits`](Self::fill_bits).
    pub fn fill_bernoulli<'a, T: RandomTruth>(
        &self,
        out: impl Into<View<'a, T>>,
        p: f64,
    ) -> Result<()> {
        self.stream().fill_bernoulli(self, out, p)
    }
}

impl fmt::Debug for Generator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Generator")
            .field("device", &self.device())
            .finish_non_exhaustive()
    }
}

impl Stream {
    /// Random bits from a generator; see [`Generator::fill_bits`].
    ///
    /// # Errors
    ///
    /// As [`Generator::fill_bits`]; [`InvalidDevice`](crate::ErrorKind::InvalidDevice) if the generator
    /// or the memory is on another device than the stream.
    pub fn fill_bits<'a, T: RandomInteger>(
        &self,
        generator: &Generator,
        out: impl Into<View<'a, T>>,
    ) -> Result<()> {
        self.fill_random(generator, out.into(), &Fill::bits::<T>())
    }

    /// Uniform numbers from a generator; see [`Generator::fill_uniform`].
    ///
    /// # Errors
    ///
    /// As [`fill_bits`](Self::fill_bits).
    pub fn fill_uniform<'a, T: RandomFloat>(
        &self,
        generator: &Generator,
        out: impl Into<View<'a, T>>,
    ) -> Result<()> {
        self.fill_random(generator, out.into(), &Fill::uniform::<T>())
    }

    /// Uniform 16-bit floats from a generator; see [`Generator::fill_uniform_f16`].
    ///
    /// # Errors
    ///
    /// As [`Generator::fill_uniform_f16`] and [`fill_bits`](Self::fill_bits).
    pub fn fill_uniform_f16<'a, T: Pod>(
        &self,
        generator: &Generator,
        out: impl Into<View<'a, T>>,
    ) -> Result<()> {
        self.fill_random(generator, out.into(), &Fill::uniform_f16::<T>()?)
    }

    /// Uniform integers from a generator; see [`Generator::fill_integers`].
    ///
    /// # Errors
    ///
    /// As [`Generator::fill_integers`] and [`fill_bits`](Self::fill_bits).
    pub fn fill_integers<'a, T: RandomInteger>(
        &self,
        generator: &Generator,
        out: impl Into<View<'a, T>>,
        range: impl RangeBounds<T>,
    ) -> Result<()> {
        self.fill_random(generator, out.into(), &Fill::integers(range)?)
    }

    /// Normal numbers from a generator; see [`Generator::fill_normal`].
    ///
    /// # Errors
    ///
    /// As [`Generator::fill_normal`] and [`fill_bits`](Self::fill_bits).
    pub fn fill_normal<'a, T: RandomFloat>(
        &self,
        generator: &Generator,
        out: impl Into<View<'a, T>>,
        mean: T,
        deviation: T,
    ) -> Result<()> {
        self.fill_random(generator, out.into(), &Fill::normal(mean, deviation)?)
    }

    /// Trials from a generator; see [`Generator::fill_bernoulli`].
    ///
    /// # Errors
    ///
    /// As [`Generator::fill_bernoulli`] and [`fill_bits`](Self::fill_bits).
    pub fn fill_bernoulli<'a, T: RandomTruth>(
        &self,
        generator: &Generator,
        out: impl Into<View<'a, T>>,
        p: f64,
    ) -> Result<()> {
        self.fill_random(generator, out.into(), &Fill::bernoulli::<T>(p)?)
    }

    fn fill_random<T: Pod>(
        &self,
        generator: &Generator,
        out: View<'_, T>,
        fill: &Fill,
    ) -> Result<()> {
        self.check_device(Whose::Generator, &generator.slot)?;
        self.check_device(Whose::Buffer, out.buffer().slot())?;
        let Some(range) = out.range() else {
            return Ok(());
        };
        fill.check(range)?;
        let (core, opened) = self.open()?;
        let draws = draws(out.len(), fill.draws_each)?;
        if let Some(capture) = core.capture() {
            // Each replay takes the draws anew.
            let program = opened
                .random
                .program_from_memory(&opened.device, fill.kernel)?;
            let (segment, offset, first) = capture.draw(&generator.state, draws)?;
            let states = Block::own(segment);
            let Some(state) = states.range(offset, RngState::LEN_BYTES as u64) else {
                return Ok(());
            };
            return fill.launch_from_memory(&program, &core, range, first, state, Some(&capture));
        }
        let program = opened.random.program(&opened.device, fill.kernel)?;
        // Last, so that a fill that can't be made takes no draws.
        let taken = generator.state.take(draws)?;
        let launched = fill.launch(&program, &core, range, &taken.before);
        if launched.is_err() {
            // What others have taken since stays behind a gap.
            let _ = generator.state.give_back(taken);
        }
        launched
    }
}

#[cfg(test)]
#[path = "generator_on_devices.rs"]
mod on_devices;
