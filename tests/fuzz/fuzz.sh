#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# fuzz.sh FUZZER SEEDS SECONDS: run a fuzzer, from the seeds in the folder SEEDS and the words in SEEDS.dict, if there.
# What it finds is printed; new inputs go to a folder that ends with the run.
set -eu
fuzzer=$1 seeds=$2 seconds=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/corpus"
set -- -max_total_time="$seconds" -timeout=5 -rss_limit_mb=1024 -artifact_prefix="$work/"
set -- "$@" -error_exitcode=1 # by default 77, which meson takes for skipped
if [ -f "$seeds.dict" ]; then set -- "$@" -dict="$seeds.dict"; fi
set -- "$@" "$work/corpus"
if [ -d "$seeds" ]; then set -- "$@" "$seeds"; fi
"$fuzzer" "$@"
