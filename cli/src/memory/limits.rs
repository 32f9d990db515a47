//! The limits that a program set to what it reserves, apart from its settings.

use vkaccel::alloc::{AllocConf, SettingsInfo};

use crate::words::size;

/// How much may be reserved at most.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// A share of the device, from 0 to 1.
    pub fraction: Option<f64>,
    pub bytes: Option<u64>,
}

impl Limits {
    /// Those that were recorded, apart from the settings. A share that the settings themselves
    /// have is one of the settings: other settings are tried without it.
    pub fn recorded(settings: &SettingsInfo) -> Self {
        let own = settings.conf.per_process_memory_fraction();
        let of_conf = |fraction: &f64| own < 1.0 && fraction.total_cmp(&own).is_eq();
        Self {
            fraction: settings.memory_fraction.filter(|part| !of_conf(part)),
            ..Self::in_force(settings)
        }
    }

    /// Those that were in force when something was recorded, wherever they were from.
    pub const fn in_force(settings: &SettingsInfo) -> Self {
        Self {
            fraction: settings.memory_fraction,
            bytes: settings.limit_bytes,
        }
    }

    /// Those for a run with other settings, which may have a share of their own.
    pub fn under(self, conf: &AllocConf) -> Self {
        let of_conf = conf.per_process_memory_fraction() < 1.0;
        Self {
            fraction: self.fraction.filter(|_| !of_conf),
            ..self
        }
    }

    pub const fn is_empty(&self) -> bool {
        self.fraction.is_none() && self.bytes.is_none()
    }

    /// The most that may be reserved of a device of so many bytes.
    pub fn of(&self, total: u64) -> u64 {
        #[expect(clippy::cast_possible_truncation, reason = "rounding down is meant")]
        #[expect(clippy::cast_sign_loss, reason = "a fraction is not negative")]
        #[expect(clippy::cast_precision_loss, reason = "as the allocator reckons it")]
        let part = |fraction: f64| (fraction * total as f64) as u64;
        let part = self.fraction.map_or(total, part);
        total.min(part).min(self.bytes.unwrap_or(total))
    }

    /// In words.
    pub fn text(&self) -> String {
        let fraction = self
            .fraction
            .map(|fraction| format!("{:.1} % of the device", fraction * 100.0));
        let parts: Vec<String> = self.bytes.map(size).into_iter().chain(fraction).collect();
        format!("at most {} reserved", parts.join(" and "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(conf: &str, fraction: Option<f64>, bytes: Option<u64>) -> Limits {
        let mut settings = SettingsInfo::default();
        settings.conf = conf.parse().unwrap();
        (settings.memory_fraction, settings.limit_bytes) = (fraction, bytes);
        Limits::recorded(&settings)
    }

    #[test]
    fn a_share_that_is_one_of_the_settings_goes_with_them() {
        let conf = "per_process_memory_fraction:0.5";
        assert!(recorded(conf, Some(0.5), None).is_empty());
        let later = recorded(conf, Some(0.25), Some(7));
        assert_eq!((later.fraction, later.bytes), (Some(0.25), Some(7)));
        assert_eq!(later.under(&AllocConf::default()), later);
        let under = later.under(&conf.parse().unwrap());
        assert_eq!((under.fraction, under.bytes), (None, Some(7)));
        assert_eq!(recorded("", Some(1.0), None).fraction, Some(1.0));
    }

    #[test]
    fn the_tightest_limit_is_the_one_that_counts() {
        assert_eq!(Limits::default().of(100), 100);
        assert_eq!(recorded("", Some(0.5), None).of(100), 50);
        assert_eq!(recorded("", Some(0.5), Some(20)).of(100), 20);
        assert_eq!(recorded("", None, Some(200)).of(100), 100);
    }

    #[test]
    fn limits_are_told_in_words() {
        let both = recorded("", Some(0.5), Some(20 << 20));
        assert_eq!(
            both.text(),
            "at most 20 MiB and 50.0 % of the device reserved"
        );
        assert_eq!(
            recorded("", None, Some(1 << 30)).text(),
            "at most 1 GiB reserved"
        );
    }
}
