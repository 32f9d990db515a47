//! The arguments of a launch, before they meet the kernel's interface.

use bytemuck::Pod;

use super::interface::Access;
use super::scalar::Number;
use super::value::{ArgValue, Argument, Memory, MemoryArg};

/// The device address of a buffer.
///
/// It stays the same for as long as the buffer lives. To hand a buffer to a shader that takes its
/// address, pass the buffer itself. The address alone is for what the shader finds elsewhere: in
/// memory (a table, a list), or in a block of push constants. It says nothing of what is behind it,
/// so the launch does, with [`Arg::uses`]; that has an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Address(u64);

impl Address {
    pub(crate) const fn new(address: u64) -> Self {
        Self(address)
    }

    /// The address as a number, to be stored where a shader finds it.
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// One argument of a launch: a buffer, a view, a number, a plain struct, an address.
///
/// Buffers and views fill descriptors, and push-constant members that are addresses. Numbers fill
/// members: an integer of any type fits every integer member that can hold its value; an `f32` fits
/// 32-bit float members; [`Arg::f64`] and [`Arg::f16`] make the other floats. Vectors, arrays and
/// structs come from [`Arg::block`].
///
/// Memory is bytes: the element type of a buffer is not compared with what the shader declares. A
/// `Buffer<u16>` fits a `float x[]`, which then reads two elements as one float. What is checked is that a
/// buffer has the bytes that the shader's block has before its runtime-sized array.
///
/// # Views
///
/// A whole buffer fits every slot. A view fits a descriptor where its first byte, counted from the
/// start of its buffer, is a multiple of the device's
/// [`min_storage_buffer_offset_alignment`](crate::DeviceLimits::min_storage_buffer_offset_alignment)
/// (for uniform buffers, of
/// [`min_uniform_buffer_offset_alignment`](crate::DeviceLimits::min_uniform_buffer_offset_alignment)):
/// any power of two from 1 to 256 bytes, so 256 fits every device. Other views are refused with
/// [`Details::Alignment`](crate::Details::Alignment). Where the shader takes an address there is no
/// such rule: a view may start at any element, as long as the shader declares no larger
/// `buffer_reference_align` than that (GLSL's default is 16 bytes).
///
/// # Example
///
/// ```
/// use vkaccel::Arg;
///
/// let args = [Arg::from(2.5), Arg::from(1000), Arg::f64(0.1), Arg::block(&[1.0f32, 2.0])];
/// # let _ = args;
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Arg<'a>(ArgValue<'a, Memory>);

impl<'a> Arg<'a> {
    /// A buffer or a view of one.
    pub(crate) const fn memory(memory: MemoryArg<'a, Memory>) -> Self {
        Self(ArgValue::Memory(memory))
    }

    /// What owns the argument's memory, where it is memory.
    pub(crate) const fn owner(&self) -> Option<&'a Memory> {
        match self.0 {
            ArgValue::Memory(memory) => Some(memory.owner),
            _ => None,
        }
    }

    /// A 64-bit float. Bare floats are 32-bit ones.
    ///
    /// # Example
    ///
    /// ```
    /// let step = vkaccel::Arg::f64(1e-9);
    /// # let _ = step;
    /// ```
    pub const fn f64(value: f64) -> Self {
        Self(ArgValue::Number(Number::F64(value)))
    }

    /// A 16-bit float: the nearest one to `value`.
    ///
    /// # Example
    ///
    /// ```
    /// let half = vkaccel::Arg::f16(0.5);
    /// # let _ = half;
    /// ```
    pub const fn f16(value: f32) -> Self {
        Self(ArgValue::Number(Number::F16(value)))
    }

    /// The bytes of a plain value: a vector, an array or a struct, laid out as the shader lays it
    /// out.
    ///
    /// As the last argument it fills the push-constant block from its member to the block's end, so
    /// that one `#[repr(C)]` struct can be the whole block; before others it fills one member. It
    /// has exactly that size, or is padded at its end to a multiple of 2, 4, 8 or 16 bytes, as
    /// `#[repr(C)]` pads. The shader's offsets count, so a `vec3` after a `float` starts at byte 16:
    /// the struct needs the padding in between.
    ///
    /// # Example
    ///
    /// The derives come from bytemuck itself: `cargo add bytemuck --features derive`.
    ///
    /// ```
    /// use vkaccel::Arg;
    ///
    /// // layout(push_constant) uniform Params { float a; vec3 b; uint c; };
    /// #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
    /// #[repr(C)]
    /// struct Params {
    ///     a: f32,
    ///     pad: [u32; 3],
    ///     b: [f32; 3],
    ///     c: u32,
    /// }
    ///
    /// let params = Params { a: 1.0, pad: [0; 3], b: [2.0, 3.0, 4.0], c: 42 };
    /// let arg = Arg::block(&params);
    /// # let _ = arg;
    /// ```
    pub fn block<P: Pod>(value: &'a P) -> Self {
        Self::bytes(bytemuck::bytes_of(value))
    }

    /// The same as [`Arg::block`] for bytes whose type is only known at run time.
    ///
    /// # Example
    ///
    /// ```
    /// let bytes = 7u32.to_le_bytes();
    /// let arg = vkaccel::Arg::bytes(&bytes);
    /// # let _ = arg;
    /// ```
    pub const fn bytes(bytes: &'a [u8]) -> Self {
        Self(ArgValue::Block(bytes))
    }

    /// Declares memory that the kernel reaches through addresses which the launch does not see:
    /// those that it finds in other memory, those that it makes from plain numbers (`uint64_t`,
    /// `uvec2`), an [`Address`] as an argument, and addresses in an [`Arg::block`].
    ///
    /// It fills no slot and stands anywhere among the arguments. The launch is then ordered against
    /// other commands that use this memory, and keeps it alive. `memory` is a buffer or a view.
    ///
    /// A launch of such a kernel is refused without any `uses`; that they name all of the memory is
    /// for the caller to see. What is left out is not ordered, and may be freed while it is in use.
    ///
    /// # Example
    ///
    /// A table of buffers. `table[i].word[k]` needs nothing but addresses; a table behind an address
    /// itself, indexed as `table[i].word` with `GL_EXT_buffer_reference2`, is arithmetic on
    /// addresses, which needs 64-bit integers ([`Feature::ShaderInt64`](crate::Feature)) of the
    /// device.
    ///
    /// ```
    /// # #[cfg(feature = "glsl")] {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// use vkaccel::{Access, Arg, Buffer, Grid, Kernel};
    ///
    /// let builder = Kernel::builder(
    ///     "#version 450
    ///      #extension GL_EXT_buffer_reference : require
    ///      layout(local_size_x = 64) in;
    ///      layout(buffer_reference, buffer_reference_align = 4) readonly buffer Words { uint word[]; };
    ///      layout(set = 0, binding = 0) buffer Sums { uint sum[]; };
    ///      layout(set = 0, binding = 1) readonly buffer Table { Words table[]; };
    ///      void main() {
    ///          uint i = gl_GlobalInvocationID.x;
    ///          if (i < table.length()) sum[i] = table[i].word[0] + table[i].word[1];
    ///      }",
    /// );
    /// // SAFETY: each buffer has the two words that the shader reads, and `sum` is as long as `table`.
    /// let add = unsafe { builder.build_unchecked() }?;
    ///
    /// let (a, b) = (Buffer::from_slice(&[1u32, 2])?, Buffer::from_slice(&[30u32, 40])?);
    /// let table = Buffer::from_slice(&[a.address().get(), b.address().get()])?;
    /// let sum = Buffer::<u32>::zeroed(2)?;
    /// let (use_a, use_b) = (Arg::uses(&a, Access::Read), Arg::uses(&b, Access::Read));
    /// add.launch(Grid::elements(2), (&sum, &table, use_a, use_b))?;
    /// assert_eq!(sum.to_vec()?, [3, 70]);
    /// # }
    /// # Ok::<(), vkaccel::Error>(())
    /// ```
    pub fn uses(memory: impl Into<Self>, access: Access) -> Self {
        Self(memory.into().0.uses(access))
    }

    /// Promises that this launch only reads the memory, where the shader may read and write it.
    ///
    /// Launches that only read the same memory need not wait for each other. A promise that is not
    /// kept gives unspecified numbers.
    #[must_use]
    pub fn read(self) -> Self {
        Self(self.0.read())
    }

    /// Promises that this launch only writes the memory, where the shader may read and write it.
    ///
    /// A promise that is not kept gives unspecified numbers.
    #[must_use]
    pub fn write(self) -> Self {
        Self(self.0.write())
    }
}

impl<'a> Argument<'a> for Arg<'a> {
    type Owner = Memory;

    fn value(self) -> ArgValue<'a, Memory> {
        self.0
    }
}

impl From<Address> for Arg<'_> {
    fn from(address: Address) -> Self {
        Self(ArgValue::Address(address))
    }
}

// The only float: with two of them, a literal would silently become an `f64`.
impl From<f32> for Arg<'_> {
    fn from(value: f32) -> Self {
        Self(ArgValue::Number(Number::F32(value)))
    }
}

macro_rules! arg_from {
    ($($integer:ty),*) => {$(
        impl From<$integer> for Arg<'_> {
            fn from(value: $integer) -> Self {
                Self(ArgValue::Number(Number::from(value)))
            }
        }
    )*};
}

arg_from!(u8, u16, u32, u64, usize, i8, i16, i32, i64, bool);

/// The arguments of a launch, in the kernel's order: a tuple of up to twelve, or a slice or an array
/// of [`Arg`].
///
/// The order is that of [`Interface`](crate::Interface): descriptors by set and binding, then the
/// members of the push-constant block by offset.
///
/// # Example
///
/// ```
/// use vkaccel::{Arg, Args};
///
/// fn takes<'a>(args: impl Args<'a>) {
///     # let _ = args;
/// }
///
/// takes((2.5, 1000)); // an f32 and an integer
/// takes(()); // none
/// takes(&[Arg::from(2.5), Arg::from(1000)][..]); // as many as the program finds at run time
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the arguments of a launch",
    label = "not arguments",
    note = "arguments are a tuple of buffers, views and numbers, as `(&x, &y, 2.0, n)`; of one argument, as `(&x,)`; of none, `()`",
    note = "a tuple has up to twelve; for more pass a slice or an array of `Arg`, as `&[Arg::from(&x), Arg::from(2.0)]`"
)]
pub trait Args<'a>: sealed::WithArgs<'a> {}

pub(crate) mod sealed {
    use super::Arg;

    pub trait WithArgs<'a> {
        /// Calls `f` with the arguments, without a heap allocation.
        fn with_args<R>(self, f: impl FnOnce(&[Arg<'a>]) -> R) -> R;
    }
}

impl<'a> Args<'a> for &[Arg<'a>] {}

impl<'a> sealed::WithArgs<'a> for &[Arg<'a>] {
    fn with_args<R>(self, f: impl FnOnce(&[Arg<'a>]) -> R) -> R {
        f(self)
    }
}

impl<'a> Args<'a> for &Vec<Arg<'a>> {}

impl<'a> sealed::WithArgs<'a> for &Vec<Arg<'a>> {
    fn with_args<R>(self, f: impl FnOnce(&[Arg<'a>]) -> R) -> R {
        f(self)
    }
}

impl<'a, const N: usize> Args<'a> for [Arg<'a>; N] {}

impl<'a, const N: usize> sealed::WithArgs<'a> for [Arg<'a>; N] {
    fn with_args<R>(self, f: impl FnOnce(&[Arg<'a>]) -> R) -> R {
        f(&self)
    }
}

impl<'a, const N: usize> Args<'a> for &[Arg<'a>; N] {}

impl<'a, const N: usize> sealed::WithArgs<'a> for &[Arg<'a>; N] {
    fn with_args<R>(self, f: impl FnOnce(&[Arg<'a>]) -> R) -> R {
        f(self)
    }
}

macro_rules! tuple_args {
    ($(($($name:ident),*)),* $(,)?) => {$(
        impl<'a, $($name: Into<Arg<'a>>),*> Args<'a> for ($($name,)*) {}

        impl<'a, $($name: Into<Arg<'a>>),*> sealed::WithArgs<'a> for ($($name,)*) {
            #[allow(non_snake_case, reason = "a value is named as its type")]
            fn with_args<R>(self, f: impl FnOnce(&[Arg<'a>]) -> R) -> R {
                let ($($name,)*) = self;
                f(&[$($name.into()),*])
            }
        }
    )*};
}

tuple_args! {
    (),
    (A),
    (A, B),
    (A, B, C),
    (A, B, C, D),
    (A, B, C, D, E),
    (A, B, C, D, E, F),
    (A, B, C, D, E, F, G),
    (A, B, C, D, E, F, G, H),
    (A, B, C, D, E, F, G, H, I),
    (A, B, C, D, E, F, G, H, I, J),
    (A, B, C, D, E, F, G, H, I, J, K),
    (A, B, C, D, E, F, G, H, I, J, K, L),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers<'a>(args: impl Args<'a>) -> Vec<String> {
        args.with_args(|args| {
            args.iter()
                .map(|arg| match arg.value() {
                    ArgValue::Number(number) => number.to_string(),
                    other => format!("{other:?}"),
                })
                .collect()
        })
    }

    #[test]
    fn an_argument_is_five_words() {
        assert_eq!(size_of::<Arg<'_>>(), 40);
    }

    #[test]
    fn literals_are_f32_and_i32_and_every_integer_keeps_its_type() {
        assert_eq!(numbers((2.0, 7)), ["f32 2.0", "i32 7"]);
        let n: usize = 9;
        assert_eq!(
            numbers((n, 1u8, -2i64, true, Arg::f64(0.1), Arg::f16(0.5))),
            ["u64 9", "u8 1", "i64 -2", "bool true", "f64 0.1", "f16 0.5"]
        );
    }

    #[test]
    fn tuples_slices_and_arrays_are_arguments() {
        assert_eq!(numbers(()), [""; 0]);
        assert_eq!(numbers((1,)), ["i32 1"]);
        assert_eq!(numbers((1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)).len(), 12);
        let list = vec![Arg::from(1), Arg::from(2.0)];
        let expected = ["i32 1", "f32 2.0"];
        assert_eq!(numbers(&list), expected);
        assert_eq!(numbers(&list[..]), expected);
        let array = [list[0], list[1]];
        let reference: &[Arg<'_>; 2] = &array;
        assert_eq!(numbers(reference), expected);
        assert_eq!(numbers(array), expected);
        assert_eq!(
            numbers((Address::new(16), Arg::block(&[0u32; 3]))),
            ["Address(16)", "Block(12 bytes)"]
        );
    }
}
