//! What a test wants done to calls.

use core::any::Any;
use core::ops::RangeInclusive;
use std::time::Duration;

use ash::vk;

/// What has happened to a function.
#[derive(Clone, Debug, Default)]
pub(super) struct Count {
    pub(super) called: u64,
    pub(super) succeeded: u64,
}

type Hook = Box<dyn FnMut(&mut dyn Any) + Send>;

enum Action {
    /// Fails the calls with these numbers.
    Fail(RangeInclusive<u64>, vk::Result),
    Delay(Duration),
    Before(Hook),
    After(Hook),
}

/// Something done to calls of one function.
pub(super) struct Rule {
    place: usize,
    action: Action,
}

impl Rule {
    pub(super) fn fail(place: usize, calls: RangeInclusive<u64>, result: vk::Result) -> Self {
        let action = Action::Fail(calls, result);
        Self { place, action }
    }

    pub(super) fn delay(place: usize, time: Duration) -> Self {
        let action = Action::Delay(time);
        Self { place, action }
    }

    pub(super) fn hook<T: Any>(
        place: usize,
        after: bool,
        mut change: impl FnMut(&mut T) + Send + 'static,
    ) -> Self {
        let hook: Hook = Box::new(move |args| {
            change(args.downcast_mut().expect("the arguments of this function"));
        });
        let action = if after {
            Action::After(hook)
        } else {
            Action::Before(hook)
        };
        Self { place, action }
    }
}

/// All rules of an entry, and its counts.
#[derive(Default)]
pub(super) struct Rules {
    pub(super) list: Vec<Rule>,
    pub(super) counts: Vec<Count>,
    /// How many calls there were that could have failed.
    pub(super) fallible: u64,
    /// Fails the one of them with this number.
    pub(super) any: Option<(u64, vk::Result)>,
    /// Where the call was that failed last.
    pub(super) failed: Option<usize>,
}

impl Rules {
    pub(super) fn new(calls: usize) -> Self {
        Self {
            counts: vec![Count::default(); calls],
            ..Self::default()
        }
    }

    /// Counts a call; gives what it must give instead of its answer, else may have changed `args`.
    pub(super) fn before(
        &mut self,
        place: usize,
        is_fallible: bool,
        args: &mut dyn Any,
    ) -> Option<vk::Result> {
        let count = &mut self.counts[place].called;
        *count += 1;
        let number = *count;
        let mut fails = None;
        if is_fallible {
            self.fallible += 1;
            fails = self
                .any
                .filter(|(at, _)| *at == self.fallible)
                .map(|(_, result)| result);
        }
        for rule in self.list.iter_mut().filter(|rule| rule.place == place) {
            match &mut rule.action {
                Action::Fail(calls, result) if calls.contains(&number) => fails = Some(*result),
                Action::Before(hook) => hook(args),
                _ => {}
            }
        }
        if fails.is_some() {
            self.failed = Some(place);
        }
        fails
    }

    /// How long calls of a function are held back.
    pub(super) fn delay(&self, place: usize) -> Option<Duration> {
        let of_call = self.list.iter().filter(|rule| rule.place == place);
        let mut delays = of_call.filter_map(|rule| match rule.action {
            Action::Delay(time) => Some(time),
            _ => None,
        });
        delays.next()
    }

    /// Counts a success, and may change its answers.
    pub(super) fn after(&mut self, place: usize, args: &mut dyn Any) {
        self.counts[place].succeeded += 1;
        for rule in self.list.iter_mut().filter(|rule| rule.place == place) {
            if let Action::After(hook) = &mut rule.action {
                hook(args);
            }
        }
    }
}
