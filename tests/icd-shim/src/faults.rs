//! Failures on command: the n-th call of a function.

use std::sync::Mutex;

use ash::vk;

use crate::config;
use crate::sync::lock;

/// Fails calls of one function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    function: String,
    /// The first call that fails, from 1.
    from: u64,
    /// Whether those behind it fail, too.
    onwards: bool,
    result: vk::Result,
}

/// A submission's turn at the driver's queue, among the functions' names.
pub(crate) const EXECUTION: &str = "execution";

const RESULTS: &[(&str, vk::Result)] = &[
    ("NOT_READY", vk::Result::NOT_READY),
    ("TIMEOUT", vk::Result::TIMEOUT),
    ("INCOMPLETE", vk::Result::INCOMPLETE),
    (
        "ERROR_OUT_OF_HOST_MEMORY",
        vk::Result::ERROR_OUT_OF_HOST_MEMORY,
    ),
    (
        "ERROR_OUT_OF_DEVICE_MEMORY",
        vk::Result::ERROR_OUT_OF_DEVICE_MEMORY,
    ),
    (
        "ERROR_INITIALIZATION_FAILED",
        vk::Result::ERROR_INITIALIZATION_FAILED,
    ),
    ("ERROR_DEVICE_LOST", vk::Result::ERROR_DEVICE_LOST),
    (
        "ERROR_MEMORY_MAP_FAILED",
        vk::Result::ERROR_MEMORY_MAP_FAILED,
    ),
    (
        "ERROR_EXTENSION_NOT_PRESENT",
        vk::Result::ERROR_EXTENSION_NOT_PRESENT,
    ),
    (
        "ERROR_FEATURE_NOT_PRESENT",
        vk::Result::ERROR_FEATURE_NOT_PRESENT,
    ),
    (
        "ERROR_INCOMPATIBLE_DRIVER",
        vk::Result::ERROR_INCOMPATIBLE_DRIVER,
    ),
    ("ERROR_TOO_MANY_OBJECTS", vk::Result::ERROR_TOO_MANY_OBJECTS),
    ("ERROR_FRAGMENTED_POOL", vk::Result::ERROR_FRAGMENTED_POOL),
    (
        "ERROR_OUT_OF_POOL_MEMORY",
        vk::Result::ERROR_OUT_OF_POOL_MEMORY,
    ),
    ("ERROR_FRAGMENTATION", vk::Result::ERROR_FRAGMENTATION),
    ("ERROR_UNKNOWN", vk::Result::ERROR_UNKNOWN),
];

impl Rule {
    /// Reads a list of rules, separated by commas.
    pub(crate) fn read_all(text: &str) -> Result<Vec<Self>, String> {
        let rules = text.split(',').map(str::trim);
        rules
            .filter(|rule| !rule.is_empty())
            .map(Self::read)
            .collect()
    }

    fn read(text: &str) -> Result<Self, String> {
        let parts = text
            .split_once('#')
            .and_then(|(function, rest)| Some((function, rest.split_once('=')?)));
        let Some((function, (number, result))) = parts else {
            return Err(format!("'{text}' is not of the form FUNCTION#N=RESULT"));
        };
        let (number, onwards) = match number.strip_suffix('+') {
            Some(number) => (number, true),
            None => (number, false),
        };
        let from = match number.parse() {
            Ok(from) if from > 0 => from,
            _ => return Err(format!("'{text}': '{number}' is no number from 1 on")),
        };
        let result = match RESULTS.iter().find(|(name, _)| *name == result) {
            Some((_, result)) => *result,
            None => return Err(format!("'{text}': '{result}' is no result that it knows")),
        };
        Ok(Self {
            function: function.to_owned(),
            from,
            onwards,
            result,
        })
    }

    fn fails(&self, call: u64) -> bool {
        call == self.from || self.onwards && call > self.from
    }
}

/// How often the functions that have rules were called.
#[derive(Debug, Default)]
struct Counts(Vec<(String, u64)>);

impl Counts {
    /// Counts a call, and says what it gives instead of the driver's answer.
    fn call(&mut self, rules: &[Rule], function: &str) -> Option<vk::Result> {
        if !rules.iter().any(|rule| rule.function == function) {
            return None;
        }
        let place = self.0.iter().position(|(known, _)| known == function);
        let place = place.unwrap_or_else(|| {
            self.0.push((function.to_owned(), 0));
            self.0.len() - 1
        });
        let count = &mut self.0[place].1;
        *count += 1;
        let failing = |rule: &&Rule| rule.function == function && rule.fails(*count);
        rules.iter().find(failing).map(|rule| rule.result)
    }
}

/// Counts a call of `function`, and says what it must give instead of the driver's answer, if it is
/// to fail.
pub(crate) fn of_call(function: &str) -> Option<vk::Result> {
    static COUNTS: Mutex<Counts> = Mutex::new(Counts(Vec::new()));
    let rules = &config::get()?.rules;
    // Most runs have no rules.
    if rules.is_empty() {
        return None;
    }
    lock(&COUNTS).call(rules, function)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_and_applied_in_order() {
        let rules = Rule::read_all(
            "vkAllocateMemory#2=ERROR_OUT_OF_DEVICE_MEMORY, vkQueueSubmit#1+=ERROR_DEVICE_LOST,",
        )
        .unwrap();
        let mut counts = Counts::default();
        let mut call = |function| counts.call(&rules, function);
        assert_eq!(call("vkAllocateMemory"), None);
        assert_eq!(call("vkCreateBuffer"), None);
        assert_eq!(call("vkQueueSubmit"), Some(vk::Result::ERROR_DEVICE_LOST));
        assert_eq!(
            call("vkAllocateMemory"),
            Some(vk::Result::ERROR_OUT_OF_DEVICE_MEMORY)
        );
        assert_eq!(call("vkAllocateMemory"), None);
        assert_eq!(call("vkQueueSubmit"), Some(vk::Result::ERROR_DEVICE_LOST));
    }

    #[test]
    fn a_rule_that_says_nothing_is_refused() {
        for rule in [
            "vkAllocateMemory",
            "vkAllocateMemory#1",
            "vkAllocateMemory#0=TIMEOUT",
            "vkAllocateMemory#x=TIMEOUT",
            "vkAllocateMemory#1=VK_TIMEOUT",
        ] {
            assert!(Rule::read_all(rule).is_err(), "{rule}");
        }
    }
}
