//! The work through the crate, as its users write it.
//!
//! # Safety
//!
//! The kernels are the repository's own; they stay inside the pieces that they get.
#![allow(unsafe_code)]

use vkaccel::{Buffer, Graph, Grid, Kernel, Runtime, Spirv, Stream, View};

use crate::work::{Abi, BUFFER_BYTES, MODULES, PIECE_WORDS, Result, Work};

/// Two pieces and three numbers.
type LaunchArgs<'a> = (View<'a, u32>, View<'a, u32>, u32, u32, u32);

/// A stream with all that the work needs.
pub struct Own {
    pub runtime: Runtime,
    stream: Stream,
    kernels: [Kernel; 2],
    buffers: [Buffer<u32>; 2],
}

impl Own {
    pub fn open(runtime: Runtime) -> Result<Self> {
        let entered = runtime.enter();
        let stream = Stream::new(0)?;
        let kernel = |abi: Abi| {
            let module = Spirv::from(MODULES[abi as usize]);
            // SAFETY: see the top of the file.
            unsafe { Kernel::from_spirv(module) }
        };
        let kernels = [kernel(Abi::Descriptors)?, kernel(Abi::Addresses)?];
        let words = usize::try_from(BUFFER_BYTES / 4)?;
        let buffers = [stream.zeroed(words)?, stream.zeroed(words)?];
        stream.synchronize()?;
        drop(entered);
        Ok(Self {
            runtime,
            stream,
            kernels,
            buffers,
        })
    }

    /// Launches the list, and waits.
    pub fn run(&self, work: &Work) -> Result<()> {
        if work.is_chained {
            self.launch(work)?;
        } else {
            self.stream.concurrent(|| self.launch(work))?;
        }
        Ok(self.stream.synchronize()?)
    }

    /// The same on the thread's current stream, which no call names.
    pub fn run_on_current(&self, work: &Work) -> Result<()> {
        let entered = self.stream.enter()?;
        for at in 0..work.launches.len() {
            self.with_one(work, at, |kernel, grid, args| kernel.launch(grid, args))?;
        }
        drop(entered);
        Ok(self.stream.synchronize()?)
    }

    /// The same with a submission for each launch.
    pub fn run_one_by_one(&self, work: &Work) -> Result<()> {
        for at in 0..work.launches.len() {
            self.launch_one(work, at)?;
            self.stream.flush()?;
        }
        Ok(self.stream.synchronize()?)
    }

    /// Captures the list.
    pub fn captured(&self, work: &Work) -> Result<Graph> {
        let mut graph = Graph::new();
        graph.capture_on(&self.stream, || self.launch(work))?;
        Ok(graph)
    }

    /// Replays it once more, and waits.
    pub fn replay(&self, graph: &Graph) -> Result<()> {
        self.stream.replay(graph)?;
        Ok(self.stream.synchronize()?)
    }

    fn launch(&self, work: &Work) -> vkaccel::Result<()> {
        (0..work.launches.len()).try_for_each(|at| self.launch_one(work, at))
    }

    fn launch_one(&self, work: &Work, at: usize) -> vkaccel::Result<()> {
        self.with_one(work, at, |kernel, grid, args| {
            self.stream.launch(kernel, grid, args)
        })
    }

    #[inline]
    fn with_one<'a>(
        &'a self,
        work: &Work,
        at: usize,
        launch: impl FnOnce(&Kernel, Grid, LaunchArgs<'a>) -> vkaccel::Result<()>,
    ) -> vkaccel::Result<()> {
        let one = &work.launches[at];
        let [from, to] = [0, 1].map(|at: usize| &self.buffers[at ^ usize::from(one.goes_back)]);
        let start = one.piece * PIECE_WORDS;
        let piece = start..start + PIECE_WORDS;
        let [scale, offset, n] = one.numbers;
        let args = (from.view(piece.clone())?, to.view(piece)?, scale, offset, n);
        let kernel = &self.kernels[work.abi as usize];
        launch(kernel, Grid::elements(PIECE_WORDS), args)
    }

    /// Sets every word of the first buffer.
    pub fn fill(&self, word: u32) -> Result<()> {
        Ok(self.stream.fill(&self.buffers[0], word)?)
    }

    /// The words of the first buffer.
    pub fn words(&self) -> Result<Vec<u32>> {
        Ok(self.stream.to_vec(&self.buffers[0])?)
    }
}
