#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_docs.py [--write] ROOT DT EXAMPLES PAGE=PROGRAM...: is what the pages show what happens?

In README.md, CONTRIBUTING.md and docs/*.md every ```console block is a session: lines that begin with "$ " are run (dt,
or ./NAME for an example, there on ranks that are alike and by the fewest bytes, whatever the machine), the lines up to
the next one are their output. The ```text block after the first C program of a page, "README.md=PROGRAM ARGUMENT...",
is the output of that program. Links to files of the repository must lead somewhere. A page, and a session, is a case. --write puts the new outputs into the pages. Prints TAP.
"""
import os
import pathlib
import re
import shlex
import subprocess
import sys

BLOCK = re.compile(r"^```console\n(.*?)^```$", re.M | re.S)
PROGRAM = re.compile(r"^(```c\n.*?^```\n.*?^```text\n)(.*?)(^```$)", re.M | re.S)
ALIKE = {"DT_TOPOLOGY": "core=8", "DT_SMALL": "0"}
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")


class Programs:
    def __init__(self, dt, examples, *pages):
        self.dt, self.examples = dt, examples
        self.pages = dict(page.split("=", 1) for page in pages)

    def run(self, command):
        words = shlex.split(command)
        if words[0] == "dt":
            return self.output([self.dt, *words[1:]])
        return self.output([os.path.join(self.examples, words[0]), *words[1:]], **ALIKE)

    @staticmethod
    def output(words, **variables):
        clean = {name: value for name, value in os.environ.items() if not name.startswith("DT_")}
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60,
                              check=False, env=clean | variables)
        return done.stdout


def session(text, programs):
    """The text of a session as it is now."""
    commands = [line for line in text.splitlines() if line.startswith("$ ")]
    return "\n".join(f"{line}\n{programs.run(line[2:])}" for line in commands)


def refresh(path, text, programs):
    """The parts of a page that are outputs: where in the text, name, what it shows, what is so."""
    for n, match in enumerate(BLOCK.finditer(text), 1):
        yield match.span(1), f"session {n}", match[1], session(match[1], programs)
    program = PROGRAM.search(text)
    if program:
        yield program.span(2), "the program", program[2], programs.output(shlex.split(programs.pages[path.name]))


def broken_links(path, text):
    return [link for link in LINK.findall(text) if not (path.parent / link).exists()]


def report(n, name, found):
    for line in found:
        print(f"# {line}")
    print(f"{'not ' if found else ''}ok {n} - {name}")


def check(path, programs, write, n):
    """Cases of one page; how many, and how many failed."""
    text, failed, count = path.read_text(encoding="utf-8"), 0, 1
    found = [f"a link that leads nowhere: {link}" for link in broken_links(path, text)]
    failed += bool(found)
    report(n + 1, f"{path.name}: links", found)
    for (begin, end), name, shown, real in sorted(refresh(path, text, programs), reverse=True): # so that places stay
        count += 1
        same = shown == real
        failed += not same
        found = [] if same else ["shown:", *shown.splitlines(), "is:", *real.splitlines()]
        report(n + count, f"{path.name}: {name}", found)
        text = text[:begin] + real + text[end:]
    if write:
        path.write_text(text, encoding="utf-8")
    return count, failed


def main():
    arguments = [word for word in sys.argv[1:] if word != "--write"]
    root, programs = pathlib.Path(arguments[0]), Programs(*arguments[1:])
    pages = [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").glob("*.md"))]
    cases = failures = 0
    for page in pages:
        count, failed = check(page, programs, "--write" in sys.argv[1:], cases)
        cases += count
        failures += failed
    print(f"1..{cases}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
