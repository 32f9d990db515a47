//! Who caused something: the place of a call, and on request the stack that led there.

use core::panic::Location;
use std::backtrace::Backtrace;
use std::collections::{HashMap, HashSet};
use std::path::Path;
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
        let mut frames: Arc<[Frame]> = match stack {
            Some(stack) => callers(&stack.to_string(), site).into(),
            None => Arc::new([nameless(site)]),
        };
        match self.unique.get(&frames) {
            Some(equal) => frames = Arc::clone(equal),
            None => drop(self.unique.insert(Arc::clone(&frames))),
        }
        self.known.insert(key, Arc::clone(&frames));
        frames
    }
}

/// The place of a call, of which nobody knows the function.
fn nameless(site: &Location<'static>) -> Frame {
    Frame {
        name: "".into(),
        filename: site.file().into(),
        line: site.line(),
    }
}

/// Whether a frame of a printed stack is at the place of the call. A stack has its files' whole paths,
/// or from the current folder on; the place has what the compiler was given.
fn is_at(frame: &Frame, site: &Location<'_>) -> bool {
    let (printed, given) = (&*frame.filename, Path::new(site.file()));
    let printed = Path::new(printed.trim_start_matches("./"));
    frame.line == site.line()
        && !printed.as_os_str().is_empty()
        && (printed.ends_with(given) || given.ends_with(printed))
}

/// The frames of a printed stack from the one on that made the call, which is the first. Without debug
/// information, which tells that one, the place of the call comes before the frames from the one on
/// that captured the stack.
fn callers(stack: &str, site: &Location<'static>) -> Vec<Frame> {
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
    if let Some(first) = frames.iter().position(|frame| is_at(frame, site)) {
        let mut callers = frames.split_off(first);
        if let Some(call) = callers.first_mut() {
            // Spelled as where no stack is recorded.
            call.filename = site.file().into();
        }
        return callers;
    }
    let of_capture = |frame: &Frame| frame.name.ends_with("::Context::capture");
    let last = frames.iter().rposition(of_capture);
    let behind_capture = frames.split_off(last.map_or(0, |last| last + 1));
    let mut callers = vec![nameless(site)];
    callers.extend(behind_capture);
    callers
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
        assert_eq!(stack[0].filename, brief[0].filename);
        assert_eq!(stack[0].line, brief[0].line);
        // Where there is no debug information, nobody knows which function the place is in.
        let first = stack.iter().find(|frame| !frame.name.is_empty());
        let first = &*first.unwrap().name;
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
            format!("{file}:{line} app::make"),
            "./src/main.rs:4 main".to_owned(),
            "start".to_owned(),
        ];
        assert_eq!(texts, expected);
    }

    #[test]
    fn the_place_of_the_call_is_told_once_and_with_its_function_where_that_is_known() {
        let site = Location::caller();
        let (file, line) = (site.file(), site.line());
        let read = |text: &str| -> Vec<String> {
            callers(text, site).iter().map(Frame::to_string).collect()
        };
        let relative = file.rsplit('/').next().unwrap();
        for printed in [
            file.to_owned(),
            format!("./{file}"),
            format!("/build/{file}"),
            format!("./{relative}"),
        ] {
            let text =
                format!(" 0: a::Context::capture\n 1: app::make\n at {printed}:{line}:9\n 2: main");
            let expected = [format!("{file}:{line} app::make"), "main".to_owned()];
            assert_eq!(read(&text), expected, "{printed}");
        }
        // Another file of that name's end, and another line.
        let nameless = format!("{file}:{line}");
        for elsewhere in [
            format!("x{file}:{line}"),
            format!("{file}:{}", line + 1),
            format!(":{line}"),
        ] {
            let text = format!(" 0: a::Context::capture\n 1: app::make\n at {elsewhere}:9\n");
            let frames = read(&text);
            assert_eq!((frames.len(), &frames[0]), (2, &nameless), "{frames:?}");
        }
        assert_eq!(
            read(" 0: a::Context::capture\n 1: app::make\n"),
            [&*nameless, "app::make"]
        );
        assert_eq!(read("garbage\n 5: a\n at :\n at").len(), 2);
    }
}
