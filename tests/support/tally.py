#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tally.py [BUILD=testlog.json...] [STAGE...]: count the cases of all builds, from the logs of meson test.

Each result line of a test that prints TAP is a case; every other test is one. A test that ended badly and has no failed
case (it crashed, took too long, left cases of its plan out) is one failed case, and so is a stage without a log. Prints
what failed and what it said, then "N passed, N failed". Exit status 1 if one failed or none passed.
"""
import json
import re
import sys

RESULT = re.compile(r"^(?P<bad>not )?ok\b *(?P<number>\d*)(?: - )?(?P<text>.*)$", re.M)
PLAN = re.compile(r"^1\.\.(\d+)", re.M)
SKIP = re.compile(r"#\s*skip", re.I)
NAMED = re.compile(r"Assertion failed: (\w+\.\w+): ")   # Criterion calls all rows alike; our messages name them
GOOD = ("OK", "EXPECTEDFAIL")
MAX_LINES = 40                                          # shown of a failed case


class Tally:
    def __init__(self):
        self.passed, self.skipped, self.failed = 0, 0, 0

    def fail(self, name, said):
        self.failed += 1
        print(f"failed: {name}")
        for line in said.strip("\n").splitlines()[-MAX_LINES:]:
            print(f"    {line}")

    def add_tap(self, name, output):
        """Cases of TAP; how many. Where results are numbered, comments before one belong to it, else lines after it."""
        results = list(RESULT.finditer(output))
        begin = output.find("\n") + 1
        for result, after in zip(results, results[1:] + [None]):
            if SKIP.search(result["text"]):
                self.skipped += 1
            elif result["bad"]:
                end = after.start() if after else len(output)
                said = output[begin:result.end()] if result["number"] else output[result.end():end]
                named = NAMED.search(said)
                self.fail(f"{name}: {named[1] if named else result['text'].strip()}", said)
            else:
                self.passed += 1
            begin = result.end() + 1
        return len(results)

    def add_test(self, build, test):
        name = f"{build}: {test['name'].split(' / ')[-1]}"
        output, result, failed = test.get("stdout", ""), test["result"], self.failed
        plan = PLAN.search(output)
        if plan:
            count = self.add_tap(name, output)
            if count != int(plan[1]):
                result = f"{count} of {plan[1]} cases, {result}"
                failed = self.failed
        elif result in GOOD:
            self.passed += 1
        if result == "SKIP":
            self.skipped += 1
        elif result not in GOOD and self.failed == failed:
            self.fail(f"{name}: {result}", output + test.get("stderr", ""))


def main():
    tally = Tally()
    for argument in sys.argv[1:]:
        build, _, log = argument.partition("=")
        if not log:
            tally.fail(argument, "")
            continue
        with open(log, encoding="utf-8") as lines:
            for line in lines:
                tally.add_test(build, json.loads(line))
    if tally.skipped:
        print(f"{tally.skipped} skipped")
    print(f"{tally.passed} passed, {tally.failed} failed")
    return 1 if tally.failed or not tally.passed else 0


if __name__ == "__main__":
    sys.exit(main())
