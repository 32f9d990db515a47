//! What the tests of the program share: running it, a folder of their own, arrays in files.

#![allow(dead_code, reason = "each test program uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Output};

use npyz::WriterBuilder;

/// What stands for the repository where the tests run without one (`scripts/device-check`).
fn copy() -> Option<PathBuf> {
    std::env::var_os("VKACCEL_TEST_ROOT").map(PathBuf::from)
}

/// A shader of the tests, or with `shaders/` before its name one of the project's.
pub fn shader(name: &str) -> PathBuf {
    let package = match copy() {
        Some(root) => root.join("cli"),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR")),
    };
    match name.strip_prefix("shaders/") {
        Some(name) => package.join("../shaders").join(name),
        None => package.join("tests/shaders").join(name),
    }
}

/// What the program said and how it ended.
#[derive(Debug)]
pub struct Outcome {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Outcome {
    fn new(output: Output) -> Self {
        let outcome = Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        };
        assert!(!outcome.stderr.contains("panicked"), "{outcome:?}");
        assert!(!outcome.stderr.contains("fault of vkaccel"), "{outcome:?}");
        outcome
    }

    /// Demands that it ended well.
    #[track_caller]
    pub fn ok(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }

    /// Demands that it ended with this code and said this on stderr.
    #[track_caller]
    pub fn fails(self, code: i32, says: &str) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert!(self.stderr.contains(says), "not said: {says}\n{self:?}");
        assert!(self.stderr.starts_with("error: "), "{self:?}");
        self
    }
}

/// A folder that is removed when the test is done, and the program run inside it.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// An empty folder for the test of that name.
    pub fn new(name: &str) -> Self {
        let folder = match copy() {
            Some(root) => root.join("tmp"),
            None => PathBuf::from(env!("CARGO_TARGET_TMPDIR")),
        };
        let path = folder.join(format!(
            "{}-{name}-{}",
            env!("CARGO_CRATE_NAME"),
            std::process::id()
        ));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// A path inside it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The program, to be run inside the folder.
    pub fn command(&self, args: &str) -> Command {
        let program = match copy() {
            Some(root) => root.join("bin/vkaccel"),
            None => PathBuf::from(env!("CARGO_BIN_EXE_vkaccel")),
        };
        let mut command = Command::new(program);
        command.current_dir(&self.0).args(args.split_whitespace());
        command
    }

    /// Runs the program inside the folder.
    pub fn vkaccel(&self, args: &str) -> Outcome {
        Outcome::new(self.command(args).output().unwrap())
    }

    /// Runs the program inside the folder with this as its standard input.
    pub fn vkaccel_reading(&self, args: &str, input: &[u8]) -> Outcome {
        use std::io::Write;
        use std::process::Stdio;
        let mut command = self.command(args);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        Outcome::new(child.wait_with_output().unwrap())
    }

    /// Runs the program inside the folder with these variables in its environment.
    pub fn vkaccel_with(&self, args: &str, variables: &[(&str, &str)]) -> Outcome {
        let mut command = self.command(args);
        command.envs(variables.iter().copied());
        Outcome::new(command.output().unwrap())
    }

    /// Runs `vkaccel run` on a shader of the tests; under the validation layer where the suite does.
    pub fn run(&self, shader_name: &str, args: &str) -> Outcome {
        let mut command = self.command("run");
        if is_set("VKACCEL_TEST_VALIDATION") {
            command.arg("--validate");
        }
        command
            .arg(shader(shader_name))
            .args(args.split_whitespace());
        Outcome::new(command.output().unwrap())
    }

    /// Writes a file.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).unwrap();
    }

    /// Writes an array.
    pub fn save<T: npyz::AutoSerialize + Copy>(&self, name: &str, shape: &[u64], data: &[T]) {
        let options = npyz::WriteOptions::new().default_dtype().shape(shape);
        let file = File::create(self.path(name)).unwrap();
        let mut writer = options.writer(file).begin_nd().unwrap();
        writer.extend(data.iter().copied()).unwrap();
        writer.finish().unwrap();
    }

    /// Reads an array: its shape, its type as NumPy writes it, and its numbers.
    pub fn load<T: npyz::Deserialize>(&self, name: &str) -> (Vec<u64>, String, Vec<T>) {
        let file = npyz::NpyFile::new(File::open(self.path(name)).unwrap()).unwrap();
        assert_eq!(file.order(), npyz::Order::C);
        let (shape, descr) = (file.shape().to_vec(), file.dtype().descr());
        (shape, descr, file.into_vec().unwrap())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Whether there is a device; without one the test says that it skips, or fails where it must not.
pub fn has_device(test: &str) -> bool {
    if vkaccel::is_available() {
        return true;
    }
    assert!(
        !is_set("VKACCEL_TEST_REQUIRE_DEVICE"),
        "{test} needs a device, and there is none"
    );
    println!("SKIP {test}: no device");
    false
}

/// Whether a variable of the environment is 1.
pub fn is_set(variable: &str) -> bool {
    std::env::var(variable).is_ok_and(|value| value == "1")
}

/// Puts the test's own name before its body and skips it where there is no device.
#[macro_export]
macro_rules! device_test {
    ($(#[$meta:meta])* fn $name:ident($scratch:ident) $body:block) => {
        $(#[$meta])*
        #[test]
        fn $name() {
            if $crate::support::has_device(stringify!($name)) {
                let $scratch = $crate::support::Scratch::new(stringify!($name));
                $body
            }
        }
    };
}
