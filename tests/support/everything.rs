//! Objects of every kind, with work in flight, and all calls of the crate that need the runtime.

use std::time::Duration;

use super::kernels::{build, kernel, module};
use vkaccel::{
    Buffer, CaptureErrorMode, Download, Error, Event, Generator, Graph, Grid, Kernel, MemPool,
    PinnedBuffer, Pressure, PressureHandle, RngState, Runtime, Stream, memory, random,
};

/// Things of every kind, with work in flight, work not yet submitted, a download under way, and graphs
/// that are replayed, not yet made and still captured.
pub struct Everything {
    pub stream: Stream,
    pub kernel: Kernel,
    pub data: Buffer<u32>,
    pub download: Download<u32>,
    pub pinned: PinnedBuffer<u32>,
    pub empty: PinnedBuffer<u32>,
    pub event: Event,
    pub timed: Event,
    pub generator: Generator,
    pub pool: MemPool,
    pub graph: Graph,
    pub kept: Graph,
    pub capturing: Graph,
    pub captured: Stream,
    pub pressure: PressureHandle,
}

impl Everything {
    pub fn new() -> Self {
        let (stream, captured) = (Stream::new(0).unwrap(), Stream::new(0).unwrap());
        let kernel = kernel("slow");
        let data = stream.zeroed(4096).unwrap();
        let event = stream.record_event().unwrap();
        let mut graph = Graph::new();
        let mut kept = Graph::builder().keep_graph(true).build();
        for graph in [&mut graph, &mut kept] {
            graph.capture_on(&stream, || stream.fill(&data, 2)).unwrap();
        }
        let mode = CaptureErrorMode::Relaxed;
        let mut capturing = Graph::builder().capture_error_mode(mode).build();
        capturing.capture_begin_on(&captured).unwrap();
        // From here on nothing waits.
        stream
            .launch(&kernel, Grid::groups(4096), (&data, 3000))
            .unwrap();
        let download = stream.read_async(&data).unwrap();
        for value in 0..3 {
            stream.fill(&data, value).unwrap();
        }
        stream.replay(&graph).unwrap();
        let pinned = PinnedBuffer::new(4096).unwrap();
        stream.copy_to_pinned(&data, &pinned).unwrap();
        stream.add_callback(|| ()).unwrap();
        Self {
            empty: PinnedBuffer::new(0).unwrap(),
            timed: Event::with_timing(),
            generator: Generator::new(5, 0).unwrap(),
            pool: MemPool::new(0).unwrap(),
            pressure: memory::on_pressure(0, |_| Pressure::GiveUp).unwrap(),
            stream,
            kernel,
            data,
            download,
            pinned,
            event,
            graph,
            kept,
            capturing,
            captured,
        }
    }
}

/// A call, and the error that it ended with.
pub type Call = (&'static str, Option<Error>);

macro_rules! calls {
    ($($name:literal => $call:expr,)*) => {
        vec![$(($name, $call.err())),*]
    };
}

/// The calls on objects that somebody has.
pub fn on_objects(all: &mut Everything) -> Vec<Call> {
    let Everything {
        stream,
        kernel,
        data,
        download,
        pinned,
        empty,
        event,
        timed,
        generator,
        graph,
        kept,
        capturing,
        captured,
        ..
    } = all;
    let (stream, data, generator) = (&*stream, &*data, &*generator);
    let view = || data.view(..4).unwrap();
    let rows = || data.rows(2, 4, 8).unwrap();
    let state = RngState::from_parts(1, 0);
    calls![
        "Buffer::fill" => data.fill(1),
        "Buffer::write" => data.write(&[1; 4096]),
        "Buffer::read" => data.read(&mut [1; 4096]),
        "Buffer::to_vec" => data.to_vec(),
        "Buffer::read_async" => data.read_async(),
        "Buffer::copy_from" => data.copy_from(data.view(..).unwrap()),
        "Buffer::copy_from_pinned" => data.copy_from_pinned(pinned),
        "Buffer::copy_to_pinned" => data.copy_to_pinned(pinned),
        "Buffer::record_stream" => data.record_stream(stream),
        "View::fill" => view().fill(1),
        "View::to_vec" => view().to_vec(),
        "Download::is_done" => download.is_done(),
        "Download::wait_timeout" => download.wait_timeout(Duration::MAX),
        "PinnedBuffer::read" => pinned.read().map(drop),
        "PinnedBuffer::write" => pinned.write().map(drop),
        "PinnedBuffer::read of none" => empty.read().map(drop),
        "PinnedBuffer::write of none" => empty.write().map(drop),
        "Kernel::launch" => kernel.launch(Grid::groups(1), (data, 1)),
        "Kernel::launch_indirect" => kernel.launch_indirect(view(), (data, 1)),
        "Stream::zeroed" => stream.zeroed::<u32>(1),
        "Stream::uninit" => stream.uninit::<u32>(1),
        "Stream::upload" => stream.upload(&[1u8]),
        "Stream::write" => stream.write(data, &[1; 4096]),
        "Stream::read" => stream.read(data, &mut [1; 4096]),
        "Stream::to_vec" => stream.to_vec(data),
        "Stream::read_async" => stream.read_async(data),
        "Stream::fill" => stream.fill(data, 1),
        "Stream::copy" => stream.copy(view(), data.view(4..8).unwrap()),
        "Stream::launch" => stream.launch(kernel, Grid::groups(1), (data, 1)),
        "Stream::launch_indirect" => stream.launch_indirect(kernel, view(), (data, 1)),
        "Stream::copy_rows" => stream.copy_rows(rows(), rows()),
        "Stream::write_rows" => stream.write_rows(rows(), &[1; 8]),
        "Stream::read_rows" => stream.read_rows(rows(), &mut [1; 8]),
        "Stream::read_rows_async" => stream.read_rows_async(rows()),
        "Stream::query" => stream.query(),
        "Stream::flush" => stream.flush(),
        "Stream::synchronize" => stream.synchronize(),
        "Stream::synchronize_timeout" => stream.synchronize_timeout(Duration::MAX),
        "Stream::enter" => stream.enter().map(drop),
        "Stream::scope" => stream.scope(|| Ok(())),
        "Stream::concurrent" => stream.concurrent(|| Ok(())),
        "Stream::add_callback" => stream.add_callback(|| ()),
        "Stream::record_event" => stream.record_event(),
        "Stream::wait_event" => stream.wait_event(event),
        "Stream::wait_stream" => stream.wait_stream(stream),
        "flush of a captured stream" => captured.flush(),
        "query of a captured stream" => captured.query(),
        "synchronize of a captured stream" => captured.synchronize(),
        "fill on a captured stream" => captured.fill(data, 1),
        "zeroed on a captured stream" => captured.zeroed::<u8>(1),
        "record_event of a captured stream" => captured.record_event(),
        "wait_event of a captured stream" => captured.wait_event(event),
        "replay on a captured stream" => captured.replay(graph),
        "capture of a captured stream" => Graph::new().capture_on(captured, || Ok(())),
        "Stream::replay" => stream.replay(graph),
        "Graph::replay" => graph.replay(),
        "Graph::instantiate" => kept.instantiate(),
        "Graph::capture_begin" => kept.capture_begin(),
        "Graph::capture_end" => capturing.capture_end(),
        "Graph::debug_dump" => graph.debug_dump("/nonexistent"),
        "Graph::reset" => graph.reset(),
        "set_stream" => vkaccel::set_stream(stream),
        "Event::record" => event.record(stream),
        "Event::record of time" => timed.record(stream),
        "Event::wait" => event.wait(stream),
        "Event::query" => event.query(),
        "Event::synchronize" => event.synchronize(),
        "Event::synchronize_timeout" => event.synchronize_timeout(Duration::MAX),
        "Event::elapsed_time" => timed.elapsed_time(timed),
        "Generator::state" => generator.state(),
        "Generator::set_state" => generator.set_state(&state),
        "Generator::seed" => generator.seed(),
        "Generator::set_seed" => generator.set_seed(1),
        "Generator::offset" => generator.offset(),
        "Generator::set_offset" => generator.set_offset(4),
        "Generator::fill_bits" => generator.fill_bits(data),
        "Generator::fill_integers" => generator.fill_integers(data, 0..9),
        "Generator::fill_bernoulli" => generator.fill_bernoulli(data, 0.5),
        "Stream::fill_bits" => stream.fill_bits(generator, data),
    ]
}

/// The calls that name no object: they mean the runtime that is current.
pub fn of_the_process() -> Vec<Call> {
    let runtime = Runtime::current();
    let mut calls = calls![
        "Buffer::zeroed" => Buffer::<u8>::zeroed(4),
        "Buffer::zeroed of none" => Buffer::<u8>::zeroed(0),
        "Buffer::uninit" => Buffer::<u8>::uninit(4),
        "Buffer::from_slice" => Buffer::from_slice(&[1u8]),
        "PinnedBuffer::new" => PinnedBuffer::<u8>::new(1),
        "PinnedBuffer::new_on" => PinnedBuffer::<u8>::new_on(0, 1),
        "PinnedBuffer::for_upload_on" => PinnedBuffer::<u8>::for_upload_on(0, 1),
        "PinnedBuffer::from_slice" => PinnedBuffer::from_slice(&[1u8]),
        "KernelBuilder::build" => build(Kernel::builder(module("affine"))),
        "Kernel::from_glsl" => Kernel::from_glsl("#version 450\nvoid main() {}"),
        "Stream::new" => Stream::new(0),
        "Stream::default_of" => Stream::default_of(0),
        "Stream::with_priority" => Stream::with_priority(0, 1),
        "Event::record" => Event::new().record(None),
        "Graph::capture" => Graph::new().capture(|| Ok(())),
        "MemPool::new" => MemPool::new(0),
        "Generator::new" => Generator::new(1, 0),
        "Generator::default_of" => Generator::default_of(0),
        "Runtime::init" => runtime.init(0),
        "Runtime::selection" => runtime.selection(),
        "current_device_index" => vkaccel::current_device_index(),
        "set_device_index" => vkaccel::set_device_index(0),
        "get_device_capability" => vkaccel::get_device_capability(0),
        "current_stream" => vkaccel::current_stream(None),
        "synchronize" => vkaccel::synchronize(None),
        "synchronize of a device" => vkaccel::synchronize(0),
        "device_index" => vkaccel::device_index(0).map(drop),
        "with_device" => vkaccel::with_device(0, || Ok(())),
        "on_pressure" => memory::on_pressure(0, |_| Pressure::GiveUp),
    ];
    calls.extend(of_memory());
    calls.extend(of_random_numbers());
    calls
}

fn of_memory() -> Vec<Call> {
    calls![
        "get_memory_info" => memory::get_memory_info(0),
        "empty_cache" => memory::empty_cache(),
        "empty_host_cache" => memory::empty_host_cache(),
        "host_memory_stats" => memory::host_memory_stats(),
        "reset_peak_host_memory_stats" => memory::reset_peak_host_memory_stats(),
        "reset_accumulated_host_memory_stats" => memory::reset_accumulated_host_memory_stats(),
        "set_host_memory_limit" => memory::set_host_memory_limit(None),
        "host_memory_limit" => memory::host_memory_limit(),
        "runtime_memory" => memory::runtime_memory(0),
        "memory_stats" => memory::memory_stats(0),
        "memory_allocated" => memory::memory_allocated(0),
        "max_memory_allocated" => memory::max_memory_allocated(0),
        "memory_reserved" => memory::memory_reserved(0),
        "max_memory_reserved" => memory::max_memory_reserved(0),
        "reset_peak_memory_stats" => memory::reset_peak_memory_stats(0),
        "reset_accumulated_memory_stats" => memory::reset_accumulated_memory_stats(0),
        "set_per_process_memory_fraction" => memory::set_per_process_memory_fraction(1.0, 0),
        "get_per_process_memory_fraction" => memory::get_per_process_memory_fraction(0),
        "set_memory_limit" => memory::set_memory_limit(None, 0),
        "memory_limit" => memory::memory_limit(0),
        "set_allocator_settings" => memory::set_allocator_settings("", 0),
        "allocator_settings" => memory::allocator_settings(0),
        "memory_summary" => memory::memory_summary(0, true),
        "memory_snapshot" => memory::memory_snapshot(0),
        "record_memory_history" => memory::record_memory_history(None, 0),
        "private_pool_bytes" => memory::private_pool_bytes(0),
    ]
}

fn of_random_numbers() -> Vec<Call> {
    let state = RngState::from_parts(1, 0);
    calls![
        "initial_seed" => random::initial_seed(0),
        "get_rng_state" => random::get_rng_state(0),
        "get_rng_state_all" => random::get_rng_state_all(),
        "manual_seed" => random::manual_seed(1),
        "manual_seed_all" => random::manual_seed_all(1),
        "seed" => random::seed(),
        "seed_all" => random::seed_all(),
        "set_rng_state" => random::set_rng_state(&state, None),
        "set_rng_state_all" => random::set_rng_state_all(&[]),
        "get_offset" => random::get_offset(0),
        "set_offset" => random::set_offset(0, 0),
    ]
}
