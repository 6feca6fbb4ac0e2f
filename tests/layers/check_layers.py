#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_layers.py ROOT: do the sources keep the layers?

Reads the text of every source and header of the library, no build. Fails, with a line per finding, on: an include of a
layer above; a vendor's header in a public header outside interop/; a call that ends the process or prints, in the
library; `#if DT_HAVE_` in more than two files; a folder of sources that is no layer; a line of C, anywhere, of more
than 120 columns.
"""
import pathlib
import re
import sys

LAYERS = ["core", "comm", "mesh", "placements", "redistribute", "tensor", "autograd", "ops", "nn", "parallel", "train",
          "top"]
FOLDERS = {"libdtensor/core": "core", "libdtensor/comm": "comm", "mesh": "mesh", "placements": "placements",
           "redistribute": "redistribute", "libdtensor/tensor": "tensor", "libdtensor/autograd": "autograd",
           "ops": "ops", "nn": "nn", "parallel": "parallel", "train": "train", "dry": "dry", "libdtensor/debug": "top"}
PUBLIC = {"api": "core", "status": "core", "types": "core", "context": "core", "mesh": "mesh", "spec": "placements",
          "plan": "redistribute", "tensor": "tensor", "autograd": "autograd", "op": "ops", "ops": "ops", "nn": "nn",
          "parallel": "parallel", "train": "train", "data": "train", "debug": "top", "dtensor": "top",
          "interop/mpi": "comm", "interop/cuda": "tensor"}
FREE = {"tests", "tools", "examples", "bench"}      # above all layers: may include anything
INCLUDE_DIRS = ["include", "libdtensor", "."]
HAVE_FILES = 2
COLUMNS = 120

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.M)
VENDOR = re.compile(r"^(hwloc|mpi|cuda|cublas|nccl|dnnl|oneapi/)")
CALL = re.compile(r"(?<![\w.>])(abort|exit|_exit|_Exit|quick_exit|printf|puts|putchar|assert)\s*\(")
HAVE = re.compile(r"^\s*#\s*(if|ifdef|ifndef|elif)\b.*\bDT_HAVE_", re.M)
NOT_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def layer_of(path):
    """The layer of a path relative to the root; None: it has none."""
    parts = path.split("/")
    if parts[0] in FREE:
        return "free"
    if parts[:2] == ["include", "dtensor"]:
        return PUBLIC.get(path[len("include/dtensor/"):-len(".h")])
    for depth in (2, 1):
        if len(parts) > depth and "/".join(parts[:depth]) in FOLDERS:
            return FOLDERS["/".join(parts[:depth])]
    return None


def resolve(root, path, quote, name):
    """The file an include means, relative to the root; None: a header of the system."""
    folders = ([str(pathlib.PurePosixPath(path).parent)] if quote == '"' else []) + INCLUDE_DIRS
    for folder in folders:
        file = (root / folder / name).resolve()
        if file.is_file() and root in file.parents:
            return file.relative_to(root).as_posix()
    return None


def may_include(layer, other):
    if layer == "free":
        return True
    if other in ("free", "dry") or layer == "dry":
        return layer == "dry" and other != "free"
    return LAYERS.index(other) <= LAYERS.index(layer)


def blank(match):
    """What is not code, blanked so that line numbers stay."""
    return re.sub(r"[^\n]", " ", match.group())


def check_includes(root, path, layer, text):
    public = path.startswith("include/") and not path.startswith("include/dtensor/interop/")
    for match in INCLUDE.finditer(re.sub(r"/\*.*?\*/", blank, text, flags=re.S)):
        line, (quote, name) = text.count("\n", 0, match.start(2)) + 1, match.groups()
        if public and VENDOR.match(name):
            yield f"{path}:{line}: a vendor's header in a public one: {name}"
        target = resolve(root, path, quote, name)
        if target is None:
            if quote == '"' or name.startswith("dtensor/"):
                yield f"{path}:{line}: no such header: {name}"
            continue
        other = layer_of(target)
        if other and not may_include(layer, other):
            yield f"{path}:{line}: {layer} includes {other}, an upward arrow: {name}"


def check_calls(path, text):
    code = NOT_CODE.sub(blank, text)
    for match in CALL.finditer(code):
        yield f"{path}:{code.count(chr(10), 0, match.start()) + 1}: the library calls {match.group(1)}"


def sources(root):
    for folder in ["include"] + sorted({layer.split("/")[0] for layer in FOLDERS}):
        for file in sorted((root / folder).rglob("*")):
            if file.suffix in (".c", ".h", ".cpp", ".cu", ".cuh"):
                yield file


def wide_lines(root):
    for file in sorted(file for folder in sorted(FREE) for file in (root / folder).rglob("*.[ch]")) + list(sources(root)):
        for number, line in enumerate(file.read_text().split("\n"), 1):
            if len(line) > COLUMNS:
                yield f"{file.relative_to(root).as_posix()}:{number}: {len(line)} columns"


def folders_without_layer(root):
    known = {layer.split("/")[0] for layer in FOLDERS} | FREE | {"include", "subprojects", "docs"}
    for folder in sorted(root.iterdir()):
        built = folder.name.startswith((".", "build")) or (folder / "meson-private").exists()
        if folder.is_dir() and folder.name not in known and not built and any(folder.rglob("*.[ch]")):
            yield f"{folder.name}: a folder of sources that is no layer"


def check(root):
    """All findings, and how many files were read."""
    root = pathlib.Path(root).resolve()
    findings, have, count = [*folders_without_layer(root), *wide_lines(root)], [], 0
    for file in sources(root):
        path, text = file.relative_to(root).as_posix(), file.read_text()
        layer = layer_of(path)
        count += 1
        if layer is None:
            findings.append(f"{path}: belongs to no layer")
            continue
        findings += check_includes(root, path, layer, text)
        findings += check_calls(path, text)
        if HAVE.search(text):
            have.append(path)
    if len(have) > HAVE_FILES:
        findings.append(f"#if DT_HAVE_ in more than {HAVE_FILES} files: {', '.join(have)}")
    return findings, count


def main():
    findings, count = check(sys.argv[1])
    if count == 0:
        findings.append(f"no sources in {sys.argv[1]}")
    print("\n".join(findings) or f"{count} files keep the layers")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
