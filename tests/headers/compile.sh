#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# compile.sh c|c++ ROOT COMPILER...: does every public header compile alone, included twice, and do the user programs
# beside this script compile? Nothing is linked. Prints TAP.
set -u
language=$1 root=$2
shift 2
if [ $# -eq 0 ]; then
    echo "1..0 # SKIP no compiler for $language"
    exit 0
fi
case $language in
c) standard=c11 suffix=c ;;
c++) standard=c++17 suffix=cpp ;;
esac

n=0
status=0

# Compile standard input, for a case of this name.
check()
{
    name=$1
    shift
    n=$((n + 1))
    if output=$("$@" -x "$language" -std="$standard" -Wall -Wextra -Wpedantic -Werror -D_POSIX_C_SOURCE=200809L \
        -I "$root/include" -fsyntax-only - 2>&1); then
        echo "ok $n - $name"
    else
        echo "not ok $n - $name"
        echo "$output" | sed 's/^/# /'
        status=1
    fi
}

for header in "$root"/include/dtensor/*.h; do
    header=${header##*/}
    check "$header as $language" "$@" <<EOF
#include <dtensor/$header>
#include <dtensor/$header>
extern int not_empty;
EOF
done
for program in "$root"/tests/headers/*."$suffix"; do
    if grep -q '<criterion/' "$program" && ! echo '#include <criterion/criterion.h>' | "$@" -E - >/dev/null 2>&1; then
        n=$((n + 1))
        echo "ok $n - ${program##*/} # SKIP no Criterion"
        continue
    fi
    check "${program##*/}" "$@" <"$program"
done
echo "1..$n"
exit $status
