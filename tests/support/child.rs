//! Tests that need a process of their own: they start this program again, for one test in a role.

use std::io::Read;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

const ROLE: &str = "VKACCEL_TEST_ROLE";

/// How long a process may take: far more than any needs, also on a machine that is busy.
const DEADLINE: Duration = Duration::from_secs(30);

/// The role that this process is started for; nothing in the process that starts others.
pub fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}

/// A process that runs the test of this name in a role.
pub struct Child {
    command: Command,
    deadline: Duration,
}

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
        // A group of its own, so that what it forks can be ended with it.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        Self {
            command,
            deadline: DEADLINE,
        }
    }

    pub fn env(mut self, variable: &str, value: impl AsRef<std::ffi::OsStr>) -> Self {
        self.command.env(variable, value);
        self
    }

    /// Runs it without a validation layer.
    pub fn without_validation(mut self) -> Self {
        self.command.env_remove("VKACCEL_TEST_VALIDATION");
        self
    }

    /// Gives it more time, for one that does a lot.
    pub fn within(mut self, seconds: u64) -> Self {
        self.deadline = Duration::from_secs(seconds);
        self
    }

    /// Runs it and gives what it said; fails the test if it does not end in time.
    #[track_caller]
    pub fn run(mut self) -> Output {
        let started = Instant::now();
        let mut child = self.command.spawn().unwrap();
        let (stdout, stderr) = (collect(child.stdout.take()), collect(child.stderr.take()));
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break Some(status);
            }
            if started.elapsed() > self.deadline {
                break None;
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let left = || self.deadline.saturating_sub(started.elapsed()) + Duration::from_millis(100);
        let (stdout, stderr) = (stdout.recv_timeout(left()), stderr.recv_timeout(left()));
        let (Some(status), Ok(stdout), Ok(stderr)) = (status, stdout, stderr) else {
            let group = format!("-{}", child.id());
            // One that has ended by now leaves nothing to end.
            let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
            child.wait().unwrap();
            panic!("it, or what it forked, hangs");
        };
        Output {
            status,
            stdout,
            stderr,
        }
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

/// Gives all that comes through a pipe once its last writer has ended.
fn collect(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.unwrap().read_to_end(&mut bytes).unwrap();
        // Nobody receives it where the test has failed.
        let _ = sender.send(bytes);
    });
    receiver
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
