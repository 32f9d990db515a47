//! Owns how commands of a stream are ordered, recorded and submitted.

pub(crate) mod callback;
pub(crate) mod device;
pub(crate) mod elapsed;
mod event;
pub(crate) mod hazard;
mod losses;
pub(crate) mod order;
mod pacer;
pub(crate) mod recording;
mod scope;
pub(crate) mod stream;
mod submit;
pub(crate) mod ticket;

pub(crate) use device::ExecDevice;
pub(crate) use event::Time;
pub(crate) use recording::{Outcome, Recording};
pub(crate) use stream::StreamCore;
pub(crate) use ticket::Ticket;
