//! Programs: a kernel's interface with its pipeline on one opened device, and their launch.
//!
//! # Safety
//!
//! [`Program::new`] takes trusted words; who gives them vouches for the module. Launching is safe:
//! every launch is checked against the interface before anything is recorded.
#![allow(unsafe_code)]

use core::panic::Location;
use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;

use super::args::Arg;

use super::check::{self, DescriptorUse, Plan};
use super::grid::Grid;
use super::indirect::{Indirect, Launched};
use super::interface::{Access, BindingKind, Interface};
use crate::error::{Error, ErrorKind, Result};
use crate::exec::hazard::{Stages, Use};
use crate::exec::{Launch, Sink, StreamCore};
use crate::mem::Block;
use crate::mem::block::Range;
use crate::vk::command::{DescriptorRange, Groups};
use crate::vk::pipeline::Specialization;
use crate::vk::{Device, Pipeline, Segment};

/// A kernel on an opened device.
#[derive(Debug)]
pub(crate) struct Program {
    interface: Interface,
    /// What errors call it.
    name: Arc<str>,
    pipeline: Arc<Pipeline>,
    device: Arc<Device>,
}

/// How many descriptors of a launch are listed without an allocation.
const FEW: usize = 8;

/// The steps of an indirect launch.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Where it runs again: empties what the check before may have noted.
    Clear,
    Check,
    Launch,
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
        file: Option<&Path>,
        specialization: &[Specialization],
    ) -> Result<Self> {
        // SAFETY: the caller vouches for the words.
        let pipeline = unsafe { Pipeline::new(device, words, &interface, specialization) }?;
        let name = check::kernel_name(&interface.entry, file);
        Ok(Self {
            interface,
            name: Arc::from(name),
            pipeline,
            device: Arc::clone(device),
        })
    }

    pub(crate) fn interface(&self) -> &Interface {
        &self.interface
    }

    /// Checks and records one launch on a stream of the program's device.
    pub(crate) fn launch(&self, stream: &StreamCore, grid: Grid, args: &[Arg<'_>]) -> Result<()> {
        self.launch_if(stream, grid, args, |_| Ok(()))
    }

    /// The same if where the launch goes passes a check.
    pub(crate) fn launch_if(
        &self,
        stream: &StreamCore,
        grid: Grid,
        args: &[Arg<'_>],
        check: impl Fn(&Sink<'_>) -> Result<()>,
    ) -> Result<()> {
        with_scratch(|scratch| {
            let stand_in = self.prepare(stream, grid, args, scratch)?;
            let Scratch { plan, uses } = scratch;
            if plan.groups == [0; 3] {
                return Ok(());
            }
            let groups = Groups::Counts(plan.groups);
            let recorded = stream.record_launch(uses, |sink| {
                check(sink)?;
                self.record(sink, groups, plan, args, stand_in.as_ref())
            });
            note_uses(stream, plan, args, &recorded);
            recorded.map(drop)
        })
    }

    /// Checks and records one launch whose group counts are three words of memory, which the stream
    /// has by the time that it runs.
    pub(crate) fn launch_indirect(
        &self,
        stream: &StreamCore,
        indirect: &Indirect,
        counts: Range<'_>,
        args: &[Arg<'_>],
        site: &'static Location<'static>,
    ) -> Result<()> {
        with_scratch(|scratch| {
            // All but the grid is checked as ever.
            let stand_in = self.prepare(stream, Grid::groups(1), args, scratch)?;
            let Scratch { plan, uses } = scratch;
            let launch = Launched {
                kernel: Arc::clone(&self.name),
                stream: stream.id(),
                site,
            };
            let check = indirect.check(launch, counts)?;
            uses.push(check.use_behind());
            let capture = stream.capture();
            let is_captured = capture.is_some();
            if !is_captured {
                uses.push(check.use_by_host());
            }
            let step = |step: Step| {
                let (check, plan, stand_in) = (&check, &*plan, stand_in.as_ref());
                let capture = capture.as_ref();
                Some(move |sink: &mut Sink<'_>| {
                    sink.check_is_for(capture)?;
                    match step {
                        Step::Clear => {
                            check.clear(sink);
                            Ok(())
                        }
                        Step::Check => check.record(sink),
                        Step::Launch => self.record(sink, check.groups(), plan, args, stand_in),
                    }
                })
            };
            let (before, around) = ([check.use_before()], check.uses());
            let mut steps = [
                (&before[..], step(Step::Clear)),
                (&around[..], step(Step::Check)),
                (&uses[..], step(Step::Launch)),
            ];
            let recorded = stream.record_steps(&mut steps[usize::from(!is_captured)..]);
            counts.used_in(stream, &recorded);
            note_uses(stream, plan, args, &recorded);
            recorded.map(drop)
        })
    }

    /// Checks a launch, and lists what it uses; gives what stands in for buffers of no bytes.
    fn prepare(
        &self,
        stream: &StreamCore,
        grid: Grid,
        args: &[Arg<'_>],
        scratch: &mut Scratch,
    ) -> Result<Option<Arc<Segment>>> {
        let Scratch { plan, uses } = scratch;
        check::plan(
            &self.interface,
            &self.device.plan().limits,
            grid,
            args,
            plan,
        )
        .map_err(|error| error.context(&self.name))?;
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
            // All buffers of no bytes share it.
            stream.split_scope();
            let all = segment.size_bytes();
            uses.push(Use::read_write(segment.id(), 0, all, Stages::COMPUTE));
        }
        for touched in &plan.memory {
            let segment = self.segment(args, touched.arg)?;
            let stage = match touched.kind {
                BindingKind::Storage => Stages::COMPUTE,
                BindingKind::Uniform => Stages::UNIFORM,
            };
            let lo = touched.offset_bytes;
            let hi = lo + touched.len_bytes;
            uses.push(match touched.access {
                Access::Read => Use::read(segment.id(), lo, hi, stage),
                Access::Write => Use::write(segment.id(), lo, hi, stage),
                Access::ReadWrite => Use::read_write(segment.id(), lo, hi, stage),
            });
        }
        Ok(stand_in)
    }

    fn record(
        &self,
        sink: &mut Sink<'_>,
        groups: Groups<'_>,
        plan: &Plan,
        args: &[Arg<'_>],
        stand_in: Option<&Arc<Segment>>,
    ) -> Result<()> {
        let all_are_bound = stand_in.is_none() && plan.memory.len() == plan.descriptors.len();
        if !all_are_bound || sink.capture().is_some() {
            for touched in &plan.memory {
                sink.retain(self.segment(args, touched.arg)?);
                if let Some(owner) = args.get(touched.arg).and_then(Arg::owner) {
                    owner.captured_in(sink);
                }
            }
        }
        let range = |descriptor: &DescriptorUse| -> Result<DescriptorRange<'_>> {
            Ok(DescriptorRange {
                set: descriptor.set,
                binding: descriptor.binding,
                kind: descriptor.kind,
                segment: match stand_in.filter(|_| descriptor.is_stand_in) {
                    Some(segment) => segment,
                    None => self.segment(args, descriptor.arg)?,
                },
                offset: descriptor.offset_bytes,
                len: descriptor.len_bytes,
            })
        };
        let mut launch = Launch {
            name: &self.name,
            pipeline: &self.pipeline,
            groups,
            ranges: &[],
            push: &plan.push,
        };
        match &plan.descriptors[..] {
            [] => sink.launch(&launch),
            [first, rest @ ..] if rest.len() < FEW => {
                let mut ranges = [range(first)?; FEW];
                for (place, descriptor) in ranges[1..].iter_mut().zip(rest) {
                    *place = range(descriptor)?;
                }
                launch.ranges = &ranges[..plan.descriptors.len()];
                sink.launch(&launch)
            }
            many => {
                let ranges: Result<Vec<_>> = many.iter().map(range).collect();
                sink.launch(&Launch {
                    ranges: &ranges?,
                    ..launch
                })
            }
        }
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
    fn wrong_device(&self, index: usize) -> Error {
        Error::new(
            ErrorKind::InvalidDevice,
            format!(
                "{}: argument {index} is not memory of {}, or was made before `shutdown`; copy it to that \
                 device, or make it anew, first",
                self.name,
                self.device.name()
            ),
        )
    }
}

/// Calls `f` with the thread's own; a fresh one does where that is gone, as the thread is ending.
fn with_scratch<R>(f: impl Fn(&mut Scratch) -> R) -> R {
    thread_local! {
        static SCRATCH: RefCell<Scratch> = RefCell::default();
    }
    SCRATCH
        .try_with(|scratch| Some(f(&mut *scratch.try_borrow_mut().ok()?)))
        .ok()
        .flatten()
        .unwrap_or_else(|| f(&mut Scratch::default()))
}

/// Takes note, with the arguments' memory, of a launch that was recorded, or maybe was.
fn note_uses(stream: &StreamCore, plan: &Plan, args: &[Arg<'_>], recorded: &Result<u64>) {
    for touched in &plan.memory {
        if let Some(owner) = args.get(touched.arg).and_then(Arg::owner) {
            owner.used_in(stream, recorded);
        }
    }
}
