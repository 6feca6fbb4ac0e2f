#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs the redistribution benchmark and writes bench/results/redistribute.txt, redistribute.json and, where there is a
# valgrind, the instructions per call.
#
#   bench/run.sh [BUILD_DIR]            default build; made with -Dbuildtype=debugoptimized where there is none
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$root/build}
[ -f "$build/build.ninja" ] || meson setup "$build" "$root" -Dbuildtype=debugoptimized
ninja -C "$build" bench/bench_redistribute >&2

results=$root/bench/results
mkdir -p "$results"
{
    echo "Redistribution planner, $(date -u +%Y-%m-%d)"
    "$build/bench/bench_redistribute"
    if command -v valgrind >/dev/null; then
        echo
        "$root/bench/instructions.sh" "$build"
    fi
} >"$results/redistribute.new"
mv "$results/redistribute.new" "$results/redistribute.txt"
"$build/bench/bench_redistribute" --json bytes >"$results/redistribute.json"
