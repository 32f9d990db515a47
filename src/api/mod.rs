//! Owns the public surface: what the spec declares, and the handles that users hold.

mod buffer;
mod event;
mod generator;
mod graph;
mod kernel;
pub(crate) mod memory;
mod peer;
mod pinned;
mod pool;
pub(crate) mod random;
pub(crate) mod root;
mod rows;
mod stream;
mod view;

pub use buffer::{Buffer, Download};
pub use generator::Generator;
pub use graph::{CaptureErrorMode, Graph, GraphBuilder};
pub use kernel::{Kernel, KernelBuilder};
pub use pinned::{PinnedBuffer, PinnedRead, PinnedWrite};
pub use pool::MemPool;
pub use rows::Rows;
pub use view::View;

/// What is generated from `spec/`: functions, methods, and a trait of bodies for each place.
pub(crate) mod surface {
    include!(concat!(env!("OUT_DIR"), "/api.rs"));
}
