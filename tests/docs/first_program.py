#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""first_program.py PAGE: prints the first C program of a page."""
import re
import sys

with open(sys.argv[1], encoding="utf-8") as page:
    print(re.search(r"^```c\n(.*?)^```$", page.read(), re.M | re.S)[1], end="")
