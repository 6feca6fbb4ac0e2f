#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Instructions per call, counted by valgrind's callgrind inside the named function and what it calls; setting up is left
# out. The number of calls comes from the program.
#
#   bench/instructions.sh redistribute|dispatch [BUILD_DIR]
set -eu
what=${1:-}
program=${2:-build}/bench/bench_$what
case $what in
redistribute | dispatch) ;;
*) echo "usage: $0 redistribute|dispatch [BUILD_DIR]" >&2; exit 2 ;;
esac
[ -x "$program" ] || { echo "$0: no $program; build it, or name the build folder" >&2; exit 2; }
command -v valgrind >/dev/null || { echo "$0: needs valgrind" >&2; exit 2; }

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

count() { # mode, function, words
    valgrind --tool=callgrind --toggle-collect="$2" --callgrind-out-file="$scratch/$1" "$program" --only "$1" \
        >"$scratch/calls" 2>"$scratch/log" || { cat "$scratch/log" >&2; exit 1; }
    collected=$(sed -n 's/.*Collected : \([0-9]*\).*/\1/p' "$scratch/log")
    awk -v n="$collected" -v calls="$(cat "$scratch/calls")" -v what="$3" \
        'BEGIN { printf "%9.0f  %s\n", n / calls, what }'
}

echo "instructions per call, mesh 2x2x2"
echo
if [ "$what" = redistribute ]; then # the first calls of parse and replace make their spec: one in 10,000
    count cold dt_plan_create "dt_plan_create, cold, mean of 4,032 pairs of S, R"
    count cached dt_plan_create "dt_plan_create, cached"
    count parse dt_spec_parse "dt_spec_parse, known text"
    count replace dt_spec_replace "dt_spec_replace, known spec"
else
    count add counted_known_call "add with its scope, known"
    count matmul counted_known_call "matmul with its scope, known"
    count moved counted_known_call "matmul with its scope, one operand used as a copy"
    count recorded counted_known_call "add, on the tape, known"
    count backward counted_known_call "add and backward, known"
    count kernel counted_known_call "add of 256 numbers on one rank with its scope, known"
    count kernel dti_cpu_map "of these its kernel"
    count fit counted_first_call "matmul, the first call, operands that fit: mean of some"
    count moving counted_first_call "matmul, the first call, operands that must move"
    count summing counted_first_call "matmul, the first call, operands that must move, some of them P"
fi
