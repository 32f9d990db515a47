//! Which parts of a buffer a descriptor may name: alignments, ranges, ends.

#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

mod support;

use support::kernels::kernel;
use support::{on_each_device, skip};
use vkaccel::{Buffer, Details, Error, ErrorKind, Grid, Result, get_device_capability};

/// Checks that a launch was done, or refused with these numbers; returns whether it was done.
#[track_caller]
fn done_or_refused(launched: Result<()>, fits: bool, numbers: (u64, u64)) -> bool {
    let Err(error) = launched else {
        assert!(fits, "what does not fit was launched: {numbers:?}");
        return true;
    };
    assert!(!fits, "{error}");
    assert_eq!(limit(&error), numbers, "{error}");
    false
}

/// What was asked for, and what the device takes.
#[track_caller]
fn limit(error: &Error) -> (u64, u64) {
    match error.details() {
        Some(Details::Limit { asked, limit, .. }) => (*asked, *limit),
        Some(Details::Alignment {
            offset, alignment, ..
        }) => (*offset, *alignment),
        _ => panic!("no limit: {error}"),
    }
}

/// Whether a view's part is read or written, only its offset counts, not its length.
#[test]
fn every_offset_is_bound_as_it_is_or_refused_with_the_alignment() {
    on_each_device("every_offset_is_bound", |_| {
        let capability = get_device_capability(None).unwrap();
        let alignment = capability.limits().min_storage_buffer_offset_alignment;
        let kernel = kernel("affine_map");
        let words: Vec<u32> = (0..256).collect();
        let mut bound = 0;
        for start in 0..=130usize {
            let source = Buffer::from_slice(&words).unwrap();
            let target = Buffer::<u32>::zeroed(256).unwrap();
            let offset = start as u64 * 4;
            let fits = offset.is_multiple_of(alignment);
            let length = 1 + start % 7;
            let read = source.view(start..start + length).unwrap();
            let count = u32::try_from(length).unwrap();
            let elements = Grid::elements(length as u64);
            let launched = kernel.launch(elements, (read, &target, 10, 0, count));
            if done_or_refused(launched, fits, (offset, alignment)) {
                let part = &words[start..start + length];
                let expected: Vec<u32> = part.iter().map(|word| word * 10).collect();
                assert_eq!(target.view(..length).unwrap().to_vec().unwrap(), expected);
            }
            let write = target.view(start..start + length).unwrap();
            let launched = kernel.launch(elements, (&source, write, 1, 1000, count));
            if done_or_refused(launched, fits, (offset, alignment)) {
                bound += 1;
                let written = target.to_vec().unwrap();
                assert_eq!(written[start], 1000);
                // Nothing behind the view, and nothing before it but what the first launch wrote.
                assert_eq!(written[start + length], 0);
                if start > length {
                    assert_eq!(written[start - 1], 0);
                }
            } else {
                let written = target.to_vec().unwrap();
                assert!(written.iter().all(|&word| word < 1000));
            }
        }
        assert_eq!(bound, 520 / alignment.max(4) + 1);
    });
}

#[test]
fn a_view_past_the_end_is_no_view() {
    on_each_device("a_view_past_the_end", |_| {
        let buffer = Buffer::<u32>::zeroed(64).unwrap();
        for (start, end) in [
            (64, 72),
            (60, 65),
            (0, 65),
            (65, 65),
            (usize::MAX - 1, usize::MAX),
        ] {
            let error = buffer.view(start..end).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{start}..{end}");
            assert!(error.to_string().contains("64"), "{error}");
        }
        assert_eq!(buffer.view(64..64).unwrap().len(), 0);
    });
}

/// A buffer that is one word longer than a descriptor reaches.
#[test]
fn both_ends_of_a_buffer_that_no_descriptor_reaches_over_can_be_bound() {
    const NAME: &str = "both_ends_of_a_buffer";
    on_each_device(NAME, |_| {
        let capability = get_device_capability(None).unwrap();
        let limits = *capability.limits();
        let (range, alignment) = (
            limits.max_storage_buffer_range,
            limits.min_storage_buffer_offset_alignment,
        );
        if range > 1 << 28 || range + 4 > limits.max_buffer_size {
            return skip(
                NAME,
                "no buffer is larger than a descriptor reaches, or fits a test",
            );
        }
        let most = usize::try_from(range / 4).unwrap();
        let buffer = Buffer::<u32>::zeroed(most + 1).unwrap();
        let kernel = kernel("affine");
        let add = |view, offset: u32, count: u32| {
            kernel.launch(Grid::elements(u64::from(count)), (view, 1, offset, count))
        };
        add(buffer.view(..most).unwrap(), 3, 2).unwrap();
        // The last part begins at byte 4.
        let last = add(buffer.view(1..).unwrap(), 5, 2);
        let second = match done_or_refused(last, alignment <= 4, (4, alignment)) {
            true => [8, 5],
            false => [3, 0],
        };
        let start = buffer.view(..3).unwrap().to_vec().unwrap();
        assert_eq!(start, [3, second[0], second[1]]);
        // The last part that may be bound reaches the end.
        let step = usize::try_from(alignment / 4).unwrap().max(1);
        let from = (most / 2).next_multiple_of(step);
        add(buffer.view(from..).unwrap(), 7, 1).unwrap();
        assert_eq!(buffer.view(from..=from).unwrap().to_vec().unwrap(), [7]);
    });
}
