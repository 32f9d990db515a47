//! Programs: a kernel's interface with its pipeline on one opened device, and their launch.
//!
//! # Safety
//!
//! [`Program::new`] takes trusted words; who gives them vouches for the module. Launching is safe:
//! every launch is checked against the interface before anything is recorded.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;

use super::args::Arg;
use super::check::{self, Plan};
use super::grid::Grid;
use super::interface::{Access, BindingKind, Interface};
use crate::error::{Error, ErrorKind, Result};
use crate::exec::hazard::{Stages, Use};
use crate::exec::{Recording, StreamCore};
use crate::mem::Block;
use crate::vk::command::DescriptorRange;
use crate::vk::pipeline::Specialization;
use crate::vk::{Device, Pipeline, Segment};

/// A kernel on an opened device.
#[derive(Debug)]
pub(crate) struct Program {
    interface: Interface,
    /// Where the source came from, for errors.
    file: Option<PathBuf>,
    pipeline: Arc<Pipeline>,
    device: Arc<Device>,
}

/// What a launch works with; kept, so that a launch allocates nothing.
#[derive(Default)]
struct Scratch {
    plan: Plan,
    uses: Vec<Use>,
}

impl Program {
    /// Makes the pipeline of an interface that passed [`check::check_program`].
    ///
    /// # Safety
    ///
    /// `words` are valid SPIR-V for the device, and `interface` was read from them. No invocation
    /// reads or writes outside of the buffers and addresses that a launch gets, and every loop ends;
    /// or, where the words only use descriptors, the device checks their bounds and the module's
    /// other indices are clamped.
    pub(crate) unsafe fn new(
        device: &Arc<Device>,
        words: &[u32],
        interface: Interface,
        file: Option<PathBuf>,
        specialization: &[Specialization],
    ) -> Result<Self> {
        // SAFETY: the caller vouches for the words.
        let pipeline = unsafe { Pipeline::new(device, words, &interface, specialization) }?;
        Ok(Self {
            interface,
            file,
            pipeline,
            device: Arc::clone(device),
        })
    }

    pub(crate) fn interface(&self) -> &Interface {
        &self.interface
    }

    /// Checks and records one launch on a stream of the program's device.
    pub(crate) fn launch(&self, stream: &StreamCore, grid: Grid, args: &[Arg<'_>]) -> Result<()> {
        thread_local! {
            static SCRATCH: RefCell<Scratch> = RefCell::default();
        }
        // Without the thread's own (it is ending), a fresh one does.
        SCRATCH
            .try_with(|scratch| {
                let mut scratch = scratch.try_borrow_mut().ok()?;
                Some(self.launch_with(stream, grid, args, &mut scratch))
            })
            .ok()
            .flatten()
            .unwrap_or_else(|| self.launch_with(stream, grid, args, &mut Scratch::default()))
    }

    fn launch_with(
        &self,
        stream: &StreamCore,
        grid: Grid,
        args: &[Arg<'_>],
        scratch: &mut Scratch,
    ) -> Result<()> {
        let Scratch { plan, uses } = scratch;
        check::plan(
            &self.interface,
            &self.device.plan().limits,
            grid,
            args,
            plan,
        )
        .map_err(|error| error.context(self.name()))?;
        uses.clear();
        let stand_in = match plan
            .descriptors
            .iter()
            .any(|descriptor| descriptor.is_stand_in)
        {
            true => Some(stream.stand_in()?),
            false => None,
        };
        if let Some(segment) = &stand_in {
            let all = segment.size_bytes();
            uses.push(Use::read_write(segment.id(), 0, all, Stages::COMPUTE));
        }
        for touched in &plan.memory {
            let segment = self.segment(args, touched.arg)?;
            let (lo, hi) = (
                touched.offset_bytes,
                touched.offset_bytes + touched.len_bytes,
            );
            let stage = self.stage(plan, touched.arg);
            uses.push(match touched.access {
                Access::Read => Use::read(segment.id(), lo, hi, stage),
                Access::Write => Use::write(segment.id(), lo, hi, stage),
                Access::ReadWrite => Use::read_write(segment.id(), lo, hi, stage),
            });
        }
        if plan.groups == [0; 3] {
            return Ok(());
        }
        let recorded = stream.record_launch(uses, |recording| {
            if let Some(segment) = &stand_in {
                recording.retain(segment);
            }
            self.record(recording, plan, args, stand_in.as_ref())
        });
        for touched in &plan.memory {
            if let Some(owner) = args.get(touched.arg).and_then(Arg::owner) {
                owner.used_in(stream, &recorded);
            }
        }
        recorded.map(drop)
    }

    fn record(
        &self,
        recording: &mut Recording,
        plan: &Plan,
        args: &[Arg<'_>],
        stand_in: Option<&Arc<Segment>>,
    ) -> Result<()> {
        for touched in &plan.memory {
            recording.retain(self.segment(args, touched.arg)?);
        }
        recording.retain(&self.pipeline);
        let mut ranges = Vec::with_capacity(plan.descriptors.len());
        for descriptor in &plan.descriptors {
            ranges.push(DescriptorRange {
                set: descriptor.set,
                binding: descriptor.binding,
                kind: self.kind(descriptor.set, descriptor.binding),
                segment: match stand_in.filter(|_| descriptor.is_stand_in) {
                    Some(segment) => segment,
                    None => self.segment(args, descriptor.arg)?,
                },
                offset: descriptor.offset_bytes,
                len: descriptor.len_bytes,
            });
        }
        recording
            .commands
            .dispatch(&self.pipeline, plan.groups, &ranges, &plan.push)
    }

    /// The segment behind an argument that the plan says is memory.
    fn segment<'a>(&self, args: &[Arg<'a>], index: usize) -> Result<&'a Arc<Segment>> {
        let owner = args.get(index).and_then(Arg::owner);
        match owner.and_then(Block::segment) {
            Some(segment) if Arc::ptr_eq(segment.device(), &self.device) => Ok(segment),
            _ => Err(self.wrong_device(index)),
        }
    }

    #[cold]
    fn name(&self) -> String {
        check::kernel_name(&self.interface.entry, self.file.as_deref())
    }

    #[cold]
    fn wrong_device(&self, index: usize) -> Error {
        Error::new(
            ErrorKind::InvalidDevice,
            format!(
                "{}: argument {index} is not memory of {}; copy it to that device first",
                self.name(),
                self.device.name()
            ),
        )
    }

    fn kind(&self, set: u32, binding: u32) -> BindingKind {
        let slot = self
            .interface
            .bindings
            .iter()
            .find(|b| (b.set, b.binding) == (set, binding));
        slot.map_or(BindingKind::Storage, |slot| slot.kind)
    }

    /// How the kernel reaches an argument's memory.
    fn stage(&self, plan: &Plan, arg: usize) -> Stages {
        let descriptor = plan
            .descriptors
            .iter()
            .find(|descriptor| descriptor.arg == arg);
        match descriptor.map(|descriptor| self.kind(descriptor.set, descriptor.binding)) {
            Some(BindingKind::Uniform) => Stages::UNIFORM,
            _ => Stages::COMPUTE,
        }
    }
}
