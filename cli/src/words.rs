//! Numbers as people read them. Pure.

use std::fmt::Write;

/// Bytes in the largest binary unit that keeps them at 1 or more, exact where they are exact.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let Some(unit) = (0..UNITS.len())
        .rev()
        .find(|&unit| bytes >> (10 * (unit + 1)) > 0)
    else {
        return format!("{bytes} B");
    };
    let shift = 10 * (unit + 1);
    let whole = bytes >> shift;
    let rest = bytes & ((1 << shift) - 1);
    if rest == 0 {
        return format!("{whole} {}", UNITS[unit]);
    }
    // Rounded down, so that what is free or allowed is never overstated.
    let tenths = (u128::from(rest) * 10) >> shift;
    format!("{whole}.{tenths} {}", UNITS[unit])
}

/// A UUID in its usual groups.
pub fn uuid_text(uuid: [u8; 16]) -> String {
    let mut out = String::with_capacity(36);
    for (index, byte) in uuid.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            out.push('-');
        }
        let _ = write!(out, "{byte:02x}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_in_the_unit_that_reads_best_and_never_overstated() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1 KiB"),
            (1536, "1.5 KiB"),
            ((1 << 20) - 1, "1023.9 KiB"),
            (128 << 20, "128 MiB"),
            (u64::MAX, "15.9 EiB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn a_uuid_stands_in_its_groups() {
        assert_eq!(
            uuid_text(*b"0123456789abcdef"),
            "30313233-3435-3637-3839-616263646566"
        );
    }
}
