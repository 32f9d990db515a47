//! Promises of order between commands that use the same memory, without the user's help.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test may panic anywhere, and its numbers are small"
)]

mod support;

use support::kernels::chosen as kernel;
use support::on_each_device;
use support::random::Random;
use vkaccel::{Arg, Buffer, Download, Grid, Kernel, PinnedBuffer, Stream};

/// Launches on the same memory see each other's results, without host waits.
#[test]
fn launches_in_a_row_on_one_buffer_take_effect_in_order() {
    on_each_device("launches_in_a_row", |_| {
        let kernel = kernel("affine");
        let words = Buffer::<u32>::zeroed(1024).unwrap();
        for _ in 0..31 {
            kernel
                .launch(Grid::elements(1024), (&words, 2, 1, 1024))
                .unwrap();
        }
        let result = words.to_vec().unwrap();
        assert!(result.iter().all(|&word| word == 2_147_483_647));
        let sum: u64 = result.iter().map(|&word| u64::from(word)).sum();
        assert_eq!(sum, 2_199_023_254_528);
    });
}

/// The same between two buffers, by descriptors and by addresses.
#[test]
fn launches_to_and_fro_between_two_buffers_take_effect_in_order() {
    on_each_device("launches_to_and_fro", |_| {
        for name in ["affine_map", "affine_at"] {
            let kernel = kernel(name);
            let (mut from, mut to) = (
                Buffer::<u32>::zeroed(1024).unwrap(),
                Buffer::<u32>::zeroed(1024).unwrap(),
            );
            for _ in 0..31 {
                let args = (&from, &to, 2, 1, 1024);
                kernel.launch(Grid::elements(1024), args).unwrap();
                core::mem::swap(&mut from, &mut to);
            }
            let result = from.to_vec().unwrap();
            assert!(result.iter().all(|&word| word == 2_147_483_647), "{name}");
            let sum: u64 = result.iter().map(|&word| u64::from(word)).sum();
            assert_eq!(sum, 2_199_023_254_528, "{name}");
        }
    });
}

/// The host sees what a kernel wrote, through a copy that it waits for.
#[test]
fn a_copy_to_the_host_sees_what_the_kernel_before_it_wrote() {
    on_each_device("a_copy_to_the_host", |_| {
        let kernel = kernel("affine");
        let words = Buffer::from_slice(&(0..1024).collect::<Vec<u32>>()).unwrap();
        let grid = Grid::elements(1024);
        kernel.launch(grid, (&words, 3, 1, 1024)).unwrap();
        let first = words.read_async().unwrap();
        kernel.launch(grid, (&words, 0, 5, 1024)).unwrap();
        let second = words.read_async().unwrap();
        words.fill(9).unwrap();
        assert_eq!(second.wait().unwrap(), [5; 1024]);
        let expected: Vec<u32> = (0..1024).map(|i| 3 * i + 1).collect();
        assert_eq!(first.wait().unwrap(), expected);
        assert_eq!(words.to_vec().unwrap(), [9; 1024]);
    });
}

/// The same without staging: the copy goes to memory of the program's.
#[test]
fn a_copy_to_pinned_memory_sees_what_the_kernel_before_it_wrote() {
    on_each_device("a_copy_to_pinned_memory", |_| {
        let kernel = kernel("affine");
        let words = Buffer::from_slice(&(0..1024).collect::<Vec<u32>>()).unwrap();
        let grid = Grid::elements(1024);
        let (first, second) = (
            PinnedBuffer::<u32>::new(1024).unwrap(),
            PinnedBuffer::<u32>::new(1024).unwrap(),
        );
        kernel.launch(grid, (&words, 3, 1, 1024)).unwrap();
        words.copy_to_pinned(&first).unwrap();
        kernel.launch(grid, (&words, 0, 5, 1024)).unwrap();
        words.copy_to_pinned(&second).unwrap();
        kernel.launch(grid, (&words, 0, 9, 1024)).unwrap();
        assert_eq!(*second.read().unwrap(), [5; 1024]);
        let expected: Vec<u32> = (0..1024).map(|i| 3 * i + 1).collect();
        assert_eq!(*first.read().unwrap(), expected);
    });
}

#[test]
fn a_uniform_block_is_read_as_the_copy_before_the_launch_left_it() {
    on_each_device("a_uniform_block_is_read", |_| {
        let kernel = kernel("sets_with_gaps");
        let params = Buffer::<u32>::zeroed(2).unwrap();
        let left = Buffer::from_slice(&[1u32, 2, 3, 4]).unwrap();
        let target = Buffer::<u32>::zeroed(4).unwrap();
        for round in 1..10u32 {
            let next = Buffer::from_slice(&[round, 1]).unwrap();
            params.copy_from(next.view(..).unwrap()).unwrap();
            kernel
                .launch(Grid::groups(1), (&params, &left, &target, &target))
                .unwrap();
        }
        // Each round adds scale * left + 1 to what was there.
        let expected: Vec<u32> = (1..=4).map(|left| 45 * left + 9).collect();
        assert_eq!(target.to_vec().unwrap(), expected);
    });
}

/// The bytes of each of the two buffers that random programs work on.
const BYTES: usize = 4096;

/// A buffer, and what it must hold.
struct Modelled {
    buffer: Buffer<u8>,
    model: Vec<u8>,
}

impl Modelled {
    fn new(random: &mut Random) -> Self {
        let model: Vec<u8> = (0..BYTES).map(|_| random.below(256) as u8).collect();
        let buffer = Buffer::from_slice(&model).unwrap();
        Self { buffer, model }
    }

    fn words(&self, start: usize, len: usize) -> Vec<u32> {
        let bytes = self.model[start..start + len * 4].as_chunks::<4>().0;
        bytes.iter().map(|word| u32::from_ne_bytes(*word)).collect()
    }

    fn set_words(&mut self, start: usize, words: &[u32]) {
        let bytes = self.model[start..start + words.len() * 4]
            .as_chunks_mut::<4>()
            .0;
        for (place, word) in bytes.iter_mut().zip(words) {
            *place = word.to_ne_bytes();
        }
    }
}

/// A random program: commands of all kinds on overlapping ranges of two buffers.
struct Program {
    random: Random,
    buffers: [Modelled; 2],
    downloads: Vec<(Download<u8>, Vec<u8>)>,
    affine: Kernel,
    map: Kernel,
    map_at: Kernel,
    /// What the offsets of descriptors are multiples of.
    alignment: usize,
    /// The commands so far, for the message of a failure.
    log: Vec<String>,
}

impl Program {
    fn new(seed: u64) -> Self {
        let capability = vkaccel::get_device_capability(None).unwrap();
        let alignment = capability.limits().min_storage_buffer_offset_alignment;
        let mut random = Random::new(seed);
        let buffers = [Modelled::new(&mut random), Modelled::new(&mut random)];
        Self {
            random,
            buffers,
            downloads: Vec::new(),
            affine: kernel("affine"),
            map: kernel("affine_map"),
            map_at: kernel("affine_at"),
            alignment: usize::try_from(alignment.max(4)).unwrap(),
            log: vec![format!("seed {seed}")],
        }
    }

    /// A range of at least one byte, `start..end`; half of them are short.
    fn range(&mut self) -> (usize, usize) {
        let most = if self.random.below(2) == 0 { 64 } else { BYTES };
        let len = 1 + self.random.below(most);
        let start = self.random.below(BYTES - len + 1);
        (start, start + len)
    }

    /// A range of words that starts at a multiple of some bytes: the first byte, and how many words.
    fn words(&mut self, multiple: usize) -> (usize, usize) {
        let start = self.random.below(BYTES / multiple) * multiple;
        (start, 1 + self.random.below((BYTES - start) / 4))
    }

    fn step(&mut self, stream: &Stream) {
        let which = self.random.below(2);
        match self.random.below(9) {
            0 => self.fill(stream, which),
            1 => self.write(stream, which),
            2 | 3 => self.copy(stream, which),
            4 | 5 => self.launch(stream, which),
            6 | 7 => self.map(stream, which),
            _ => self.download(stream, which),
        }
    }

    fn fill(&mut self, stream: &Stream, which: usize) {
        let ((start, end), value) = (self.range(), self.random.below(256) as u8);
        self.log.push(format!("fill {which} {start}..{end}"));
        let target = &mut self.buffers[which];
        stream
            .fill(target.buffer.view(start..end).unwrap(), value)
            .unwrap();
        target.model[start..end].fill(value);
    }

    fn write(&mut self, stream: &Stream, which: usize) {
        let (start, end) = self.range();
        let bytes: Vec<u8> = (start..end).map(|_| self.random.below(256) as u8).collect();
        self.log.push(format!("write {which} {start}..{end}"));
        let target = &mut self.buffers[which];
        stream
            .write(target.buffer.view(start..end).unwrap(), &bytes)
            .unwrap();
        target.model[start..end].copy_from_slice(&bytes);
    }

    fn copy(&mut self, stream: &Stream, which: usize) {
        let (from, (start, end)) = (self.random.below(2), self.range());
        let target = self.random.below(BYTES - (end - start) + 1);
        self.log
            .push(format!("copy {from} {start}..{end} to {which} {target}"));
        let source = self.buffers[from].buffer.view(start..end).unwrap();
        let place = target..target + (end - start);
        let to = self.buffers[which].buffer.view(place.clone()).unwrap();
        stream.copy(source, to).unwrap();
        let bytes = self.buffers[from].model[start..end].to_vec();
        self.buffers[which].model[place].copy_from_slice(&bytes);
    }

    fn launch(&mut self, stream: &Stream, which: usize) {
        let (start, len) = self.words(self.alignment);
        let (scale, offset) = (self.random.below(9) as u32, self.random.below(99) as u32);
        self.log
            .push(format!("launch on {which} at {start}, {len} words"));
        let target = &mut self.buffers[which];
        let view = target.buffer.view(start..start + len * 4).unwrap();
        let args = (view, scale, offset, len);
        stream
            .launch(&self.affine, Grid::elements(len), args)
            .unwrap();
        let changed: Vec<_> = (target.words(start, len).iter())
            .map(|word| word.wrapping_mul(scale).wrapping_add(offset))
            .collect();
        target.set_words(start, &changed);
    }

    fn map(&mut self, stream: &Stream, which: usize) {
        let by_address = self.random.below(2) == 0;
        let multiple = if by_address { 4 } else { self.alignment };
        let ((from, a), (to, b)) = (self.words(multiple), self.words(multiple));
        let len = a.min(b);
        let source = self.random.below(2);
        let overlap = source == which && from < to + len * 4 && to < from + len * 4;
        // What a launch reads and writes at once, in another invocation, has no defined order.
        if overlap && from != to {
            return;
        }
        let (scale, offset) = (self.random.below(9) as u32, self.random.below(99) as u32);
        self.log.push(format!(
            "map {source} at {from} to {which} at {to}, {len} words, by address: {by_address}"
        ));
        let kernel = if by_address { &self.map_at } else { &self.map };
        let read = self.buffers[source]
            .buffer
            .view(from..from + len * 4)
            .unwrap();
        let written = self.buffers[which].buffer.view(to..to + len * 4).unwrap();
        let args = (read, Arg::from(written).write(), scale, offset, len);
        stream.launch(kernel, Grid::elements(len), args).unwrap();
        let mapped: Vec<_> = (self.buffers[source].words(from, len).iter())
            .map(|word| word.wrapping_mul(scale).wrapping_add(offset))
            .collect();
        self.buffers[which].set_words(to, &mapped);
    }

    fn download(&mut self, stream: &Stream, which: usize) {
        let (start, end) = self.range();
        self.log.push(format!("download {which} {start}..{end}"));
        let source = &self.buffers[which];
        let view = source.buffer.view(start..end).unwrap();
        let download = stream.read_async(view).unwrap();
        self.downloads
            .push((download, source.model[start..end].to_vec()));
    }

    fn finish(self, stream: &Stream) {
        for (download, expected) in self.downloads {
            assert!(download.wait().unwrap() == expected, "{:#?}", self.log);
        }
        for modelled in &self.buffers {
            let result = stream.to_vec(&modelled.buffer).unwrap();
            assert!(result == modelled.model, "{:#?}", self.log);
        }
    }
}

#[test]
fn random_programs_on_overlapping_ranges_give_what_a_model_gives() {
    on_each_device("random_programs", |_| {
        for seed in 1..=4 {
            let stream = Stream::new(0).unwrap();
            let mut program = Program::new(seed);
            // What made the buffers was another stream.
            vkaccel::synchronize(None).unwrap();
            for step in 0..250 {
                program.step(&stream);
                if step % 61 == 60 {
                    stream.synchronize().unwrap();
                }
            }
            program.finish(&stream);
        }
    });
}

/// What the host has seen finish is ordered on the device too.
#[test]
fn streams_that_the_host_orders_see_each_others_results() {
    on_each_device("streams_that_the_host_orders", |_| {
        let streams = [Stream::new(0).unwrap(), Stream::new(0).unwrap()];
        let mut program = Program::new(99);
        vkaccel::synchronize(None).unwrap();
        for turn in 0..60 {
            let stream = &streams[turn % 2];
            for _ in 0..4 {
                program.step(stream);
            }
            match turn % 3 {
                0 => stream.synchronize().unwrap(),
                1 => {
                    while !stream.query().unwrap() {
                        std::thread::yield_now();
                    }
                }
                // A download is behind all that came before it.
                _ => drop(stream.to_vec(&program.buffers[0].buffer).unwrap()),
            }
        }
        program.finish(&streams[0]);
    });
}

#[test]
fn memory_that_is_freed_and_taken_again_is_not_written_by_old_work() {
    on_each_device("memory_that_is_freed", |_| {
        let kernel = kernel("affine");
        for round in 0..30u32 {
            let old = Buffer::from_slice(&vec![round; 4096]).unwrap();
            kernel
                .launch(Grid::elements(4096), (&old, 3, 1, 4096))
                .unwrap();
            drop(old);
            let new = Buffer::<u32>::zeroed(4096).unwrap();
            assert!(new.to_vec().unwrap().iter().all(|&word| word == 0));
        }
    });
}

/// Launches of which none needs another's results.
#[test]
fn launches_declared_independent_get_no_barrier_between_them() {
    on_each_device("launches_declared_independent", |test| {
        let stream = Stream::new(0).unwrap();
        let kernel = kernel("affine_map");
        // So far apart that their ranges don't merge, and more than the planner lists.
        let words = stream.zeroed::<u32>(256 * 100).unwrap();
        let from = stream.upload(&[5u32; 64]).unwrap();
        let part = |index: usize| words.view(index * 256..index * 256 + 64).unwrap();
        let launch = |index: usize, factor: u32| {
            let args = (&from, part(index), factor, 1, 64);
            stream.launch(&kernel, Grid::elements(64), args)
        };
        stream.synchronize().unwrap();
        let before = test.runtime().counters();
        stream
            .concurrent(|| (0..100).try_for_each(|index| launch(index, 2)))
            .unwrap();
        stream.synchronize().unwrap();
        let done = test.runtime().counters().since(&before);
        // One behind the fill of all.
        assert_eq!((done.launches, done.barriers), (100, 1));
        // What follows is ordered behind all of them.
        for index in [0, 99] {
            let args = (part(index), part(index + 1 - 2 * (index / 99)), 3, 0, 64);
            stream.launch(&kernel, Grid::elements(64), args).unwrap();
        }
        let result = stream.to_vec(&words).unwrap();
        assert_eq!(result[..64], [11; 64]);
        assert_eq!(result[256..320], [33; 64]);
        assert_eq!(result[98 * 256..98 * 256 + 64], [33; 64]);
    });
}

#[test]
fn launches_that_are_not_independent_as_declared_are_told_in_debug_builds() {
    on_each_device("launches_that_are_not_independent", |_| {
        let stream = Stream::new(0).unwrap();
        let kernel = kernel("affine");
        let words = stream.zeroed::<u32>(64).unwrap();
        let launch = || stream.launch(&kernel, Grid::elements(64), (&words, 2, 1, 64));
        let declared = stream.concurrent(|| {
            launch()?;
            // A command that is no launch is ordered, and what follows it behind it.
            stream.fill(&words, 7)?;
            launch()?;
            stream.concurrent(launch)
        });
        if cfg!(debug_assertions) {
            let error = declared.unwrap_err();
            assert_eq!(error.kind(), vkaccel::ErrorKind::InvalidArgument);
            assert_eq!(stream.to_vec(&words).unwrap(), [15; 64]);
        }
        // The scope has ended, by the error too.
        launch().unwrap();
        launch().unwrap();
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            stream.concurrent::<()>(|| panic!("on purpose"))
        }));
        assert!(panicked.is_err());
        launch().unwrap();
        launch().unwrap();
    });
}

#[test]
fn memory_that_changes_hands_among_independent_launches_is_not_used_twice_at_once() {
    on_each_device("memory_that_changes_hands", |_| {
        let stream = Stream::new(0).unwrap();
        let kernel = kernel("affine_map");
        let from = stream.upload(&[5u32; 4096]).unwrap();
        let mut kept = Vec::new();
        stream
            .concurrent(|| {
                for round in 0..20u32 {
                    // Its memory is the next one's.
                    let dropped = stream.uninit::<u32>(4096)?;
                    let grid = Grid::elements(4096);
                    stream.launch(&kernel, grid, (&from, &dropped, round, 1, 4096))?;
                    drop(dropped);
                    let to = stream.uninit::<u32>(4096)?;
                    stream.launch(&kernel, grid, (&from, &to, round, 2, 4096))?;
                    kept.push(to);
                }
                Ok(())
            })
            .unwrap();
        for (round, words) in (0u32..).zip(&kept) {
            assert_eq!(stream.to_vec(words).unwrap(), [5 * round + 2; 4096]);
        }
    });
}

#[test]
fn independent_launches_may_each_take_a_buffer_of_no_bytes() {
    on_each_device("independent_launches_may_each_take", |_| {
        let stream = Stream::new(0).unwrap();
        let kernel = kernel("affine_map");
        let none = stream.zeroed::<u32>(0).unwrap();
        let other = stream.zeroed::<u32>(0).unwrap();
        let to = stream.zeroed::<u32>(64).unwrap();
        stream
            .concurrent(|| {
                for empty in [&none, &other, &none] {
                    stream.launch(&kernel, Grid::elements(1), (empty, empty, 1, 1, 0))?;
                }
                stream.launch(&kernel, Grid::elements(1), (&none, &to, 3, 2, 0))
            })
            .unwrap();
        stream.synchronize().unwrap();
    });
}
