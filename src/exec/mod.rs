//! Owns how commands of a stream are ordered, recorded and submitted.

pub(crate) mod device;
pub(crate) mod hazard;
mod losses;
mod pacer;
pub(crate) mod recording;
pub(crate) mod stream;
pub(crate) mod ticket;

pub(crate) use device::ExecDevice;
pub(crate) use recording::Recording;
pub(crate) use stream::StreamCore;
pub(crate) use ticket::Ticket;
