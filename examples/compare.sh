#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# compare.sh EXPECTED PROGRAM [ARGUMENT...]: run a program; its exit status must be 0, its output the file's.
set -eu
expected=$1
shift
output=$(mktemp)
trap 'rm -f "$output"' EXIT
"$@" >"$output"
diff -u "$expected" "$output"
