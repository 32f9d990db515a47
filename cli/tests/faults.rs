//! What ends with code 1: whatever fails once options and files are sound. Each error says what to
//! do.

#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

mod support;

use support::{is_set, shader};

/// Buffers for `clash.comp`.
const AB: &str = "--buffer a=zeros:u32:1 --buffer b=zeros:u32:1";

device_test! {
    fn names_that_are_unknown_or_ambiguous_list_those_there_are(scratch) {
        let all = "0.0 (a, A, data); 0.1 (b, B, data)";
        for (args, says) in [
            ("--buffer c=zeros:u32:1", "--buffer c: the shader has no buffer `c`"),
            ("--buffer c=zeros:u32:1", all),
            ("--buffer data=zeros:u32:1", "`data` is ambiguous"),
            ("--buffer data=zeros:u32:1", all),
            ("--buffer a=zeros:u32:1", "no array for 0.1 (b, B, data)"),
            ("", "no array for 0.0 (a, A, data); 0.1 (b, B, data)"),
            ("--buffer a=zeros:u32:1 --buffer 0.0=zeros:u32:1", "are the same buffer"),
        ] {
            scratch.run("clash.comp", &format!("--groups 1 {args}")).fails(1, says);
        }
        scratch
            .run("clash.comp", &format!("{AB} --groups 1 --out c=c.npy"))
            .fails(1, "--out c: the shader has no buffer `c`");
        assert!(!scratch.path("c.npy").exists());
    }
}

device_test! {
    fn push_values_that_do_not_fit_say_what_the_shader_takes(scratch) {
        let buffers = "--groups 1 --buffer x=zeros:f32:1 --buffer y=zeros:f32:1";
        for (args, says) in [
            ("", "0 --push given, and the shader takes 2: a: f32, n: u32"),
            ("--push f32=1", "the next is --push u32=.. for `n`"),
            ("--push f32=1 --push u32=1 --push u32=1", "1 too many"),
            ("--push u32=1 --push u32=1", "the push constant `a` is f32"),
        ] {
            let args = format!("{buffers} {args}");
            scratch.run("shaders/saxpy.comp", &args).fails(1, says);
        }
        scratch
            .run("clash.comp", &format!("{AB} --groups 1 --push u32=1"))
            .fails(1, "the shader takes no push constants");
    }
}

device_test! {
    fn glsl_that_does_not_compile_shows_the_compilers_text(scratch) {
        scratch.write("broken.comp", "#version 450\nvoid main() {\n    nonsense = 1;\n}\n");
        let outcome = scratch.vkaccel("run broken.comp --groups 1").fails(1, "nonsense");
        assert!(outcome.stderr.contains("broken.comp:3"), "{outcome:?}");
    }
}

device_test! {
    fn damaged_spirv_is_an_error(scratch) {
        let module = std::fs::read(shader("shaders/saxpy.spv")).unwrap();
        scratch.write("cut.spv", &module[..module.len() / 8 * 4]);
        scratch.write("odd.spv", &module[..module.len() - 1]);
        scratch.write("magic.spv", &module[..4]);
        for file in ["cut.spv", "odd.spv", "magic.spv"] {
            scratch.vkaccel(&format!("run {file} --groups 1")).fails(1, "error: ");
        }
    }
}

device_test! {
    fn an_entry_point_that_is_not_there_lists_those_there_are(scratch) {
        scratch.run("shaders/saxpy.spv", "--groups 1 --entry blur").fails(1, "main");
    }
}

device_test! {
    fn launches_and_buffers_out_of_bounds_are_errors(scratch) {
        scratch
            .run("clash.comp", &format!("{AB} --groups 1,4294967295"))
            .fails(1, "maxComputeWorkGroupCount");
        let args = "--buffer a=zeros:u32:2000000000000 --buffer b=zeros:u32:1 --groups 1";
        scratch.run("clash.comp", args).fails(1, "8000000000000 bytes");
    }
}

device_test! {
    fn a_device_that_is_not_there_is_an_error(scratch) {
        scratch.run("clash.comp", "--groups 1 --device 99").fails(1, "99");
    }
}

device_test! {
    fn constants_that_are_not_there_or_do_not_fit_are_errors(scratch) {
        for (constant, says) in [("9=1", "9"), ("0=-1", "-1"), ("0=1.5", "1.5")] {
            let args = format!("--buffer data=zeros:u32:1 --groups 1 --const {constant}");
            scratch.run("index.comp", &args).fails(1, says);
        }
    }
}

device_test! {
    fn validation_without_a_layer_is_an_error(scratch) {
        let shader = shader("clash.comp");
        let args = format!("run {} {AB} --groups 1 --validate", shader.display());
        // No layer can be found in this folder.
        let outcome = scratch.vkaccel_with(&args, &[("VK_LAYER_PATH", "/nonexistent")]);
        outcome.fails(1, "VK_LAYER_KHRONOS_validation");
    }
}

/// The module of saxpy with a push constant where no number may lie: drivers take it, layers do not.
fn misaligned() -> Vec<u8> {
    const OP_MEMBER_DECORATE: u32 = 72;
    const OFFSET: u32 = 35;
    let bytes = std::fs::read(shader("shaders/saxpy.spv")).unwrap();
    let mut words: Vec<u32> = bytes
        .chunks_exact(4)
        .map(|word| u32::from_le_bytes(word.try_into().unwrap()))
        .collect();
    let mut at = 5;
    while at < words.len() {
        let (op, len) = (words[at] & 0xffff, words[at] >> 16);
        if op == OP_MEMBER_DECORATE && words[at + 3] == OFFSET && words[at + 4] == 4 {
            words[at + 4] = 6;
        }
        at += usize::try_from(len).unwrap();
    }
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

device_test! {
    fn what_the_validation_layer_says_is_printed_and_fails(scratch) {
        scratch.write("misaligned.spv", misaligned());
        let args = "--buffer x=zeros:f32:4 --buffer y=zeros:f32:4 --push f32=1 --push u32=4 \
                    --elements 4 --validate";
        let outcome = scratch.vkaccel(&format!("run misaligned.spv {args}"));
        if outcome.stderr.contains("is not installed") && !is_set("VKACCEL_TEST_VALIDATION") {
            println!("SKIP what_the_validation_layer_says_is_printed_and_fails: no layer");
            return;
        }
        assert_eq!(outcome.code, Some(1), "{outcome:?}");
        assert!(outcome.stderr.contains("is not aligned to 4"), "{outcome:?}");
        assert!(outcome.stderr.contains("error: the validation layer has 1 message"), "{outcome:?}");
    }
}
