#!/usr/bin/env python3
"""Shows that PyTorch's own `torch/cuda/_memory_viz.py` reads the snapshots that vkaccel writes. To be run by hand.

    pip download --no-deps torch==2.14.0            # the wheel is large; nothing is installed
    vkaccel memory export SNAPSHOT --pickle snapshot.pickle
    python3 tools/memory-viz/check.py torch-2.14.0-*.whl snapshot.pickle

The first argument may also be a folder that holds an unpacked `torch/`, the second any file that
`MemorySnapshot::write_pickle` wrote. With `--write DIR` the pages and texts that PyTorch makes are written there.
"""

import argparse
import base64
import json
import pickle
import re
import sys
import types
import zipfile
from pathlib import Path

MODULE = "torch/cuda/_memory_viz.py"


def viewer(path):
    """PyTorch's module, without PyTorch."""
    if path.is_dir():
        text = (path / MODULE).read_text()
    else:
        with zipfile.ZipFile(path) as wheel:
            text = wheel.read(MODULE).decode()
    module = types.ModuleType("_memory_viz")
    exec(compile(text, MODULE, "exec"), module.__dict__)
    return module


def embedded(page):
    """The snapshot inside of a page that PyTorch made, and the view that it opens with."""
    files = json.loads(re.search(r"const local_files = (.*)", page)[1])
    view = re.search(r"add_local_files\(local_files, (.*)\)", page)[1]
    return pickle.loads(base64.b64decode(files[0]["base64"])), view


def backwards(segments, events):
    """Goes back from the snapshot to the first event, as the web viewer does; the events at which it would stumble."""
    held = {segment["address"]: segment["total_size"] for segment in segments}
    blocks = set()
    for segment in segments:
        address = segment["address"]
        for block in segment["blocks"]:
            if block["state"] != "inactive":
                blocks.add(address)
            address += block["size"]
    wrong = []
    for index, event in reversed(list(enumerate(events))):
        action, address = event["action"], event.get("addr")
        good = True
        if action == "alloc":
            good = address in blocks
            blocks.discard(address)
        elif action == "free_completed":
            good = address not in blocks
            blocks.add(address)
        elif action == "free_requested":
            good = address in blocks
        elif action == "segment_free":
            held[address] = event["size"]
        elif action == "segment_alloc":
            good = held.pop(address, None) == event["size"]
        if action.startswith(("alloc", "free")):
            good &= any(start <= address < start + size for start, size in held.items())
        if not good:
            wrong.append(index)
    return wrong


def numbers(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return max((numbers(item) for item in value), default=0)
    return abs(value) if isinstance(value, int) else 0


def expect(what, condition):
    print(("ok      " if condition else "WRONG   ") + what)
    return condition


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("torch", type=Path)
    parser.add_argument("snapshot", type=Path)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    viz = viewer(options.torch)
    read = lambda: pickle.loads(options.snapshot.read_bytes())
    data = read()
    segments = data["segments"]
    traces = data["device_traces"]
    events = [entry for trace in traces for entry in trace]
    reserved = sum(segment["total_size"] for segment in segments)

    good = True
    # It raises AssertionError where sizes don't add up.
    stats = viz.segsum(data)
    good &= expect("stats: every segment is the sum of its blocks", f"total_reserved: {viz.Bytes(reserved)!r}\n" in stats)
    good &= expect("stats: every segment is counted", f"segments: {len(segments)}\n" in stats)

    trace = viz.trace(data)
    good &= expect("trace: every device with entries is told", trace.count(" entries\n") == sum(map(bool, traces)))
    for action, sign in [("segment_alloc", " = cudaMalloc("), ("segment_free", "cudaFree("), ("oom", "raise OutOfMemoryError")]:
        count = sum(entry["action"] == action for entry in events)
        good &= expect(f"trace: {count} of {action}", trace.count(sign) == count)
    allocations = sum(entry["action"] == "alloc" for entry in events)
    good &= expect(f"trace: {allocations} of alloc", len(re.findall(r"^\w+ = \w+\[\d+:", trace, re.M)) == allocations)
    good &= expect("trace: every allocation lies in a segment", "= MEM[" not in trace)

    pages = {
        "trace_plot.html": (viz.trace_plot(read()), "'Active Memory Timeline'"),
        "trace_plot_segments.html": (viz.trace_plot(read(), plot_segments=True), "'Active Cached Memory Timeline'"),
        "segment_plot.html": (viz.segment_plot(read()), "'Allocator State History'"),
    }
    for name, (page, expected) in pages.items():
        inside, view = embedded(page)
        good &= expect(f"{name}: holds the snapshot and opens {view}", inside == data and view == expected)
    kept = embedded(viz.trace_plot(read(), filter_freed=True))[0]["device_traces"]
    freed = sum(entry["action"] == "free_completed" for entry in events)
    remaining = sum(len(trace) for trace in kept)
    good &= expect(f"trace_plot --filter_freed: {remaining} entries are left", remaining < len(events) or freed == 0)

    lines = viz.memory(data, format_flamegraph=lambda text: text).splitlines()
    sizes = sum(int(line.rsplit(" ", 1)[1]) for line in lines)
    good &= expect("memory: the flame graph holds every reserved byte", sizes == reserved)

    for device, events_of in enumerate(traces):
        of_device = [segment for segment in segments if segment["device"] == device]
        wrong = backwards(of_device, events_of)
        good &= expect(f"web viewer: device {device} can be gone back through {len(events_of)} events {wrong[:9] or ''}", not wrong)
    good &= expect("web viewer: every number is one that JavaScript has", numbers(data) < 1 << 53)

    if options.write:
        options.write.mkdir(parents=True, exist_ok=True)
        for name, text in {"stats.txt": stats, "trace.txt": trace, **{name: page for name, (page, _) in pages.items()}}.items():
            (options.write / name).write_text(text)
    sys.exit(not good)


if __name__ == "__main__":
    main()
