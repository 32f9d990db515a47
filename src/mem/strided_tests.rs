//! Carries out plans on a memory of bytes, by Vulkan's rules, beside loops over single bytes.

#![expect(
    clippy::cast_possible_truncation,
    reason = "the tests use small numbers"
)]

use super::*;

/// Where each byte of the content is.
fn places(rows: &Strided) -> Vec<usize> {
    let all = (0..rows.count).flat_map(|row| {
        let start = rows.row(row);
        (start..start + rows.len).map(|byte| byte as usize)
    });
    all.skip(rows.from as usize).collect()
}

fn numbered(len: usize) -> Vec<u8> {
    (0..len).map(|byte| (byte * 37 % 251) as u8).collect()
}

/// Runs the regions as one command whose sides are different memory.
fn copy(runs: &[Run], from: &[u8], to: &mut [u8]) {
    let mut written = vec![false; to.len()];
    for run in runs {
        assert!(run.len > 0, "an empty region is not allowed");
        let (src, dst, len) = (run.src as usize, run.dst as usize, run.len as usize);
        let target = &mut written[dst..dst + len];
        assert!(target.iter().all(|&done| !done), "regions overlap");
        target.fill(true);
        to[dst..dst + len].copy_from_slice(&from[src..src + len]);
    }
}

/// The same inside one memory.
fn copy_inside(runs: &[Run], memory: &mut [u8]) {
    for one in runs {
        for other in runs {
            let lo = one.src.max(other.dst);
            let hi = (one.src + one.len).min(other.dst + other.len);
            assert!(hi <= lo, "a region is read that is written");
        }
    }
    let before = memory.to_vec();
    copy(runs, &before, memory);
}

/// What a copy does, byte by byte.
fn expected(src: &Strided, dst: &Strided, from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut to = to.to_vec();
    for (place, source) in places(dst).into_iter().zip(places(src)) {
        to[place] = from[source];
    }
    to
}

/// All small rows with these counts and lengths, with gaps and without.
fn shapes(start: u64) -> impl Iterator<Item = Strided> {
    let counted = (1..5).flat_map(|count| (1..5).map(move |len| (count, len)));
    counted.flat_map(move |(count, len)| {
        (len..len + 4).map(move |stride| Strided::new(start, count, len, stride))
    })
}

#[test]
fn every_small_copy_between_rows_is_byte_exact_from_any_byte_on() {
    for src in shapes(3) {
        for dst in shapes(1).filter(|dst| dst.bytes() == src.bytes()) {
            for skipped in 0..src.bytes() {
                let (src, dst) = (src.skip(skipped), dst.skip(skipped));
                for bytes in [src.bytes(), src.bytes().div_ceil(2)] {
                    let (from, mut to) = (numbered(64), vec![0xEE; 64]);
                    let runs: Vec<_> = runs(src, dst, bytes).collect();
                    let mut whole = expected(&src, &dst, &from, &to);
                    for &beyond in &places(&dst)[bytes as usize..] {
                        whole[beyond] = 0xEE;
                    }
                    copy(&runs, &from, &mut to);
                    assert_eq!(to, whole, "{src:?} to {dst:?}, {bytes} bytes");
                    let ascending =
                        |pair: &[Run]| pair[0].src < pair[1].src && pair[0].dst < pair[1].dst;
                    assert!(runs.windows(2).all(ascending));
                }
            }
        }
    }
}

#[test]
fn rows_without_gaps_are_one_region() {
    let dense = Strided::new(10, 1000, 8, 8);
    assert_eq!(dense.together(), Some((10, 8000)));
    assert_eq!(dense.skip(3).together(), Some((13, 7997)));
    let whole: Vec<_> = runs(dense, Strided::dense(50, 8000), 8000).collect();
    assert_eq!(
        whole,
        [Run {
            src: 10,
            dst: 50,
            len: 8000
        }]
    );
    let gaps = Strided::new(10, 1000, 8, 9);
    assert_eq!(gaps.together(), None);
    assert_eq!(gaps.skip(7993).together(), Some((9002, 7)));
    assert_eq!(runs(dense, gaps, 8000).count(), 1000);
}

#[test]
fn content_goes_through_pieces_of_any_size() {
    let (src, dst) = (Strided::new(2, 9, 7, 11), Strided::new(0, 9, 7, 8));
    let from = numbered(128);
    for room in 1..=70u64 {
        let mut to = vec![0xEE; 128];
        let mut done = 0;
        while done < src.bytes() {
            let bytes = room.min(src.bytes() - done);
            let piece = Strided::dense(5, bytes);
            let mut staged = vec![0; 80];
            let there: Vec<_> = runs(src.skip(done), piece, bytes).collect();
            copy(&there, &from, &mut staged);
            let back: Vec<_> = runs(piece, dst.skip(done), bytes).collect();
            copy(&back, &staged, &mut to);
            done += bytes;
        }
        assert_eq!(to, expected(&src, &dst, &from, &[0xEE; 128]), "{room}");
    }
}

#[test]
fn an_overlap_is_a_byte_that_both_sides_have() {
    let mut counts = [0; 2];
    for start in [0, 1, 2, 7, 30] {
        for one in shapes(start) {
            for other in shapes(5) {
                let theirs = places(&other);
                let shared = places(&one).iter().any(|place| theirs.contains(place));
                assert_eq!(overlap(&one, &other), shared, "{one:?} and {other:?}");
                assert_eq!(overlap(&other, &one), shared);
                counts[usize::from(shared)] += 1;
            }
        }
    }
    assert!(counts[0] > 100 && counts[1] > 100, "{counts:?}");
}

#[test]
fn rows_between_each_other_do_not_overlap() {
    let even = Strided::new(0, 1 << 20, 8, 16);
    let odd = Strided::new(8, 1 << 20, 8, 16);
    assert!(!overlap(&even, &odd));
    assert!(overlap(&even, &Strided { start: 9, ..odd }));
}

/// Carries a move out piece by piece through a block of so many bytes.
fn move_inside(src: Strided, dst: Strided, room: u64, memory: &mut [u8]) {
    let moves = moves(&src, &dst);
    let mut temp = vec![0; moves.temp_bytes().min(room) as usize];
    for (from, len) in moves.with_temp(room) {
        assert!(len > 0 && len <= room);
        let block = Strided::dense(0, len);
        let saved: Vec<_> = runs(src.skip(from), block, len).collect();
        copy(&saved, memory, &mut temp);
        let restored: Vec<_> = runs(block, dst.skip(from), len).collect();
        copy(&restored, &temp, memory);
    }
}

#[test]
fn rows_that_move_onto_themselves_keep_what_they_were() {
    let mut overlapping = 0;
    for start in 0..12 {
        for src in shapes(start) {
            let alike = |dst: &Strided| dst.count == src.count && dst.len == src.len;
            for dst in shapes(5).filter(alike) {
                let before = numbered(64);
                let right = expected(&src, &dst, &before, &before);
                for room in [1, 2, 3, 5, 1000] {
                    let mut memory = before.clone();
                    move_inside(src, dst, room, &mut memory);
                    assert_eq!(memory, right, "{src:?} to {dst:?} by {room}");
                }
                if overlap(&src, &dst) {
                    overlapping += 1;
                } else {
                    let mut memory = before.clone();
                    let runs: Vec<_> = runs(src, dst, src.bytes()).collect();
                    copy_inside(&runs, &mut memory);
                    assert_eq!(memory, right);
                }
            }
        }
    }
    assert!(overlapping > 100);
}

#[test]
fn rows_move_both_ways_around_one_that_stays() {
    // Rows 0 and 1 move up, row 2 stays, rows 3 and 4 move down.
    let (src, dst) = (Strided::new(0, 5, 4, 10), Strided::new(10, 5, 4, 5));
    let pieces: Vec<_> = moves(&src, &dst).with_temp(3).collect();
    assert_eq!(pieces, [(12, 3), (15, 3), (18, 2), (5, 3), (2, 3), (0, 2)]);
    assert_eq!(moves(&src, &dst).temp_bytes(), 8);
    let same = moves(&src, &src);
    assert_eq!((same.temp_bytes(), same.count()), (0, 0));
}

#[test]
fn places_near_the_end_of_all_numbers_do_not_wrap() {
    let end = u64::MAX - 100;
    let rows = Strided::new(end, 3, 10, 40);
    let all: Vec<_> = runs(rows, Strided::dense(0, 30), 30).collect();
    assert_eq!(all[2].src, end + 80);
    assert!(!overlap(&rows, &Strided::new(end + 10, 3, 10, 40)));
    assert_eq!(moves(&rows, &Strided::new(0, 3, 10, 10)).count(), 1);
}
