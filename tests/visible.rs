//! The list of visible devices, from the environment of a process to what runs on which device.

#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

mod support;

use std::env;
use std::process::Command;

use support::kernels::kernel;
use support::{TestRuntime, builder, skip};
use vkaccel::{Buffer, Candidate, Grid, get_device_capability};

/// Set in the processes that the tests start: the part that is asked for.
const PART: &str = "VKACCEL_TEST_VISIBLE_PART";
const LIST: &str = "VKACCEL_VISIBLE_DEVICES";

/// What a process prints of each device, behind its index.
fn identity(name: &str, uuid: [u8; 16]) -> String {
    let digits: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{name} {digits}")
}

/// All devices that there are without a list, as `selection` orders them; none where the tests
/// can't be done.
fn all(test: &str) -> Option<Vec<Candidate>> {
    let runtime = TestRuntime::new(builder());
    let all = runtime.runtime().selection().unwrap_or_default();
    let all: Vec<Candidate> = all.into_iter().filter(|one| one.accepted).collect();
    if all.len() < 2 {
        skip(test, "one device or none: both drivers are needed");
        return None;
    }
    Some(all)
}

/// What a process with this list (`None`: without one) prints: its devices, or its error.
fn with_list(list: Option<&str>) -> Vec<String> {
    let mut child = Command::new(env::current_exe().unwrap());
    child.args(["--exact", "a_process_of_its_own", "--nocapture"]);
    child.env(PART, "1").env_remove(LIST);
    if let Some(list) = list {
        child.env(LIST, list);
    }
    let output = child.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{list:?}: {text}{errors}");
    let told = text.lines().filter_map(|line| line.split_once("told: "));
    told.map(|(_, told)| told.to_owned()).collect()
}

/// Not a test of its own: the part of the others that runs in a process that they start.
#[test]
fn a_process_of_its_own() {
    if env::var_os(PART).is_none() {
        return;
    }
    let count = vkaccel::device_count();
    assert_eq!(vkaccel::is_available(), count > 0);
    for index in 0..count {
        // Each query, and what is run, agree on which device the index means.
        let index = u32::try_from(index).unwrap();
        vkaccel::set_device_index(index).unwrap();
        let capability = get_device_capability(None).unwrap();
        let named = get_device_capability(format!("vulkan:{index}").as_str()).unwrap();
        assert_eq!(named.uuid(), capability.uuid());
        let data = Buffer::from_slice(&[1u32, 2]).unwrap();
        assert_eq!(data.device().index(), Some(index));
        kernel("affine")
            .launch(Grid::elements(2), (&data, 10, index, 2))
            .unwrap();
        assert_eq!(data.to_vec().unwrap(), [10 + index, 20 + index]);
        println!("told: {}", identity(capability.name(), capability.uuid()));
    }
    if count == 0 {
        let error = get_device_capability(None).unwrap_err();
        println!("told: {:?}: {error}", error.kind());
    }
}

/// What each list means, with the drivers that are there, in processes of their own.
#[test]
fn the_list_of_the_environment_keeps_its_order_and_ends_at_what_is_no_device() {
    let Some(all) = all("the_list_of_the_environment") else {
        return;
    };
    let devices: Vec<String> = all
        .iter()
        .map(|one| identity(&one.name, one.uuid))
        .collect();
    let digits = |index: usize| devices[index].rsplit(' ').next().unwrap().to_owned();
    let (first, second) = (digits(0), digits(1));
    let unlike = first.bytes().zip(second.bytes()).position(|(a, b)| a != b);
    let prefix = &second[..=unlike.unwrap()];
    let dashed = format!(
        "{}-{}-{}-{}-{}",
        &first[..8],
        &first[8..12],
        &first[12..16],
        &first[16..20],
        &first[20..]
    );

    assert_eq!(with_list(None), devices);
    for (list, expected) in [
        ("0", &[0][..]),
        ("1", &[1]),
        ("1,0", &[1, 0]),
        (" 1 , 0 ", &[1, 0]),
        ("1,-1,0", &[1]),
        ("0,9,1", &[0]),
        (&format!("uuid:{prefix}"), &[1]),
        (&format!("uuid:{second},uuid:{dashed}"), &[1, 0]),
        (&format!("uuid:{},0", prefix.to_uppercase()), &[1, 0]),
    ] {
        let expected: Vec<&String> = expected.iter().map(|&at| &devices[at]).collect();
        assert_eq!(
            with_list(Some(list)).iter().collect::<Vec<_>>(),
            expected,
            "{list:?}"
        );
    }
}

#[test]
fn a_list_without_devices_or_sense_shows_none_and_says_why() {
    let Some(all) = all("a_list_without_devices") else {
        return;
    };
    let twice = format!("0,{}", identity("uuid:", all[0].uuid).replace(' ', ""));
    for (list, kind, part) in [
        ("", "NoDevice", "is empty"),
        ("-1", "NoDevice", "-1"),
        ("9,0", "NoDevice", "9,0"),
        ("uuid:0123456789", "NoDevice", "uuid:0123456789"),
        ("0,0", "Config", "twice"),
        (&twice, "Config", "twice"),
        ("abc", "Config", "abc"),
        ("0,1.5", "Config", "1.5"),
        ("uuid:xyz", "Config", "xyz"),
    ] {
        let told = with_list(Some(list));
        let [told] = &told[..] else {
            panic!("{list:?} shows devices: {told:?}");
        };
        assert!(told.starts_with(&format!("{kind}: ")), "{list:?}: {told}");
        assert!(
            told.contains(part) && told.contains(LIST),
            "{list:?}: {told}"
        );
    }
}

#[test]
fn a_runtimes_own_list_takes_the_place_of_the_environments() {
    let Some(all) = all("a_runtimes_own_list") else {
        return;
    };
    // The tests' environment has no list; the index counts in the order without one.
    for (index, one) in all.iter().enumerate() {
        let only = builder().visible_devices(index.to_string());
        let runtime = TestRuntime::new(only);
        let visible = runtime.runtime().selection().unwrap();
        let (taken, hidden): (Vec<_>, Vec<_>) = visible.iter().partition(|one| one.accepted);
        assert_eq!(taken.len(), 1);
        assert_eq!((taken[0].uuid, taken[0].index), (one.uuid, Some(0)));
        assert!(hidden.iter().all(|one| one.index.is_none()));
        let reasons = hidden.iter().filter(|one| one.reason.contains("hidden"));
        assert_eq!(reasons.count(), all.len() - 1);
    }
}
