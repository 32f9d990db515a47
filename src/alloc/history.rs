//! What an allocator did, in order: a ring of entries, of which the oldest make room.
//!
//! An allocator that records nothing has no [`History`], and looks for one once an operation.

use core::panic::Location;
use std::backtrace::Backtrace;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::snapshot::{Frame, TraceAction, TraceEntry};

/// What to record of a device's allocations.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HistoryOptions {
    /// How many entries are kept at most: newer ones replace the oldest. With 0 only the blocks
    /// that are in use know who allocated them.
    pub max_entries: usize,
    /// Whether entries know the whole stack, and not only the place of the call. Capturing one takes
    /// microseconds.
    pub backtraces: bool,
}

impl HistoryOptions {
    /// How many entries are kept unless another number is set.
    pub const DEFAULT_MAX_ENTRIES: usize = 100_000;
}

impl Default for HistoryOptions {
    fn default() -> Self {
        Self {
            max_entries: Self::DEFAULT_MAX_ENTRIES,
            backtraces: false,
        }
    }
}

/// Who caused an entry.
#[derive(Clone, Debug, Default)]
pub(crate) struct Context {
    site: Option<&'static Location<'static>>,
    backtrace: Option<Arc<Backtrace>>,
}

impl Context {
    /// The place of a call, and the stack if that is wanted: call it under no lock then.
    pub(crate) fn capture(site: &'static Location<'static>, backtrace: bool) -> Self {
        Self {
            site: Some(site),
            backtrace: backtrace.then(|| Arc::new(Backtrace::force_capture())),
        }
    }
}

/// What is to be recorded.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) action: TraceAction,
    /// Where the block or segment starts; when out of memory, what the device has free.
    pub(crate) address: u64,
    /// What was asked for, of blocks; the size of segments.
    pub(crate) size: u64,
    pub(crate) stream: u64,
    pub(crate) pool: (u64, u64),
    pub(crate) context: Context,
}

/// Where times come from.
#[derive(Clone, Copy, Debug)]
enum Clock {
    /// The machine: when it was looked at first, both ways.
    Machine { start: Instant, start_us: u64 },
    /// Whoever replays something.
    Set(u64),
}

/// A ring of entries.
#[derive(Clone, Debug)]
pub(crate) struct History {
    options: HistoryOptions,
    /// Times are nanoseconds of the clock.
    entries: VecDeque<(u64, Entry)>,
    dropped: u64,
    clock: Clock,
}

impl History {
    pub(crate) fn new(options: HistoryOptions) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let start_us = since.map_or(0, |since| since.as_micros());
        Self {
            options,
            entries: VecDeque::new(),
            dropped: 0,
            clock: Clock::Machine {
                start: Instant::now(),
                start_us: u64::try_from(start_us).unwrap_or(u64::MAX),
            },
        }
    }

    /// One whose times are what [`set_time`](Self::set_time) says.
    pub(crate) fn without_clock(options: HistoryOptions) -> Self {
        Self {
            clock: Clock::Set(0),
            ..Self::new(options)
        }
    }

    /// Sets what is recorded from now on; the newest entries stay, as many as fit.
    pub(crate) fn set_options(&mut self, options: HistoryOptions) {
        let surplus = self.entries.len().saturating_sub(options.max_entries);
        self.entries.drain(..surplus);
        self.dropped = self.dropped.saturating_add(surplus as u64);
        self.options = options;
    }

    pub(crate) fn options(&self) -> &HistoryOptions {
        &self.options
    }

    /// Sets the time of entries to come, in microseconds; one with a clock goes by that.
    pub(crate) fn set_time(&mut self, time_us: u64) {
        if let Clock::Set(time) = &mut self.clock {
            *time = time_us.saturating_mul(1000);
        }
    }

    /// The time for entries of one moment.
    pub(crate) fn now(&self) -> u64 {
        match self.clock {
            Clock::Machine { start, .. } => {
                u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
            }
            Clock::Set(time) => time,
        }
    }

    pub(crate) fn record(&mut self, entry: Entry) {
        self.record_at(self.now(), entry);
    }

    /// Records with a time that [`now`](Self::now) gave: looking at the clock costs more than the
    /// rest.
    pub(crate) fn record_at(&mut self, now: u64, entry: Entry) {
        if self.entries.len() >= self.options.max_entries {
            self.dropped = self.dropped.saturating_add(1);
            if self.entries.pop_front().is_none() {
                return;
            }
        }
        self.entries.push_back((now, entry));
    }

    /// Forgets what was recorded.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.dropped = 0;
    }

    /// How many entries had to make room.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// What is recorded, the oldest first.
    pub(crate) fn entries(&self, frames: &mut FrameCache) -> Vec<TraceEntry> {
        let start_us = match self.clock {
            Clock::Machine { start_us, .. } => start_us,
            Clock::Set(_) => 0,
        };
        let entry = |(time, entry): &(u64, Entry)| {
            let is_oom = entry.action == TraceAction::Oom;
            TraceEntry {
                action: entry.action,
                address: if is_oom { 0 } else { entry.address },
                size: entry.size,
                stream: entry.stream,
                pool: entry.pool,
                time_us: start_us.saturating_add(time / 1000),
                device_free: if is_oom { entry.address } else { 0 },
                frames: frames.frames(&entry.context),
            }
        };
        self.entries.iter().map(entry).collect()
    }
}

/// The frames of contexts, found once each: looking up the names of a stack takes milliseconds.
#[derive(Debug, Default)]
pub(crate) struct FrameCache {
    /// By the addresses of the place and of the stack.
    known: HashMap<(usize, usize), Arc<[Frame]>>,
}

impl FrameCache {
    pub(crate) fn frames(&mut self, context: &Context) -> Arc<[Frame]> {
        let Some(site) = context.site else {
            return Arc::default();
        };
        let stack = context.backtrace.as_ref();
        let key = (
            core::ptr::from_ref(site).addr(),
            stack.map_or(0, |stack| Arc::as_ptr(stack).addr()),
        );
        let find = || {
            let mut frames = vec![Frame {
                name: "".into(),
                filename: site.file().into(),
                line: site.line(),
            }];
            if let Some(stack) = stack {
                frames.extend(callers(&stack.to_string(), site));
            }
            frames.into()
        };
        Arc::clone(self.known.entry(key).or_insert_with(find))
    }
}

/// The frames of a printed stack from the one on that made the call; without debug information, which
/// tells that, from the one on that captured it.
fn callers(stack: &str, site: &Location<'_>) -> Vec<Frame> {
    let mut frames: Vec<Frame> = Vec::new();
    for line in stack.lines().map(str::trim_start) {
        if let Some(place) = line.strip_prefix("at ") {
            // As `src/main.rs:3:5`, or without the column.
            let mut parts = place.rsplitn(3, ':');
            let (last, middle, first) = (parts.next(), parts.next(), parts.next());
            let number = |text: Option<&str>| text.and_then(|text| text.parse::<u32>().ok());
            let (file, line) = match (first, number(middle), number(last)) {
                (Some(file), Some(line), Some(_)) => (file, line),
                (_, _, Some(line)) => (&place[..place.rfind(':').unwrap_or(0)], line),
                _ => (place, 0),
            };
            if let Some(frame) = frames.last_mut() {
                frame.filename = file.to_owned().into();
                frame.line = line;
            }
        } else if let Some((number, name)) = line.split_once(": ")
            && number.parse::<u32>().is_ok()
        {
            frames.push(Frame {
                name: name.to_owned().into(),
                ..Frame::default()
            });
        }
    }
    let is_site = |frame: &Frame| {
        frame.line == site.line() && frame.filename.trim_start_matches("./") == site.file()
    };
    let of_capture = |frame: &Frame| frame.name.ends_with("::Context::capture");
    let behind_capture = || {
        frames
            .iter()
            .rposition(of_capture)
            .map_or(0, |last| last + 1)
    };
    let first = frames.iter().position(is_site);
    let first = first.unwrap_or_else(behind_capture);
    frames.split_off(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(action: TraceAction, address: u64) -> Entry {
        Entry {
            action,
            address,
            size: 512,
            stream: 3,
            pool: (0, 7),
            context: Context::default(),
        }
    }

    fn addresses(history: &History) -> Vec<u64> {
        let entries = history.entries(&mut FrameCache::default());
        entries.iter().map(|entry| entry.address).collect()
    }

    #[test]
    fn the_oldest_entries_make_room_and_are_counted() {
        let mut history = History::new(HistoryOptions {
            max_entries: 3,
            ..HistoryOptions::default()
        });
        for address in 0..5 {
            history.record(entry(TraceAction::Alloc, address));
        }
        assert_eq!(addresses(&history), [2, 3, 4]);
        assert_eq!(history.dropped(), 2);
        history.set_options(HistoryOptions {
            max_entries: 1,
            backtraces: true,
        });
        assert_eq!(addresses(&history), [4]);
        assert_eq!(history.dropped(), 4);
        assert!(history.options().backtraces);
        history.clear();
        assert_eq!((addresses(&history), history.dropped()), (vec![], 0));
    }

    #[test]
    fn a_ring_without_room_keeps_nothing() {
        let mut history = History::new(HistoryOptions {
            max_entries: 0,
            ..HistoryOptions::default()
        });
        history.record(entry(TraceAction::Alloc, 1));
        assert_eq!(addresses(&history), [0; 0]);
    }

    #[test]
    fn times_are_those_of_the_machine_or_those_set() {
        let options = HistoryOptions::default();
        let now = |history: &History| history.entries(&mut FrameCache::default())[0].time_us;
        let mut machine = History::new(options.clone());
        machine.set_time(5);
        machine.record(entry(TraceAction::Alloc, 0));
        // After the year 2020.
        assert!(now(&machine) > 1_577_836_800_000_000);
        let mut set = History::without_clock(options);
        set.set_time(5);
        set.record(entry(TraceAction::Alloc, 0));
        assert_eq!(now(&set), 5);
    }

    #[test]
    fn out_of_memory_has_what_was_free_in_place_of_an_address() {
        let mut history = History::new(HistoryOptions::default());
        history.record(entry(TraceAction::Oom, 99));
        let entries = history.entries(&mut FrameCache::default());
        let oom = &entries[0];
        assert_eq!((oom.address, oom.device_free), (0, 99));
        assert_eq!((oom.size, oom.stream, oom.pool), (512, 3, (0, 7)));
    }

    #[test]
    fn frames_tell_the_place_of_the_call_and_the_stack_on_request() {
        let site = Location::caller();
        let mut cache = FrameCache::default();
        let brief = cache.frames(&Context::capture(site, false));
        assert_eq!(brief.len(), 1);
        assert!(brief[0].filename.ends_with("history.rs") && brief[0].line > 0);
        assert!(Arc::ptr_eq(
            &brief,
            &cache.frames(&Context::capture(site, false))
        ));
        let stack = cache.frames(&Context::capture(site, true));
        assert_eq!(stack[0], brief[0]);
        let first = &*stack[1].name;
        assert!(first.contains("frames_tell_the_place"), "{stack:?}");
        assert!(cache.frames(&Context::default()).is_empty());
    }

    #[test]
    fn a_printed_stack_is_read_from_the_call_on() {
        let site = Location::caller();
        let (file, line) = (site.file(), site.line());
        let text = format!(
            "   0: std::backtrace::capture\n             at /rustc/x/lib.rs:1:2\n   1: app::make\n\
             \x20            at ./{file}:{line}:9\n   2: main\n             at ./src/main.rs:4\n   3: start\n"
        );
        let frames = callers(&text, site);
        let texts: Vec<String> = frames.iter().map(Frame::to_string).collect();
        let expected = [
            format!("./{file}:{line} app::make"),
            "./src/main.rs:4 main".to_owned(),
            ":0 start".to_owned(),
        ];
        assert_eq!(texts, expected);
        assert_eq!(callers("garbage\n 5: a\n at :\n at", site).len(), 1);
    }
}
