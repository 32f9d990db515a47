//! Owns the public surface: what the spec declares, and the handles that users hold.

// In the order in which the docs show the methods of a type: what a stream does with buffers, before
// rows, pinned memory, generators, graphs and peers.
mod buffer;
mod stream;
mod view;

mod rows;

mod pinned;

mod event;
mod generator;
mod graph;
mod kernel;
mod peer;
mod pool;

pub(crate) mod memory;
pub(crate) mod random;
pub(crate) mod root;

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
