//! Promises of kernels that reach memory by its address.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test may panic anywhere, and its numbers are small"
)]

mod support;

use support::kernels::kernel;
use support::on_each_device;
use vkaccel::{Access, Arg, Buffer, Details, ErrorKind, Graph, Grid};

#[test]
fn buffers_and_views_are_passed_as_addresses_at_any_offset() {
    on_each_device("buffers_and_views_are_passed", |_| {
        let kernel = kernel("affine_at");
        let source = Buffer::from_slice(&(0..64).collect::<Vec<u32>>()).unwrap();
        for start in [0usize, 1, 3, 16, 56] {
            let target = Buffer::<u32>::zeroed(16).unwrap();
            let from = source.view(start..start + 8).unwrap();
            let to = target.view(5..13).unwrap();
            kernel
                .launch(Grid::elements(8), (from, to, 10, 1, 8))
                .unwrap();
            let mut expected = vec![0; 16];
            for (word, value) in expected[5..13].iter_mut().zip(start..) {
                *word = value as u32 * 10 + 1;
            }
            assert_eq!(target.to_vec().unwrap(), expected, "from {start}");
        }
    });
}

#[test]
fn launches_by_address_are_ordered_with_all_other_commands() {
    on_each_device("launches_by_address_are_ordered", |_| {
        let by_address = kernel("affine_at");
        let by_descriptor = kernel("affine");
        let (a, b) = (
            Buffer::<u32>::zeroed(1024).unwrap(),
            Buffer::<u32>::zeroed(1024).unwrap(),
        );
        let grid = Grid::elements(1024);
        let mut model = 0u32;
        for round in 0..10 {
            by_address.launch(grid, (&a, &b, 2, 1, 1024)).unwrap();
            by_descriptor.launch(grid, (&b, 3, round, 1024)).unwrap();
            a.copy_from(b.view(..).unwrap()).unwrap();
            model = (model * 2 + 1).wrapping_mul(3).wrapping_add(round);
        }
        assert_eq!(a.to_vec().unwrap(), [model; 1024]);
    });
}

#[test]
fn an_address_that_the_shader_cannot_use_is_refused() {
    on_each_device("an_address_that_the_shader_cannot_use", |_| {
        // The header is declared with an alignment of 16, and with 20 bytes.
        let kernel = kernel("addresses");
        let (source, target) = (
            Buffer::from_slice(&[1.0f32, 2.0]).unwrap(),
            Buffer::<f32>::zeroed(2).unwrap(),
        );
        let header = Buffer::<u32>::zeroed(16).unwrap();
        let launch =
            |header: Arg<'_>| kernel.launch(Grid::elements(2), (&source, &target, header, 2u32));
        let aside = header.view(1..).unwrap();
        let error = launch(aside.into()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ArgumentMismatch);
        assert!(
            matches!(
                error.details(),
                Some(Details::Alignment { alignment: 16, .. })
            ),
            "{error}"
        );
        let short = header.view(..4).unwrap();
        let error = launch(short.into()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ArgumentMismatch);
        assert!(
            matches!(
                error.details(),
                Some(Details::Size {
                    expected: 20,
                    given: 16,
                    ..
                })
            ),
            "{error}"
        );
        let error = launch(7.into()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ArgumentMismatch);

        header.view(..1).unwrap().fill(3.0f32.to_bits()).unwrap();
        launch((&header).into()).unwrap();
        assert_eq!(target.to_vec().unwrap(), [3.0, 6.0]);
        assert_eq!(header.to_vec().unwrap()[4], 1);
    });
}

/// A list whose nodes lie in one buffer, four words each, in this order: the buffer.
fn list(values: &[u32]) -> Buffer<u32> {
    let nodes = Buffer::<u32>::zeroed(values.len() * 4).unwrap();
    let first = nodes.address().get();
    let mut words = Vec::new();
    for (index, value) in (1u64..).zip(values) {
        // The last one points to itself.
        let next = first + 16 * index.min(values.len() as u64 - 1);
        words.extend([*value, 0, next as u32, (next >> 32) as u32]);
    }
    nodes.write(&words).unwrap();
    nodes
}

#[test]
fn addresses_found_in_memory_are_followed_where_the_launch_says_to_what() {
    on_each_device("addresses_found_in_memory", |_| {
        let kernel = kernel("follow_list");
        assert!(kernel.interface().follows_stored_addresses);
        let sum = Buffer::<u32>::zeroed(1).unwrap();
        let nodes = list(&[1, 20, 300, 4000, 50000]);
        let grid = Grid::groups(1);

        let error = kernel.launch(grid, (&sum, &nodes)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ArgumentMismatch);
        assert!(error.to_string().contains("Arg::uses"), "{error}");
        assert_eq!(sum.to_vec().unwrap(), [0], "nothing was launched");

        let uses = Arg::uses(&nodes, Access::ReadWrite);
        kernel.launch(grid, (&sum, &nodes, uses)).unwrap();
        // The same by a bare address, which says nothing of what is behind it.
        let error = kernel.launch(grid, (&sum, nodes.address())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ArgumentMismatch);
        nodes.view(16..17).unwrap().fill(50000).unwrap();
        kernel.launch(grid, (uses, &sum, nodes.address())).unwrap();
        assert_eq!(sum.to_vec().unwrap(), [2 * 4321]);
        assert_eq!(nodes.to_vec().unwrap()[16], 0, "the fifth node was cleared");
    });
}

#[test]
fn declared_memory_is_kept_alive_and_in_order() {
    on_each_device("declared_memory_is_kept_alive", |_| {
        let kernel = kernel("follow_list");
        let sum = Buffer::<u32>::zeroed(1).unwrap();
        for round in 1..20u32 {
            let nodes = list(&[0; 5]);
            for node in 0..4 {
                nodes
                    .view(node * 4..=node * 4)
                    .unwrap()
                    .fill(round)
                    .unwrap();
            }
            let uses = Arg::uses(&nodes, Access::ReadWrite);
            kernel
                .launch(Grid::groups(1), (&sum, &nodes, uses))
                .unwrap();
        }
        assert_eq!(
            sum.to_vec().unwrap(),
            [(1..20).map(|round| round * 4).sum::<u32>()]
        );
    });
}

#[test]
fn a_table_of_addresses_leads_to_the_declared_buffers() {
    on_each_device("a_table_of_addresses", |_| {
        let kernel = kernel("address_table");
        assert!(kernel.interface().follows_stored_addresses);
        let buffers: Vec<Buffer<u32>> = (1..=3)
            .map(|seed| Buffer::from_slice(&[seed, seed * 10, seed * 100]).unwrap())
            .collect();
        let addresses: Vec<u64> = buffers.iter().map(|b| b.address().get()).collect();
        let table = Buffer::from_slice(&addresses).unwrap();
        let sums = Buffer::<u32>::zeroed(3).unwrap();
        let grid = Grid::elements(3);
        let launch = |used: &[Buffer<u32>]| {
            let mut args = vec![Arg::from(&sums), Arg::from(&table), Arg::from(3)];
            args.extend(used.iter().map(|buffer| Arg::uses(buffer, Access::Read)));
            kernel.launch(grid, &args)
        };
        let error = launch(&[]).unwrap_err();
        assert!(error.to_string().contains("Arg::uses"), "{error}");
        launch(&buffers).unwrap();
        assert_eq!(sums.to_vec().unwrap(), [111, 222, 333]);
        // In order behind what was done to those buffers, and before what is done next.
        buffers[1].fill(5).unwrap();
        launch(&buffers).unwrap();
        buffers[1].fill(7).unwrap();
        assert_eq!(sums.to_vec().unwrap(), [111, 15, 333]);
    });
}

/// Addresses that a program keeps in memory lead to the same buffers whatever else comes and goes.
#[test]
fn an_address_is_good_for_its_buffers_life_and_for_that_of_its_graph() {
    on_each_device("an_address_is_good", |_| {
        let kernel = kernel("address_table");
        let sums = Buffer::<u32>::zeroed(3).unwrap();
        let mut graph = Graph::new();
        let made = graph.capture(|| {
            let made = Buffer::<u32>::uninit(3 << 18)?;
            made.fill(7)?;
            Ok(made)
        });
        let mut buffers = vec![made.unwrap()];
        buffers.extend([3, 3 << 20].map(|len| Buffer::<u32>::zeroed(len).unwrap()));
        let addresses =
            |all: &[Buffer<u32>]| -> Vec<_> { all.iter().map(|one| one.address().get()).collect() };
        let table = Buffer::from_slice(&addresses(&buffers)).unwrap();
        for round in 1..=5u32 {
            // What was around them goes back to the driver, and comes again elsewhere.
            let around = [1000, 3 << 18, 5 << 20].map(|len| Buffer::<u32>::zeroed(len).unwrap());
            let others = addresses(&around);
            assert!(addresses(&buffers).iter().all(|one| !others.contains(one)));
            drop(around);
            vkaccel::empty_cache().unwrap();
            graph.replay().unwrap();
            for (buffer, value) in buffers[1..].iter().zip([round, 10 * round]) {
                buffer.view(..3).unwrap().fill(value).unwrap();
            }
            let mut args = vec![Arg::from(&sums), Arg::from(&table), Arg::from(3)];
            args.extend(buffers.iter().map(|one| Arg::uses(one, Access::Read)));
            kernel.launch(Grid::elements(3), &args).unwrap();
            assert_eq!(sums.to_vec().unwrap(), [21, 3 * round, 30 * round]);
            assert_eq!(table.to_vec().unwrap(), addresses(&buffers));
        }
        // The buffer of the capture is gone, but not its memory, which the graph has.
        let of_graph = buffers.remove(0).address();
        let around = [(); 4].map(|()| Buffer::<u32>::zeroed(3 << 18).unwrap());
        assert!(around.iter().all(|one| one.address() != of_graph));
        graph.replay().unwrap();
        for other in around {
            assert!(other.to_vec().unwrap().iter().all(|&word| word == 0));
        }
    });
}
