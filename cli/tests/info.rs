//! `vkaccel info` with and without devices.

mod support;

use serde_json::Value;
use support::{Outcome, Scratch, has_device};

/// The program where no loader can be found.
fn without_loader(scratch: &Scratch, args: &str) -> Outcome {
    scratch.vkaccel_with(args, &[("VKACCEL_LOADER", "/nonexistent/libvulkan.so.1")])
}

/// The program where the loader finds no driver.
fn without_driver(scratch: &Scratch, args: &str) -> Outcome {
    let none = "/nonexistent/driver.json";
    scratch.vkaccel_with(
        args,
        &[("VK_ICD_FILENAMES", none), ("VK_DRIVER_FILES", none)],
    )
}

#[test]
fn no_loader_and_no_driver_are_answers_that_say_what_to_install() {
    let scratch = Scratch::new("bare");
    for outcome in [
        without_loader(&scratch, "info"),
        without_driver(&scratch, "info"),
        without_driver(&scratch, "info --all"),
    ] {
        let outcome = outcome.ok();
        assert!(outcome.stdout.starts_with("no device: "), "{outcome:?}");
        assert!(outcome.stdout.contains("apt install"), "{outcome:?}");
    }
}

#[test]
fn no_device_is_json_with_the_reason() {
    let scratch = Scratch::new("json-bare");
    let outcome = without_loader(&scratch, "info --json --all").ok();
    let value: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(value["devices"], Value::Array(Vec::new()));
    assert_eq!(value["default"], Value::Null);
    assert!(value["fault"].is_string(), "{outcome:?}");
}

#[test]
fn run_without_a_device_fails_with_1_and_says_why() {
    let scratch = Scratch::new("run-bare");
    for (name, value) in [
        ("VKACCEL_LOADER", "/nonexistent/libvulkan.so.1"),
        ("VK_ICD_FILENAMES", "/nonexistent/driver.json"),
    ] {
        let shader = support::shader("shaders/saxpy.comp");
        let args = format!("run {} --groups 1", shader.display());
        let outcome = scratch.vkaccel_with(&args, &[(name, value), ("VK_DRIVER_FILES", value)]);
        outcome.fails(1, "ulkan");
    }
}

#[test]
fn every_device_is_told_with_what_it_is_and_can_do() {
    if !has_device("every_device_is_told_with_what_it_is_and_can_do") {
        return;
    }
    let scratch = Scratch::new("devices");
    let text = scratch.vkaccel("info --all").ok().stdout;
    let outcome = scratch.vkaccel("info --json --all").ok();
    let value: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let devices = value["devices"].as_array().unwrap();
    assert_eq!(devices.len(), vkaccel::device_count());
    assert_eq!(value["default"]["index"], 0);
    assert_eq!(value["fault"], Value::Null);
    assert!(value["left_out"].is_array());
    for (index, device) in devices.iter().enumerate() {
        let name = device["name"].as_str().unwrap();
        assert!(text.contains(&format!("vulkan:{index}  {name}")), "{text}");
        assert_eq!(device["index"], index);
        assert_eq!(device["uuid"].as_str().unwrap().len(), 36);
        let memory = &device["memory"];
        let (free, total) = (
            memory["free_bytes"].as_u64(),
            memory["total_bytes"].as_u64(),
        );
        assert!(free <= total && total > Some(0), "{memory}");
        let dtypes = device["dtypes"].as_array().unwrap();
        assert!(dtypes.contains(&Value::from("f32")), "{dtypes:?}");
        let counts = device["limits"]["max_compute_work_group_count"]
            .as_array()
            .unwrap();
        assert_eq!(counts.len(), 3);
    }
}

#[test]
fn a_mask_hides_devices_and_all_says_so() {
    if !has_device("a_mask_hides_devices_and_all_says_so") {
        return;
    }
    let scratch = Scratch::new("mask");
    let mask = [("VKACCEL_VISIBLE_DEVICES", "")];
    let outcome = scratch.vkaccel_with("info --json --all", &mask).ok();
    let value: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(value["devices"], Value::Array(Vec::new()));
    let left_out = value["left_out"].as_array().unwrap();
    assert!(!left_out.is_empty());
    for device in left_out {
        let reason = device["reason"].as_str().unwrap();
        assert!(reason.contains("VKACCEL_VISIBLE_DEVICES"), "{reason}");
    }
}

#[test]
fn a_list_of_visible_devices_that_makes_no_sense_is_a_failure_and_nothing_to_install() {
    if !has_device("a_list_of_visible_devices_that_makes_no_sense") {
        return;
    }
    let scratch = Scratch::new("list");
    let list = [("VKACCEL_VISIBLE_DEVICES", "abc")];
    for args in ["info", "info --json --all"] {
        let outcome = scratch.vkaccel_with(args, &list);
        assert!(!outcome.stdout.contains("apt install"), "{outcome:?}");
        outcome.fails(1, "VKACCEL_VISIBLE_DEVICES");
    }
}
