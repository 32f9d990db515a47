//! Tests that need a process of their own: they start this program again, for one test in a role.

use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const ROLE: &str = "VKACCEL_TEST_ROLE";

/// How long a process may take, which is far more than any needs.
const DEADLINE: Duration = Duration::from_secs(10);

/// The role that this process is started for; nothing in the process that starts others.
pub fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}

/// A process that runs the test of this name in a role.
pub struct Child(Command);

impl Child {
    pub fn new(test: &str, role: &str) -> Self {
        let program = std::env::current_exe().unwrap();
        let mut command = Command::new(program);
        command
            .args([test, "--exact", "--nocapture", "--test-threads=1"])
            .env(ROLE, role)
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Self(command)
    }

    pub fn env(mut self, variable: &str, value: impl AsRef<std::ffi::OsStr>) -> Self {
        self.0.env(variable, value);
        self
    }

    /// Runs it and gives what it said; fails the test if it does not end in time.
    #[track_caller]
    pub fn run(mut self) -> Output {
        let started = Instant::now();
        let mut child = self.0.spawn().unwrap();
        while child.try_wait().unwrap().is_none() {
            if started.elapsed() > DEADLINE {
                child.kill().unwrap();
                let output = child.wait_with_output().unwrap();
                panic!("it hangs; so far: {}", text(&output));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        child.wait_with_output().unwrap()
    }

    /// Runs it; it must end well, with nothing on stderr, and gives its stdout.
    #[track_caller]
    pub fn succeed(self) -> String {
        let output = self.run();
        assert!(output.status.success(), "{}", text(&output));
        assert!(output.stderr.is_empty(), "{}", text(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

/// All that a process said, for the message of a failure.
pub fn text(output: &Output) -> String {
    format!(
        "{}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}
