//! What ends with code 2: options that are malformed, files that are missing or cannot be read.
//! Needs no device.

mod support;

use support::Scratch;

#[test]
fn malformed_options_end_with_2_and_say_the_form() {
    let scratch = Scratch::new("malformed");
    for (args, says) in [
        ("", "required"),
        ("--groups 1,2,3,4", "X,Y,Z"),
        ("--groups 1 --elements 1", "cannot be used with"),
        (
            "--groups 1 --buffer x",
            "NAME=FILE.npy or NAME=zeros:DTYPE:SHAPE",
        ),
        (
            "--groups 1 --buffer x=zeros:f31:4",
            "there is no type `f31`",
        ),
        ("--groups 1 --push vec3=1", "there is no type `vec3`"),
        ("--groups 1 --push u8=300", "no integer that u8 can hold"),
        ("--groups 1 --const N=1", "id of a specialization constant"),
        ("--groups 1 --device gpu", "--device gpu"),
        ("--groups 1 --device -1", "--device -1"),
        ("--groups -1", "`-1` is no number"),
        ("--groups 1 --repeat 0", "how many launches"),
        ("--groups 1 --out y", "NAME=FILE.npy"),
    ] {
        let outcome = scratch.run("shaders/saxpy.comp", args);
        outcome.fails(2, says);
    }
}

#[test]
fn no_command_at_all_ends_with_2_and_says_what_there_is() {
    let outcome = Scratch::new("none").vkaccel("");
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stderr.contains("info"), "{outcome:?}");
}

#[test]
fn help_tells_exit_codes_and_trust() {
    let outcome = Scratch::new("help").vkaccel("run --help").ok();
    assert!(outcome.stdout.contains("Exit codes: 0"), "{outcome:?}");
    assert!(outcome.stdout.contains("trust"), "{outcome:?}");
}

#[test]
fn a_shader_that_is_missing_or_no_shader_ends_with_2() {
    let scratch = Scratch::new("shader");
    scratch
        .vkaccel("run nothing.comp --groups 1")
        .fails(2, "cannot read nothing.comp");
    scratch
        .vkaccel("run . --groups 1")
        .fails(2, "cannot read .");
    scratch.write("noise.comp", [0xff, 0x00, 0xfe]);
    scratch
        .vkaccel("run noise.comp --groups 1")
        .fails(2, "neither SPIR-V nor the text");
    scratch.write(
        "module.spvasm",
        "; SPIR-V\n; Version: 1.5\nOpCapability Shader\n",
    );
    scratch
        .vkaccel("run module.spvasm --groups 1")
        .fails(2, "assemble it with `spirv-as module.spvasm -o SHADER.spv`");
}

#[test]
fn options_for_glsl_are_refused_for_spirv() {
    let scratch = Scratch::new("spirv");
    scratch.write("module.spv", 0x0723_0203u32.to_le_bytes());
    scratch
        .vkaccel("run module.spv --groups 1 --define A")
        .fails(2, "--define and --include are for GLSL");
}

#[test]
fn arrays_that_cannot_be_read_end_with_2_and_name_the_file() {
    let scratch = Scratch::new("arrays");
    scratch.write("text.npy", "hello, this is text");
    scratch.write("empty.npy", "");
    scratch.save("short.npy", &[4], &[1f32, 2., 3., 4.]);
    let whole = std::fs::read(scratch.path("short.npy")).unwrap();
    scratch.write("short.npy", &whole[..whole.len() - 1]);
    for (file, says) in [
        ("missing.npy", "cannot read missing.npy: No such file"),
        ("text.npy", "cannot read text.npy: this is not a .npy file"),
        (
            "empty.npy",
            "cannot read empty.npy: this is not a .npy file",
        ),
        ("short.npy", "cannot read short.npy: the file is cut short"),
        (".", "cannot read ."),
    ] {
        let outcome = scratch.run(
            "shaders/saxpy.comp",
            &format!("--buffer x={file} --groups 1"),
        );
        outcome.fails(2, says);
    }
}

#[test]
fn folders_that_are_missing_end_with_2_before_anything_runs() {
    let scratch = Scratch::new("folders");
    scratch
        .run("shaders/saxpy.comp", "--groups 1 --include nowhere")
        .fails(2, "--include nowhere");
    scratch
        .run("shaders/saxpy.comp", "--groups 1 --out y=nowhere/y.npy")
        .fails(
            2,
            "--out nowhere/y.npy: cannot write a file there: nowhere: No such file",
        );
    scratch
        .run("shaders/saxpy.comp", "--groups 1 --out y=.")
        .fails(2, "--out .: cannot write a file there: it is a folder");
}
