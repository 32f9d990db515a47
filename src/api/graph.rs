//! Graphs: work that is captured once and replayed.

use core::fmt;
use core::mem;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::stream::Whose;
use super::surface::GraphBodies;
use crate::alloc::PoolId;
use crate::base::fork::Life;
use crate::device::DeviceArg;
use crate::error::{Error, ErrorKind, Result};
use crate::exec::Call;
use crate::exec::capture::Strictness;
use crate::graph::{Recorded, Session};
use crate::runtime::{Runtime, Slot, Stream, current_stream};

/// Work of a device that is captured once and replayed as often as wanted, each time by one submission.
///
/// Between [`capture_begin`](Self::capture_begin) and [`capture_end`](Self::capture_end), or inside of
/// [`capture`](Self::capture), the calls for the captured stream run nothing: launches, copies, fills, uploads
/// (their content is kept), random numbers, and what other streams are told that wait for the captured one.
/// [`replay`](Self::replay) runs all of it in the order of the calls; what shares no memory runs side by
/// side.
///
/// Buffers that are made in a capture lie in a private [pool](Self::pool), keep their addresses, and serve
/// each other's memory once they are dropped. So what the program writes for a replay to read belongs in a
/// buffer from outside: one from inside may lie where another lay, which the replay writes first. The graph keeps what it uses, buffers from outside too, until
/// it is [reset](Self::reset) or dropped; replays under way keep it until they have finished. All may be
/// dropped in any order. Replays of one graph, and of graphs that share a pool, run one after the other,
/// whichever streams they are put on.
///
/// Random numbers are new at each replay: it takes as many draws of each generator as the calls would have.
///
/// # Example
///
/// ```
/// # #[cfg(feature = "glsl")] {
/// # if vkaccel::device_count() == 0 { return Ok(()); }
/// use vkaccel::{Buffer, Graph, Grid, Kernel};
///
/// let double = Kernel::from_glsl(
///     "#version 450
///      layout(local_size_x = 64) in;
///      layout(set = 0, binding = 0) buffer Data { uint data[]; };
///      void main() {
///          uint i = gl_GlobalInvocationID.x;
///          if (i < data.length()) data[i] *= 2;
///      }",
/// )?;
/// let input = Buffer::from_slice(&[1u32, 2, 3])?;
/// let mut graph = Graph::new();
/// let output = graph.capture(|| {
///     let output = Buffer::<u32>::uninit(3)?;
///     output.copy_from(input.view(..)?)?;
///     double.launch(Grid::elements(3), (&output,))?;
///     Ok(output)
/// })?;
/// graph.replay()?;
/// assert_eq!(output.to_vec()?, [2, 4, 6]);
/// input.write(&[10, 20, 30])?;
/// graph.replay()?;
/// assert_eq!(output.to_vec()?, [20, 40, 60]);
/// # }
/// # Ok::<(), vkaccel::Error>(())
/// ```
#[doc(alias = "CUDAGraph")]
#[doc(alias = "torch.accelerator.Graph")]
pub struct Graph {
    keeps: bool,
    mode: CaptureErrorMode,
    debugs: bool,
    /// The pool that was asked for.
    pool: Option<PoolId>,
    /// The pool that it has else.
    own_pool: PoolId,
    state: State,
    life: Life,
}

enum State {
    Empty,
    Capturing(Box<Session>, Arc<Slot>),
    Captured {
        recorded: Box<Recorded>,
        slot: Arc<Slot>,
        debugs: bool,
    },
}

/// What other calls may do while a graph is captured.
///
/// Two kinds of calls are in question, on the captured device: those that wait for it on the host
/// ([`synchronize`](crate::synchronize), [`Stream::synchronize`], [`Event::synchronize`](crate::Event),
/// [`Buffer::to_vec`](crate::Buffer::to_vec), [`empty_cache`](crate::empty_cache), guards of
/// [`PinnedBuffer`](crate::PinnedBuffer), …), and allocations outside of the capture that find nothing cached.
/// A call that is refused gives [`ErrorKind::NotPermitted`] and does nothing; one that the capturing thread
/// made has failed the capture, whose end says so. For the captured streams themselves, waits are refused in
/// every mode.
///
/// # Example
///
/// ```
/// # if vkaccel::device_count() == 0 { return Ok(()); }
/// use vkaccel::{CaptureErrorMode, ErrorKind, Graph, Stream};
///
/// let other = Stream::new(0)?;
/// let numbers = other.zeroed::<u32>(3)?;
///
/// let refused = Graph::new().capture(|| other.to_vec(&numbers));
/// assert_eq!(refused.unwrap_err().kind(), ErrorKind::NotPermitted);
///
/// let mut graph = Graph::builder().capture_error_mode(CaptureErrorMode::Relaxed).build();
/// assert_eq!(graph.capture(|| other.to_vec(&numbers))?, [0, 0, 0]);
/// # Ok::<(), vkaccel::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CaptureErrorMode {
    /// What suits this crate's devices: as [`ThreadLocal`](Self::ThreadLocal).
    #[default]
    Default,
    /// No thread may make such a call.
    Global,
    /// The thread that began the capture may not make one.
    ThreadLocal,
    /// All may.
    Relaxed,
}

impl CaptureErrorMode {
    fn strictness(self) -> Strictness {
        match self {
            Self::Global => Strictness::Global,
            Self::Default | Self::ThreadLocal => Strictness::ThreadLocal,
            Self::Relaxed => Strictness::Relaxed,
        }
    }
}

/// Makes a [`Graph`] with settings.
///
/// # Example
///
/// ```
/// let graph = vkaccel::Graph::builder().keep_graph(true).build();
/// # let _ = graph;
/// ```
#[must_use = "nothing happens before `build`"]
#[derive(Clone, Debug, Default)]
pub struct GraphBuilder {
    keeps: bool,
    mode: CaptureErrorMode,
    pool: Option<PoolId>,
}

impl GraphBuilder {
    /// Keeps what is captured, so that [`Graph::instantiate`] may make its commands anew; without, they are
    /// made once, at the end of the capture.
    pub fn keep_graph(mut self, keep: bool) -> Self {
        self.keeps = keep;
        self
    }

    /// Shares the memory of another graph, whose [`pool`](Graph::pool) this is, or of a
    /// [`MemPool`](crate::MemPool).
    ///
    /// What was free in the pool when a graph was captured, each replay of that graph may overwrite. So a
    /// buffer that a later capture gave out, or that was made in the scope of the `MemPool` after the capture,
    /// is sure to hold what it held only until the earlier graph is replayed.
    ///
    /// # Example
    ///
    /// ```
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// use vkaccel::{Buffer, Graph};
    ///
    /// let numbers = Buffer::<u32>::zeroed(1000)?;
    /// let step = || {
    ///     let temporary = Buffer::<u32>::zeroed(1000)?;
    ///     numbers.copy_from(temporary.view(..)?)
    /// };
    /// let mut first = Graph::new();
    /// first.capture(step)?;
    /// let mut second = Graph::builder().pool(first.pool()).build();
    /// second.capture(step)?; // its temporary buffer lies where that of the first lay
    /// first.replay()?;
    /// second.replay()?;
    /// # Ok::<(), vkaccel::Error>(())
    /// ```
    pub fn pool(mut self, pool: PoolId) -> Self {
        self.pool = Some(pool);
        self
    }

    /// Chooses what other calls may do during the capture.
    pub fn capture_error_mode(mut self, mode: CaptureErrorMode) -> Self {
        self.mode = mode;
        self
    }

    /// Builds the graph.
    pub fn build(self) -> Graph {
        Graph {
            keeps: self.keeps,
            mode: self.mode,
            debugs: false,
            pool: self.pool,
            own_pool: PoolId::fresh(),
            state: State::Empty,
            life: Life::now(),
        }
    }
}

impl Graph {
    /// A graph that nothing was captured in; belongs to no device yet.
    ///
    /// In PyTorch: `torch.accelerator.Graph`.
    #[expect(
        clippy::new_without_default,
        reason = "a graph has an identity, its pool: no two are equal"
    )]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// A builder, for a graph with settings.
    pub fn builder() -> GraphBuilder {
        GraphBuilder::default()
    }

    /// Captures what `f` puts on the current stream, and on those that join it.
    ///
    /// Waits for the device and empties both caches first. The capture ends when `f` returns; if it returns an
    /// error, or panics, the graph is as it was before. `f` can't touch the graph, which is borrowed.
    ///
    /// # Errors
    ///
    /// Whatever `f` returns, and as [`capture_begin`](Self::capture_begin) and
    /// [`capture_end`](Self::capture_end). Also what [any wait](crate#errors) may give.
    #[track_caller]
    pub fn capture<R>(&mut self, f: impl FnOnce() -> Result<R>) -> Result<R> {
        let call = Call::new("Graph::capture");
        let stream = Runtime::current().current_stream_of(&DeviceArg::CURRENT)?;
        self.capture_as(call, &stream, f)
    }

    /// The same for a stream that is named, which is current while `f` runs.
    ///
    /// # Errors
    ///
    /// As [`capture`](Self::capture).
    #[track_caller]
    pub fn capture_on<R>(&mut self, stream: &Stream, f: impl FnOnce() -> Result<R>) -> Result<R> {
        self.capture_as(Call::new("Graph::capture_on"), stream, f)
    }

    fn capture_as<R>(
        &mut self,
        call: Call,
        stream: &Stream,
        f: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        self.check_empty()?;
        stream.check_not_captured(call)?;
        stream.slot().settle(call)?;
        let _current = stream.enter()?;
        self.begin(call, stream)?;
        // Given up where `f` panics or fails.
        let capturing = Capturing(self);
        let result = f()?;
        capturing.0.end(call)?;
        Ok(result)
    }

    /// Starts to capture a stream that is named; see [`capture_begin`](Self::capture_begin).
    ///
    /// # Errors
    ///
    /// As [`capture_begin`](Self::capture_begin).
    #[track_caller]
    pub fn capture_begin_on(&mut self, stream: &Stream) -> Result<()> {
        self.begin(Call::new("Graph::capture_begin_on"), stream)
    }

    fn begin(&mut self, call: Call, stream: &Stream) -> Result<()> {
        self.check_empty()?;
        let (core, opened) = stream.open()?;
        let pool = opened.graph_pools.get(self.pool_id(), &opened.memory);
        let session = Session::begin(&core, pool, self.mode.strictness(), call)?;
        self.state = State::Capturing(Box::new(session), Arc::clone(stream.slot()));
        Ok(())
    }

    /// Chooses the pool of the next capture; `None` for one of its own.
    pub fn set_pool(&mut self, pool: Option<PoolId>) {
        self.pool = pool;
    }

    /// Chooses what other calls may do during the next capture.
    pub fn set_capture_error_mode(&mut self, mode: CaptureErrorMode) {
        self.mode = mode;
    }

    fn pool_id(&self) -> PoolId {
        self.pool.unwrap_or(self.own_pool)
    }

    fn check_empty(&self) -> Result<()> {
        self.life.check()?;
        match &self.state {
            State::Empty => Ok(()),
            State::Capturing(session, _) => Err(Error::new(
                ErrorKind::Capture,
                format!(
                    "this graph is capturing already, {}; end that first",
                    session.place()
                ),
            )),
            State::Captured { .. } => Err(Error::new(
                ErrorKind::Capture,
                "this graph has been captured already; call `reset` before it captures anew, or make another",
            )),
        }
    }

    fn recorded(&self) -> Result<(&Recorded, &Arc<Slot>)> {
        self.life.check()?;
        match &self.state {
            State::Captured { recorded, slot, .. } => {
                slot.shared().check()?;
                Ok((recorded, slot))
            }
            State::Empty => Err(Error::new(
                ErrorKind::Capture,
                "nothing was captured in this graph yet; call `capture` first",
            )),
            State::Capturing(session, _) => Err(Error::new(
                ErrorKind::Capture,
                format!(
                    "this graph is still capturing, {}; call `capture_end` first",
                    session.place()
                ),
            )),
        }
    }

    fn end(&mut self, call: Call) -> Result<()> {
        self.life.check()?;
        match mem::replace(&mut self.state, State::Empty) {
            State::Capturing(session, slot) => {
                slot.shared().check()?;
                self.state = State::Captured {
                    recorded: Box::new(session.end(call, self.keeps)?),
                    slot,
                    debugs: self.debugs,
                };
                Ok(())
            }
            other => {
                self.state = other;
                Err(Error::new(
                    ErrorKind::Capture,
                    "this graph is not capturing; call `capture_begin` first",
                ))
            }
        }
    }

    fn replay_on(&self, stream: &Stream, call: Call) -> Result<()> {
        let (recorded, slot) = self.recorded()?;
        stream.check_device(Whose::Graph, slot)?;
        let (core, _opened) = stream.open()?;
        core.permit_on_captured(call)?;
        recorded.replay(&core)
    }
}

/// A graph that captures; what it has captured is given up when this is dropped.
struct Capturing<'a>(&'a mut Graph);

impl Drop for Capturing<'_> {
    fn drop(&mut self) {
        if let State::Capturing(..) = self.0.state {
            self.0.state = State::Empty;
        }
    }
}

impl GraphBodies for Graph {
    fn capture_begin(&mut self) -> Result<()> {
        let stream = Runtime::current().current_stream_of(&DeviceArg::CURRENT)?;
        self.begin(Call::new("Graph::capture_begin"), &stream)
    }

    fn capture_end(&mut self) -> Result<()> {
        self.end(Call::new("Graph::capture_end"))
    }

    fn instantiate(&mut self) -> Result<()> {
        let (recorded, _) = self.recorded()?;
        if !self.keeps {
            return Err(Error::new(
                ErrorKind::Capture,
                "the commands of this graph were made at the end of its capture; to make them when it suits, \
                 build it with `keep_graph(true)`",
            ));
        }
        recorded.instantiate()
    }

    fn replay(&self) -> Result<()> {
        let (_, slot) = self.recorded()?;
        self.replay_on(&current_stream(slot), Call::new("Graph::replay"))
    }

    fn reset(&mut self) -> Result<()> {
        self.life.check()?;
        // All that it has may be dropped at any time, also once the runtime was shut down.
        self.state = State::Empty;
        Ok(())
    }

    fn pool(&self) -> PoolId {
        self.pool_id()
    }

    fn enable_debug_mode(&mut self) {
        self.debugs = true;
    }

    fn debug_dump(&self, path: &Path) -> Result<()> {
        let (recorded, _) = self.recorded()?;
        if !matches!(self.state, State::Captured { debugs: true, .. }) {
            return Err(Error::new(
                ErrorKind::Capture,
                "this graph was captured without debug mode; call `enable_debug_mode` before the capture",
            ));
        }
        fs::write(path, recorded.dot()).map_err(|cause| {
            let text = format!("the graph can't be written to {}: {cause}", path.display());
            Error::new(ErrorKind::Io, text).with_source(cause)
        })
    }
}

impl Stream {
    /// Replays a graph on this stream; see [`Graph::replay`].
    ///
    /// # Errors
    ///
    /// As [`Graph::replay`]; [`InvalidDevice`](ErrorKind::InvalidDevice) if the graph is of another device.
    #[track_caller]
    pub fn replay(&self, graph: &Graph) -> Result<()> {
        graph.replay_on(self, Call::new("Stream::replay"))
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::Empty => "empty",
            State::Capturing(..) => "capturing",
            State::Captured { .. } => "captured",
        };
        f.debug_struct("Graph")
            .field("state", &state)
            .field("pool", &self.pool_id())
            .finish_non_exhaustive()
    }
}
