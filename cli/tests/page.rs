//! The page of `vkaccel memory`, in a browser. Needs no device; skips where there is no Chromium.

#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use support::Scratch;

/// A browser: what `VKACCEL_TEST_BROWSER` names, or one that is installed.
fn browser(test: &str) -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("VKACCEL_TEST_BROWSER") {
        return Some(named.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome", "chrome"];
    let found = std::env::split_paths(&path)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|file| file.is_file());
    if found.is_none() {
        println!("SKIP {test}: no Chromium (`apt install chromium`, or VKACCEL_TEST_BROWSER=FILE)");
    }
    found
}

/// Opens a page without a window and without a network; returns what it is when it has run.
fn open(browser: &Path, scratch: &Scratch, page: &str, picture: Option<&str>) -> String {
    let mut command = Command::new(browser);
    command
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
        ])
        .args(["--disable-background-networking", "--window-size=1400,1300"])
        // No name is found.
        .arg("--host-resolver-rules=MAP * ~NOTFOUND")
        .arg(format!(
            "--user-data-dir={}",
            scratch.path("profile").display()
        ))
        .env("HOME", scratch.path("."))
        .env("TMPDIR", scratch.path("."));
    match picture {
        Some(picture) => command.arg(format!("--screenshot={}", scratch.path(picture).display())),
        None => command.arg("--dump-dom"),
    };
    command.arg(format!("file://{}", scratch.path(page).display()));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// What the page notes about itself, as an attribute of the document.
fn noted(page: &str, name: &str) -> String {
    let start = format!("data-{name}=\"");
    let start = page.find(&start).expect(name) + start.len();
    let end = start + page[start..].find('"').unwrap();
    let text = page[start..end].replace("&quot;", "\"");
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
}

/// Adds a script to a page, which runs when the page has.
fn add_script(scratch: &Scratch, from: &str, to: &str, script: &str) {
    let page = std::fs::read_to_string(scratch.path(from)).unwrap();
    assert_eq!(page.matches("</body>").count(), 1);
    let script = format!("<script>{script}</script></body>");
    scratch.write(to, page.replace("</body>", &script));
}

/// How many points of a picture have about this colour.
fn points_like(picture: &Path, colour: [u8; 3]) -> usize {
    let file = std::io::BufReader::new(std::fs::File::open(picture).unwrap());
    let mut reader = png::Decoder::new(file).read_info().unwrap();
    let mut data = vec![0; reader.output_buffer_size().unwrap()];
    let frame = reader.next_frame(&mut data).unwrap();
    let step = frame.color_type.samples();
    let is_like = |point: &&[u8]| point.iter().zip(colour).all(|(a, b)| a.abs_diff(b) < 3);
    data[..frame.buffer_size()]
        .chunks(step)
        .filter(is_like)
        .count()
}

/// A golden trace with many operations: allocations of several sizes that come and go.
fn long_trace(operations: u64) -> String {
    let mut text = r#"{"format":1,"total":17179869184,"events":"immediate","keys":[]}"#.to_owned();
    let sizes = [3000, 70_000, 900_000, 2_500_000, 12_000_000, 60_000_000];
    for number in 0..operations / 2 {
        let size = sizes[usize::try_from(number * 7 % 6).unwrap()] + number % 1000;
        text += &format!("\n{{\"op\":\"alloc\",\"id\":{number},\"size\":{size},\"stream\":0}}");
        if number >= 100 {
            text += &format!("\n{{\"op\":\"free\",\"id\":{}}}", number - 100);
        }
    }
    text
}

#[test]
fn the_page_shows_what_the_figures_say() {
    let test = "the_page_shows_what_the_figures_say";
    let Some(browser) = browser(test) else {
        return;
    };
    let scratch = Scratch::new("page");
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/traces/dnn.jsonl");
    let replay = format!("memory replay {} --json --html page.html", trace.display());
    let figures: Value = serde_json::from_str(&scratch.vkaccel(&replay).ok().stdout).unwrap();
    let figures = &figures["runs"][0];

    let page = open(&browser, &scratch, "page.html", None);
    let facts: Value = serde_json::from_str(&noted(&page, "facts")).unwrap();
    assert_eq!(facts["reserved"], figures["peak_reserved_bytes"]);
    assert_eq!(facts["peak"], figures["peak_requested_bytes"]);
    assert_eq!(facts["segments"], figures["num_device_alloc"]);
    assert_eq!(
        (&facts["blocks"], &facts["end"]),
        (&Value::from(285), &Value::from(0))
    );

    open(&browser, &scratch, "page.html", Some("page.png"));
    let picture = scratch.path("page.png");
    // Bands of the plot and blocks of segments, free memory, and the edge of what is reserved.
    assert!(points_like(&picture, [0x4e, 0x79, 0xa7]) > 5_000);
    assert!(points_like(&picture, [0xe1, 0x57, 0x59]) > 5_000);
    assert!(points_like(&picture, [0xec, 0xef, 0xf4]) > 5_000);
    assert!(points_like(&picture, [0x34, 0x40, 0x54]) > 500);
}

#[test]
fn the_pointer_tells_size_age_and_call_site() {
    let test = "the_pointer_tells_size_age_and_call_site";
    let Some(browser) = browser(test) else {
        return;
    };
    let scratch = Scratch::new("pointer");
    let snapshot = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/torch_snapshot.pickle");
    let export = format!("memory export {} --html page.html", snapshot.display());
    scratch.vkaccel(&export).ok();
    let script = "
        const note = (name, text) => { document.documentElement.dataset[name] = text.replaceAll('\\n', '|'); };
        const move = (canvas, x, y) => {
          const box = canvas.getBoundingClientRect();
          canvas.dispatchEvent(new MouseEvent('mousemove', {clientX: box.left + x, clientY: box.top + y}));
          return tip.innerText;
        };
        note('group', move(plot, plot.clientWidth / 2, 300));
        order.value = 'age'; all();
        note('block', move(plot, plot.clientWidth / 2, 300));
        look(count);
        note('segment', move(at('segments'), 20, 10));
        note('moment', at('moment').textContent);
        note('holders', at('holders').innerText);";
    add_script(&scratch, "page.html", "moved.html", script);
    let page = open(&browser, &scratch, "moved.html", None);
    let group = noted(&page, "group");
    assert!(
        group.contains(" in ") && group.contains("/job/model.py:"),
        "{group}"
    );
    let block = noted(&page, "block");
    for says in [
        "MiB (",
        "age ",
        "µs",
        "stream 0",
        "/job/model.py:",
        "/job/train.py:90 main",
    ] {
        assert!(block.contains(says), "{says}: {block}");
    }
    let segment = noted(&page, "segment");
    for says in [
        "4 MiB (4,194,304 bytes)",
        "/job/model.py:12 forward",
        "of 20 MiB",
    ] {
        assert!(segment.contains(says), "{says}: {segment}");
    }
    assert!(
        noted(&page, "moment").contains("2 segments, 22 MiB reserved"),
        "{page}"
    );
    assert!(noted(&page, "holders").contains("/job/model.py:40 backward"));
}

#[test]
fn a_hundred_thousand_events_are_shown_within_seconds() {
    let test = "a_hundred_thousand_events_are_shown_within_seconds";
    let Some(browser) = browser(test) else {
        return;
    };
    let scratch = Scratch::new("many");
    scratch.write("long.jsonl", long_trace(70_000));
    scratch
        .vkaccel("memory replay long.jsonl --html page.html")
        .ok();
    let script = "
        const before = performance.now();
        zoom(1000, count - 1000); look(count >> 1);
        document.documentElement.dataset.redrawn = Math.round(performance.now() - before);
        document.documentElement.dataset.shown = Math.round(performance.now());";
    add_script(&scratch, "page.html", "timed.html", script);
    let page = open(&browser, &scratch, "timed.html", None);
    let facts: Value = serde_json::from_str(&noted(&page, "facts")).unwrap();
    assert!(facts["events"].as_u64().unwrap() > 100_000, "{facts}");
    let (shown, redrawn) = (noted(&page, "shown"), noted(&page, "redrawn"));
    println!("shown after {shown} ms, redrawn in {redrawn} ms");
    // Far above what it takes: machines that run tests are busy.
    assert!(shown.parse::<u32>().unwrap() < 20_000, "{shown} ms");
}
