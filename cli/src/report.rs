//! What `vkaccel info` says, as plain data, and its two forms: a text and JSON. Pure.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use crate::words::{size, uuid_text};

/// What there is.
#[derive(Debug, Default)]
pub struct Report {
    /// The devices, by index.
    pub devices: Vec<DeviceReport>,
    /// Why the first one is the one that is used when nothing is said.
    pub reason: &'static str,
    /// What was left out.
    pub left_out: Vec<LeftOut>,
    /// Why there is nothing at all.
    pub fault: Option<String>,
}

/// One device.
#[derive(Debug)]
pub struct DeviceReport {
    pub name: String,
    pub kind: &'static str,
    pub driver_name: String,
    pub driver_version: String,
    pub api_version: String,
    pub uuid: [u8; 16],
    pub memory: Result<MemoryReport, String>,
    pub dtypes: Vec<&'static str>,
    pub features: Vec<&'static str>,
    pub limits: Vec<Limit>,
}

/// The memory of a device.
#[derive(Debug)]
pub struct MemoryReport {
    pub free_bytes: u64,
    pub total_bytes: u64,
    /// The key of the source, in JSON.
    pub source: &'static str,
    /// The same in words.
    pub source_text: &'static str,
}

/// A limit of a device.
#[derive(Debug)]
pub struct Limit {
    /// Its key in JSON, Vulkan's name in snake case.
    pub key: &'static str,
    /// What the text calls it.
    pub label: &'static str,
    pub value: LimitValue,
}

/// The value of a limit.
#[derive(Debug)]
pub enum LimitValue {
    Count(u64),
    Bytes(u64),
    Axes([u32; 3]),
}

/// A device that was left out.
#[derive(Debug)]
pub struct LeftOut {
    pub name: String,
    pub kind: &'static str,
    pub driver_name: String,
    pub uuid: [u8; 16],
    pub reason: String,
}

/// What to do where there is no device.
const INSTALL: &str = "\
A device needs the Vulkan loader and a driver for it, of Vulkan 1.2 or newer:
  a GPU       its vendor's driver, or on Linux Mesa's
  no GPU      a software driver; on Debian: apt install libvulkan1 mesa-vulkan-drivers
  elsewhere   VK_DRIVER_FILES=/path/to/driver_icd.json names a driver,
              VKACCEL_LOADER=/path/to/libvulkan.so.1 names the loader
";

/// The text for people.
pub fn text(report: &Report, all: bool) -> String {
    let mut out = String::new();
    if report.devices.is_empty() {
        let fault = report.fault.as_deref().unwrap_or("none was found");
        line(&mut out, format_args!("no device: {fault}"));
        if !report.left_out.is_empty() {
            // The reasons say what to do.
            left_out(&mut out, &report.left_out);
            return out;
        }
        out.push('\n');
        out.push_str(INSTALL);
        return out;
    }
    for (index, device) in report.devices.iter().enumerate() {
        let default = if index == 0 { "   (default)" } else { "" };
        line(
            &mut out,
            format_args!("vulkan:{index}  {}{default}", device.name),
        );
        device_text(&mut out, device);
        out.push('\n');
    }
    line(
        &mut out,
        format_args!(
            "vulkan:0 is used unless another is named: {}.",
            report.reason
        ),
    );
    if all {
        if report.left_out.is_empty() {
            line(&mut out, format_args!("No device was left out."));
        } else {
            out.push('\n');
            left_out(&mut out, &report.left_out);
        }
    } else if !report.left_out.is_empty() {
        let number = report.left_out.len();
        let devices = if number == 1 {
            "device was"
        } else {
            "devices were"
        };
        line(
            &mut out,
            format_args!("{number} {devices} left out; --all says why."),
        );
    }
    out
}

fn device_text(out: &mut String, device: &DeviceReport) {
    row(out, "type", device.kind);
    row(
        out,
        "driver",
        format!("{} {}", device.driver_name, device.driver_version).trim(),
    );
    row(out, "Vulkan", &device.api_version);
    row(out, "UUID", &uuid_text(device.uuid));
    match &device.memory {
        Ok(memory) => row(
            out,
            "memory",
            &format!(
                "{} free of {} ({})",
                size(memory.free_bytes),
                size(memory.total_bytes),
                memory.source_text
            ),
        ),
        Err(error) => row(out, "memory", error),
    }
    row(out, "dtypes", &device.dtypes.join(" "));
    for (index, limit) in device.limits.iter().enumerate() {
        let value = match limit.value {
            LimitValue::Count(count) if count == u64::from(u32::MAX) => "no limit".to_owned(),
            LimitValue::Count(count) => count.to_string(),
            LimitValue::Bytes(bytes) => size(bytes),
            LimitValue::Axes([x, y, z]) => format!("{x} x {y} x {z}"),
        };
        let label = if index == 0 { "limits" } else { "" };
        row(out, label, &format!("{:<26} {value}", limit.label));
    }
}

fn left_out(out: &mut String, devices: &[LeftOut]) {
    line(out, format_args!("left out:"));
    for device in devices {
        line(
            out,
            format_args!(
                "  {} ({}, {})",
                device.name, device.kind, device.driver_name
            ),
        );
        line(out, format_args!("    {}", uuid_text(device.uuid)));
        line(out, format_args!("    {}", device.reason));
    }
}

fn row(out: &mut String, label: &str, value: &str) {
    line(out, format_args!("  {label:<8} {value}"));
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{text}");
}

/// The JSON for programs. Keys are stable: they may be added, never renamed.
pub fn json(report: &Report, all: bool) -> String {
    let devices: Vec<Value> = report.devices.iter().enumerate().map(device_json).collect();
    let default = match report.devices.is_empty() {
        true => Value::Null,
        false => json!({"index": 0, "reason": report.reason}),
    };
    let mut root = json!({"devices": devices, "default": default, "fault": report.fault});
    if all {
        root["left_out"] = report.left_out.iter().map(left_out_json).collect();
    }
    format!("{root:#}\n")
}

fn left_out_json(device: &LeftOut) -> Value {
    json!({
        "name": device.name,
        "type": device.kind,
        "driver": {"name": device.driver_name},
        "uuid": uuid_text(device.uuid),
        "reason": device.reason,
    })
}

fn device_json((index, device): (usize, &DeviceReport)) -> Value {
    let memory = match &device.memory {
        Ok(memory) => json!({
            "free_bytes": memory.free_bytes,
            "total_bytes": memory.total_bytes,
            "source": memory.source,
        }),
        Err(error) => json!({"error": error}),
    };
    let limits: Map<String, Value> = device
        .limits
        .iter()
        .map(|limit| {
            let value = match limit.value {
                LimitValue::Count(number) | LimitValue::Bytes(number) => json!(number),
                LimitValue::Axes(axes) => json!(axes),
            };
            (limit.key.to_owned(), value)
        })
        .collect();
    json!({
        "index": index,
        "device": format!("vulkan:{index}"),
        "name": device.name,
        "type": device.kind,
        "driver": {"name": device.driver_name, "version": device.driver_version},
        "api_version": device.api_version,
        "uuid": uuid_text(device.uuid),
        "memory": memory,
        "dtypes": device.dtypes,
        "features": device.features,
        "limits": limits,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device() -> DeviceReport {
        DeviceReport {
            name: "Board".to_owned(),
            kind: "discrete",
            driver_name: "drv".to_owned(),
            driver_version: "1.0".to_owned(),
            api_version: "1.3.0".to_owned(),
            uuid: *b"0123456789abcdef",
            memory: Ok(MemoryReport {
                free_bytes: 1 << 30,
                total_bytes: 3 << 29,
                source: "memory_budget",
                source_text: "the driver's budget",
            }),
            dtypes: vec!["u32", "f32"],
            features: vec!["shaderInt64"],
            limits: vec![
                Limit {
                    key: "max_buffer_size",
                    label: "buffer",
                    value: LimitValue::Bytes(2048),
                },
                Limit {
                    key: "max_compute_work_group_count",
                    label: "workgroups",
                    value: LimitValue::Axes([1, 2, 3]),
                },
            ],
        }
    }

    fn one() -> Report {
        Report {
            devices: vec![device()],
            reason: "it is the only one",
            left_out: vec![LeftOut {
                name: "Old".to_owned(),
                kind: "integrated",
                driver_name: "olddrv".to_owned(),
                uuid: [0; 16],
                reason: "Vulkan 1.1 is below 1.2".to_owned(),
            }],
            fault: None,
        }
    }

    #[test]
    fn the_text_aligns_its_columns() {
        let text = text(&one(), false);
        let expected = "\
vulkan:0  Board   (default)
  type     discrete
  driver   drv 1.0
  Vulkan   1.3.0
  UUID     30313233-3435-3637-3839-616263646566
  memory   1 GiB free of 1.5 GiB (the driver's budget)
  dtypes   u32 f32
  limits   buffer                     2 KiB
           workgroups                 1 x 2 x 3

vulkan:0 is used unless another is named: it is the only one.
1 device was left out; --all says why.
";
        assert_eq!(text, expected);
    }

    #[test]
    fn all_tells_what_was_left_out_and_why() {
        let all = text(&one(), true);
        assert!(
            all.contains("left out:\n  Old (integrated, olddrv)\n    00000000-0000"),
            "{all}"
        );
        assert!(all.contains("Vulkan 1.1 is below 1.2"), "{all}");
        let keys = json(&one(), false);
        assert!(!keys.contains("left_out"), "{keys}");
        let value: Value = serde_json::from_str(&json(&one(), true)).unwrap();
        assert_eq!(value["left_out"][0]["name"], "Old");
    }

    #[test]
    fn json_has_the_keys_that_programs_rely_on() {
        let value: Value = serde_json::from_str(&json(&one(), false)).unwrap();
        assert_eq!(value["default"]["index"], 0);
        let device = &value["devices"][0];
        assert_eq!(device["device"], "vulkan:0");
        assert_eq!(device["memory"]["free_bytes"], 1u64 << 30);
        assert_eq!(device["limits"]["max_compute_work_group_count"][2], 3);
        assert_eq!(device["driver"]["version"], "1.0");
        assert_eq!(device["uuid"], "30313233-3435-3637-3839-616263646566");
    }

    #[test]
    fn no_device_says_why_and_what_to_install() {
        let report = Report {
            fault: Some("there is no Vulkan loader".to_owned()),
            ..Report::default()
        };
        let text = text(&report, false);
        assert!(
            text.starts_with("no device: there is no Vulkan loader\n"),
            "{text}"
        );
        assert!(text.contains("apt install"), "{text}");
        let value: Value = serde_json::from_str(&json(&report, true)).unwrap();
        assert_eq!(value["default"], Value::Null);
        assert_eq!(value["fault"], "there is no Vulkan loader");
    }
}
