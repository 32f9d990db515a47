//! Owns the statistics of memory: `spec/memory_stats.yaml` as data, its checks, and its Rust.

mod check;
mod model;
mod render;
mod view;

pub use check::check;
pub use model::{Place, StatsSpec};
pub use render::render;
