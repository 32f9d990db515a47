//! Who caused something: the place of a call, and on request the stack that led there.

use core::panic::Location;
use std::backtrace::Backtrace;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::snapshot::Frame;

/// Who caused something.
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

/// The frames of contexts, found once each: looking up the names of a stack takes milliseconds.
#[derive(Debug, Default)]
pub(crate) struct FrameCache {
    /// By the addresses of the place and of the stack.
    known: HashMap<(usize, usize), Arc<[Frame]>>,
    /// Equal ones are kept once: a loop comes by the same way again and again.
    unique: HashSet<Arc<[Frame]>>,
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
        if let Some(known) = self.known.get(&key) {
            return Arc::clone(known);
        }
        let mut frames = vec![Frame {
            name: "".into(),
            filename: site.file().into(),
            line: site.line(),
        }];
        if let Some(stack) = stack {
            frames.extend(callers(&stack.to_string(), site));
        }
        let mut frames: Arc<[Frame]> = frames.into();
        match self.unique.get(&frames) {
            Some(equal) => frames = Arc::clone(equal),
            None => drop(self.unique.insert(Arc::clone(&frames))),
        }
        self.known.insert(key, Arc::clone(&frames));
        frames
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

    #[test]
    fn frames_tell_the_place_of_the_call_and_the_stack_on_request() {
        let site = Location::caller();
        let mut cache = FrameCache::default();
        let brief = cache.frames(&Context::capture(site, false));
        assert_eq!(brief.len(), 1);
        assert!(brief[0].filename.ends_with("frames.rs") && brief[0].line > 0);
        assert!(Arc::ptr_eq(
            &brief,
            &cache.frames(&Context::capture(site, false))
        ));
        let stacks = [(); 2].map(|()| cache.frames(&Context::capture(site, true)));
        assert!(Arc::ptr_eq(&stacks[0], &stacks[1]), "{stacks:?}");
        let stack = &stacks[0];
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
            "start".to_owned(),
        ];
        assert_eq!(texts, expected);
        assert_eq!(callers("garbage\n 5: a\n at :\n at", site).len(), 1);
    }
}
