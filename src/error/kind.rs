//! What went wrong, as one word.

/// The kind of an [`Error`](crate::Error): what a program decides by.
///
/// The text of the error says the rest; numbers are in [`Details`](crate::Details).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No Vulkan loader, or a loader that cannot be used.
    NoDriver,
    /// The loader works, but no device is visible to the process.
    NoDevice,
    /// A device argument names no visible device, or an object belongs to another device.
    InvalidDevice,
    /// An argument that no device could accept.
    InvalidArgument,
    /// Device memory is exhausted, or a limit on it is reached.
    OutOfMemory,
    /// Host memory is exhausted.
    OutOfHostMemory,
    /// The device lacks a feature that the call needs.
    Unsupported,
    /// GLSL was given, but the crate was built without the feature `glsl`.
    CompilerUnavailable,
    /// The shader compiler refused the source; the text is the compiler's own.
    ShaderCompile,
    /// The module is not SPIR-V, is damaged, or breaks a rule that the reader checks.
    InvalidModule,
    /// The module has no compute entry point of that name.
    EntryPointNotFound,
    /// The arguments of a launch do not fit the kernel's interface.
    ArgumentMismatch,
    /// A number is above what the device allows.
    LimitExceeded,
    /// The host has pinned memory that was asked for, by a guard that lives.
    HostBusy,
    /// An event was made without timing, and is asked for a time.
    TimingNotEnabled,
    /// An event was never recorded, and is asked for a time.
    NotRecorded,
    /// An event is not reached yet, and is asked for a time.
    NotReady,
    /// The call is not allowed where it was made, as a wait for the device inside of a host callback or
    /// during a graph capture.
    NotPermitted,
    /// A graph capture that can't begin, has failed or was left unfinished, a graph that has nothing to replay,
    /// or an event on the wrong side of a capture.
    Capture,
    /// A host callback of the stream panicked.
    CallbackPanicked,
    /// The device was lost; every later call that uses it gives this error.
    DeviceLost,
    /// The process is the child of a fork of one that had opened a device; see [forks](crate#forks), and
    /// [`Runtime::reinit_after_fork`](crate::Runtime::reinit_after_fork) for a way on.
    ForkedChild,
    /// The runtime was shut down, or the process is ending.
    ShutDown,
    /// A setting, from the environment or a builder, has no valid value.
    Config,
    /// A file could not be read or written.
    Io,
    /// The driver gave an error that has no kind of its own; [`Error::raw`](crate::Error::raw) has the code.
    Driver,
}

impl ErrorKind {
    /// Every kind, in the order of declaration.
    pub const ALL: &'static [Self] = &[
        Self::NoDriver,
        Self::NoDevice,
        Self::InvalidDevice,
        Self::InvalidArgument,
        Self::OutOfMemory,
        Self::OutOfHostMemory,
        Self::Unsupported,
        Self::CompilerUnavailable,
        Self::ShaderCompile,
        Self::InvalidModule,
        Self::EntryPointNotFound,
        Self::ArgumentMismatch,
        Self::LimitExceeded,
        Self::HostBusy,
        Self::TimingNotEnabled,
        Self::NotRecorded,
        Self::NotReady,
        Self::NotPermitted,
        Self::Capture,
        Self::CallbackPanicked,
        Self::DeviceLost,
        Self::ForkedChild,
        Self::ShutDown,
        Self::Config,
        Self::Io,
        Self::Driver,
    ];
}
