#!/usr/bin/env python3
"""Lists the names of torch.accelerator and the keys of its memory statistics, as JSON.

    python3 tools/spec-diff/torch_names.py PATH > tools/spec-diff/data/torch-VERSION.json

PATH is a wheel (`pip download --no-deps torch==VERSION`) or the folder that holds an unpacked `torch/`. Nothing is installed or
imported: the sources are parsed. Of a text of documentation only a digest is kept, to find what was renamed.
"""

import ast
import hashlib
import itertools
import json
import re
import sys
import zipfile
from pathlib import Path

# Where names come from: file, prefix of the names.
MODULES = [
    ("torch/accelerator/__init__.py", "torch.accelerator"),
    ("torch/accelerator/memory.py", "torch.accelerator.memory"),
    ("torch/accelerator/random.py", "torch.accelerator.random"),
]
# Classes whose methods are names too: file, class, name.
CLASSES = [
    ("torch/accelerator/graphs.py", "Graph", "torch.accelerator.Graph"),
    ("torch/_C/__init__.pyi", "Stream", "torch.Stream"),
    ("torch/_C/__init__.pyi", "Event", "torch.Event"),
]
# The docs that say what keys there are.
KEYS = [
    ("torch/accelerator/memory.py", "memory_stats", "accelerator"),
    ("torch/cuda/memory.py", "memory_stats", "cuda"),
]


def reader(path):
    """A function from names of files to their texts."""
    if path.is_dir():
        return lambda name: (path / name).read_text(encoding="utf-8")
    archive = zipfile.ZipFile(path)
    return lambda name: archive.read(name).decode("utf-8")


def version(read):
    found = re.search(r"__version__ = '([^'+]+)", read("torch/version.py"))
    return found.group(1)


def digest(text):
    text = " ".join((text or "").split())
    return hashlib.sha256(text.encode()).hexdigest()[:16] if text else ""


def described(node, docs=None):
    """What is listed of a function or class, or of a name that one is assigned to: `old = deprecated(..)(new)`."""
    if isinstance(node, ast.Assign):
        return {"docs": digest(docs), "deprecated": "deprecated" in ast.unparse(node.value)}
    said = any("deprecated" in ast.unparse(decorator) for decorator in node.decorator_list)
    return {"docs": digest(ast.get_docstring(node)), "deprecated": said}


def exported(tree):
    """The names of `__all__`; without it, what has no underscore in front."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return ast.literal_eval(node.value)
    functions = (ast.FunctionDef, ast.ClassDef)
    return [node.name for node in tree.body if isinstance(node, functions) and not node.name.startswith("_")]


def module_names(read, file, prefix):
    tree = ast.parse(read(file))
    defined, docs = {}, {}
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            defined[node.name] = node
        elif isinstance(node, ast.Assign):
            target = ast.unparse(node.targets[0])
            if target.endswith(".__doc__"):
                docs[target.removesuffix(".__doc__")] = ast.literal_eval(node.value)
            else:
                defined[target] = node
    for name in exported(tree):
        node = defined.get(name)
        # What is imported from a module below is listed there.
        if node is not None:
            yield f"{prefix}.{name}", described(node, docs.get(name))


def class_names(read, file, name, full):
    for node in ast.parse(read(file)).body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            yield full, described(node)
            for member in node.body:
                if isinstance(member, ast.FunctionDef) and not member.name.startswith("_"):
                    yield f"{full}.{member.name}", described(member)


def expand(pattern):
    """`a.{b,c}` as `a.b` and `a.c`."""
    parts = re.split(r"\{([^}]*)\}", pattern)
    choices = [part.split(",") if place % 2 else [part] for place, part in enumerate(parts)]
    return ["".join(choice) for choice in itertools.product(*choices)]


def stat_keys(read, file, function):
    for node in ast.parse(read(file)).body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            # A list in which every item starts with what it is about.
            for pattern in re.findall(r'^ *- ``"([^"]+)"``', ast.get_docstring(node), re.MULTILINE):
                yield from expand(pattern.replace(" ", ""))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    read = reader(Path(sys.argv[1]))
    names = {}
    for file, prefix in MODULES:
        names.update(module_names(read, file, prefix))
    for file, name, full in CLASSES:
        for member, description in class_names(read, file, name, full):
            names.setdefault(member, description)
    keys = {}
    for file, function, source in KEYS:
        for key in stat_keys(read, file, function):
            keys.setdefault(key, source)
    listed = {"torch": version(read), "names": names, "keys": keys}
    json.dump(listed, sys.stdout, indent=1, sort_keys=True)
    print()


main()
