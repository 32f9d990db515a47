//! `vkaccel run` doing what it is for, on whatever device the environment gives.

#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

mod support;

use support::{Scratch, shader};

const SAXPY: &str = "shaders/saxpy.comp";
const SAXPY_ARGS: &str = "--buffer x=x.npy --buffer y=y.npy --push f32=2 --push u32=1000 \
                          --elements 1000 --out y=out.npy";

/// x = 0, 1, 2, .. and y = 1 everywhere.
fn save_xy(scratch: &Scratch) {
    let x: Vec<f32> = (0..1000u16).map(f32::from).collect();
    scratch.save("x.npy", &[1000], &x);
    scratch.save("y.npy", &[1000], &[1f32; 1000]);
}

fn check_saxpy(scratch: &Scratch) {
    let (shape, descr, out) = scratch.load::<f32>("out.npy");
    assert_eq!((shape, &*descr), (vec![1000], "'<f4'"));
    let expected: Vec<f32> = (0..1000u16).map(|i| 2. * f32::from(i) + 1.).collect();
    assert_eq!(out, expected);
}

device_test! {
    fn glsl_runs_on_arrays(scratch) {
        save_xy(&scratch);
        let outcome = scratch.run(SAXPY, SAXPY_ARGS).ok();
        assert_eq!((&*outcome.stdout, &*outcome.stderr), ("", ""));
        check_saxpy(&scratch);
    }
}

device_test! {
    fn spirv_runs_on_arrays_whatever_its_file_is_called(scratch) {
        save_xy(&scratch);
        std::fs::copy(shader("shaders/saxpy.spv"), scratch.path("saxpy.comp")).unwrap();
        scratch.vkaccel(&format!("run saxpy.comp {SAXPY_ARGS}")).ok();
        check_saxpy(&scratch);
    }
}

device_test! {
    fn an_output_may_replace_its_input(scratch) {
        save_xy(&scratch);
        scratch.run(SAXPY, &SAXPY_ARGS.replace("out.npy", "y.npy")).ok();
        std::fs::rename(scratch.path("y.npy"), scratch.path("out.npy")).unwrap();
        check_saxpy(&scratch);
    }
}

device_test! {
    fn big_endian_and_fortran_order_reach_the_shader_in_c_order(scratch) {
        // [[0, 1, 2], [3, 4, 5]], big-endian, column by column.
        let header = "{'descr': '>f4', 'fortran_order': True, 'shape': (2, 3), }\n";
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend_from_slice(&u16::try_from(header.len()).unwrap().to_le_bytes());
        file.extend_from_slice(header.as_bytes());
        for value in [0f32, 3., 1., 4., 2., 5.] {
            file.extend_from_slice(&value.to_be_bytes());
        }
        scratch.write("x.npy", file);
        let args = "--buffer x=x.npy --buffer y=zeros:f32:3,2 --push f32=10 --push u32=6 \
                    --elements 6 --out x=x2.npy --out y=y.npy";
        scratch.run(SAXPY, args).ok();
        let (shape, descr, x) = scratch.load::<f32>("x2.npy");
        assert_eq!((shape, &*descr), (vec![2, 3], "'<f4'"));
        assert_eq!(x, [0., 1., 2., 3., 4., 5.]);
        let (shape, _, y) = scratch.load::<f32>("y.npy");
        assert_eq!(shape, [3, 2]);
        assert_eq!(y, [0., 10., 20., 30., 40., 50.]);
    }
}

device_test! {
    fn buffers_bind_by_variable_block_member_and_number(scratch) {
        for name in ["result", "Out", "data", "2.3"] {
            let args = format!(
                "--buffer {name}=zeros:u32:5 --elements 5 --const 1=4 --out {name}=o.npy"
            );
            scratch.run("index.comp", &args).ok();
            assert_eq!(scratch.load::<u32>("o.npy").2, [0, 1, 2, 3, 4], "{name}");
        }
    }
}

device_test! {
    fn macros_and_constants_take_effect(scratch) {
        let args = "--buffer data=zeros:u32:4 --groups 2 --const 0=10 --const 1=2 --define PLUS=7 \
                    --out data=o.npy";
        scratch.run("index.comp", args).ok();
        assert_eq!(scratch.load::<u32>("o.npy").2, [7, 17, 27, 37]);
    }
}

device_test! {
    fn includes_are_found_beside_the_shader_and_in_named_folders(scratch) {
        let folder = shader("include");
        let args = format!(
            "--buffer o=zeros:u32:2 --groups 2 --include {} --out o=o.npy",
            folder.display()
        );
        scratch.run("include.comp", &args).ok();
        assert_eq!(scratch.load::<u32>("o.npy").2, [42, 42]);
    }
}

device_test! {
    fn push_constants_are_filled_in_order_element_by_element(scratch) {
        let values = "--push u32=7 --push f32=1 --push f32=2 --push f32=3 --push i32=-4 \
                      --push i32=5 --push i32=6 --push i32=-7 --push f32=8 --push f32=9 \
                      --push f32=10 --push f32=11";
        let args = format!("--buffer o=zeros:f32:12 --groups 1 {values} --out o=o.npy");
        scratch.run("push.comp", &args).ok();
        let (_, _, out) = scratch.load::<f32>("o.npy");
        assert_eq!(out, [7., 1., 2., 3., -4., 5., 6., -7., 8., 9., 10., 11.]);
    }
}

device_test! {
    fn a_kernel_of_addresses_takes_buffers_by_the_members_names(scratch) {
        scratch.save("in.npy", &[3], &[1f32, 2., 3.]);
        let args = "--buffer target=zeros:f32:3 --buffer source=in.npy --push u32=3 \
                    --push f32=2 --push f32=0.5 --elements 3 --out target=o.npy";
        scratch.run("address.comp", args).ok();
        assert_eq!(scratch.load::<f32>("o.npy").2, [2.5, 4.5, 6.5]);
    }
}

device_test! {
    fn repeat_launches_again_on_the_same_buffers(scratch) {
        scratch.save("a.npy", &[2], &[1u32, 10]);
        let args = "--buffer a=a.npy --buffer b=zeros:u32:2 --groups 2 --repeat 5 --out b=b.npy";
        scratch.run("clash.comp", args).ok();
        assert_eq!(scratch.load::<u32>("b.npy").2, [5, 50]);
    }
}

device_test! {
    fn time_is_told_on_stderr(scratch) {
        let args = "--buffer a=zeros:u32:1 --buffer b=zeros:u32:1 --groups 1 --repeat 3 --time";
        let outcome = scratch.run("clash.comp", args).ok();
        assert_eq!(outcome.stdout, "");
        assert!(outcome.stderr.contains(" ms per launch (3 in "), "{outcome:?}");
    }
}

device_test! {
    fn arrays_of_no_elements_and_launches_of_no_groups_succeed(scratch) {
        let args = "--buffer data=zeros:u32:3,0 --elements 0 --const 1=4 --out data=o.npy";
        scratch.run("index.comp", args).ok();
        assert_eq!(scratch.load::<u32>("o.npy").0, [3, 0]);
        let args = "--buffer data=zeros:u32:2 --groups 1,0 --out data=o.npy";
        scratch.run("index.comp", args).ok();
        assert_eq!(scratch.load::<u32>("o.npy").2, [0, 0]);
    }
}

device_test! {
    fn every_device_can_be_named(scratch) {
        for index in 0..vkaccel::device_count() {
            for device in [format!("{index}"), format!("vulkan:{index}")] {
                let args = format!(
                    "--buffer data=zeros:u32:2 --groups 2 --device {device} --out data=o.npy"
                );
                scratch.run("index.comp", &args).ok();
                assert_eq!(scratch.load::<u32>("o.npy").2, [0, 1], "{device}");
            }
        }
    }
}

device_test! {
    fn an_array_of_another_width_is_warned_of(scratch) {
        scratch.save("x.npy", &[4], &[0f64; 4]);
        let args = "--buffer x=x.npy --buffer y=zeros:f32:4 --push f32=1 --push u32=4 --elements 4";
        let outcome = scratch.run(SAXPY, args).ok();
        let says = "warning: the array for x (0.0) holds f64, and the shader reads it as f32";
        assert!(outcome.stderr.contains(says), "{outcome:?}");
    }
}
