//! Records what a program does with device memory, and writes files to look at it and to tune by.
//!
//! ```text
//! cargo run --features pickle --example memory_history
//! ```
//!
//! It trains nothing: it allocates what training allocates, for batches of changing length. The files are
//! in `target`, or in the folder that is given as an argument. Open `memory.html` in a browser, drop
//! `memory.pickle` into PyTorch's viewer, or try other settings with
//! `vkaccel memory replay target/memory.jsonl --conf '' --conf roundup_power2_divisions:8`.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use vkaccel::alloc::{HistoryOptions, MemorySnapshot};
use vkaccel::{Buffer, memory};

/// A layer of a model: its weights and the two moments that its optimizer keeps.
struct Layer {
    width: usize,
    _weights: [Buffer<f32>; 3],
}

impl Layer {
    fn new(width: usize) -> vkaccel::Result<Self> {
        let weights = || Buffer::uninit(width * width);
        Ok(Self {
            width,
            _weights: [weights()?, weights()?, weights()?],
        })
    }

    /// What is kept until the layer's gradient is known.
    fn activations(&self, tokens: usize) -> vkaccel::Result<Buffer<f32>> {
        Buffer::uninit(tokens * self.width)
    }

    fn scores(&self, tokens: usize) -> vkaccel::Result<Buffer<f32>> {
        Buffer::uninit(tokens * tokens)
    }

    fn gradient(&self) -> vkaccel::Result<Buffer<f32>> {
        Buffer::uninit(self.width * self.width)
    }
}

fn train_step(layers: &[Layer], tokens: usize) -> vkaccel::Result<()> {
    let mut kept = Vec::new();
    for layer in layers {
        let _scores = layer.scores(tokens)?;
        kept.push(layer.activations(tokens)?);
    }
    for layer in layers.iter().rev() {
        let _gradient = layer.gradient()?;
        kept.pop();
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args_os()
        .nth(1)
        .unwrap_or_else(|| "target".into());
    let folder = PathBuf::from(folder);
    std::fs::create_dir_all(&folder)?;
    memory::record_memory_history(Some(HistoryOptions::default()), None)?;
    let layers: Vec<Layer> = (0..8).map(|_| Layer::new(512)).collect::<Result<_, _>>()?;
    let mut tokens = 300;
    for _ in 0..40 {
        // Batches differ in length, so that what was freed is seldom of the size that is asked for next.
        tokens = 500 + (tokens * 37 + 101) % 2500;
        train_step(&layers, tokens)?;
    }
    let snapshot = memory::memory_snapshot(None)?;
    write(&snapshot, &folder)?;
    println!("{}", memory::memory_summary(None, true)?);
    let entries = snapshot.history.len();
    let folder = folder.display();
    println!("{entries} entries are in memory.jsonl and memory.html in {folder}");
    Ok(())
}

fn write(snapshot: &MemorySnapshot, folder: &Path) -> std::io::Result<()> {
    let create = |name| File::create(folder.join(name)).map(BufWriter::new);
    snapshot.write_json_lines(create("memory.jsonl")?)?;
    snapshot.write_html(create("memory.html")?)?;
    #[cfg(feature = "pickle")]
    snapshot.write_pickle(create("memory.pickle")?)?;
    Ok(())
}
