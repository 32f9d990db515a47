//! Promises of kernels that are compiled here, and of safety: what a checked kernel does with wild
//! indices stays among its own memory.

#![cfg(feature = "glsl")]
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test may panic anywhere, and its numbers are small"
)]

mod support;

use std::fs;
use std::path::PathBuf;

use support::{builder, on_each_device, on_each_device_with};
use vkaccel::{Buffer, ErrorKind, Feature, Grid, Kernel, get_device_capability};

/// The workgroup's size as a constant without a name, compiled here.
#[test]
fn a_workgroups_size_is_specialized_in_glsl_too() {
    on_each_device("a_workgroups_size_is_specialized", |_| {
        let source = "#version 450
            layout(local_size_x_id = 3) in;
            layout(set = 0, binding = 0) buffer Words { uint words[]; };
            void main() {
                words[gl_GlobalInvocationID.x] = gl_WorkGroupSize.x * 100 + gl_LocalInvocationID.x;
            }";
        let sevens = Kernel::builder(source).specialize(3, 7).build().unwrap();
        assert_eq!(sevens.interface().local_size, [7, 1, 1]);
        let words = Buffer::from_slice(&[u32::MAX; 24]).unwrap();
        sevens.launch(Grid::groups(3), (&words,)).unwrap();
        let mut expected: Vec<u32> = (0..21).map(|i| 700 + i % 7).collect();
        expected.extend([u32::MAX; 3]);
        assert_eq!(words.to_vec().unwrap(), expected);
        let ones = Kernel::from_glsl(source).unwrap();
        assert_eq!(ones.interface().local_size, [1, 1, 1]);
        words.fill(u32::MAX).unwrap();
        ones.launch(Grid::groups(3), (&words,)).unwrap();
        let mut expected = vec![100; 3];
        expected.extend([u32::MAX; 21]);
        assert_eq!(words.to_vec().unwrap(), expected);
    });
}

/// GLSL has one entry point.
#[test]
fn a_shader_without_main_does_not_compile_and_the_text_says_so() {
    on_each_device("a_shader_without_main", |_| {
        let error = Kernel::from_glsl("#version 450\nvoid saxpy() {}").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ShaderCompile);
        assert!(error.to_string().contains("entry point"), "{error}");
        let error = Kernel::builder("#version 450\nvoid main() {}")
            .entry("saxpy")
            .build();
        assert_eq!(error.unwrap_err().kind(), ErrorKind::EntryPointNotFound);
    });
}

#[test]
fn a_fault_is_told_with_file_and_line() {
    on_each_device("a_fault_is_told", |_| {
        let source = "#version 450\nvoid main() {\n    missing = 1;\n}";
        let error = Kernel::builder(source)
            .file("kernels/wrong.comp")
            .build()
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ShaderCompile);
        assert!(
            error.to_string().contains("kernels/wrong.comp:3"),
            "{error}"
        );
        assert!(error.to_string().contains("missing"), "{error}");
    });
}

/// A folder that is gone when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("vkaccel-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left over lies in the system's folder for that.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn macros_and_included_files_reach_the_shader() {
    let folder = Folder::new("includes");
    let inner = folder.0.join("inner");
    fs::create_dir_all(&inner).unwrap();
    fs::write(
        folder.0.join("twice.glsl"),
        "uint twice(uint x) { return x * 2; }\n",
    )
    .unwrap();
    fs::write(inner.join("value.glsl"), "#include \"../twice.glsl\"\n").unwrap();
    on_each_device("macros_and_included_files", |_| {
        let source = "#version 450
            #extension GL_GOOGLE_include_directive : require
            #include <value.glsl>
            layout(local_size_x = SIZE) in;
            layout(set = 0, binding = 0) buffer Words { uint words[]; };
            void main() { words[gl_GlobalInvocationID.x] = twice(VALUE); }";
        let words = Buffer::<u32>::zeroed(4).unwrap();
        for value in [1, 21] {
            let kernel = Kernel::builder(source)
                .define("SIZE", "4")
                .define("VALUE", &value.to_string())
                .include_dir(&inner)
                .build()
                .unwrap();
            assert_eq!(kernel.interface().local_size, [4, 1, 1]);
            kernel.launch(Grid::groups(1), (&words,)).unwrap();
            assert_eq!(words.to_vec().unwrap(), [value * 2; 4]);
        }
        let error = Kernel::from_glsl(source).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ShaderCompile);
        assert!(error.to_string().contains("value.glsl"), "{error}");
    });
}

/// Indices that a shader has no business with.
const WILD: [i32; 12] = [
    -1,
    -2,
    -5,
    -1_000_000,
    i32::MIN,
    i32::MIN + 1,
    4,
    5,
    64,
    1_000_000,
    i32::MAX,
    1 << 30,
];

/// Indices into shared memory and into arrays in registers are kept inside of them.
#[test]
fn wild_indices_into_shared_and_private_arrays_do_no_harm() {
    on_each_device("wild_indices_into_shared", |_| {
        let kernel = Kernel::from_glsl(
            "#version 450
             layout(local_size_x = 1) in;
             layout(set = 0, binding = 0) buffer Words { uint words[]; };
             layout(push_constant) uniform Push { int i; uint table[4]; };
             shared uint small[4];
             uint global[4] = uint[](1, 2, 3, 4);
             void main() {
                 uint local[4] = uint[](5, 6, 7, 8);
                 for (int k = 0; k < 4; ++k) small[k] = 9;
                 barrier();
                 small[i] = 10;
                 global[i] = 11;
                 local[i] = 12;
                 vec4 v = vec4(1.0);
                 v[i] = 2.0;
                 barrier();
                 words[0] = small[i];
                 words[1] = global[i];
                 words[2] = local[i];
                 words[3] = uint(v[i]);
                 words[4] = table[i];
                 words[5] = small[0] + small[1] + small[2] + small[3];
             }",
        )
        .unwrap();
        let words = Buffer::<u32>::zeroed(6).unwrap();
        let table = [13u32; 4];
        for i in (0..4).chain(WILD) {
            kernel
                .launch(Grid::groups(1), (&words, i, vkaccel::Arg::block(&table)))
                .unwrap();
            let result = words.to_vec().unwrap();
            // What is written at an index is found again at the same index, wherever that led.
            assert_eq!(result[..5], [10, 11, 12, 2, 13], "index {i}");
            assert_eq!(result[5], 3 * 9 + 10, "index {i}");
        }
    });
}

/// Accesses past the end of a buffer are kept inside of it, or dropped; its neighbours in
/// memory stay as they are.
#[test]
fn wild_indices_into_buffers_touch_no_neighbour() {
    on_each_device("wild_indices_into_buffers", |_| {
        let kernel = Kernel::from_glsl(
            "#version 450
             layout(local_size_x = 1) in;
             layout(set = 0, binding = 0) buffer Words { uint words[]; };
             layout(set = 0, binding = 1) buffer Fixed { uint head[4]; uint tail[4]; } fixed_;
             layout(set = 0, binding = 2) uniform Params { uvec4 params[4]; };
             layout(set = 0, binding = 3) buffer Output { uint result; };
             layout(push_constant) uniform Push { int i; };
             void main() {
                 result = words[i] + fixed_.head[i] + params[i].x;
                 words[i] = 0xBAD;
                 fixed_.head[i] = 0xBAD;
                 atomicAdd(words[i], 1);
             }",
        )
        .unwrap();
        let capability = get_device_capability(None).unwrap();
        let alignment = capability.limits().min_storage_buffer_offset_alignment;
        // The words bound are in the middle of a buffer, with the rest of it on both sides.
        let start = usize::try_from(alignment.max(256) / 4).unwrap();
        let len = start + 16;
        let around = Buffer::from_slice(&vec![7u32; start * 3 + 16]).unwrap();
        let neighbours: Vec<_> = (0..8)
            .map(|_| Buffer::from_slice(&[7u32; 64]).unwrap())
            .collect();
        let fixed = Buffer::<u32>::zeroed(8).unwrap();
        let params = Buffer::<u32>::zeroed(16).unwrap();
        let output = Buffer::<u32>::zeroed(1).unwrap();
        let inside = around.view(start..len).unwrap();
        for i in WILD.into_iter().chain([16, 17, 63, 64, 255, 1 << 20]) {
            kernel
                .launch(Grid::groups(1), (inside, &fixed, &params, &output, i))
                .unwrap();
        }
        let words = around.to_vec().unwrap();
        assert!(
            words[..start].iter().all(|&word| word == 7),
            "before the view"
        );
        assert!(
            words[len..].iter().all(|&word| word == 7),
            "behind the view"
        );
        for neighbour in neighbours {
            assert_eq!(neighbour.to_vec().unwrap(), [7; 64]);
        }
        // A block of a fixed size keeps its members apart.
        assert_eq!(fixed.to_vec().unwrap()[4..], [0; 4]);
    });
}

#[test]
fn a_shader_with_addresses_is_refused_with_the_way_on() {
    on_each_device("a_shader_with_addresses", |_| {
        let error = Kernel::from_glsl(
            "#version 450
             #extension GL_EXT_buffer_reference : require
             layout(buffer_reference) buffer Data { uint word; };
             layout(push_constant) uniform Push { Data data; };
             void main() { data.word = 1; }",
        )
        .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("build_unchecked"), "{error}");
    });
}

#[test]
fn without_robust_access_no_kernel_counts_as_checked() {
    let without = || builder().without_features([Feature::RobustBufferAccess]);
    on_each_device_with("without_robust_access", without, |_| {
        let source = "#version 450
            layout(set = 0, binding = 0) buffer Words { uint words[]; };
            void main() { words[gl_GlobalInvocationID.x] = 3; }";
        let error = Kernel::from_glsl(source).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("build_unchecked"), "{error}");
        let unchecked = support::kernels::build(Kernel::builder(source)).unwrap();
        let words = Buffer::<u32>::zeroed(2).unwrap();
        unchecked.launch(Grid::groups(2), (&words,)).unwrap();
        assert_eq!(words.to_vec().unwrap(), [3, 3]);
    });
}

#[test]
fn errors_name_the_file_that_the_kernel_came_from() {
    on_each_device("errors_name_the_file", |_| {
        let source = "#version 450
            layout(local_size_x = 64) in;
            layout(set = 0, binding = 0) buffer Words { uint words[]; };
            void main() { words[0] = 1; }";
        let file = "shaders/scan.comp";
        let kernel = Kernel::builder(source).file(file).build().unwrap();
        let error = kernel.launch(Grid::groups(1), ()).unwrap_err().to_string();
        assert!(
            error.starts_with("kernel `main` of shaders/scan.comp: "),
            "{error}"
        );
        let kernel = Kernel::from_glsl(source).unwrap();
        let error = kernel.launch(Grid::groups(1), ()).unwrap_err().to_string();
        assert!(error.starts_with("kernel `main`: "), "{error}");
    });
}

#[test]
fn instructions_of_the_shaders_author_are_refused_however_they_were_turned_on() {
    on_each_device("instructions_of_the_shaders_author", |_| {
        for extension in ["GL_EXT_spirv_intrinsics : require", "all : warn"] {
            let source = format!(
                "#version 450
                 #extension {extension}
                 layout(local_size_x = 1) in;
                 layout(set = 0, binding = 0) buffer Words {{ uint words[]; }};
                 spirv_instruction(id = 81) uint component(uvec2 pair, spirv_literal uint index);
                 void main() {{ words[0] = component(uvec2(words[1]), 100000u); }}"
            );
            let error = Kernel::from_glsl(&source).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{extension}: {error}");
            assert!(error.to_string().contains("spirv_intrinsics"), "{error}");
        }
        // Other extensions may be turned on so.
        Kernel::from_glsl("#version 450\n#extension all : warn\nvoid main() {}").unwrap();
    });
}

#[test]
fn a_workgroup_larger_than_the_devices_is_refused_with_its_limit() {
    on_each_device("a_workgroup_larger_than_the_devices", |_| {
        let source = "#version 450\nlayout(local_size_z = 1000000) in;\nvoid main() {}";
        let error = Kernel::from_glsl(source).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LimitExceeded, "{error}");
        assert!(
            error.to_string().contains("maxComputeWorkGroupSize[2]"),
            "{error}"
        );
    });
}

#[test]
fn atomics_on_an_array_take_a_buffer_with_an_element() {
    on_each_device("atomics_on_an_array", |_| {
        let kernel = Kernel::from_glsl(
            "#version 450
             layout(local_size_x = 1) in;
             struct Large { uint words[30000]; };
             layout(set = 0, binding = 0) buffer Head { uint count; Large large[]; };
             layout(set = 0, binding = 1) buffer Tail { Large tail[]; };
             void main() {
                 for (int i = 0; i < 30000; i++) {
                     atomicAdd(large[0].words[i], 1);
                     atomicAdd(tail[0].words[i], 1);
                 }
             }",
        )
        .unwrap();
        let lens = [(1, 30_000), (30_000, 30_000), (30_001, 29_999), (30_001, 0)];
        for (head, tail) in lens {
            let buffers = [head, tail].map(|len| Buffer::<u32>::zeroed(len).unwrap());
            let args = (&buffers[0], &buffers[1]);
            let error = kernel.launch(Grid::groups(1), args).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ArgumentMismatch, "{error}");
        }
        let buffers = [30_001, 30_000].map(|len| Buffer::<u32>::zeroed(len).unwrap());
        kernel
            .launch(Grid::groups(1), (&buffers[0], &buffers[1]))
            .unwrap();
        let tail = buffers[1].to_vec().unwrap();
        assert!(tail.iter().all(|&word| word == 1));
        let counter = Kernel::from_glsl(
            "#version 450
             layout(local_size_x = 1) in;
             layout(set = 0, binding = 0) buffer Words { uint count; uint words[]; };
             void main() { words[atomicAdd(count, 1)] = 1; }",
        )
        .unwrap();
        // Atomics in front of the array need no element of it.
        let words = Buffer::<u32>::zeroed(1).unwrap();
        counter.launch(Grid::groups(3), (&words,)).unwrap();
        assert_eq!(words.to_vec().unwrap(), [3]);
    });
}

#[test]
fn what_calls_multiply_is_refused_before_a_driver_drowns_in_it() {
    on_each_device("what_calls_multiply_is_refused", |_| {
        let header = "#version 450
            layout(local_size_x = 1) in;
            layout(set = 0, binding = 0) buffer Words { uint words[]; };\n";
        let arrays = format!(
            "{header}
             uint f(uint x) {{ uint a[15000]; a[x % 15000] = x; return a[words[x] % 15000]; }}
             void main() {{ words[0] = f(0) + f(1); }}"
        );
        let error = Kernel::from_glsl(&arrays).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LimitExceeded, "{error}");
        let mut doubling = format!("{header}uint f0(uint x) {{ return words[x] + x; }}\n");
        for level in 1..=24 {
            let below = level - 1;
            doubling +=
                &format!("uint f{level}(uint x) {{ return f{below}(x) + f{below}(x * 3); }}\n");
        }
        doubling += "void main() { words[0] = f24(1); }";
        let error = Kernel::from_glsl(&doubling).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LimitExceeded, "{error}");
    });
}

#[test]
fn a_text_that_nests_deeply_is_compiled_or_refused() {
    on_each_device("a_text_that_nests_deeply", |_| {
        let mut source = String::from(
            "#version 450
             layout(local_size_x = 1) in;
             layout(set = 0, binding = 0) buffer Words { uint words[]; };
             void main() { words[0] = 1",
        );
        source += &", words[0] = 2".repeat(10_000);
        source += "; }";
        let words = Buffer::<u32>::zeroed(1).unwrap();
        let kernel = Kernel::from_glsl(&source).unwrap();
        kernel.launch(Grid::groups(1), (&words,)).unwrap();
        assert_eq!(words.to_vec().unwrap(), [2]);
    });
}
