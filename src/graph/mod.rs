//! Owns graphs: what is captured, how it is planned, made and replayed.

mod dump;
mod plan;
mod pool;
mod recorded;
mod session;

pub(crate) use pool::Pools;
pub(crate) use recorded::Recorded;
pub(crate) use session::Session;
