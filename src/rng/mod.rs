//! Owns random numbers: the function behind them, the state of generators, and how draws become
//! elements, on the CPU and on devices.

mod convert;
pub(crate) mod element;
pub(crate) mod fill;
pub(crate) mod generator;
pub(crate) mod kernels;
mod normal;
pub(crate) mod parameters;
pub(crate) mod philox;
pub(crate) mod state;

pub use element::{RandomFloat, RandomInteger, RandomTruth};
pub use philox::Philox;
pub use state::RngState;

use crate::error::{Error, ErrorKind, Result};

/// The draws that a fill of `len` elements takes.
///
/// # Errors
///
/// `LimitExceeded` where they can't be counted.
pub(crate) fn draws(len: usize, draws_each: u32) -> Result<u64> {
    (len as u64)
        .checked_mul(u64::from(draws_each))
        .ok_or_else(|| {
            Error::new(
                ErrorKind::LimitExceeded,
                format!("{len} elements take more draws than a seed has"),
            )
        })
}
