#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Training steps of a Llama, and of the same one on PyTorch, in turn, row by row; writes bench/results/train.txt when
# all rows are done. By hand only: needs a Python with torch, PYTHON (default: python3).
#
#   bench/run_train.sh [BUILD_DIR] [options of peers/torch_dtensor_llama.py]
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build
case ${1:-} in
'' | --*) ;;
*)
    build=$1
    shift
    ;;
esac
[ -f "$build/build.ninja" ] || meson setup "$build" "$root" -Dbuildtype=debugoptimized
ninja -C "$build" bench/bench_train >&2

# Both keep their pages: else the peer's page faults would be in its times.
export MALLOC_MMAP_THRESHOLD_=4294967296 MALLOC_TRIM_THRESHOLD_=17179869184 MALLOC_TOP_PAD_=268435456

results=$root/bench/results
mkdir -p "$results"
{
    echo "Training steps of a Llama, $(date -u +%Y-%m-%d)"
    "${PYTHON:-python3}" "$root/bench/peers/torch_dtensor_llama.py" --bench="$build/bench/bench_train" "$@"
} >"$results/train.new"
mv "$results/train.new" "$results/train.txt"
