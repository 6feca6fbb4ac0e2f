#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""api_reference.py [--write] ROOT: docs/api is what the public headers say.

Makes a page per header and an index of names, and compares them with those in docs/api; --write puts them there. Every
function, type and constant must have a comment: behind it, or above it or above the lines that it stands among without
a blank line, or one of its section. Reads text, no build. Prints TAP: a header, and a page, is a case.

A header is: a first comment; sections, "/* ---- name ---- *" with text behind it or none; items, a comment and the
declarations below it up to a blank line or the next comment.
"""
import pathlib
import re
import sys

SKIPPED = {"api.h"}                                   # nothing in it for a user
SECTION = re.compile(r"^/\* ---- (.*?) -+ \*(/?)\s*$")
NAME = re.compile(r"\b(?:dt|DT)_\w+")
DECLARED = [re.compile(r"DT_API [^;(]*?\b(dt_\w+)(?:\[\])?\s*(?:\(|;)"),       # functions, constants
            re.compile(r"^typedef [^;{]*?\(\*(dt_\w+)\)", re.M),              # functions of the user's
            re.compile(r"^typedef (?:struct|enum) \w+ \w*?(dt_\w+)?;", re.M),
            re.compile(r"^(?:typedef )?(?:struct|enum) (dt_\w+) \{", re.M),
            re.compile(r"^typedef struct \w+ (dt_\w+);", re.M),
            re.compile(r"^#define (DT_\w+)", re.M)]
CONSTANT = re.compile(r"\bDT_[A-Z0-9_]+\b")


class Item:
    """A comment, maybe empty, and what it is said of."""

    def __init__(self, text, code):
        self.text, self.code = text, code
        self.names = []
        for pattern in DECLARED:
            self.names += [name for name in pattern.findall(code) if name and name not in self.names]
        for enum in re.findall(r"\benum(?: \w+)? \{(.*?)\}", code, re.S):
            bare = re.sub(r"/\*.*?\*/", "", enum, flags=re.S)
            self.names += [name for name in CONSTANT.findall(bare) if name not in self.names]

    def title(self):
        shown = [name for name in self.names if not name.isupper()] or self.names
        if len(shown) > 3:
            return f"{shown[0]} to {shown[-1]}"
        return ", ".join(shown)


class Section:
    def __init__(self, name, text):
        self.name, self.text, self.items = name, text, []


def comment_text(lines):
    """The text of a comment's lines, without its marks."""
    text = "\n".join(lines)
    text = re.sub(r"^\s*/\*+ ?", "", text)
    text = re.sub(r"[ \t]*\*/\s*$", "", text)
    return "\n".join(re.sub(r"^ \* ?", "", line).rstrip() for line in text.split("\n")).strip("\n")


def take_comment(lines, i):
    end = i
    while "*/" not in lines[end]:
        end += 1
    return lines[i:end + 1], end + 1


def take_code(lines, i):
    """Declarations up to a blank line or a comment that begins a line, outside of braces."""
    depth, begin = 0, i
    while i < len(lines) and (depth or (lines[i].strip() and not lines[i].startswith("/*"))):
        bare = re.sub(r"/\*.*?(\*/|$)", "", lines[i])
        depth += bare.count("{") - bare.count("}")
        i += 1
    return "\n".join(lines[begin:i]), i


def parse(text):
    """First comment, sections."""
    first = re.search(r"/\*(.*?)\*/", text, re.S)
    lead = comment_text(first.group().split("\n"))
    lead = re.sub(r"^SPDX.*?\n\n?", "", lead)
    body = text[text.index("DT_BEGIN_DECLS") + len("DT_BEGIN_DECLS"):text.rindex("DT_END_DECLS")]
    body = re.sub(r"^#ifdef __cplusplus\n.*?^#else\n(.*?)^#endif\n", r"\1", body, flags=re.S | re.M)
    lines, i, sections, comment = body.split("\n"), 0, [Section("", "")], ""
    while i < len(lines):
        section = SECTION.match(lines[i])
        if section:
            end, said = i + 1, ""
            if not section[2]:
                block, end = take_comment(lines, i)
                said = comment_text(block[1:])
            sections.append(Section(section[1], said))
            i, comment = end, ""
        elif lines[i].startswith("/*"):
            block, i = take_comment(lines, i)
            comment = comment_text(block)
        elif lines[i].strip():
            code, i = take_code(lines, i)
            sections[-1].items.append(Item(comment, code))
            comment = ""
        else:
            i += 1
    return lead, sections


# ---- what lacks a comment ----------------------------------------------------------------------------------------


def undocumented(sections):
    for section in sections:
        for item in section.items:
            functions = re.findall(r"^DT_API [^;]*;.*$", item.code, re.M)
            for code in functions or [item.code]:
                if item.names and not item.text and not section.text and "/*" not in code:
                    yield " ".join(code.split())


# ---- pages -------------------------------------------------------------------------------------------------------


def slug(title):
    """GitHub's anchor of a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def escaped(text, links, page):
    """A paragraph of a comment as Markdown: marks are text, names lead to where they are declared."""
    text = re.sub(r"([\\`*\[\]<>|~])", r"\\\1", text)

    def link(match):
        place = links.get(match.group())
        if not place or match.group().isupper():
            return f"`{match.group()}`"
        return f"[`{match.group()}`]({'' if place[0] == page else place[0]}#{place[1]})"

    return NAME.sub(link, text)


def prose(text, links, page):
    """Paragraphs; what is indented or made of columns stays as it is written."""
    out, plain, raw = [], [], []

    def flush():
        if plain:
            out.append(escaped("\n".join(plain), links, page) + "\n")
        if raw:
            width = min(len(line) - len(line.lstrip()) for line in raw if line.strip())
            out.append("```\n" + "\n".join(line[width:] for line in raw).rstrip("\n") + "\n```\n")
        plain.clear()
        raw.clear()

    previous_raw = False
    for line in text.split("\n"):
        is_raw = bool(re.match(r" +\S|\S+ {3,}\S", line)) or (previous_raw and not line.strip())
        if (not line.strip() and not is_raw) or (is_raw and plain) or (not is_raw and raw):
            flush()
        if line.strip() or is_raw:
            (raw if is_raw else plain).append(line)
        previous_raw = is_raw and bool(line.strip())
    flush()
    return "\n".join(out)


def page_of(name, lead, sections, links):
    page = name[:-2] + ".md"
    out = [f"# {name}\n", f"Made from [{name}](../../include/dtensor/{name}) by tools/api_reference.py; see the\n"
           "[rules for every function](README.md#rules).\n", prose(lead, links, page)]
    for section in sections:
        if section.name and section.items:
            out.append(f"## {section.name[0].upper()}{section.name[1:]}\n")
            if section.text:
                out.append(prose(section.text, links, page))
        for item in section.items:
            if item.names:
                out.append(f"### {item.title()}\n")
            out.append("```c\n" + item.code.replace("DT_API ", "") + "\n```\n")
            if item.text:
                out.append(prose(item.text, links, page))
    return "\n".join(out)


def index_of(umbrella, headers, links):
    lead, _ = headers[umbrella]
    rules = lead[lead.index("Rules that hold"):]
    out = ["# API reference\n", "Made from the public headers by tools/api_reference.py.\n", "| header | |\n|---|---|"]
    for name, (said, _) in headers.items():
        if name != umbrella:
            first = re.split(r"(?<=\.)\s|:\s*$", said.split("\n\n")[0].replace("\n", " "))[0]
            out.append(f"| [{name}]({name[:-2]}.md) | {escaped(first, links, 'README.md')} |")
    out += ["\n## Rules\n", prose(rules, links, "README.md"), "## Names\n"]
    names = sorted(name for name in links if not name.isupper())
    out.append(" · ".join(f"[{name}]({links[name][0]}#{links[name][1]})" for name in names) + "\n")
    return "\n".join(out)


def order_of(folder):
    """Headers in the order of the layers: each after those it includes."""
    done = []

    def visit(name):
        if name in done or name in SKIPPED:
            return
        for other in re.findall(r"#include <dtensor/(\w+\.h)>", (folder / name).read_text(encoding="utf-8")):
            visit(other)
        done.append(name)

    for path in sorted(folder.glob("*.h")):
        visit(path.name)
    return done


def pages_of(root):
    folder = root / "include/dtensor"
    headers = {}
    for name in order_of(folder):
        text = (folder / name).read_text(encoding="utf-8")
        if name == "dtensor.h":
            headers[name] = (parse(text.replace("#include <dtensor/debug.h>", "DT_BEGIN_DECLS\nDT_END_DECLS"))[0], [])
        else:
            headers[name] = parse(text)
    links = {}
    for name, (_, sections) in headers.items():
        for item in (item for section in sections for item in section.items):
            for declared in item.names:
                links.setdefault(declared, (name[:-2] + ".md", slug(item.title())))
    pages = {name[:-2] + ".md": page_of(name, *parts, links) for name, parts in headers.items() if name != "dtensor.h"}
    pages["README.md"] = index_of("dtensor.h", headers, links)
    return headers, pages


def main():
    write = "--write" in sys.argv[1:]
    root = pathlib.Path([word for word in sys.argv[1:] if word != "--write"][0])
    headers, pages = pages_of(root)
    folder = root / "docs/api"
    cases = [(f"{name}: all has a comment", list(undocumented(sections)))
             for name, (_, sections) in headers.items()]
    for name, text in sorted(pages.items()):
        path = folder / name
        same = path.exists() and path.read_text(encoding="utf-8") == text
        if write:
            folder.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        stale = "not what the headers say; tools/api_reference.py --write . makes it so"
        cases.append((f"docs/api/{name}", [] if same or write else [stale]))
    known = [path.name for path in folder.glob("*")]
    cases.append(("docs/api has no other page", [name for name in known if name not in pages]))
    for n, (name, found) in enumerate(cases, 1):
        for line in found:
            print(f"# {line}")
        print(f"{'not ' if found else ''}ok {n} - {name}")
    print(f"1..{len(cases)}")
    return 1 if any(found for _, found in cases) else 0


if __name__ == "__main__":
    sys.exit(main())
