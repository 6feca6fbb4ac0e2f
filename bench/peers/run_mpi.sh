#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measures the collectives of the installed MPI beside those of bench_comm, on 2, 4 and 8 ranks. By hand only.
#
#   bench/peers/run_mpi.sh [RANKS...]   needs mpicc and mpirun (Debian: libopenmpi-dev openmpi-bin)
#
# Pages are kept, as the library keeps them: without that an MPI's large messages are page faults.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mpicc -std=gnu11 -O2 -I"$root/bench" "$root/bench/peers/mpi_collectives.c" "$root/bench/report.c" -o "$folder/program"

export MALLOC_MMAP_THRESHOLD_=4294967296 MALLOC_TRIM_THRESHOLD_=4294967296
rows=
[ $# -gt 0 ] || set -- 2 4 8
for ranks in "$@"; do
    # shellcheck disable=SC2086 # no word where it is empty
    mpirun --allow-run-as-root --oversubscribe -x MALLOC_MMAP_THRESHOLD_ -x MALLOC_TRIM_THRESHOLD_ \
        -np "$ranks" "$folder/program" $rows
    rows=--rows
done
