use super::super::info::{DeviceType, PciAddress};
use super::super::samples::{
    intel_integrated, lavapipe, moltenvk, nvidia_card, radv_card, swiftshader, uuid,
};
use super::mask::List;
use super::*;

/// The names of the visible devices, in the order of their indexes.
fn names(infos: &[PhysicalInfo], list: Option<&str>) -> Vec<String> {
    let selection = select(infos, list.map(List::of_environment)).unwrap();
    assert_eq!(selection.candidates.len(), infos.len());
    for (index, &position) in selection.visible.iter().enumerate() {
        let candidate = &selection.candidates[index];
        assert_eq!(candidate.index, u32::try_from(index).ok());
        assert_eq!(candidate.name, infos[position].name);
        assert!(candidate.accepted);
    }
    for candidate in &selection.candidates[selection.visible.len()..] {
        assert!(!candidate.accepted && candidate.index.is_none());
        assert!(!candidate.reason.is_empty());
    }
    let visible = selection.visible.iter();
    visible.map(|&place| infos[place].name.clone()).collect()
}

/// The reason of the last candidate, which is left out.
fn reason(infos: &[PhysicalInfo], list: Option<&str>) -> String {
    let selection = select(infos, list.map(List::of_environment)).unwrap();
    let last = selection.candidates.last().unwrap();
    assert!(!last.accepted, "{last:?}");
    last.reason.clone()
}

fn renamed(info: PhysicalInfo, name: &str) -> PhysicalInfo {
    PhysicalInfo {
        name: name.to_owned(),
        ..info
    }
}

#[test]
fn discrete_devices_come_first_and_software_last() {
    let infos = [
        swiftshader(),
        lavapipe(),
        intel_integrated(),
        radv_card(),
        nvidia_card(),
        PhysicalInfo {
            device_type: DeviceType::Virtual,
            name: "virtual".to_owned(),
            uuid: uuid(b"virtual"),
            pci: None,
            ..nvidia_card()
        },
    ];
    assert_eq!(
        names(&infos, None),
        [
            radv_card().name,
            nvidia_card().name,
            intel_integrated().name,
            "virtual".to_owned(),
            swiftshader().name,
            lavapipe().name,
        ]
    );
}

#[test]
fn every_sample_is_taken_alone_and_says_so() {
    for info in [
        nvidia_card(),
        radv_card(),
        intel_integrated(),
        moltenvk(),
        lavapipe(),
        swiftshader(),
    ] {
        let selection = select(std::slice::from_ref(&info), None).unwrap();
        let reason = &selection.candidates[0].reason;
        assert!(selection.candidates[0].accepted, "{reason}");
        assert!(reason.contains(&info.driver.name), "{reason}");
    }
}

#[test]
fn what_a_device_lacks_is_its_reason() {
    let mut old = radv_card();
    old.api_version = Version::new(1, 1);
    old.usable_version = old.api_version;
    old.features = Default::default();
    let reason_of = |info: PhysicalInfo| reason(&[nvidia_card(), info], None);
    assert_eq!(
        reason_of(old),
        "its driver has Vulkan 1.1.0 only, and 1.2.0 is needed; a newer driver may help"
    );

    let mut poor = moltenvk();
    poor.features.remove(Feature::BufferDeviceAddress);
    poor.features.remove(Feature::TimelineSemaphore);
    poor.queue_families[0].flags = QueueFlags::GRAPHICS;
    poor.queue_families.truncate(1);
    assert_eq!(
        reason_of(poor),
        "it lacks timelineSemaphore and bufferDeviceAddress, which every device needs here; it has \
         no queue that computes"
    );
}

#[test]
fn a_device_seen_through_two_drivers_counts_once() {
    let mesa = radv_card();
    let mut vendor = renamed(radv_card(), "AMD Radeon RX 6800");
    vendor.driver.id = 1;
    vendor.driver.name = "AMD open-source driver".to_owned();
    vendor.driver.uuid = uuid(b"AMD-LINUX-DRV");
    vendor.api_version = Version {
        patch: 1,
        ..vendor.api_version
    };
    // The newer Vulkan is kept, whichever is listed first.
    for infos in [
        [vendor.clone(), mesa.clone()],
        [mesa.clone(), vendor.clone()],
    ] {
        assert_eq!(names(&infos, None), [mesa.name.as_str()]);
        let reason = reason(&infos, None);
        assert_eq!(
            reason,
            "the same device as AMD Radeon RX 6800 (RADV NAVI21) (the same place on the PCI bus), \
             seen through the driver AMD open-source driver; that of radv is preferred because it \
             has the newer Vulkan 1.3.242 (here 1.3.1)"
        );
    }

    // The identity alone is enough across drivers.
    vendor.pci = None;
    assert_eq!(
        names(&[mesa.clone(), vendor.clone()], None),
        [mesa.name.as_str()]
    );
    assert!(reason(&[mesa.clone(), vendor], None).contains("the same deviceUUID"));
}

#[test]
fn layers_and_drivers_that_passed_no_test_give_way() {
    let native = intel_integrated();
    let mut layered = renamed(intel_integrated(), "Microsoft Direct3D12");
    layered.driver.id = 23;
    layered.api_version = Version::new(1, 4);
    layered
        .extensions
        .insert(Extension::LayeredDriver.name().to_owned());
    let infos = [layered, native.clone()];
    assert_eq!(names(&infos, None), [native.name.as_str()]);
    assert!(reason(&infos, None).contains("it is no layer"));

    let mut untested = renamed(intel_integrated(), "experimental");
    untested.driver.id = 99;
    untested.driver.conformance = [0; 4];
    untested.api_version = Version::new(1, 4);
    let infos = [untested, native.clone()];
    assert_eq!(names(&infos, None), [native.name.as_str()]);
    assert!(reason(&infos, None).contains("passed the conformance tests"));
}

#[test]
fn equal_cards_stay_apart() {
    let first = nvidia_card();
    // As it should be: an identity and a place of its own.
    let mut second = nvidia_card();
    second.uuid[0] ^= 1;
    second.pci.as_mut().unwrap().bus = 2;
    assert_eq!(names(&[first.clone(), second.clone()], None).len(), 2);
    // One identity for both, told apart by the place.
    second.uuid = first.uuid;
    assert_eq!(names(&[first.clone(), second.clone()], None).len(), 2);
    // One identity for both, and no place: one driver lists a device once.
    let mut first = first;
    first.pci = None;
    second.pci = None;
    assert_eq!(names(&[first.clone(), second.clone()], None).len(), 2);
    // No identity at all, through two drivers.
    first.uuid = [0; 16];
    second.uuid = [0; 16];
    second.driver.id = 99;
    assert_eq!(names(&[first, second], None).len(), 2);
}

#[test]
fn one_driver_installed_twice_counts_once() {
    let infos = [nvidia_card(), renamed(nvidia_card(), "again")];
    assert_eq!(names(&infos, None), [nvidia_card().name]);
    assert!(reason(&infos, None).ends_with("it is listed first"));
}

#[test]
fn parts_of_one_card_that_its_driver_shows_apart_stay_apart() {
    let mut part = nvidia_card();
    part.uuid[0] ^= 1;
    assert_eq!(part.pci, nvidia_card().pci);
    assert_eq!(names(&[nvidia_card(), part], None).len(), 2);
}

#[test]
fn an_adapter_id_joins_and_parts() {
    let mut layered = intel_integrated();
    layered.driver.id = 23;
    layered.uuid = uuid(b"another");
    layered.pci = None;
    layered.luid = Some([7; 8]);
    let mut native = intel_integrated();
    native.luid = Some([7; 8]);
    let both = [native.clone(), layered.clone()];
    assert_eq!(names(&both, None).len(), 1);
    assert!(reason(&both, None).contains("the same adapter id"));
    layered.luid = Some([8; 8]);
    layered.uuid = native.uuid;
    assert_eq!(names(&[native, layered], None).len(), 2);
}

#[test]
fn software_that_gives_its_version_as_identity_is_no_twin_of_hardware() {
    let mut hardware = radv_card();
    hardware.uuid = lavapipe().uuid;
    hardware.pci = Some(PciAddress {
        bus: 9,
        ..PciAddress::default()
    });
    assert_eq!(names(&[hardware, lavapipe()], None).len(), 2);
}

#[test]
fn the_list_speaks_of_selected_devices_and_what_it_hides_says_so() {
    let mut old = renamed(radv_card(), "old");
    old.usable_version = Version::V1_1;
    old.api_version = Version::V1_1;
    let infos = [lavapipe(), old, swiftshader(), nvidia_card()];
    assert_eq!(
        names(&infos, Some("2,0")),
        [swiftshader().name, nvidia_card().name]
    );
    assert_eq!(names(&infos, Some("uuid:6d65")), [lavapipe().name]);
    assert_eq!(names(&infos, Some("1,7,0")), [lavapipe().name]);
    let selection = select(&infos, Some(List::of_environment("2,0"))).unwrap();
    let left_out: Vec<_> = selection.candidates[2..]
        .iter()
        .map(|candidate| (candidate.name.as_str(), candidate.reason.as_str()))
        .collect();
    assert_eq!(left_out[0].0, lavapipe().name);
    assert_eq!(
        left_out[0].1,
        "hidden: not in the list of visible devices \"2,0\" (VKACCEL_VISIBLE_DEVICES)"
    );
    assert!(left_out[1].0 == "old" && left_out[1].1.contains("1.1.0 only"));
    assert!(reason(&infos, Some("")).contains("is empty"));
    let error = select(&infos, Some(List::of_environment("0,0"))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
}

#[test]
fn a_process_without_devices_is_told_why() {
    let error = select(&[], None).unwrap().no_device();
    assert_eq!(error.kind(), ErrorKind::NoDevice);
    assert!(error.to_string().contains("is a driver installed"));
    let selection = select(&[lavapipe()], Some(List::of_environment(""))).unwrap();
    let message = selection.no_device().to_string();
    assert!(message.contains("llvmpipe"), "{message}");
    assert!(message.contains("is empty"), "{message}");
}
