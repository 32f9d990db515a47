//! Numbers of bytes as the environment gives them.

use crate::error::{Error, ErrorKind, Result};

/// The environment's limit on the memory of every device.
pub(crate) const VARIABLE: &str = "VKACCEL_MEMORY_LIMIT";

/// Reads a number of bytes: `1073741824`, `512MiB`, `1.5 GiB`.
///
/// # Errors
///
/// [`ErrorKind::Config`], with what was given and what is possible.
pub(crate) fn parse(text: &str) -> Result<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let shift = match unit.trim() {
        "" | "B" => 0,
        "KiB" | "K" => 10,
        "MiB" | "M" => 20,
        "GiB" | "G" => 30,
        "TiB" | "T" => 40,
        _ => return Err(refused(text)),
    };
    if let Ok(whole) = number.parse::<u64>() {
        let bytes = u128::from(whole) << shift;
        return u64::try_from(bytes).map_err(|_| refused(text));
    }
    let (whole, part) = number.split_once('.').ok_or_else(|| refused(text))?;
    let (whole, part_bytes) = match (whole.parse::<u64>(), part.parse::<u64>()) {
        (Ok(whole), Ok(tenths)) if part.len() <= 9 && shift > 0 => {
            let scale = 10u128.pow(u32::try_from(part.len()).unwrap_or(0));
            (whole, (u128::from(tenths) << shift) / scale)
        }
        _ => return Err(refused(text)),
    };
    u64::try_from((u128::from(whole) << shift) + part_bytes).map_err(|_| refused(text))
}

#[cold]
fn refused(text: &str) -> Error {
    Error::new(
        ErrorKind::Config,
        format!(
            "{VARIABLE} is a number of bytes, or a number with KiB, MiB, GiB or TiB, not \"{text}\""
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_with_and_without_units() {
        for (text, bytes) in [
            ("0", 0),
            ("1000", 1000),
            ("512KiB", 512 << 10),
            ("3 MiB", 3 << 20),
            (" 1GiB ", 1 << 30),
            ("1.5GiB", 3 << 29),
            ("0.25 MiB", 1 << 18),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse(text).unwrap(), bytes, "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused_with_its_text() {
        for text in [
            "",
            "x",
            "-1",
            "1.5",
            "1 GB",
            "1e9",
            ".5GiB",
            "1..5GiB",
            "18446744073709551616",
            "99999999999GiB",
            "1.GiB",
            "MiB",
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Config, "{text}");
            assert!(error.to_string().contains(text.trim()), "{error}");
        }
    }
}
