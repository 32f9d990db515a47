//! Promises of graphs about memory: what they hold, for how long, and what they share.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test may panic anywhere, and its numbers are small"
)]

mod support;

use support::kernels::chosen as kernel;
use support::on_each_device;
use support::slow::Slow;
use vkaccel::{Buffer, ErrorKind, Graph, Grid, PinnedBuffer, Stream, current_stream, memory};

/// `data[i] = data[i] * factor + offset`, on a stream.
fn affine(stream: &Stream, data: &Buffer<u32>, factor: u32, offset: u32) {
    let len = data.len();
    let args = (data, factor, offset, len);
    let kernel = kernel("affine");
    stream.launch(&kernel, Grid::elements(len), args).unwrap();
}

#[test]
fn a_graph_that_was_reset_holds_nothing_and_captures_anew() {
    on_each_device("a_graph_that_was_reset", |_| {
        let reserved = || memory::memory_reserved(None).unwrap();
        let stream = current_stream(None).unwrap();
        let words = stream.upload(&[1u32; 4]).unwrap();
        memory::empty_cache().unwrap();
        let (before, allocated) = (reserved(), memory::memory_allocated(None).unwrap());
        let mut graph = Graph::new();
        assert_eq!(graph.replay().unwrap_err().kind(), ErrorKind::Capture);
        for factor in [3, 5] {
            graph
                .capture(|| {
                    let temp = Buffer::<u32>::zeroed(1 << 20)?;
                    temp.view(..4)?.copy_from(words.view(..)?)?;
                    affine(&stream, &temp, factor, 0);
                    words.copy_from(temp.view(..4)?)
                })
                .unwrap();
            assert!(reserved() > before);
            graph.replay().unwrap();
            let error = graph.capture(|| Ok(())).unwrap_err();
            assert!(error.to_string().contains("reset"), "{error}");
            graph.reset().unwrap();
            memory::empty_cache().unwrap();
            assert_eq!(reserved(), before);
            assert_eq!(memory::memory_allocated(None).unwrap(), allocated);
        }
        assert_eq!(words.to_vec().unwrap(), [15; 4]);
    });
}

#[test]
fn graphs_share_a_pool_by_its_id() {
    on_each_device("graphs_share_a_pool", |_| {
        let stream = current_stream(None).unwrap();
        let input = stream.upload(&[1u32; 1000]).unwrap();
        let mut first = Graph::new();
        let mut second = Graph::builder().pool(first.pool()).build();
        let mut apart = Graph::new();
        let bytes = || memory::private_pool_bytes(None).unwrap();
        let mut addresses = Vec::new();
        for graph in [&mut first, &mut second, &mut apart] {
            let output = graph.capture(|| {
                let temp = Buffer::<u32>::uninit(3 << 20)?;
                temp.view(..1000)?.copy_from(input.view(..)?)?;
                affine(&stream, &temp, 2, 1);
                addresses.push(temp.address());
                input.copy_from(temp.view(..1000)?)
            });
            output.unwrap();
        }
        assert_eq!(
            addresses[0], addresses[1],
            "one graph's free memory is the other's"
        );
        assert_ne!(addresses[0], addresses[2]);
        assert_eq!(bytes().len(), 2);
        let other = Stream::new(0).unwrap();
        // In order, whichever streams they are on.
        for (stream, graph) in [(&stream, &first), (&other, &second), (&stream, &first)] {
            stream.replay(graph).unwrap();
        }
        assert_eq!(input.to_vec().unwrap(), [15; 1000]);
        drop(first);
        other.replay(&second).unwrap();
        assert_eq!(other.to_vec(&input).unwrap(), [31; 1000]);
        drop((second, apart));
        memory::empty_cache().unwrap();
        assert!(bytes().is_empty());
    });
}

#[test]
fn a_graph_keeps_the_buffers_that_it_uses() {
    on_each_device("a_graph_keeps_the_buffers", |_| {
        let stream = current_stream(None).unwrap();
        let input = stream.upload(&[5u32; 5000]).unwrap();
        let output = stream.zeroed::<u32>(5000).unwrap();
        stream.synchronize().unwrap();
        let allocated = memory::memory_allocated(None).unwrap();
        let mut graph = Graph::new();
        graph
            .capture(|| output.copy_from(input.view(..).unwrap()))
            .unwrap();
        drop(input);
        memory::empty_cache().unwrap();
        assert_eq!(memory::memory_allocated(None).unwrap(), allocated);
        // They would lie where it lay.
        let others = [(); 8].map(|()| stream.upload(&[8u32; 5000]).unwrap());
        graph.replay().unwrap();
        assert_eq!(output.to_vec().unwrap(), [5; 5000]);
        drop((others, output));
        graph.replay().unwrap();
        drop(graph);
        stream.synchronize().unwrap();
        assert_eq!(memory::memory_allocated(None).unwrap(), 0);
    });
}

#[test]
fn all_may_be_dropped_in_any_order_while_replays_run() {
    on_each_device("all_may_be_dropped", |_| {
        let result = Stream::new(0).unwrap().zeroed::<u32>(64).unwrap();
        for order in 0..6 {
            let stream = Stream::new(0).unwrap();
            let slow = Slow::new(&stream);
            let input = stream.upload(&[order + 1; 64]).unwrap();
            let mut graph = Graph::new();
            let output = graph.capture_on(&stream, || {
                let output = stream.uninit::<u32>(64)?;
                slow.launch(&stream);
                stream.copy(&input, &output)?;
                affine(&stream, &output, 3, 0);
                stream.copy(&output, &result)?;
                Ok(output)
            });
            let output = output.unwrap();
            stream.replay(&graph).unwrap();
            let watcher = Stream::new(0).unwrap();
            watcher.wait_stream(&stream).unwrap();
            let mut things: Vec<Box<dyn std::any::Any>> = vec![
                Box::new(graph),
                Box::new(input),
                Box::new(output),
                Box::new(stream),
            ];
            things.swap(0, order as usize % 4);
            things.swap(1, 2 + order as usize % 2);
            for thing in things {
                drop(thing);
                memory::empty_cache().unwrap();
            }
            assert_eq!(watcher.to_vec(&result).unwrap(), [3 * (order + 1); 64]);
        }
    });
}

/// Two graphs on one stream with temporary memory of their own.
#[test]
fn a_graph_outlives_another_of_its_stream() {
    on_each_device("a_graph_outlives_another", |_| {
        let stream = current_stream(None).unwrap();
        let x = stream.upload(&[4u32]).unwrap();
        let (y, z) = (
            stream.zeroed::<u32>(1).unwrap(),
            stream.zeroed::<u32>(1).unwrap(),
        );
        let made = |factor, offset, then, target: &Buffer<u32>| {
            let mut graph = Graph::new();
            let captured = graph.capture(|| {
                let temp = Buffer::<u32>::uninit(1)?;
                temp.copy_from(x.view(..)?)?;
                affine(&stream, &temp, factor, offset);
                target.copy_from(temp.view(..)?)?;
                affine(&stream, target, then, 0);
                Ok(())
            });
            captured.map(|()| graph).unwrap()
        };
        let (first, second) = (made(1, 1, 3, &y), made(100, 0, 1, &z));
        second.replay().unwrap();
        first.replay().unwrap();
        drop(second);
        memory::empty_cache().unwrap();
        assert_eq!(
            (y.to_vec().unwrap(), z.to_vec().unwrap()),
            (vec![15], vec![400])
        );
        let large = Buffer::<u8>::uninit(16 << 20).unwrap();
        large.fill(0xFF).unwrap();
        x.write(&[9]).unwrap();
        first.replay().unwrap();
        assert_eq!(y.to_vec().unwrap(), [30]);
        drop((first, large));
        memory::empty_cache().unwrap();
        // What three words lie in.
        assert_eq!(memory::memory_reserved(None).unwrap(), 2 << 20);
    });
}

/// A write goes straight to memory that the host reaches, unless something uses that.
#[test]
fn the_host_writes_nothing_that_a_replay_still_uses() {
    on_each_device("the_host_writes_nothing", |_| {
        let stream = Stream::new(0).unwrap();
        let slow = Slow::new(&stream);
        let input = stream.upload(&[1u32; 64]).unwrap();
        let mut graph = Graph::new();
        let output = graph.capture_on(&stream, || {
            let output = stream.uninit::<u32>(64)?;
            slow.launch(&stream);
            stream.copy(&input, &output)?;
            Ok(output)
        });
        let output = output.unwrap();
        let total = stream.zeroed::<u32>(64).unwrap();
        for round in 0..3u32 {
            stream.replay(&graph).unwrap();
            stream.copy(&output, &total).unwrap();
            stream.write(&input, &[round + 2; 64]).unwrap();
            assert_eq!(stream.to_vec(&total).unwrap(), [round + 1; 64]);
            stream.replay(&graph).unwrap();
            stream.write(&output, &[77; 64]).unwrap();
            assert_eq!(stream.to_vec(&output).unwrap(), [77; 64]);
        }
    });
}

#[test]
fn a_buffer_of_a_capture_serves_the_next_once_it_is_dropped() {
    on_each_device("a_buffer_of_a_capture", |_| {
        let stream = current_stream(None).unwrap();
        let sum = stream.zeroed::<u32>(1 << 16).unwrap();
        let mut graph = Graph::new();
        let mut addresses = Vec::new();
        graph
            .capture(|| {
                for step in 1..=10 {
                    let temp = Buffer::<u32>::uninit(1 << 16)?;
                    temp.fill(step)?;
                    let kernel = kernel("add_at_index");
                    stream.launch(&kernel, Grid::groups(1), (&temp, 0, step))?;
                    addresses.push(temp.address());
                    sum.copy_from(temp.view(..)?)?;
                }
                Ok(())
            })
            .unwrap();
        assert!(
            addresses.iter().all(|one| *one == addresses[0]),
            "{addresses:?}"
        );
        graph.replay().unwrap();
        let words = sum.to_vec().unwrap();
        assert_eq!((words[0], words[1]), (20, 10));
    });
}

#[test]
fn pinned_memory_is_lent_to_replays_as_to_calls() {
    on_each_device("pinned_memory_is_lent", |_| {
        let stream = current_stream(None).unwrap();
        let source = PinnedBuffer::from_slice(&[1u32; 64]).unwrap();
        let target = PinnedBuffer::<u32>::new(64).unwrap();
        let words = stream.zeroed::<u32>(64).unwrap();
        let mut graph = Graph::new();
        graph
            .capture(|| {
                words.copy_from_pinned(&source)?;
                affine(&stream, &words, 5, 0);
                words.copy_to_pinned(&target)
            })
            .unwrap();
        for round in 1..4 {
            source.write().unwrap().fill(round);
            let reading = source.read().unwrap();
            graph.replay().unwrap();
            drop(reading);
            // Waits for the replay.
            assert_eq!(*target.read().unwrap(), [5 * round; 64]);
        }
        for error in [
            {
                let _writing = source.write().unwrap();
                graph.replay().unwrap_err()
            },
            {
                let _reading = target.read().unwrap();
                graph.replay().unwrap_err()
            },
        ] {
            assert_eq!(error.kind(), ErrorKind::HostBusy);
            for part in ["the graph can't be replayed", "memory of 256 bytes"] {
                assert!(error.to_string().contains(part), "{error}");
            }
        }
        graph.replay().unwrap();
        assert_eq!(*target.read().unwrap(), [15; 64]);
    });
}

#[test]
fn a_graph_keeps_what_a_captured_stream_was_said_to_use() {
    on_each_device("a_graph_keeps_what_was_said", |_| {
        let stream = Stream::new(0).unwrap();
        let words = stream.zeroed::<u32>(1000).unwrap();
        stream.synchronize().unwrap();
        let mut graph = Graph::new();
        graph
            .capture_on(&stream, || words.record_stream(&stream))
            .unwrap();
        let allocated = memory::memory_allocated(None).unwrap();
        drop(words);
        assert_eq!(memory::memory_allocated(None).unwrap(), allocated);
        stream.replay(&graph).unwrap();
        drop(graph);
        stream.synchronize().unwrap();
        assert_eq!(memory::memory_allocated(None).unwrap(), 0);
    });
}
