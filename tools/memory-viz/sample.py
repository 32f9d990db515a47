#!/usr/bin/env python3
"""Writes a small snapshot with the layout of `torch.cuda.memory._snapshot()`, pickled as `_dump_snapshot` does.

    python3 tools/memory-viz/sample.py > cli/tests/data/torch_snapshot.pickle

Stacks are shared between entries, as PyTorch's are, so that the pickle names them instead of repeating them. Needs no PyTorch:
its allocator runs on CUDA devices alone.
"""

import pickle
import sys

MIB = 1 << 20
BASE = 0x7F0000000000


def frame(filename, line, name):
    return {"filename": filename, "line": line, "name": name}


MAIN = frame("/job/train.py", 90, "main")
FORWARD = [frame("/job/model.py", 12, "forward"), MAIN]
GRADIENT = [frame("/job/model.py", 40, "backward"), MAIN]
EMPTY = [frame("/job/train.py", 77, "cleanup"), MAIN]


def entry(action, address, size, frames, stream=0, **more):
    entry.time += 250
    return {
        "action": action, "addr": address, "size": size, "stream": stream, "time_us": entry.time,
        "compile_context": "N/A", "user_metadata": "", "pool_id": (0, 0), "frames": frames, **more,
    }


entry.time = 1_790_000_000_000_000


def out_of_memory(size, free, frames):
    made = entry("oom", 0, size, frames)
    del made["addr"]
    return {**made, "device_free": free}


def freed(address, size, frames):
    return [entry(action, address, size, frames) for action in ("free_requested", "free_completed")]


LARGE, SMALL, OTHER = BASE, BASE + 64 * MIB, BASE + 128 * MIB
trace = [
    # From before the recording.
    *freed(SMALL, 3000, FORWARD),
    entry("segment_alloc", LARGE, 20 * MIB, FORWARD),
    entry("alloc", LARGE, 6 * MIB, FORWARD),
    entry("alloc", LARGE + 6 * MIB, 5_000_000, GRADIENT),
    # Used on another stream for a while.
    entry("free_requested", LARGE, 6 * MIB, GRADIENT),
    entry("segment_alloc", OTHER, 30 * MIB, GRADIENT),
    entry("alloc", OTHER, 29 * MIB, GRADIENT),
    entry("free_completed", LARGE, 6 * MIB, GRADIENT),
    entry("alloc", LARGE, 4 * MIB, FORWARD),
    *freed(OTHER, 29 * MIB, GRADIENT),
    entry("segment_free", OTHER, 30 * MIB, EMPTY),
    entry("annotate", LARGE, 4 * MIB, FORWARD),
    out_of_memory(64 * MIB, 42 * MIB, FORWARD),
    entry("snapshot", 0, 0, EMPTY),
]
segments = [
    {
        "device": 0, "address": LARGE, "total_size": 20 * MIB, "allocated_size": 4 * MIB + 5_000_192,
        "active_size": 4 * MIB + 5_000_192, "requested_size": 4 * MIB + 5_000_000, "stream": 0, "segment_type": "large",
        "segment_pool_id": (0, 0), "is_expandable": False, "frames": FORWARD,
        "blocks": [
            {"address": LARGE, "size": 4 * MIB, "requested_size": 4 * MIB, "state": "active_allocated", "frames": FORWARD},
            {"address": LARGE + 4 * MIB, "size": 2 * MIB, "requested_size": 6 * MIB, "state": "inactive", "frames": FORWARD},
            {"address": LARGE + 6 * MIB, "size": 5_000_192, "requested_size": 5_000_000, "state": "active_allocated", "frames": GRADIENT},
            {"address": LARGE + 6 * MIB + 5_000_192, "size": 14 * MIB - 5_000_192, "requested_size": 0, "state": "inactive", "frames": []},
        ],
    },
    {
        "device": 0, "address": SMALL, "total_size": 2 * MIB, "allocated_size": 1024, "active_size": 1024, "requested_size": 1000,
        "stream": 0, "segment_type": "small", "segment_pool_id": (0, 0), "is_expandable": False, "frames": [],
        "blocks": [
            {"address": SMALL, "size": 3072, "requested_size": 3000, "state": "inactive", "frames": []},
            {"address": SMALL + 3072, "size": 1024, "requested_size": 1000, "state": "active_allocated", "frames": []},
            {"address": SMALL + 4096, "size": 2 * MIB - 4096, "requested_size": 0, "state": "inactive", "frames": []},
        ],
    },
]
settings = {
    "PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:200", "PYTORCH_ALLOC_CONF": "max_split_size_mb:200", "max_split_size": 200 * MIB,
    "garbage_collection_threshold": 0.0, "expandable_segments": False, "pinned_num_register_threads": 1,
    "release_lock_on_cudamalloc": False, "pinned_use_cuda_host_register": False,
    "roundup_power2_divisions": {str(1 << n): 0 for n in range(16)},
}
snapshot = {
    "segments": segments, "device_traces": [trace, []], "allocator_settings": settings, "external_annotations": [],
}
pickle.dump(snapshot, sys.stdout.buffer)
