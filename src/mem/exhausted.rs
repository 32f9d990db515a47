//! What an out-of-memory error says: what was asked, what there is, and what to do about it.

use core::fmt::Write as _;

use crate::error::text::count as counted;
use crate::error::{Error, ErrorKind, OutOfMemory, OutOfMemoryReason};

/// What the text needs beyond the figures.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Circumstances {
    /// The largest buffer that the device can have, in bytes.
    pub(super) largest_buffer: u64,
    /// The most allocations that the device can hold.
    pub(super) most_allocations: u32,
    /// Whether `max_split_size_mb` is set.
    pub(super) splits_are_bounded: bool,
    /// Whether the limit is a part of the device's memory, not a number of bytes.
    pub(super) limit_is_fraction: bool,
}

/// The error of a request that can't be had.
#[cold]
pub(super) fn error(
    device: &str,
    figures: OutOfMemory,
    circumstances: Circumstances,
    cause: Option<Error>,
) -> Error {
    let mut text = format!("{device} has no room for {}: ", bytes(figures.requested));
    text += &reason(&figures, circumstances, cause.as_ref());
    let _ = write!(
        text,
        ". Of its {}, {} are free; this process holds {}: {} in buffers, {} cached, the largest free \
         piece of it {}. ",
        bytes(figures.total),
        bytes(figures.free),
        bytes(figures.reserved),
        bytes(figures.allocated),
        bytes(figures.cached),
        bytes(figures.largest_free_block),
    );
    text += advice(&figures, circumstances);
    let error = Error::new(ErrorKind::OutOfMemory, text).with_out_of_memory(figures);
    match cause.as_ref().and_then(Error::raw) {
        Some(raw) => error.with_raw(raw),
        None => error,
    }
}

fn reason(figures: &OutOfMemory, circumstances: Circumstances, cause: Option<&Error>) -> String {
    match figures.reason {
        OutOfMemoryReason::NeverFits => format!(
            "one buffer of it can have {} at most, the smaller of its limits on a buffer and on an allocation",
            bytes(circumstances.largest_buffer)
        ),
        OutOfMemoryReason::FullNow => "its memory is full now".to_owned(),
        OutOfMemoryReason::OverLimit => format!(
            "by the limit of {} this process may hold {} of its memory",
            match circumstances.limit_is_fraction {
                true => "set_per_process_memory_fraction",
                false => "set_memory_limit",
            },
            figures.limit.map_or_else(
                || "no more".to_owned(),
                |limit| format!("{} at most", bytes(limit))
            )
        ),
        OutOfMemoryReason::TooManyAllocations => format!(
            "it can hold {} allocations, and does",
            circumstances.most_allocations
        ),
        OutOfMemoryReason::RefusedByDriver => match cause {
            Some(cause) => format!("the driver refused ({cause})"),
            None => "the driver refused".to_owned(),
        },
    }
}

fn advice(figures: &OutOfMemory, circumstances: Circumstances) -> &'static str {
    match figures.reason {
        OutOfMemoryReason::NeverFits => "Split the data over several buffers.",
        OutOfMemoryReason::OverLimit if is_beyond_limit(figures) => {
            "That is more than the limit alone: raise that, or split the data over several buffers and \
             use them one after the other."
        }
        _ if has_strange_piece(figures) => {
            "A piece of the cache is large enough, but it is another stream's or pool's, and shares its \
             segment with buffers: allocate where it is, or drop those buffers."
        }
        OutOfMemoryReason::OverLimit if circumstances.limit_is_fraction => {
            "Drop buffers, or raise the limit with set_per_process_memory_fraction."
        }
        OutOfMemoryReason::OverLimit => {
            "Drop buffers, or raise the limit with set_memory_limit or VKACCEL_MEMORY_LIMIT."
        }
        OutOfMemoryReason::TooManyAllocations => {
            "Use fewer, larger buffers, drop some, or call empty_cache."
        }
        _ if is_fragmented(figures) && !circumstances.splits_are_bounded => {
            "The cache has the bytes, but in pieces: set max_split_size_mb in VKACCEL_ALLOC_CONF, or \
             allocate large buffers first."
        }
        _ if is_fragmented(figures) => {
            "The cache has the bytes, but in pieces: allocate large buffers first, or set another \
             max_split_size_mb."
        }
        _ if others_hold_most(figures) => {
            "Most of the rest is held by others: close programs that use the device, or use another \
             device."
        }
        _ => "Drop buffers, or work in smaller pieces.",
    }
}

/// Whether the request alone is beyond the limit, so that nothing that is given up helps.
pub(super) fn is_beyond_limit(figures: &OutOfMemory) -> bool {
    figures.limit.is_some_and(|limit| figures.requested > limit)
}

/// Whether the cache has a piece that is large enough, which this request may not have.
fn has_strange_piece(figures: &OutOfMemory) -> bool {
    figures.largest_free_block >= figures.requested
        && figures.reason != OutOfMemoryReason::TooManyAllocations
}

/// Whether there is enough in the cache, in too small pieces.
fn is_fragmented(figures: &OutOfMemory) -> bool {
    figures.cached >= figures.requested && figures.largest_free_block < figures.requested
}

fn others_hold_most(figures: &OutOfMemory) -> bool {
    let others = figures
        .total
        .saturating_sub(figures.free)
        .saturating_sub(figures.reserved);
    others > figures.reserved && others >= figures.requested
}

/// A number of bytes as people read it, with the exact one where that says more.
fn bytes(count: u64) -> String {
    const UNITS: [(u32, &str); 5] = [
        (50, "PiB"),
        (40, "TiB"),
        (30, "GiB"),
        (20, "MiB"),
        (10, "KiB"),
    ];
    for (shift, unit) in UNITS {
        let whole = count >> shift;
        if whole > 0 {
            if count == whole << shift {
                return format!("{whole} {unit}");
            }
            let hundredths = (u128::from(count) * 100) >> shift;
            return format!(
                "{}.{:02} {unit} ({count} bytes)",
                hundredths / 100,
                hundredths % 100
            );
        }
    }
    counted(count, "byte")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn figures(reason: OutOfMemoryReason) -> OutOfMemory {
        OutOfMemory {
            requested: 64 * MIB,
            free: 10 * MIB,
            total: 1024 * MIB,
            allocated: 900 * MIB,
            reserved: 1000 * MIB,
            cached: 60 * MIB,
            largest_free_block: 50 * MIB,
            ..OutOfMemory::new(reason, 0)
        }
    }

    fn text(figures: OutOfMemory, circumstances: Circumstances) -> String {
        error("vulkan:0", figures, circumstances, None).to_string()
    }

    #[test]
    fn every_figure_is_in_the_text() {
        let text = text(
            figures(OutOfMemoryReason::FullNow),
            Circumstances::default(),
        );
        assert_eq!(
            text,
            "vulkan:0 has no room for 64 MiB: its memory is full now. Of its 1 GiB, 10 MiB are free; \
             this process holds 1000 MiB: 900 MiB in buffers, 60 MiB cached, the largest free piece \
             of it 50 MiB. Drop buffers, or work in smaller pieces."
        );
    }

    #[test]
    fn advice_fits_the_settings_in_force() {
        let mut fragmented = figures(OutOfMemoryReason::FullNow);
        (fragmented.cached, fragmented.largest_free_block) = (100 * MIB, MIB);
        let mut circumstances = Circumstances::default();
        assert!(text(fragmented.clone(), circumstances).contains("set max_split_size_mb"));
        circumstances.splits_are_bounded = true;
        assert!(!text(fragmented, circumstances).contains("set max_split_size_mb in"));

        let mut over = figures(OutOfMemoryReason::OverLimit);
        over.limit = Some(1000 * MIB);
        let by_bytes = text(over.clone(), circumstances);
        let said = "by the limit of set_memory_limit this process may hold 1000 MiB at most";
        assert!(by_bytes.contains(said), "{by_bytes}");
        assert!(by_bytes.contains("VKACCEL_MEMORY_LIMIT"));
        circumstances.limit_is_fraction = true;
        let by_part = text(over, circumstances);
        let said = "by the limit of set_per_process_memory_fraction this process may hold";
        assert!(by_part.contains(said), "{by_part}");
    }

    #[test]
    fn what_never_fits_is_told_with_the_most_that_one_buffer_can_have() {
        let circumstances = Circumstances {
            largest_buffer: 2 << 30,
            ..Circumstances::default()
        };
        let text = text(figures(OutOfMemoryReason::NeverFits), circumstances);
        assert!(
            text.contains("one buffer of it can have 2 GiB at most"),
            "{text}"
        );
    }

    #[test]
    fn a_limit_that_the_request_alone_exceeds_is_told_as_that() {
        let mut beyond = figures(OutOfMemoryReason::OverLimit);
        beyond.limit = Some(60 * MIB);
        assert!(is_beyond_limit(&beyond));
        let text = text(beyond, Circumstances::default());
        assert!(text.contains("more than the limit alone"), "{text}");
    }

    #[test]
    fn a_piece_of_another_stream_is_told_as_that() {
        let mut strange = figures(OutOfMemoryReason::OverLimit);
        (strange.limit, strange.largest_free_block) = (Some(1000 * MIB), 64 * MIB);
        let text = text(strange, Circumstances::default());
        assert!(text.contains("another stream's or pool's"), "{text}");
    }

    #[test]
    fn what_others_hold_is_not_blamed_on_the_program() {
        let mut crowded = figures(OutOfMemoryReason::RefusedByDriver);
        (crowded.allocated, crowded.reserved, crowded.cached) = (0, 0, 0);
        crowded.largest_free_block = 0;
        assert!(text(crowded, Circumstances::default()).contains("held by others"));
    }

    #[test]
    fn the_code_of_the_driver_is_kept() {
        let cause = Error::new(ErrorKind::OutOfMemory, "no pages").with_raw(-2);
        let figures = figures(OutOfMemoryReason::RefusedByDriver);
        let error = error("vulkan:0", figures, Circumstances::default(), Some(cause));
        assert_eq!(error.raw(), Some(-2));
        assert!(error.to_string().contains("the driver refused (no pages)"));
    }

    #[test]
    fn sizes_are_read_at_a_glance_and_exact() {
        assert_eq!(bytes(0), "0 bytes");
        assert_eq!(bytes(1), "1 byte");
        assert_eq!(bytes(1023), "1023 bytes");
        assert_eq!(bytes(1536), "1.50 KiB (1536 bytes)");
        assert_eq!(bytes(3 << 30), "3 GiB");
        assert_eq!(bytes(u64::MAX), "16383.99 PiB (18446744073709551615 bytes)");
    }
}
