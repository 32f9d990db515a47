//! Writing the 16 bytes that identify a device.

use core::fmt;

/// Prints 16 bytes in hexadecimal with the usual dashes: `8932f937-d72a-4106-c12f-20bd9faed9f6`.
pub(crate) struct Hex<'a>(pub &'a [u8; 16]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, byte) in self.0.iter().enumerate() {
            if matches!(position, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Whether the driver gave an identity at all.
pub(crate) fn is_given(uuid: &[u8; 16]) -> bool {
    uuid.iter().any(|&byte| byte != 0)
}

/// The 32 hexadecimal digits.
pub(crate) fn digits(uuid: &[u8; 16]) -> String {
    Hex(uuid).to_string().replace('-', "")
}
