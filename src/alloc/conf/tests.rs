//! Settings: what is read, what is refused and how, and that they print as they are read.

use super::AllocConf;
use crate::alloc::size::MIB;
use crate::error::ErrorKind;

fn parsed(text: &str) -> AllocConf {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refused(text: &str) -> String {
    let error = text.parse::<AllocConf>().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{text}");
    error.to_string()
}

#[test]
fn nothing_said_means_pytorchs_defaults() {
    let conf = parsed(" ");
    assert_eq!(conf, AllocConf::default());
    assert_eq!(conf.max_split_size(), None);
    assert_eq!(conf.max_non_split_rounding(), 20 * MIB);
    assert_eq!(conf.large_segment_size(), 20 * MIB);
    assert_eq!(conf.garbage_collection_threshold(), None);
    assert_eq!(conf.roundup_power2_divisions(3 * MIB), 0);
    assert!((conf.per_process_memory_fraction() - 1.0).abs() < f64::EPSILON);
    assert_eq!(conf.pinned_max_round_threshold(), None);
    assert_eq!(conf.pinned_max_cached_size(), None);
    assert!(!conf.segment_per_allocation() && !conf.cross_stream_reuse());
    assert_eq!(conf.to_string(), "");
}

#[test]
fn every_key_is_read_and_printed_as_it_is_read() {
    let text = "max_split_size_mb:64,max_non_split_rounding_mb:32,large_segment_size_mb:24,\
                garbage_collection_threshold:0.75,roundup_power2_divisions:4,\
                per_process_memory_fraction:0.5,pinned_max_round_threshold_mb:8,\
                pinned_max_cached_size_mb:128,segment_per_allocation:True,cross_stream_reuse:True";
    let conf = parsed(text);
    assert_eq!(conf.to_string(), text);
    assert_eq!(conf.max_split_size(), Some(64 * MIB));
    assert_eq!(conf.max_non_split_rounding(), 32 * MIB);
    assert_eq!(conf.large_segment_size(), 24 * MIB);
    assert_eq!(conf.garbage_collection_threshold(), Some(0.75));
    assert_eq!(conf.roundup_power2_divisions(1), 4);
    assert!((conf.per_process_memory_fraction() - 0.5).abs() < f64::EPSILON);
    assert_eq!(conf.pinned_max_round_threshold(), Some(8 * MIB));
    assert_eq!(conf.pinned_max_cached_size(), Some(128 * MIB));
    assert!(conf.segment_per_allocation() && conf.cross_stream_reuse());
}

#[test]
fn blanks_order_repeats_and_a_last_comma_are_as_in_pytorch() {
    let conf = parsed(" large_segment_size_mb : 30 , max_split_size_mb:40, max_split_size_mb:50 ,");
    assert_eq!(conf.max_split_size(), Some(50 * MIB));
    // Whatever is said first, both are held against each other in the end.
    assert_eq!(
        parsed("max_split_size_mb:40,large_segment_size_mb:30").large_segment_size(),
        30 * MIB
    );
}

#[test]
fn a_list_of_divisions_fills_the_classes_around_the_named_ones() {
    let conf = parsed("roundup_power2_divisions:[64:8,256:4,1024:4,>:1]");
    let of = |mib: u64| conf.roundup_power2_divisions(mib * MIB);
    // The first one fills the classes below.
    assert_eq!([of(0), of(1), of(63), of(64), of(127)], [8; 5]);
    // Between named classes nothing is set.
    assert_eq!([of(128), of(255), of(512), of(1023)], [0; 4]);
    assert_eq!([of(256), of(511), of(1024), of(2047)], [4; 4]);
    assert_eq!([of(2048), of(1 << 20)], [1; 2]);
    assert_eq!(conf.roundup_power2_divisions(u64::MAX), 1);
    assert_eq!(parsed(&conf.to_string()), conf);
}

#[test]
fn keys_that_mean_nothing_here_are_accepted_at_their_defaults_and_refused_with_a_reason_otherwise()
{
    let defaults = "expandable_segments:False,backend:native,release_lock_on_cudamalloc:False,\
                    release_lock_on_hipmalloc:False,throw_on_cudamalloc_oom:False,\
                    graph_capture_record_stream_reuse:False,pinned_use_background_threads:False,\
                    pinned_use_cuda_host_register:False,pinned_use_hip_host_register:False,\
                    pinned_num_register_threads:1,pinned_reserve_segment_size_mb:0,\
                    pinned_free_catch_all:False";
    assert_eq!(parsed(defaults), AllocConf::default());
    for pair in defaults.split(',') {
        let (key, default) = pair.split_once(':').unwrap();
        let text = refused(&format!("{key}:True"));
        assert!(
            text.starts_with(&format!("{key}:True is not supported: ")),
            "{text}"
        );
        assert!(text.ends_with(&format!("or at {default}")), "{text}");
    }
    assert!(refused("expandable_segments:True").contains("sparse binding"));
}

#[test]
fn what_makes_no_sense_is_refused_with_what_would() {
    for (text, expected) in [
        ("max_split_size:64", "there are max_split_size_mb, "),
        ("max_split_size_mb", "settings are `key:value`"),
        ("max_split_size_mb:", "a whole number of MiB, not ``"),
        ("max_split_size_mb:-1", "a whole number of MiB, not `-1`"),
        ("max_split_size_mb:19", "at least large_segment_size_mb, 20"),
        (
            "max_split_size_mb:20,large_segment_size_mb:21",
            "at least large_segment_size_mb, 21",
        ),
        ("max_non_split_rounding_mb:19", "at least 20, not `19`"),
        ("large_segment_size_mb:10", "at least 11, not `10`"),
        ("garbage_collection_threshold:0", "both excluded"),
        ("garbage_collection_threshold:1.0", "both excluded"),
        ("garbage_collection_threshold:NaN", "from 0 to 1, not `NaN`"),
        ("per_process_memory_fraction:1.5", "from 0 to 1"),
        ("per_process_memory_fraction:-0.1", "from 0 to 1"),
        ("roundup_power2_divisions:3", "powers of two"),
        (
            "roundup_power2_divisions:[3:4]",
            "sizes in MiB that are powers of two",
        ),
        ("roundup_power2_divisions:[4:3]", "powers of two"),
        ("roundup_power2_divisions:[4:4", "ends with `]`"),
        ("roundup_power2_divisions:[4]", "pairs as `256:4`"),
        ("segment_per_allocation:true", "True or False, not `true`"),
        (",", "settings are `key:value`"),
    ] {
        let found = refused(text);
        assert!(found.contains(expected), "{text}: {found}");
    }
}

#[test]
fn more_than_can_be_counted_is_as_good_as_no_limit() {
    let conf = parsed("max_split_size_mb:18446744073709551615");
    assert_eq!(conf.max_split_size(), Some(u64::MAX / MIB * MIB));
}
