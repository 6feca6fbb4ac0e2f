#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs the benchmark of rank threads and writes bench/results/comm.txt.
#
#   bench/run_comm.sh [--mpi] [BUILD_DIR]    --mpi: the installed MPI's collectives too, see peers/run_mpi.sh
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
mpi=no
if [ "${1:-}" = --mpi ]; then
    mpi=yes
    shift
fi
build=${1:-$root/build}
[ -f "$build/build.ninja" ] || meson setup "$build" "$root" -Dbuildtype=debugoptimized
ninja -C "$build" bench/bench_comm >&2

results=$root/bench/results
mkdir -p "$results"
{
    echo "Collectives of rank threads, $(date -u +%Y-%m-%d)"
    "$build/bench/bench_comm"
    if [ $mpi = yes ]; then "$root/bench/peers/run_mpi.sh"; fi
} >"$results/comm.new"
mv "$results/comm.new" "$results/comm.txt"
