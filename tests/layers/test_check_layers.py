#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does check_layers.py find what it should? A small good tree, then the same with one fault each. Prints TAP."""
import pathlib
import sys
import tempfile

import check_layers

GOOD = {
    "include/dtensor/status.h": "",
    "include/dtensor/mesh.h": "#include <stddef.h>\n#include <dtensor/status.h>\n",
    "include/dtensor/interop/cuda.h": "#include <cuda_runtime.h>\n",
    "libdtensor/core/context.h": "#include <dtensor/status.h>\n",
    "libdtensor/core/context.c": '#include "core/context.h"\nstatic_assert(1, "exit(1)"); /* abort() */\n',
    "mesh/mesh.h": '#include <dtensor/mesh.h>\n#include "core/context.h"\n',
    "mesh/topology_hwloc.c": '#include <hwloc.h>\n#include "mesh.h"\n#if DT_HAVE_A\n#endif\n',
    "mesh/a.c": "#ifdef DT_HAVE_B\n#endif\nint f(struct s *s) { return s->exit(1) + s->t.abort(); }\n",
    "dry/trace.c": '#include <dtensor/dtensor.h>\n#include "mesh/mesh.h"\n',
    "dry/dry.h": "",
    "include/dtensor/dtensor.h": "#include <dtensor/mesh.h>\n",
    "tests/unit/test_mesh.c": '#include "mesh/mesh.h"\n#include "dry/dry.h"\nint main(void) { abort(); }\n',
}

# What is wrong, the file that has it, its text, and what the finding must say. None: a tree without fault.
CASES = [
    ("nothing", None, None, None),
    ("an inner header above", "libdtensor/core/context.c", '#include "mesh/mesh.h"\n', "context.c:1: core includes"),
    ("a relative include above", "libdtensor/core/b.c", '\n#include "../../mesh/mesh.h"\n', "b.c:2: core includes"),
    ("a public header above", "libdtensor/core/context.h", "#include <dtensor/mesh.h>\n", "core includes mesh"),
    ("public above public", "include/dtensor/status.h", "#include <dtensor/mesh.h>\n", "core includes mesh"),
    ("the umbrella", "mesh/mesh.h", "# include <dtensor/dtensor.h>\n", "mesh includes top"),
    ("dry included", "mesh/a.c", '#include "dry/dry.h"\n', "mesh includes dry"),
    ("a test included by dry", "dry/trace.c", '#include "tests/unit/test_mesh.c"\n', "dry includes free"),
    ("a header that is not there", "mesh/a.c", '#include "mesh/gone.h"\n', "no such header: mesh/gone.h"),
    ("hwloc in public", "include/dtensor/mesh.h", "#include <hwloc.h>\n", "vendor's header in a public one: hwloc.h"),
    ("cuda in public", "include/dtensor/mesh.h", "#include <cuda.h>\n", "vendor's header in a public one: cuda.h"),
    ("abort", "mesh/a.c", "void f(void) { abort(); }\n", "a.c:1: the library calls abort"),
    ("exit", "mesh/a.c", "\n/*\n*/void f(void) { exit (1); }\n", "a.c:3: the library calls exit"),
    ("printf", "dry/trace.c", 'void f(void) { printf("x"); }\n', "the library calls printf"),
    ("assert", "mesh/mesh.h", "static inline void f(int n) { assert(n); }\n", "the library calls assert"),
    ("three files with DT_HAVE_", "dry/dry.h", "#if defined(X) && DT_HAVE_C\n#endif\n", "in more than 2 files"),
    ("a wide line", "tests/unit/test_mesh.c", "\n/*" + "*" * 117 + "*/\n", "test_mesh.c:2: 121 columns"),
    ("an unknown public header", "include/dtensor/other.h", "", "other.h: belongs to no layer"),
    ("an unknown inner folder", "libdtensor/other/a.c", "", "libdtensor/other/a.c: belongs to no layer"),
    ("an unknown folder", "other/a.c", "", "other: a folder of sources that is no layer"),
]


def findings_of(files):
    with tempfile.TemporaryDirectory() as folder:
        for path, text in files.items():
            file = pathlib.Path(folder, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return check_layers.check(folder)[0]


def main():
    failed = 0
    print(f"1..{len(CASES)}")
    for i, (name, path, text, want) in enumerate(CASES, 1):
        findings = findings_of(GOOD | ({path: text} if path else {}))
        passed = len(findings) == 1 and want in findings[0] if want else not findings
        print(f"{'ok' if passed else 'not ok'} {i} - {name}")
        for finding in [] if passed else findings:
            print(f"# {finding}")
        failed += not passed
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
