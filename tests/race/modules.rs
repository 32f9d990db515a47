//! What the log reads from shaders.

use crate::race::reach::{self, Launch};
use crate::race::shader::{Access, Uses, uses};
use crate::support::spirv;

const NOTHING: Access = Access {
    reads: false,
    writes: false,
};
const READ: Access = Access {
    reads: true,
    writes: false,
};
const WRITTEN: Access = Access {
    reads: false,
    writes: true,
};
const BOTH: Access = Access {
    reads: true,
    writes: true,
};

fn words(bytes: &[u8]) -> Vec<u32> {
    let words = bytes.as_chunks::<4>().0;
    words.iter().map(|word| u32::from_le_bytes(*word)).collect()
}

fn of(name: &str) -> Uses {
    uses(&words(&spirv(name)), "main")
}

fn descriptors(name: &str) -> Vec<((u32, u32), Access)> {
    of(name).descriptors.into_iter().collect()
}

fn addresses(name: &str) -> Vec<(u32, Access)> {
    of(name).addresses.into_iter().collect()
}

#[test]
fn descriptors_are_read_or_written_as_the_code_does() {
    assert_eq!(
        descriptors("access"),
        [
            ((0, 0), READ),
            ((0, 1), READ),
            ((0, 2), WRITTEN),
            ((0, 3), BOTH),
            ((0, 4), BOTH),
            ((0, 7), BOTH),
            ((1, 0), WRITTEN),
        ]
    );
    assert_eq!(
        descriptors("affine_map"),
        [((0, 0), READ), ((0, 1), WRITTEN)]
    );
    assert_eq!(descriptors("affine"), [((0, 0), BOTH)]);
    assert_eq!(
        descriptors("sets_with_gaps"),
        [
            ((0, 2), READ),
            ((0, 5), READ),
            ((3, 0), READ),
            ((3, 1), WRITTEN)
        ]
    );
    assert!(addresses("affine").is_empty());
}

#[test]
fn addresses_are_followed_from_the_push_constants() {
    assert_eq!(addresses("affine_at"), [(0, READ), (8, WRITTEN)]);
    assert_eq!(addresses("affine_here_at"), [(0, BOTH)]);
    assert_eq!(addresses("tick_at"), [(0, BOTH)]);
    assert_eq!(of("tick_at").bytes.get(&0), Some(&4));
    assert!(of("affine_at").bytes.is_empty());
    assert!(descriptors("affine_at").is_empty());
    for name in ["affine", "affine_at", "affine_here_at"] {
        assert_eq!(of(name).far, NOTHING, "{name}");
    }
}

#[test]
fn addresses_that_stand_in_memory_are_told_apart() {
    let table = of("address_table");
    assert_eq!((table.far, table.addresses.len()), (READ, 0));
    let list = of("follow_list");
    assert_eq!(list.far, BOTH);
    assert_eq!(list.addresses.into_iter().collect::<Vec<_>>(), [(0, READ)]);
}

/// Of the crate's own shaders, which hand the address through functions.
#[test]
fn shaders_of_the_crate_write_what_they_are_given() {
    let bits = include_bytes!("../../shaders/random_bits.spv");
    let bits = uses(&words(bits), "main");
    assert_eq!(bits.far, NOTHING);
    // The state's bytes are counted by its type, those of the words are not.
    assert_eq!(bits.bytes.into_iter().collect::<Vec<_>>(), [(16, 16)]);
    assert_eq!(
        bits.addresses.into_iter().collect::<Vec<_>>(),
        [(0, WRITTEN), (8, WRITTEN), (16, READ)]
    );
    let check = include_bytes!("../../shaders/indirect.spv");
    let check = uses(&words(check), "main");
    let accesses: Vec<_> = check.descriptors.into_values().collect();
    assert_eq!(accesses, [READ, WRITTEN, WRITTEN]);
}

#[test]
fn how_far_a_kernel_reaches_is_what_its_numbers_say() {
    let mut push = [0u8; 28];
    push[24] = 100;
    push[16] = 7;
    push[8] = 9;
    let launch = Launch {
        push: &push,
        groups: Some([3, 1, 1]),
    };
    let reach = |name: &str| reach::rule(&spirv(name)).map(|rule| rule(launch));
    assert_eq!(reach("affine_at"), Some((0, 400)));
    assert_eq!(reach("affine_here_at"), Some((0, 28)));
    assert_eq!(reach("add_at_index_at"), Some((36, 40)));
    assert_eq!(reach("slow_at"), Some((0, 12)));
    assert_eq!(reach("affine"), None);
}
