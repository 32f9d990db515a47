//! GLSL that compiles, and GLSL that doesn't.

use std::fs;
use std::path::{Path, PathBuf};

use super::*;

const SAXPY: &str = "#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer X { float x[]; };
layout(std430, binding = 1) buffer Y { float y[]; };
layout(push_constant) uniform Params { float alpha; uint n; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < n) y[i] += alpha * x[i];
}
";

fn text(source: &str) -> GlslRequest<'_> {
    GlslRequest {
        source,
        ..GlslRequest::default()
    }
}

fn message(request: &GlslRequest<'_>) -> String {
    let error = compile(request).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ShaderCompile);
    error.to_string()
}

/// A folder of this test's own.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let path = std::env::temp_dir().join(format!("vkaccel-{}-{name}", std::process::id()));
        for (file, content) in files {
            let file = path.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, content).unwrap();
        }
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left over is in the system's folder for that.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_shader_becomes_spirv_1_5_with_its_names() {
    let words = compile(&text(SAXPY)).unwrap().words;
    assert_eq!(words[0], 0x0723_0203);
    assert_eq!(words[1], 0x0001_0500);
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    for name in ["alpha", "main", "Params"] {
        let found = bytes.windows(name.len()).any(|w| w == name.as_bytes());
        assert!(found, "{name}");
    }
}

#[test]
fn errors_have_file_and_line_and_no_count() {
    let source = "#version 450\nvoid main() {\n    y = 2;\n    z = 3;\n}\n";
    let from_text = message(&text(source));
    assert_eq!(
        from_text,
        "the GLSL does not compile:\n\
         shader.comp:3: error: 'y' : undeclared identifier\n\
         shader.comp:4: error: 'z' : undeclared identifier"
    );
    let from_file = message(&GlslRequest {
        file: Some(Path::new("kernels/scale.comp")),
        ..text(source)
    });
    assert!(
        from_file.contains("kernels/scale.comp:3: error"),
        "{from_file}"
    );
}

#[test]
fn a_source_without_main_says_what_the_entry_point_is() {
    let source = SAXPY.replace("main", "saxpy");
    let text_of_error = message(&text(&source));
    assert!(
        text_of_error.contains("Missing entry point"),
        "{text_of_error}"
    );
    assert!(text_of_error.contains("`void main()`"), "{text_of_error}");
    // As the text advises.
    let defines = [("saxpy".to_owned(), "main".to_owned())];
    let renamed = GlslRequest {
        defines: &defines,
        ..text(&source)
    };
    assert!(compile(&renamed).is_ok());
}

#[test]
fn a_source_must_start_with_a_version_that_has_compute_shaders() {
    for source in [
        "// By hand.\n/* For tests. */ # version 450 core\nvoid main() {}\n",
        "#version 310 es\nvoid main() {}\n",
        "\u{feff}#version 450\nvoid main() {}\n",
    ] {
        compile(&text(source)).unwrap();
    }
    for source in [
        "",
        "void main() {}",
        "not GLSL",
        "/* #version 450",
        "// #version 450",
    ] {
        let text_of_error = message(&text(source));
        assert!(text_of_error.contains("`#version 450`"), "{text_of_error}");
    }
    for source in ["#version 110\n", "#version\n", "#version x\n"] {
        let text_of_error = message(&text(source));
        assert!(text_of_error.contains("430 or later"), "{text_of_error}");
    }
    assert!(compile(&text("#version 99999999999999999999\nvoid main() {}\n")).is_err());
}

#[test]
fn macros_reach_the_shader_and_bad_ones_are_refused() {
    let source = "#version 450\nlayout(local_size_x = SIZE) in;\nvoid main() {}\n";
    let with = |name: &str, value: &str| {
        let defines = [(name.to_owned(), value.to_owned())];
        compile(&GlslRequest {
            defines: &defines,
            ..text(source)
        })
    };
    assert!(with("SIZE", "32").is_ok());
    assert!(with("size", "32").is_err());
    for (name, value) in [
        ("", "1"),
        ("2x", "1"),
        ("a b", "1"),
        ("a\0b", "1"),
        ("F(x)", "x"),
        ("SIZE", "1\n#error"),
        ("SIZE", "\0"),
    ] {
        let error = with(name, value).unwrap_err();
        assert_eq!(
            error.kind(),
            ErrorKind::InvalidArgument,
            "{name:?} {value:?}"
        );
    }
}

#[test]
fn text_with_a_nul_is_refused_with_its_line() {
    let text_of_error = message(&text("#version 450\nvoid main() {\0}\n"));
    assert!(text_of_error.contains("shader.comp:2"), "{text_of_error}");
}

#[test]
fn includes_are_found_beside_the_file_then_in_the_folders() {
    let folder = Folder::new(
        "found",
        &[
            ("kernels/near.glsl", "#include \"deep/er.glsl\"\n"),
            ("kernels/deep/er.glsl", "#define NEAR 1u\n"),
            ("lib/far.glsl", "#define FAR 2u\n"),
            ("lib/near.glsl", "#error the wrong one\n"),
        ],
    );
    let source = "#version 450
#include \"near.glsl\"
#include <far.glsl>
layout(binding = 0) buffer B { uint b[]; };
void main() { b[0] = NEAR + FAR; }
";
    let dirs = [folder.0.join("lib")];
    let file = folder.0.join("kernels/sum.comp");
    let request = GlslRequest {
        file: Some(&file),
        include_dirs: &dirs,
        ..text(source)
    };
    compile(&request).unwrap();
    // A text that is in no file has nothing beside it.
    let dirs = [folder.0.join("kernels"), folder.0.join("lib")];
    compile(&GlslRequest {
        file: None,
        include_dirs: &dirs,
        ..request
    })
    .unwrap();
}

#[test]
fn an_include_that_is_missing_says_where_it_was_looked_for() {
    let folder = Folder::new("missing", &[("lib/far.glsl", "int x = y;\n")]);
    let dirs = [folder.0.join("lib")];
    let with = |source| {
        message(&GlslRequest {
            include_dirs: &dirs,
            ..text(source)
        })
    };
    let missing = with("#version 450\n#include \"no.glsl\"\nvoid main() {}\n");
    let said = format!("there is no no.glsl in {}", dirs[0].display());
    for part in ["shader.comp:2", &said] {
        assert!(missing.contains(part), "{missing}");
    }
    // An error in an included file names that file.
    let faulty = with("#version 450\n#include <far.glsl>\nvoid main() {}\n");
    assert!(faulty.contains("far.glsl:1: error"), "{faulty}");
    let none = message(&text(
        "#version 450\n#include \"no.glsl\"\nvoid main() {}\n",
    ));
    assert!(
        none.contains("there is no no.glsl, as no include folder"),
        "{none}"
    );
}

#[test]
fn includes_that_never_end_are_stopped() {
    let folder = Folder::new(
        "ring",
        &[
            ("ring.glsl", "#include \"ring.glsl\"\n"),
            (
                "twice.glsl",
                "#include \"twice.glsl\"\n#include \"twice.glsl\"\n",
            ),
            ("bytes.glsl", "\0"),
        ],
    );
    let dirs = [folder.0.clone()];
    let with = |name: &str| {
        let source = format!("#version 450\n#include <{name}>\nvoid main() {{}}\n");
        message(&GlslRequest {
            include_dirs: &dirs,
            ..text(&source)
        })
    };
    let ring = with("ring.glsl");
    assert!(ring.contains("deeper than"), "{ring}");
    let twice = with("twice.glsl");
    assert!(twice.contains("more lines"), "{twice}");
    assert!(with("bytes.glsl").contains("NUL"));
}

#[test]
fn many_threads_compile_at_once() {
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..3 {
                    compile(&text(SAXPY)).unwrap();
                }
            });
        }
    });
}

#[test]
fn how_large_a_workgroup_may_be_is_left_to_the_device() {
    let source =
        "#version 450\nlayout(local_size_x = 4096, local_size_z = 128) in;\nvoid main() {}\n";
    assert!(compile(&text(source)).is_ok());
}
