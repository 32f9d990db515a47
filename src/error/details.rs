//! The numbers and names behind an error.

/// The numbers and names that an [`Error`](crate::Error) was made of, for a program that acts on them; from
/// [`Error::details`](crate::Error::details).
///
/// Variants and fields may be added: `_` and `..` leave room for them.
///
/// # Example
///
/// ```
/// # if vkaccel::device_count() == 0 { return Ok(()); }
/// use vkaccel::{Buffer, Details};
///
/// let error = Buffer::<u32>::zeroed(4)?.write(&[1, 2, 3]).unwrap_err();
/// match error.details() {
///     Some(Details::Size { expected, given, .. }) => assert_eq!((*expected, *given), (16, 12)),
///     Some(Details::Limit { name, limit, .. }) => println!("{name} is {limit}"),
///     _ => println!("{error}"),
/// }
/// # Ok::<(), vkaccel::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Details {
    /// A device limit that was passed.
    #[non_exhaustive]
    Limit {
        /// The limit's Vulkan name, with its axis where it has several, as `maxComputeWorkGroupCount[0]`.
        name: String,
        /// What was asked for.
        asked: u64,
        /// What the device allows.
        limit: u64,
    },
    /// A start of memory that is no multiple of what it must be one of.
    #[non_exhaustive]
    Alignment {
        /// What asks for it: a limit's Vulkan name, as `minStorageBufferOffsetAlignment`, or the
        /// shader's `buffer_reference_align`.
        name: String,
        /// Where the memory starts: for a limit the bytes from the start of its buffer, else its
        /// address.
        offset: u64,
        /// What it must be a multiple of, in bytes.
        alignment: u64,
    },
    /// A size in bytes that must be met exactly.
    #[non_exhaustive]
    Size {
        /// The size that is needed, in bytes.
        expected: u64,
        /// The size that was given, in bytes.
        given: u64,
    },
    /// The number of arguments of a launch.
    #[non_exhaustive]
    Count {
        /// How many the kernel takes.
        expected: usize,
        /// How many were given.
        given: usize,
    },
    /// One argument of a launch.
    #[non_exhaustive]
    Argument {
        /// The position of the argument, from 0.
        index: usize,
        /// The name of the slot in the shader; empty where the module has no names.
        name: String,
        /// What the slot takes.
        expected: String,
        /// What was given.
        given: String,
    },
    /// An entry point that is not there.
    #[non_exhaustive]
    EntryPoint {
        /// The name that was asked for.
        asked: String,
        /// The compute entry points of the module.
        available: Vec<String>,
    },
    /// A kernel that no check can make safe; it loads through the unsafe constructors only.
    #[non_exhaustive]
    NotCheckable {
        /// What stands in the way.
        why: String,
    },
    /// Device features that are missing or were left out, by their Vulkan names.
    #[non_exhaustive]
    Features {
        /// The names, as `shaderFloat16`.
        missing: Vec<String>,
    },
    /// A call that a graph capture does not permit.
    #[non_exhaustive]
    Capture {
        /// The call.
        call: String,
        /// Where it was made, as `file:line:column`.
        call_site: String,
        /// Where the capture began.
        capture_site: String,
    },
}
