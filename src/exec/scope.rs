//! Launches, and scopes of launches that the program declares to be independent of each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use super::hazard::Use;
use super::sink::Sink;
use super::stream::{CAPTURED, State, StreamCore};
use crate::error::{Error, ErrorKind, Result};

impl StreamCore {
    /// Records a launch, which may be one of a scope of launches that are independent of each other.
    pub(crate) fn record_launch(
        &self,
        uses: &[Use],
        record: impl FnOnce(&mut Sink<'_>) -> Result<()>,
    ) -> Result<u64> {
        self.change(|state, finished| {
            let is_apart = state.is_apart();
            if let Some(part) = &state.part {
                let scope = is_apart.then_some(state.apart_number);
                let mut steps = [(uses, Some(record))];
                part.capture.keep(part.branch, scope, &mut steps)?;
                return Ok(CAPTURED);
            }
            self.make_room(state, finished)?;
            if cfg!(debug_assertions) && is_apart && state.planner.contradicts(uses) {
                return Err(not_independent());
            }
            let (recording, planner) = self.opened(state)?;
            let barrier = if is_apart {
                planner.access_apart(uses)
            } else {
                planner.access(uses)
            };
            if let Some(barrier) = barrier {
                recording.commands.barrier(barrier);
            }
            recording.count += 1;
            let (recorded, seq) = (record(&mut Sink::Queued(recording)), recording.seq);
            self.submit_when_full(state, finished)
                .and(recorded)
                .map(|()| seq)
        })
    }

    /// Opens a scope of launches of this thread that are independent of each other.
    pub(crate) fn open_scope(self: &Arc<Self>) -> LaunchScope {
        let mut state = self.state.lock();
        let thread = thread::current().id();
        let opened = match &mut state.apart {
            None => {
                state.apart = Some((thread, 1));
                state.split_captured_scope();
                state.planner.open_scope();
                self.has_scope.store(true, Ordering::Relaxed);
                true
            }
            Some((of, depth)) if *of == thread => {
                *depth += 1;
                true
            }
            // Launches of this thread are ordered as ever.
            Some(_) => false,
        };
        LaunchScope(opened.then(|| Arc::clone(self)))
    }

    fn close_scope(&self) {
        let mut state = self.state.lock();
        match &mut state.apart {
            Some((_, depth)) if *depth > 1 => *depth -= 1,
            _ => {
                state.apart = None;
                state.planner.close_scope();
                self.has_scope.store(false, Ordering::Relaxed);
            }
        }
    }

    /// Orders launches to come in an open scope behind those so far: they use memory that the program
    /// doesn't know to be shared, as that of a buffer which was dropped in the scope.
    pub(crate) fn split_scope(&self) {
        if self.has_scope.load(Ordering::Relaxed) {
            let mut state = self.state.lock();
            state.planner.split_scope();
            state.split_captured_scope();
        }
    }
}

impl State {
    /// Has launches to come in an open scope, where they are captured, ordered behind those so far.
    pub(super) fn split_captured_scope(&mut self) {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        self.apart_number = NEXT.fetch_add(1, Ordering::Relaxed);
    }
}

/// An open scope of independent launches; closed when it is dropped.
#[derive(Debug)]
pub(crate) struct LaunchScope(Option<Arc<StreamCore>>);

impl Drop for LaunchScope {
    fn drop(&mut self) {
        let stream = self.0.take();
        if let Some(stream) = stream.filter(|stream| stream.device().may_call_driver()) {
            stream.close_scope();
        }
    }
}

#[cold]
fn not_independent() -> Error {
    Error::new(
        ErrorKind::InvalidArgument,
        "launches in `Stream::concurrent` must be independent of each other, but this one writes what \
         another of them uses, or uses what another writes; launch it outside, or pass views that do \
         not overlap (only builds with debug assertions look for this)",
    )
}
