//! How the program ends: its exit codes, and no panic message whatever happens.

use std::any::Any;
use std::cell::RefCell;
use std::fmt::{self, Display};
use std::panic;
use std::process::ExitCode;

use vkaccel::Details;

/// Why a command did not do what was asked.
#[derive(Debug, PartialEq)]
pub enum Failure {
    /// Malformed options, or a file that is missing or cannot be read: exit code 2.
    Usage(String),
    /// Whatever fails after that: exit code 1.
    Run(String),
}

impl Failure {
    /// A failure of exit code 2.
    pub fn usage(text: impl Display) -> Self {
        Self::Usage(text.to_string())
    }

    /// A failure of exit code 1.
    pub fn run(text: impl Display) -> Self {
        Self::Run(text.to_string())
    }

    /// The exit code.
    pub const fn code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Run(_) => 1,
        }
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(text) | Self::Run(text) => f.write_str(text),
        }
    }
}

impl From<vkaccel::Error> for Failure {
    fn from(error: vkaccel::Error) -> Self {
        match error.details() {
            // The library's own text says which function to call, which is no help here.
            Some(Details::EntryPoint {
                asked, available, ..
            }) if !available.is_empty() => Self::run(format!(
                "the module has no compute entry point `{asked}`; --entry takes: {}",
                available.join(", ")
            )),
            _ => Self::run(error),
        }
    }
}

/// Runs the program and turns its outcome into an exit code; a failure is told on stderr.
///
/// A panic is a fault of ours. It is told as one, in a line, and ends with code 1.
pub fn guard(program: impl FnOnce() -> Result<(), Failure> + panic::UnwindSafe) -> ExitCode {
    keep_panics_quiet();
    let failure = match panic::catch_unwind(program) {
        Ok(Ok(())) => return ExitCode::SUCCESS,
        Ok(Err(failure)) => failure,
        Err(payload) => Failure::run(format!(
            "this is a fault of vkaccel itself, please report it: {}",
            LAST_PANIC
                .take()
                .unwrap_or_else(|| payload_text(&*payload).to_owned())
        )),
    };
    let_stderr(format_args!("error: {failure}"));
    ExitCode::from(failure.code())
}

/// Writes a line to stderr; where nobody can read it, nothing is lost.
pub fn let_stderr(line: impl Display) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// Writes `text` to stdout. A reader that went away, as `head` does, is no failure.
pub fn print(text: &str) -> Result<(), Failure> {
    use std::io::{ErrorKind, Write};
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::run(format!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}

thread_local! {
    static LAST_PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Panics are kept for whoever catches them, instead of printed where they happen.
fn keep_panics_quiet() {
    panic::set_hook(Box::new(|info| {
        let place = info
            .location()
            .map_or_else(String::new, |place| format!(" ({place})"));
        let text = format!("{}{place}", payload_text(info.payload()));
        let _ = LAST_PANIC.try_with(|last| last.replace(Some(text)));
    }));
}

fn payload_text(payload: &(dyn Any + Send)) -> &str {
    payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_input_is_2_and_later_failures_are_1() {
        assert_eq!(Failure::usage("x").code(), 2);
        assert_eq!(Failure::run("x").code(), 1);
    }

    #[test]
    fn a_payload_of_either_string_type_has_text() {
        assert_eq!(payload_text(&"fixed"), "fixed");
        assert_eq!(payload_text(&String::from("made")), "made");
        assert_eq!(payload_text(&7), "no message");
    }
}
