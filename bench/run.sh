#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs the benchmarks of the redistribution planner and of calls of ops, and writes bench/results/redistribute.txt,
# redistribute.json and dispatch.txt, with the instructions per call where there is a valgrind.
#
#   bench/run.sh [redistribute] [dispatch] [BUILD_DIR]
#
# Without names both. Default build; made with -Dbuildtype=debugoptimized where there is none.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
names=
while [ "${1:-}" = redistribute ] || [ "${1:-}" = dispatch ]; do
    names="$names $1"
    shift
done
build=${1:-$root/build}
[ -f "$build/build.ninja" ] || meson setup "$build" "$root" -Dbuildtype=debugoptimized

results=$root/bench/results
mkdir -p "$results"
run() { # name, title
    ninja -C "$build" "bench/bench_$1" >&2
    {
        echo "$2, $(date -u +%Y-%m-%d)"
        "$build/bench/bench_$1"
        if command -v valgrind >/dev/null; then
            echo
            "$root/bench/instructions.sh" "$1" "$build"
        fi
    } >"$results/$1.new"
    mv "$results/$1.new" "$results/$1.txt"
}

for name in ${names:-redistribute dispatch}; do
    case $name in
    redistribute)
        run redistribute "Redistribution planner"
        "$build/bench/bench_redistribute" --json bytes >"$results/redistribute.json"
        ;;
    dispatch) run dispatch "Calls of ops" ;;
    esac
done
