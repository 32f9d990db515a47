//! `vkaccel memory`: files about memory. Opens no device.

mod check;
mod device;
mod export;
mod files;
mod golden;
mod input;
mod limits;
mod lines;
mod ops;
pub mod options;
mod pickle;
mod program;
mod replay;
mod tables;
mod text;
mod torch;

use self::options::MemoryRequest;
use crate::exit::Failure;

/// Does what was asked for.
pub fn run(request: &MemoryRequest) -> Result<(), Failure> {
    match request {
        MemoryRequest::Replay(options) => replay::run(options),
        MemoryRequest::Export(options) => export::run(options),
    }
}
