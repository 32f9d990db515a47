//! Which of the devices of real machines are taken, in which order, and why not the others.

use super::super::info::{DeviceType, PhysicalInfo};
use super::super::mask::List;
use super::super::select::{Selection, select};
use super::super::uuid;
use super::{device, names};

fn machine(names: &[&str]) -> Vec<PhysicalInfo> {
    names.iter().map(|name| device(name)).collect()
}

/// The drivers of the visible devices, in the order of their indexes.
fn drivers(infos: &[PhysicalInfo], selection: &Selection) -> Vec<String> {
    let visible = selection.visible.iter();
    visible.map(|&at| infos[at].driver.name.clone()).collect()
}

/// Both orders, since loaders give any.
fn both_orders(names: [&str; 2]) -> [Vec<PhysicalInfo>; 2] {
    let [a, b] = names;
    [machine(&[a, b]), machine(&[b, a])]
}

#[test]
fn a_laptops_card_comes_before_its_processor() {
    // One machine, whose loader lists the processor first.
    for infos in both_orders(["intel-uhd-630-windows", "nvidia-gtx-1650"]) {
        let selection = select(&infos, None).unwrap();
        assert_eq!(drivers(&infos, &selection), ["NVIDIA", "Intel Corporation"]);
        let hidden = select(&infos, Some(List::of_environment("1"))).unwrap();
        assert_eq!(drivers(&infos, &hidden), ["Intel Corporation"]);
        let named = select(&infos, Some(List::of_environment("uuid:57cd12f8"))).unwrap();
        assert_eq!(drivers(&infos, &named), ["NVIDIA"]);
    }
}

#[test]
fn a_card_and_a_processor_of_two_vendors_are_ordered_by_sort() {
    for infos in both_orders(["nvidia-rtx-3060-ti-rebar", "amd-processor-windows"]) {
        let selection = select(&infos, None).unwrap();
        let drivers = drivers(&infos, &selection);
        assert_eq!(drivers, ["NVIDIA", "AMD proprietary driver"]);
    }
}

#[test]
fn a_software_driver_comes_last_and_is_no_twin_of_the_card() {
    // One machine: both are Mesa's, of one version.
    for infos in both_orders(["amd-rx-470-radv", "llvmpipe"]) {
        let selection = select(&infos, None).unwrap();
        assert_eq!(drivers(&infos, &selection), ["radv", "llvmpipe"]);
    }
}

#[test]
fn a_processor_seen_through_two_drivers_counts_once() {
    // What one machine lists, with an identity from each driver that the other one does not know.
    for infos in both_orders(["apple-m5-moltenvk", "apple-m5-kosmickrisp"]) {
        assert_ne!(infos[0].uuid, infos[1].uuid);
        let selection = select(&infos, None).unwrap();
        assert_eq!(drivers(&infos, &selection), ["KosmicKrisp"]);
        assert_eq!(
            selection.candidates[1].reason,
            "the same device as Apple M5 (the same processor's graphics), seen through the driver \
             MoltenVK; that of KosmicKrisp is preferred because it is no layer and leaves nothing \
             out of Vulkan"
        );
    }
}

#[test]
fn cards_are_never_twins_by_their_name() {
    // As through two drivers that know no place: a machine can have several cards of one name.
    let mut first = device("nvidia-rtx-3060-ti-rebar");
    first.pci = None;
    first.luid = None;
    let mut second = first.clone();
    second.driver.id = 24;
    second.uuid[0] ^= 1;
    assert_eq!(select(&[first, second], None).unwrap().visible, [0, 1]);
}

#[test]
fn a_card_seen_through_two_drivers_counts_once() {
    // Both drivers make the identity of the place on the bus; only one tells the place itself.
    let mesa = device("amd-rx-6600-radv");
    let mut vendor = device("amd-rx-6600-windows");
    assert_eq!(mesa.pci.unwrap().bus, u32::from(mesa.uuid[4]));
    assert_eq!(vendor.uuid[4], 10);
    assert_eq!(
        select(&[vendor.clone(), mesa.clone()], None)
            .unwrap()
            .visible
            .len(),
        2
    );
    vendor.uuid = mesa.uuid;
    let infos = [vendor, mesa];
    let selection = select(&infos, None).unwrap();
    assert_eq!(drivers(&infos, &selection), ["radv"]);
    let reason = &selection.candidates[1].reason;
    assert!(reason.contains("the same deviceUUID"), "{reason}");
    assert!(
        reason.contains("it has the newer Vulkan 1.3.255 (here 1.3.237)"),
        "{reason}"
    );
}

#[test]
fn what_a_device_lacks_is_its_reason() {
    let reason = |name: &str| {
        let selection = select(&[device(name)], None).unwrap();
        assert!(selection.visible.is_empty(), "{name}");
        selection.candidates[0].reason.clone()
    };
    assert_eq!(
        reason("nvidia-gtx-680mx-moltenvk"),
        "it lacks bufferDeviceAddress, which every device needs here"
    );
    assert_eq!(
        reason("nvidia-quadro-k620"),
        "its driver has Vulkan 1.0.65 only, and 1.2.0 is needed; a newer driver may help"
    );
}

#[test]
fn all_recorded_devices_in_one_machine_are_ordered_by_sort() {
    let infos: Vec<PhysicalInfo> = names().iter().map(|name| device(name)).collect();
    let selection = select(&infos, None).unwrap();
    assert_eq!(selection.candidates.len(), infos.len());
    let sorts: Vec<DeviceType> = selection
        .visible
        .iter()
        .map(|&at| infos[at].device_type)
        .collect();
    assert!(sorts.is_sorted(), "{sorts:?}");
    assert_eq!(sorts.last(), Some(&DeviceType::Cpu));
    // Each is found by the identity that it gives, where none begins with the same digits.
    for (index, &at) in selection.visible.iter().enumerate() {
        if !uuid::is_given(&infos[at].uuid) {
            continue;
        }
        let list = format!("uuid:{}", uuid::digits(&infos[at].uuid));
        let found = select(&infos, Some(List::of_environment(&list))).unwrap();
        assert_eq!(found.visible, [selection.visible[index]], "{list}");
    }
}
