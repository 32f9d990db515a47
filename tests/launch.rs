//! Promises of launches: what reaches the shader, and what is refused before anything is recorded.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test may panic anywhere, and its numbers are small"
)]

mod support;

use support::kernels::{build, kernel, module};
use support::on_each_device;
use vkaccel::{
    Arg, Buffer, Details, Error, ErrorKind, Grid, Kernel, Result, get_device_capability,
};

/// The error of a launch, which must have this kind.
#[track_caller]
fn refused(result: Result<()>, kind: ErrorKind) -> Error {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    error
}

/// Push constants reach the shader where its block says, and a packed struct is refused.
#[test]
fn push_constants_arrive_at_the_shaders_offsets() {
    on_each_device("push_constants_arrive", |_| {
        let kernel = kernel("push_block");
        let block = kernel.interface().push_constants.clone().unwrap();
        let offsets: Vec<_> = block
            .members
            .iter()
            .map(|member| member.offset_bytes)
            .collect();
        assert_eq!((offsets, block.size_bytes), (vec![0, 16, 28], 32));

        let words = Buffer::<u32>::zeroed(5).unwrap();
        let image: [u32; 8] = [
            0x3F80_0000,
            0,
            0,
            0,
            0x4000_0000,
            0x4040_0000,
            0x4080_0000,
            0x2A,
        ];
        kernel
            .launch(Grid::groups(1), (&words, Arg::block(&image)))
            .unwrap();
        let expected = [0x3F80_0000, 0x4000_0000, 0x4040_0000, 0x4080_0000, 0x2A];
        assert_eq!(words.to_vec().unwrap(), expected);

        words.fill(0).unwrap();
        let packed: [u32; 5] = [0x3F80_0000, 0x4000_0000, 0x4040_0000, 0x4080_0000, 0x2A];
        let launched = kernel.launch(Grid::groups(1), (&words, Arg::block(&packed)));
        let error = refused(launched, ErrorKind::ArgumentMismatch);
        assert!(
            matches!(
                error.details(),
                Some(Details::Size {
                    expected: 32,
                    given: 20,
                    ..
                })
            ),
            "{error}"
        );
        assert_eq!(words.to_vec().unwrap(), [0; 5], "nothing was launched");

        // Member by member it is the same.
        let b = [2.0f32, 3.0, 4.0];
        kernel
            .launch(Grid::groups(1), (&words, 1.0, Arg::block(&b), 42))
            .unwrap();
        assert_eq!(words.to_vec().unwrap(), expected);
    });
}

#[test]
fn numbers_vectors_and_arrays_fill_the_members_of_the_block() {
    on_each_device("numbers_vectors_and_arrays", |_| {
        let kernel = kernel("numbers");
        let words = Buffer::<u32>::zeroed(7).unwrap();
        let (d, e) = ([3u32, 4], [5u32, 6]);
        kernel
            .launch(
                Grid::groups(1),
                (&words, -1.5, -2, u32::MAX, Arg::block(&d), Arg::block(&e)),
            )
            .unwrap();
        let expected = [(-1.5f32).to_bits(), -2i32 as u32, u32::MAX, 3, 4, 5, 6];
        assert_eq!(words.to_vec().unwrap(), expected);
    });
}

/// Nothing to do is done at once, whatever the other axes say.
#[test]
fn no_groups_are_no_work_even_beside_a_count_that_is_too_large() {
    on_each_device("no_groups_are_no_work", |_| {
        let kernel = kernel("local_size");
        let words = Buffer::from_slice(&[u32::MAX; 64]).unwrap();
        let grids = [
            Grid::groups((0, 1, 1)),
            Grid::groups((1, 0, 5)),
            Grid::groups((u32::MAX, u32::MAX, 0)),
            Grid::groups([u64::MAX, 0]),
            Grid::elements(0),
            Grid::elements((0, u32::MAX)),
        ];
        for grid in grids {
            kernel.launch(grid, (&words,)).unwrap();
        }
        // Arguments are checked nevertheless, but nothing needs memory.
        let empty = Buffer::<u32>::zeroed(0).unwrap();
        kernel.launch(Grid::groups(0), (&empty,)).unwrap();
        refused(
            kernel.launch(Grid::groups(0), ()),
            ErrorKind::ArgumentMismatch,
        );
        refused(
            kernel.launch(Grid::groups(0), (1,)),
            ErrorKind::ArgumentMismatch,
        );
        assert_eq!(words.to_vec().unwrap(), [u32::MAX; 64]);
        vkaccel::synchronize(None).unwrap();
    });
}

/// Each axis has its own limit, and the error names it.
#[test]
fn more_groups_than_the_device_takes_are_refused_by_axis() {
    on_each_device("more_groups_than_the_device_takes", |_| {
        let capability = get_device_capability(None).unwrap();
        let limits = capability.limits().max_compute_work_group_count;
        let kernel = kernel("local_size");
        let words = Buffer::from_slice(&[u32::MAX; 64]).unwrap();
        for (axis, limit) in limits.into_iter().enumerate() {
            let mut groups = [1u64; 3];
            groups[axis] = u64::from(limit) + 1;
            let launched = kernel.launch(Grid::groups(groups), (&words,));
            let error = refused(launched, ErrorKind::LimitExceeded);
            let Some(Details::Limit {
                name,
                asked,
                limit: stated,
                ..
            }) = error.details()
            else {
                panic!("no details: {error}");
            };
            assert_eq!(name, &format!("maxComputeWorkGroupCount[{axis}]"));
            assert_eq!((*asked, *stated), (groups[axis], u64::from(limit)));
            groups[axis] = u64::MAX;
            refused(
                kernel.launch(Grid::groups(groups), (&words,)),
                ErrorKind::LimitExceeded,
            );
        }
        refused(
            kernel.launch(Grid::groups(-1), (&words,)),
            ErrorKind::InvalidArgument,
        );
        assert_eq!(
            words.to_vec().unwrap(),
            [u32::MAX; 64],
            "nothing was launched"
        );
    });
}

/// The largest count works on each axis.
#[test]
fn as_many_groups_as_the_device_takes_all_run() {
    on_each_device("as_many_groups_as_the_device_takes", |_| {
        let capability = get_device_capability(None).unwrap();
        let limits = capability.limits().max_compute_work_group_count;
        let kernel = kernel("count_groups");
        for (axis, limit) in limits.into_iter().enumerate() {
            // Devices that take more than a million take longer than a test may.
            let count = limit.min(1 << 20);
            let mut groups = [1; 3];
            groups[axis] = count;
            let counter = Buffer::<u32>::zeroed(1).unwrap();
            kernel.launch(Grid::groups(groups), (&counter,)).unwrap();
            assert_eq!(counter.to_vec().unwrap(), [count], "axis {axis}");
        }
    });
}

#[test]
fn elements_are_each_met_once_and_none_past_them() {
    on_each_device("elements_are_each_met_once", |_| {
        let kernel = kernel("affine");
        let capability = get_device_capability(None).unwrap();
        let limit = capability.limits().max_compute_work_group_count[0];
        // Workgroups have 64 of them; devices that take more than all others are not filled up.
        let most = limit.min(65_535) * 64;
        for n in [0u32, 1, 63, 64, 65, 100_000, most] {
            let data = Buffer::<u32>::zeroed(n as usize + 64).unwrap();
            kernel.launch(Grid::elements(n), (&data, 1, 1, n)).unwrap();
            let result = data.to_vec().unwrap();
            assert!(
                result[..n as usize].iter().all(|&word| word == 1),
                "n = {n}"
            );
            assert_eq!(result[n as usize..], [0; 64], "n = {n}");
        }
        let past = u64::from(limit) * 64 + 1;
        let data = Buffer::from_slice(&[7u32; 64]).unwrap();
        let launched = kernel.launch(Grid::elements(past), (&data, 1, 1, 64));
        refused(launched, ErrorKind::LimitExceeded);
        assert_eq!(data.to_vec().unwrap(), [7; 64], "nothing was launched");
    });
}

#[test]
fn a_wrong_number_of_arguments_is_counted() {
    on_each_device("a_wrong_number_of_arguments", |_| {
        let kernel = kernel("affine");
        let data = Buffer::from_slice(&[7u32; 4]).unwrap();
        let grid = Grid::elements(4);
        let many: Vec<Arg<'_>> = (0..40).map(|_| Arg::from(&data)).collect();
        let cases = [
            (kernel.launch(grid, ()), 0),
            (kernel.launch(grid, (&data,)), 1),
            (kernel.launch(grid, (&data, 1, 2)), 3),
            (kernel.launch(grid, (&data, 1, 2, 3, 4)), 5),
            (kernel.launch(grid, &many), 40),
        ];
        for (launched, count) in cases {
            let error = refused(launched, ErrorKind::ArgumentMismatch);
            assert!(
                matches!(error.details(), Some(Details::Count { expected: 4, given, .. }) if *given == count),
                "{error}"
            );
        }
        assert_eq!(data.to_vec().unwrap(), [7; 4], "nothing was launched");
    });
}

#[test]
fn arguments_of_the_wrong_kind_name_their_slot() {
    on_each_device("arguments_of_the_wrong_kind", |_| {
        let kernel = kernel("affine");
        let data = Buffer::from_slice(&[7u32; 4]).unwrap();
        let grid = Grid::elements(4);
        let cases = [
            (kernel.launch(grid, (1, 2, 3, 4)), 0, ""),
            (kernel.launch(grid, (&data, &data, 2, 3)), 1, "scale"),
            (kernel.launch(grid, (&data, 1, 2.0, 3)), 2, "offset"),
            (kernel.launch(grid, (&data, 1, -2, 3)), 2, "offset"),
            (kernel.launch(grid, (&data, 1, 2, u64::MAX)), 3, "n"),
            (kernel.launch(grid, (&data, 1, 2, data.address())), 3, "n"),
        ];
        for (launched, position, member) in cases {
            let error = refused(launched, ErrorKind::ArgumentMismatch);
            let Some(Details::Argument { index, name, .. }) = error.details() else {
                panic!("no details: {error}");
            };
            assert_eq!(*index, position, "{error}");
            assert!(member.is_empty() || name == member, "{error}");
        }
        assert_eq!(data.to_vec().unwrap(), [7; 4], "nothing was launched");
    });
}

#[test]
fn buffers_too_small_for_the_block_or_of_no_use_are_refused() {
    on_each_device("buffers_too_small", |_| {
        let counts = kernel("count_groups");
        let small = Buffer::<u8>::zeroed(3).unwrap();
        let error = refused(
            counts.launch(Grid::groups(1), (&small,)),
            ErrorKind::ArgumentMismatch,
        );
        assert!(
            matches!(
                error.details(),
                Some(Details::Size {
                    expected: 4,
                    given: 3,
                    ..
                })
            ),
            "{error}"
        );
        let map = kernel("affine_map");
        let (source, target) = (
            Buffer::<u32>::zeroed(4).unwrap(),
            Buffer::<u32>::zeroed(4).unwrap(),
        );
        let launched = map.launch(
            Grid::elements(4),
            (Arg::from(&source).write(), &target, 1, 0, 4),
        );
        refused(launched, ErrorKind::ArgumentMismatch);
        let launched = map.launch(
            Grid::elements(4),
            (&source, Arg::from(&target).read(), 1, 0, 4),
        );
        refused(launched, ErrorKind::ArgumentMismatch);
        let uses = Arg::uses(&source, vkaccel::Access::Read);
        let launched = map.launch(Grid::elements(4), (&source, &target, uses, 1, 0, 4));
        refused(launched, ErrorKind::ArgumentMismatch);
    });
}

/// A view is bound where it starts, or refused with both numbers; never elsewhere.
#[test]
fn views_are_bound_where_they_start_or_refused() {
    on_each_device("views_are_bound_where_they_start", |_| {
        let capability = get_device_capability(None).unwrap();
        let alignment = capability.limits().min_storage_buffer_offset_alignment;
        let kernel = kernel("affine_map");
        let words: Vec<u32> = (0..600).collect();
        let source = Buffer::from_slice(&words).unwrap();
        for start in [0usize, 1, 4, 15, 16, 64, 128, 592] {
            let target = Buffer::<u32>::zeroed(8).unwrap();
            let view = source.view(start..start + 8).unwrap();
            let launched = kernel.launch(Grid::elements(8), (view, &target, 10, 0, 8));
            let offset = start as u64 * 4;
            if offset.is_multiple_of(alignment) {
                launched.unwrap();
                let expected: Vec<u32> = (start..start + 8).map(|i| i as u32 * 10).collect();
                assert_eq!(target.to_vec().unwrap(), expected, "at byte {offset}");
            } else {
                let error = refused(launched, ErrorKind::Unsupported);
                assert!(
                    matches!(
                        error.details(),
                        Some(Details::Alignment { offset: at, alignment: multiple, .. })
                            if (*at, *multiple) == (offset, alignment)
                    ),
                    "{error}"
                );
                assert_eq!(target.to_vec().unwrap(), [0; 8]);
            }
        }
        assert_eq!(
            source.view(596..604).unwrap_err().kind(),
            ErrorKind::InvalidArgument
        );
    });
}

/// What a descriptor can't reach is refused; where no buffer can be that large,
/// there is nothing to refuse.
#[test]
fn a_buffer_larger_than_a_descriptor_reaches_is_refused_with_both_numbers() {
    const NAME: &str = "a_buffer_larger_than_a_descriptor";
    on_each_device(NAME, |_| {
        let capability = get_device_capability(None).unwrap();
        let limits = *capability.limits();
        let range = limits.max_storage_buffer_range;
        if range > 1 << 28 || range + 4 > limits.max_buffer_size {
            return support::skip(
                NAME,
                "no buffer is larger than a descriptor reaches, or fits a test",
            );
        }
        let most = usize::try_from(range / 4).unwrap();
        let buffer = Buffer::<u32>::zeroed(most + 1).unwrap();
        let kernel = kernel("affine");
        let launched = kernel.launch(Grid::elements(1), (&buffer, 1, 1, 1));
        let error = refused(launched, ErrorKind::LimitExceeded);
        assert!(
            matches!(
                error.details(),
                Some(Details::Limit { asked, limit, .. }) if (*asked, *limit) == (range + 4, range)
            ),
            "{error}"
        );
        let first = buffer.view(..most).unwrap();
        kernel.launch(Grid::elements(1), (first, 1, 1, 1)).unwrap();
        assert_eq!(buffer.view(..2).unwrap().to_vec().unwrap(), [1, 0]);
    });
}

#[test]
fn uniform_blocks_and_sets_that_are_not_in_a_row_are_bound() {
    on_each_device("uniform_blocks_and_sets", |_| {
        let kernel = kernel("sets_with_gaps");
        let places: Vec<_> = kernel
            .interface()
            .bindings
            .iter()
            .map(|b| (b.set, b.binding))
            .collect();
        assert_eq!(places, [(0, 2), (0, 5), (3, 0), (3, 1)]);
        let params = Buffer::from_slice(&[100u32, 7]).unwrap();
        let left = Buffer::from_slice(&[1u32, 2, 3, 4]).unwrap();
        let right = Buffer::from_slice(&[10u32, 20, 30, 40]).unwrap();
        let target = Buffer::<u32>::zeroed(4).unwrap();
        kernel
            .launch(Grid::groups(1), (&params, &left, &right, &target))
            .unwrap();
        assert_eq!(target.to_vec().unwrap(), [117, 227, 337, 447]);

        // The block may lie in a larger buffer, at a multiple of the device's alignment.
        let capability = get_device_capability(None).unwrap();
        let alignment = capability.limits().min_uniform_buffer_offset_alignment;
        let start = usize::try_from(alignment.max(8) / 4).unwrap();
        let large = Buffer::<u32>::zeroed(40_000).unwrap();
        let inside = large.view(start..start + 2).unwrap();
        inside.write(&[2, 3]).unwrap();
        let rest = large.view(start..).unwrap();
        kernel
            .launch(Grid::groups(1), (rest, &left, &right, &target))
            .unwrap();
        assert_eq!(target.to_vec().unwrap(), [15, 27, 39, 51]);
        let short = large.view(..1).unwrap();
        let launched = kernel.launch(Grid::groups(1), (short, &left, &right, &target));
        refused(launched, ErrorKind::ArgumentMismatch);
    });
}

#[test]
fn arrays_of_vectors_have_the_strides_of_their_layout() {
    on_each_device("arrays_of_vectors", |_| {
        // std430 and std140 together, so words are sums of both.
        let vectors = Buffer::from_slice(&(0..16).collect::<Vec<u32>>()).unwrap();
        let structs = Buffer::from_slice(&(0..30).collect::<Vec<u32>>()).unwrap();
        let uniforms = Buffer::from_slice(&(0..16).collect::<Vec<u32>>()).unwrap();
        let words = Buffer::<u32>::zeroed(5).unwrap();
        kernel("strides_std430")
            .launch(Grid::groups(1), (&vectors, &structs, &uniforms, &words))
            .unwrap();
        assert_eq!(words.to_vec().unwrap(), [0, 8, 16, 24, 8 + 20 + 2]);
    });
}

#[test]
fn views_of_one_buffer_may_alias_in_one_launch() {
    on_each_device("views_of_one_buffer_may_alias", |_| {
        let map = kernel("affine_map");
        let data = Buffer::from_slice(&[1u32, 2, 3, 4]).unwrap();
        // Each invocation reads and writes its own word alone.
        map.launch(Grid::elements(4), (&data, &data, 2, 1, 4))
            .unwrap();
        assert_eq!(data.to_vec().unwrap(), [3, 5, 7, 9]);
    });
}

#[test]
fn memory_of_another_runtime_is_refused() {
    on_each_device("memory_of_another_runtime", |_| {
        let kernel = kernel("affine");
        let other = support::TestRuntime::new(support::builder());
        let foreign = Buffer::<u32>::zeroed(4).unwrap();
        let launched = kernel.launch(Grid::elements(4), (&foreign, 1, 1, 4));
        refused(launched, ErrorKind::InvalidDevice);
        drop(foreign);
        drop(other);
    });
}

#[test]
fn kernels_are_shared_by_threads_and_clones_are_the_same() {
    on_each_device("kernels_are_shared", |runtime| {
        let kernel = kernel("affine");
        let results = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4u32)
                .map(|thread| {
                    let (kernel, runtime) = (Kernel::clone(&kernel), runtime.runtime().clone());
                    scope.spawn(move || {
                        let _entered = runtime.enter();
                        let stream = vkaccel::Stream::new(0).unwrap();
                        let data = stream.upload(&vec![thread; 100]).unwrap();
                        for _ in 0..20 {
                            stream
                                .launch(&kernel, Grid::elements(100), (&data, 1, 1, 100))
                                .unwrap();
                        }
                        stream.to_vec(&data).unwrap()
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect::<Vec<_>>()
        });
        for (thread, result) in (0u32..).zip(results) {
            assert_eq!(result, vec![thread + 20; 100]);
        }
    });
}

#[test]
fn a_kernel_may_be_dropped_while_its_launch_is_in_flight() {
    on_each_device("a_kernel_may_be_dropped", |_| {
        let data = Buffer::<u32>::zeroed(64).unwrap();
        for _ in 0..8 {
            let kernel = build(Kernel::builder(module("affine"))).unwrap();
            kernel
                .launch(Grid::elements(64), (&data, 1, 1, 64))
                .unwrap();
        }
        assert_eq!(data.to_vec().unwrap(), [8; 64]);
    });
}
