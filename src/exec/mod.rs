//! Owns how commands of a stream are ordered, recorded and submitted.

mod branches;
pub(crate) mod callback;
pub(crate) mod capture;
pub(crate) mod device;
pub(crate) mod elapsed;
mod event;
pub(crate) mod hazard;
mod losses;
pub(crate) mod node;
pub(crate) mod order;
mod pacer;
mod part;
mod permit;
pub(crate) mod recording;
pub(crate) mod replay;
mod replays;
mod scope;
mod sink;
pub(crate) mod stream;
mod submit;
pub(crate) mod ticket;

pub(crate) use capture::Capture;
pub(crate) use device::ExecDevice;
pub(crate) use event::Time;
pub(crate) use part::Mark;
pub(crate) use permit::Call;
pub(crate) use recording::Outcome;
pub(crate) use replays::Replays;
pub(crate) use sink::{Launch, NoCommand, Sink};
pub(crate) use stream::StreamCore;
pub(crate) use ticket::Ticket;
