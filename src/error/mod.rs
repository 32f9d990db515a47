//! Owns the one error type of the crate, its kinds and its figures.

mod details;
mod kind;
mod out_of_memory;
pub(crate) mod text;

use core::fmt;

pub use details::Details;
pub use kind::ErrorKind;
pub use out_of_memory::{OutOfMemory, OutOfMemoryReason};

/// The result of every fallible call of the crate.
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// What went wrong: a kind, a text worth reading, and the figures behind it.
///
/// The text says what was asked, what is possible and what to do. It is one word wide, so that
/// `Result<()>` costs nothing.
///
/// # Example
///
/// ```
/// let error = vkaccel::set_device_index("vulkan:x").unwrap_err();
/// assert_eq!(error.kind(), vkaccel::ErrorKind::InvalidDevice);
/// ```
pub struct Error(Box<Inner>);

#[derive(Debug, thiserror::Error)]
#[error("{message}")]
struct Inner {
    kind: ErrorKind,
    message: String,
    raw: Option<i32>,
    details: Option<Details>,
    out_of_memory: Option<OutOfMemory>,
    #[source]
    source: Option<Box<dyn core::error::Error + Send + Sync>>,
}

impl Error {
    /// An error of this kind with this text.
    #[cold]
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            raw: None,
            details: None,
            out_of_memory: None,
            source: None,
        }))
    }

    /// Adds the figures.
    #[cold]
    pub(crate) fn with_details(mut self, details: Details) -> Self {
        self.0.details = Some(details);
        self
    }

    /// Adds the driver's own code.
    #[cold]
    pub(crate) fn with_raw(mut self, raw: i32) -> Self {
        self.0.raw = Some(raw);
        self
    }

    /// Adds the figures of exhausted memory.
    #[cold]
    pub(crate) fn with_out_of_memory(mut self, figures: OutOfMemory) -> Self {
        self.0.out_of_memory = Some(figures);
        self
    }

    /// Adds the error that caused this one.
    #[cold]
    pub(crate) fn with_source(
        mut self,
        source: impl Into<Box<dyn core::error::Error + Send + Sync>>,
    ) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Puts `context` and a colon before the text.
    #[cold]
    pub(crate) fn context(mut self, context: impl fmt::Display) -> Self {
        self.0.message = format!("{context}: {}", self.0.message);
        self
    }

    /// What went wrong, as one word.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Whether device memory is exhausted or a limit on it is reached.
    pub fn is_out_of_memory(&self) -> bool {
        self.kind() == ErrorKind::OutOfMemory
    }

    /// Whether the device was lost.
    pub fn is_device_lost(&self) -> bool {
        self.kind() == ErrorKind::DeviceLost
    }

    /// Whether the process is a forked child that cannot use the runtime.
    pub fn is_forked_child(&self) -> bool {
        self.kind() == ErrorKind::ForkedChild
    }

    /// The figures, for an error of kind [`ErrorKind::OutOfMemory`].
    pub fn out_of_memory(&self) -> Option<&OutOfMemory> {
        self.0.out_of_memory.as_ref()
    }

    /// The numbers and names behind the text, where there are any.
    pub fn details(&self) -> Option<&Details> {
        self.0.details.as_ref()
    }

    /// The `VkResult`, where a driver gave one.
    pub fn raw(&self) -> Option<i32> {
        self.0.raw
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// The kind and the text as it is, which is what a `main` that returns the error prints; all there
/// is with `{:#?}`.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            return write!(f, "{:?}: {}", self.0.kind, self.0.message);
        }
        let mut debug = f.debug_struct("Error");
        debug
            .field("kind", &self.0.kind)
            .field("message", &self.0.message);
        if let Some(raw) = self.0.raw {
            debug.field("raw", &raw);
        }
        if let Some(details) = &self.0.details {
            debug.field("details", details);
        }
        if let Some(figures) = &self.0.out_of_memory {
            debug.field("out_of_memory", figures);
        }
        if let Some(source) = &self.0.source {
            debug.field("source", source);
        }
        debug.finish()
    }
}

impl core::error::Error for Error {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        core::error::Error::source(&*self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_of_nothing_is_one_word() {
        assert_eq!(size_of::<Result<()>>(), size_of::<usize>());
    }

    #[test]
    fn text_source_and_code_are_kept() {
        let cause = Error::new(ErrorKind::Io, "no such file");
        let error = Error::new(ErrorKind::Driver, "it failed")
            .with_raw(-3)
            .with_source(cause);
        let error = error.context("opening vulkan:0");
        assert_eq!(error.to_string(), "opening vulkan:0: it failed");
        assert_eq!(error.raw(), Some(-3));
        assert_eq!(format!("{error:?}"), "Driver: opening vulkan:0: it failed");
        assert!(format!("{error:#?}").contains("raw: -3"));
        let source = core::error::Error::source(&error).unwrap();
        assert_eq!(source.to_string(), "no such file");
    }
}
