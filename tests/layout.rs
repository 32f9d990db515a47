//! How blocks lie in memory: what an interface says, and what a device reads.

#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

mod support;

use support::kernels::{build, kernel, module};
use support::{on_each_device, skip};
use vkaccel::{Binding, Buffer, ErrorKind, Feature, Grid, Kernel, Type, get_device_capability};

/// The stride of a binding of structs, and where the second member of each lies.
fn structs(binding: &Binding) -> (u64, u32) {
    let Type::Array { element, .. } = &binding.members[0].ty else {
        panic!("an array is bound: {binding:?}");
    };
    let Type::Struct { members, .. } = &**element else {
        panic!("the array has structs: {binding:?}");
    };
    (binding.stride_bytes, members[1].offset_bytes)
}

/// The first component of each of four vectors, and of each struct the last member, with their count.
fn read(name: &str, uniforms: Option<&Buffer<u32>>) -> Vec<u32> {
    let words: Vec<u32> = (0..30).collect();
    let vectors = Buffer::from_slice(&words[..16]).unwrap();
    let structs = Buffer::from_slice(&words).unwrap();
    let read = Buffer::<u32>::zeroed(5).unwrap();
    let kernel = kernel(name);
    match uniforms {
        Some(uniforms) => kernel.launch(Grid::groups(1), (&vectors, &structs, uniforms, &read)),
        None => kernel.launch(Grid::groups(1), (&vectors, &structs, &read)),
    }
    .unwrap();
    read.to_vec().unwrap()
}

/// Words 0..30 as vectors of three and as structs of two such vectors and a number.
#[test]
fn vectors_of_three_are_read_with_the_stride_that_their_rules_give() {
    on_each_device("vectors_of_three", |_| {
        // std430 alone: the uniform block, which has the rules of std140, adds nothing.
        let nothing = Buffer::<u32>::zeroed(16).unwrap();
        let std430 = read("strides_std430", Some(&nothing));
        assert_eq!(std430, [0, 4, 8, 12, 8 + 20 + 2]);
        // std140 alone: what it adds.
        let words = Buffer::from_slice(&(0..16).collect::<Vec<u32>>()).unwrap();
        let both = read("strides_std430", Some(&words));
        let std140: Vec<u32> = (0..4).map(|at| both[at] - std430[at]).collect();
        assert_eq!(std140, [0, 4, 8, 12]);

        let capability = get_device_capability(None).unwrap();
        if capability.features().contains(Feature::ScalarBlockLayout) {
            assert_eq!(read("strides_scalar", None), [0, 3, 6, 9, 6 + 13 + 4]);
        } else {
            skip(
                "vectors_of_three",
                "no scalarBlockLayout for the scalar part",
            );
        }
    });
}

/// Other words than those two would show in the sum.
#[test]
fn the_number_behind_an_array_of_vectors_is_read_in_each_struct() {
    on_each_device("the_number_behind_an_array", |_| {
        let capability = get_device_capability(None).unwrap();
        let has_scalar = capability.features().contains(Feature::ScalarBlockLayout);
        for (name, first, second, count) in
            [("strides_std430", 8, 20, 2), ("strides_scalar", 6, 13, 4)]
        {
            if name == "strides_scalar" && !has_scalar {
                skip("the_number_behind_an_array", "no scalarBlockLayout");
                continue;
            }
            let mut words = [1_000_000u32; 30];
            (words[first], words[second]) = (100, 20_000);
            let vectors = Buffer::<u32>::zeroed(16).unwrap();
            let structs = Buffer::from_slice(&words).unwrap();
            let uniforms = Buffer::<u32>::zeroed(16).unwrap();
            let read = Buffer::<u32>::zeroed(5).unwrap();
            let (kernel, grid) = (kernel(name), Grid::groups(1));
            match name {
                "strides_std430" => kernel.launch(grid, (&vectors, &structs, &uniforms, &read)),
                _ => kernel.launch(grid, (&vectors, &structs, &read)),
            }
            .unwrap();
            assert_eq!(read.to_vec().unwrap()[4], 20_100 + count, "{name}");
        }
    });
}

#[test]
fn an_interface_says_where_everything_lies() {
    on_each_device("an_interface_says_where", |_| {
        for (name, vector_stride, struct_stride, number_at) in [
            ("strides_std430", 16, 48, 32),
            ("strides_scalar", 12, 28, 24),
        ] {
            let kernel = match build(Kernel::builder(module(name))) {
                Ok(kernel) => kernel,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
                    assert!(error.to_string().contains("scalarBlockLayout"), "{error}");
                    continue;
                }
            };
            let bindings = &kernel.interface().bindings;
            assert_eq!(bindings[0].stride_bytes, vector_stride, "{name}");
            assert_eq!(structs(&bindings[1]), (struct_stride, number_at), "{name}");
        }
    });
}
