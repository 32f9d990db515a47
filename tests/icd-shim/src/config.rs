//! What the environment asks for.

use std::str::FromStr;
use std::sync::OnceLock;
use std::time::Duration;

use crate::faults::Rule;
use crate::loose::Kind;

/// A family that the driver does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExtraFamily {
    /// Copies alone.
    Transfer,
    /// Kernels and copies, without timestamps.
    Compute,
}

/// What a lost device's semaphores answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LostCounter {
    /// The highest number there is; waits end as if all were well.
    #[default]
    Max,
    /// `VK_ERROR_DEVICE_LOST`.
    Error,
}

/// All settings.
#[derive(Debug)]
pub(crate) struct Config {
    /// How many queues the driver's families show.
    pub(crate) queues: u32,
    pub(crate) extra: Option<ExtraFamily>,
    pub(crate) extra_queues: u32,
    pub(crate) delay: Duration,
    pub(crate) seed: u64,
    pub(crate) max_allocations: u32,
    pub(crate) max_allocation_bytes: u64,
    pub(crate) max_buffer_bytes: u64,
    pub(crate) max_storage_bytes: u64,
    /// The size of each heap, if there is a simulated one.
    pub(crate) heap_bytes: Option<u64>,
    /// What others hold of each heap.
    pub(crate) heap_others_bytes: u64,
    /// The memory type that is shown beside the driver's, if any.
    pub(crate) further: Option<Kind>,
    pub(crate) rules: Vec<Rule>,
    pub(crate) lost_counter: LostCounter,
}

const PREFIX: &str = "VKACCEL_SHIM_";

/// The settings; nothing, after a line on the error output, if one can't be read.
pub(crate) fn get() -> Option<&'static Config> {
    static CONFIG: OnceLock<Option<Config>> = OnceLock::new();
    CONFIG
        .get_or_init(|| match Config::read(|name| std::env::var(name).ok()) {
            Ok(config) => Some(config),
            Err(fault) => {
                eprintln!("vkaccel-icd-shim: {fault}");
                None
            }
        })
        .as_ref()
}

/// Where settings come from, by their names.
struct Settings<F>(F);

impl<F: Fn(&str) -> Option<String>> Settings<F> {
    fn text(&self, name: &str) -> Option<String> {
        (self.0)(&format!("{PREFIX}{name}")).filter(|text| !text.is_empty())
    }

    fn number<T: FromStr>(&self, name: &str, default: T) -> Result<T, String> {
        let Some(text) = self.text(name) else {
            return Ok(default);
        };
        text.parse()
            .map_err(|_| format!("{PREFIX}{name}={text} is no number that fits"))
    }

    /// One of a few words.
    fn word<T: Copy>(&self, name: &str, words: &[(&str, T)]) -> Result<Option<T>, String> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        match words.iter().find(|(word, _)| *word == text) {
            Some((_, value)) => Ok(Some(*value)),
            None => Err(format!("{PREFIX}{name}={text} is no word that it knows")),
        }
    }
}

impl Config {
    fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let settings = Settings(variable);
        let families = [
            ("transfer", ExtraFamily::Transfer),
            ("compute", ExtraFamily::Compute),
        ];
        let counters = [("max", LostCounter::Max), ("error", LostCounter::Error)];
        let kinds = [("non_coherent", Kind::NonCoherent), ("apart", Kind::Host)];
        let heap_bytes = settings.number("HEAP_BYTES", 0)?;
        Ok(Self {
            queues: settings.number("QUEUES", 1)?.max(1),
            extra: settings.word("FAMILY", &families)?,
            extra_queues: settings.number("FAMILY_QUEUES", 1)?.max(1),
            delay: Duration::from_micros(settings.number("DELAY_US", 0)?),
            seed: settings.number("SEED", 0)?,
            max_allocations: settings.number("MAX_ALLOCATIONS", u32::MAX)?,
            max_allocation_bytes: settings.number("MAX_ALLOCATION_BYTES", u64::MAX)?,
            max_buffer_bytes: settings.number("MAX_BUFFER_BYTES", u64::MAX)?,
            max_storage_bytes: settings.number("MAX_STORAGE_BYTES", u64::MAX)?,
            heap_bytes: (heap_bytes > 0).then_some(heap_bytes),
            heap_others_bytes: settings.number("HEAP_OTHERS_BYTES", 0)?,
            further: settings.word("MEMORY", &kinds)?,
            rules: Rule::read_all(&settings.text("FAIL").unwrap_or_default())?,
            lost_counter: settings
                .word("LOST_COUNTER", &counters)?
                .unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(settings: &[(&str, &str)]) -> Result<Config, String> {
        Config::read(|name| {
            let name = name.strip_prefix(PREFIX)?;
            let found = settings.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn nothing_set_changes_nothing() {
        let config = read(&[("HEAP_BYTES", "")]).unwrap();
        assert_eq!((config.queues, config.extra), (1, None));
        assert_eq!(config.delay, Duration::ZERO);
        assert_eq!(config.max_allocations, u32::MAX);
        assert_eq!(config.heap_bytes, None);
        assert!(config.rules.is_empty());
    }

    #[test]
    fn what_is_set_is_read() {
        let config = read(&[
            ("QUEUES", "4"),
            ("FAMILY", "compute"),
            ("DELAY_US", "1500"),
            ("HEAP_BYTES", "1048576"),
            ("LOST_COUNTER", "error"),
            ("MEMORY", "non_coherent"),
        ])
        .unwrap();
        assert_eq!(config.queues, 4);
        assert_eq!(config.extra, Some(ExtraFamily::Compute));
        assert_eq!(config.delay, Duration::from_micros(1500));
        assert_eq!(config.heap_bytes, Some(1 << 20));
        assert_eq!(config.lost_counter, LostCounter::Error);
        assert_eq!(config.further, Some(Kind::NonCoherent));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let fault = read(&[("QUEUES", "many")]).unwrap_err();
        assert!(fault.contains("VKACCEL_SHIM_QUEUES=many"), "{fault}");
        let fault = read(&[("FAMILY", "video")]).unwrap_err();
        assert!(fault.contains("VKACCEL_SHIM_FAMILY=video"), "{fault}");
    }
}
