//! The list of visible devices: `VKACCEL_VISIBLE_DEVICES`, or what the runtime's builder was given.
//!
//! The rules are CUDA's. Entries are separated by commas; an entry is an index, or `uuid:` and the
//! first hexadecimal digits of a device's identity. The order of the list is the order of the
//! devices. An entry that names no device (a negative index, one past the end, an unknown identity,
//! nothing at all) ends the list: what stands before it is visible. A list that can't be meant (one
//! device twice, an identity that several devices begin with, an entry that is neither form) is an
//! error and never «all».

use super::uuid;
use crate::error::{Error, ErrorKind, Result};

/// The environment variable that holds the list.
pub(crate) const VARIABLE: &str = "VKACCEL_VISIBLE_DEVICES";

const UUID_PREFIX: &str = "uuid:";

/// A list of visible devices, and who set it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List<'a> {
    entries: &'a str,
    origin: &'static str,
}

impl<'a> List<'a> {
    /// The list of the environment variable.
    pub(crate) const fn of_environment(entries: &'a str) -> Self {
        Self {
            entries,
            origin: VARIABLE,
        }
    }

    /// The list that a runtime's builder was given.
    pub(crate) const fn of_builder(entries: &'a str) -> Self {
        Self {
            entries,
            origin: "RuntimeBuilder::visible_devices",
        }
    }

    /// Why a device is not visible that the list does not name.
    pub(super) fn hides(self) -> String {
        let Self { entries, origin } = self;
        match entries.trim() {
            "" => format!("hidden: the list of visible devices ({origin}) is empty"),
            _ => format!("hidden: not in the list of visible devices {entries:?} ({origin})"),
        }
    }
}

/// The positions in `uuids` that the list makes visible, in the order in which they are numbered.
/// Without a list, all; an empty one hides all.
///
/// # Errors
///
/// [`ErrorKind::Config`] for a list that can't be meant.
pub(crate) fn visible(list: Option<List<'_>>, uuids: &[[u8; 16]]) -> Result<Vec<usize>> {
    let Some(list) = list else {
        return Ok((0..uuids.len()).collect());
    };
    let mut chosen = Vec::new();
    for entry in list.entries.split(',').map(str::trim) {
        let position = match read(entry, uuids) {
            Entry::Device(position) => position,
            Entry::Nothing => break,
            Entry::Ambiguous(several) => return Err(ambiguous(list, entry, &several)),
            Entry::Malformed => return Err(malformed(list, entry)),
        };
        if chosen.contains(&position) {
            return Err(twice(list, entry, position));
        }
        chosen.push(position);
    }
    Ok(chosen)
}

enum Entry {
    Device(usize),
    /// Well-formed, but no device; ends the list.
    Nothing,
    Ambiguous(Vec<usize>),
    Malformed,
}

fn read(entry: &str, uuids: &[[u8; 16]]) -> Entry {
    if entry.is_empty() {
        return Entry::Nothing;
    }
    if let Some(prefix) = entry.strip_prefix(UUID_PREFIX) {
        return read_uuid(prefix, uuids);
    }
    let digits = entry.strip_prefix('-').unwrap_or(entry);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Entry::Malformed;
    }
    // A number too large for the type is past the end as well; "-0" is negative, as it is meant.
    match entry.parse::<usize>() {
        Ok(index) if index < uuids.len() => Entry::Device(index),
        _ => Entry::Nothing,
    }
}

fn read_uuid(prefix: &str, uuids: &[[u8; 16]]) -> Entry {
    let digits: String = prefix
        .chars()
        .filter(|&letter| letter != '-')
        .map(|letter| letter.to_ascii_lowercase())
        .collect();
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Entry::Malformed;
    }
    let mut matching: Vec<usize> = (0..uuids.len())
        // A driver that gives no identity gives zeros; they identify nothing.
        .filter(|&position| uuid::is_given(&uuids[position]))
        .filter(|&position| uuid::digits(&uuids[position]).starts_with(&digits))
        .collect();
    match (matching.len(), matching.pop()) {
        (_, None) => Entry::Nothing,
        (1, Some(position)) => Entry::Device(position),
        (_, Some(last)) => {
            matching.push(last);
            Entry::Ambiguous(matching)
        }
    }
}

#[cold]
fn refused(list: List<'_>, why: &str) -> Error {
    let List { entries, origin } = list;
    Error::new(
        ErrorKind::Config,
        format!("the list of visible devices {entries:?} ({origin}) {why}"),
    )
}

#[cold]
fn twice(list: List<'_>, entry: &str, position: usize) -> Error {
    refused(
        list,
        &format!("names one device twice: {entry:?} is device {position} again"),
    )
}

#[cold]
fn ambiguous(list: List<'_>, entry: &str, several: &[usize]) -> Error {
    let several: Vec<String> = several.iter().map(usize::to_string).collect();
    refused(
        list,
        &format!(
            "is ambiguous: the identities of the devices {} begin with {entry:?}; give more digits",
            several.join(", ")
        ),
    )
}

#[cold]
fn malformed(list: List<'_>, entry: &str) -> Error {
    refused(
        list,
        &format!(
            "has the entry {entry:?}, which is neither an index, as 0, nor {UUID_PREFIX} with the \
             first hexadecimal digits of a device's identity, as {UUID_PREFIX}8932f9"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uuid(start: [u8; 4]) -> [u8; 16] {
        let mut uuid = [0x5a; 16];
        uuid[..4].copy_from_slice(&start);
        uuid
    }

    fn four() -> [[u8; 16]; 4] {
        [
            uuid([0x89, 0x32, 0xf9, 0x37]),
            uuid([0x89, 0x32, 0xaa, 0x00]),
            uuid([0xc0, 0xff, 0xee, 0x00]),
            uuid([0x01, 0x02, 0x03, 0x04]),
        ]
    }

    fn parse(list: &str) -> Vec<usize> {
        visible(Some(List::of_environment(list)), &four()).unwrap()
    }

    fn refusal(list: &str) -> String {
        let error = visible(Some(List::of_environment(list)), &four()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{error}");
        error.to_string()
    }

    #[test]
    fn no_list_is_all_and_an_empty_one_is_none() {
        assert_eq!(visible(None, &four()).unwrap(), [0, 1, 2, 3]);
        assert!(parse("").is_empty());
        assert!(parse("  ").is_empty());
        assert!(visible(None, &[]).unwrap().is_empty());
    }

    #[test]
    fn the_order_of_the_list_is_kept() {
        assert_eq!(parse("0"), [0]);
        assert_eq!(parse("1,0"), [1, 0]);
        assert_eq!(parse("3,1,2"), [3, 1, 2]);
        assert_eq!(parse(" 1 , 2 "), [1, 2]);
    }

    #[test]
    fn the_first_entry_that_names_no_device_ends_the_list() {
        assert_eq!(parse("2,-1,1"), [2]);
        assert_eq!(parse("0,9,1"), [0]);
        assert_eq!(parse("1,,2"), [1]);
        assert_eq!(parse("1,2,"), [1, 2]);
        assert_eq!(parse("0,99999999999999999999999,1"), [0]);
        assert_eq!(parse("3,uuid:dead,1"), [3]);
        assert_eq!(parse("2,-1,abc"), [2]);
        assert!(parse("-1").is_empty());
        assert!(parse("-0").is_empty());
        assert!(parse("4").is_empty());
    }

    #[test]
    fn identities_are_found_by_their_first_digits() {
        assert_eq!(parse("uuid:8932f9"), [0]);
        assert_eq!(parse("uuid:c0ffee00,uuid:01020304"), [2, 3]);
        assert_eq!(parse("uuid:C0FFEE"), [2]);
    }

    #[test]
    fn an_ambiguous_identity_is_refused_and_says_between_which() {
        let message = refusal("uuid:8932");
        assert!(message.contains("devices 0, 1"), "{message}");
        assert!(message.contains("more digits"), "{message}");
    }

    #[test]
    fn a_device_named_twice_is_refused() {
        for list in ["0,0", "0,uuid:8932f9", "uuid:c0,1,uuid:c0ff"] {
            assert!(refusal(list).contains("twice"), "{list}");
        }
        // Behind the end of the list nothing counts.
        assert_eq!(parse("0,9,0"), [0]);
    }

    #[test]
    fn what_is_no_entry_is_refused_and_never_all() {
        for list in [
            "abc", "0,abc", "+1", "1.0", "0x1", "--1", "-", "1;2", "uuid:", "uuid:xyz",
        ] {
            let message = refusal(list);
            assert!(message.contains("neither an index"), "{message}");
            assert!(message.contains(VARIABLE), "{message}");
        }
    }

    #[test]
    fn the_texts_name_who_set_the_list() {
        let list = List::of_builder("0,0");
        let refusal = visible(Some(list), &four()).unwrap_err().to_string();
        for text in [refusal, list.hides(), List::of_builder("").hides()] {
            assert!(text.contains("RuntimeBuilder::visible_devices"), "{text}");
            assert!(!text.contains(VARIABLE), "{text}");
        }
        assert!(List::of_environment("").hides().contains(VARIABLE));
    }

    #[test]
    fn a_missing_identity_is_never_found() {
        let two = [[0; 16], uuid([0, 0, 0, 1])];
        assert_eq!(
            visible(Some(List::of_environment("uuid:00")), &two).unwrap(),
            [1]
        );
        assert_eq!(visible(Some(List::of_environment("0")), &two).unwrap(), [0]);
    }

    #[test]
    fn a_whole_identity_with_dashes_is_taken() {
        let whole = super::super::uuid::Hex(&four()[2]).to_string();
        assert_eq!(whole, "c0ffee00-5a5a-5a5a-5a5a-5a5a5a5a5a5a");
        assert_eq!(parse(&format!("uuid:{whole}")), [2]);
        assert!(parse(&format!("uuid:{whole}00")).is_empty());
    }
}
