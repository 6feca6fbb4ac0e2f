# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Sourced by ../quickstart and ../runtests: what a run needs is there, or is installed, or is named.

has_header() { echo "#include <$1>" | gcc -E - >/dev/null 2>&1; }
has_fuzzer()
{
    echo 'int LLVMFuzzerTestOneInput(void); int LLVMFuzzerTestOneInput(void) { return 0; }' |
        clang -fsanitize=fuzzer,address,undefined -x c - -o /dev/null >/dev/null 2>&1
}

# Is what this Debian package brings there, from wherever?
has_package()
{
    case $1 in
    gcc) command -v gcc ;;
    libc6-dev) has_header stdio.h ;;
    g++) command -v g++ ;;
    meson | python3 | clang) command -v "$1" ;;
    ninja-build) command -v ninja ;;
    pkg-config) command -v pkg-config ;;
    libcriterion-dev) has_header criterion/criterion.h ;;
    libhwloc-dev) has_header hwloc.h ;;
    libdnnl-dev) has_header oneapi/dnnl/dnnl.h ;;
    libclang-rt-*) has_fuzzer ;;
    *) false ;;
    esac >/dev/null 2>&1
}

missing_packages()
{
    local package
    for package in "$@"; do has_package "$package" || printf ' %s' "$package"; done
}

# Install packages with apt-get, if this user may. Says nothing and does not fail: the caller looks again.
install_packages()
{
    local root=()
    if [ $# -eq 0 ] || ! command -v apt-get >/dev/null; then return 0; fi
    if [ "$(id -u)" -ne 0 ]; then
        if ! sudo -n true 2>/dev/null; then return 0; fi
        root=(sudo -n)
    fi
    echo "installing $*"
    {
        "${root[@]}" apt-get update -qq || true
        "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"
    } >/dev/null 2>&1 || true
}

# need_packages PACKAGE...: all are there, or the script ends and says which are not.
need_packages()
{
    local missing
    read -ra missing <<<"$(missing_packages "$@")"
    install_packages "${missing[@]}"
    read -ra missing <<<"$(missing_packages "$@")"
    if [ ${#missing[@]} -gt 0 ]; then
        echo "missing, please install the Debian packages (or the like): ${missing[*]}" >&2
        exit 1
    fi
}

# want_packages WHY PACKAGE...: the same for what the run can do without; true if all are there.
want_packages()
{
    local why=$1 missing
    shift
    read -ra missing <<<"$(missing_packages "$@")"
    install_packages "${missing[@]}"
    read -ra missing <<<"$(missing_packages "$@")"
    if [ ${#missing[@]} -eq 0 ]; then return 0; fi
    echo "without ${missing[*]}: $why"
    return 1
}
