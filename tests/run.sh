#!/bin/sh
# tests/run.sh [GROUP | FILE]...: runs tests; without arguments all groups. Environment: BUILD, CC, CXX, KEEP=1 (keep the
# directories of passed tests), TEST_TIMEOUT (seconds, 600).
#
# A test is one shell file, tests/GROUP/NAME.sh, run by `sh` with tests/lib.sh in front, in an empty directory of its own.
# It passes when it exits 0, is skipped on 77 (its last line says why), fails otherwise. Unit tests are the binaries of
# $BUILD/unit and $BUILD/sanitize/unit; each of their cases counts.
# The last line is "N passed, N failed, N skipped"; exit status 0 when nothing failed.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root" || exit 2
BUILD=$(realpath "${BUILD:-build}")
export BUILD ROOT="$root" CC="${CC:-gcc}" CXX="${CXX:-g++}"
export MEMPROF="$BUILD/memprof" LC_ALL=C
unset LD_PRELOAD MEMPROF_SESSION NO_COLOR DEBUGINFOD_URLS
limit=${TEST_TIMEOUT:-600}
work=$BUILD/test-work
mkdir -p "$work"
passed=0 failed=0 skipped=0 failures=

report() { # outcome name seconds log
    case $1 in
    pass) passed=$((passed + 1)); printf 'ok    %-34s %4d s\n' "$2" "$3" ;;
    skip) skipped=$((skipped + 1)); printf 'skip  %-34s        %s\n' "$2" "$(tail -n 1 "$4")" ;;
    fail) failed=$((failed + 1)); failures="$failures $2"; printf 'FAIL  %-34s %4d s\n' "$2" "$3"; tail -n 40 "$4" | sed 's/^/      | /' ;;
    esac
}

run_file() { # tests/GROUP/NAME.sh
    name=$(basename "$(dirname "$1")")/$(basename "$1" .sh)
    T=$work/$(printf %s "$name" | tr / -)
    rm -rf "$T" && mkdir -p "$T/dir"
    began=$(date +%s)
    (cd "$T/dir" && TEST="$root/$1" timeout -k 10 "$limit" sh -c '. "$ROOT/tests/lib.sh"; . "$TEST"') >"$T/log" 2>&1 </dev/null
    status=$?
    took=$(($(date +%s) - began))
    case $status in
    0) report pass "$name" $took "$T/log"; [ -n "${KEEP:-}" ] || rm -rf "$T" ;;
    77) report skip "$name" $took "$T/log"; rm -rf "$T" ;;
    *)
        [ $status = 124 ] && echo "timed out after $limit s" >>"$T/log"
        report fail "$name" $took "$T/log"
        ;;
    esac
}

run_unit() { # binary, label
    T=$work/unit-$(basename "$1")$3
    rm -rf "$T" && mkdir -p "$T"
    began=$(date +%s)
    (cd "$root" && CMOCKA_MESSAGE_OUTPUT=STDOUT timeout -k 10 "$limit" "$1") >"$T/log" 2>&1 </dev/null
    status=$?
    took=$(($(date +%s) - began))
    cases=$(grep -c '^\[       OK \]' "$T/log")
    bad=$(grep -c '^\[  FAILED  \] [^0-9]' "$T/log")
    not_run=$(grep -c '^\[  SKIPPED \] [^0-9]' "$T/log")
    if [ $status = 0 ] && [ "$cases" -gt 0 ]; then
        passed=$((passed + cases - 1)) skipped=$((skipped + not_run))
        report pass "$2 ($cases)" $took "$T/log"
    else
        [ "$bad" -gt 1 ] && failed=$((failed + bad - 1))
        passed=$((passed + cases))
        echo "exit status $status, $cases cases passed" >>"$T/log"
        report fail "$2" $took "$T/log"
    fi
}

group() {
    case $1 in
    unit)
        for binary in "$BUILD"/unit/test_*; do
            [ -x "$binary" ] && [ -f "$root/tests/unit/$(basename "$binary").c" ] && run_unit "$binary" "unit/$(basename "$binary")" ""
        done
        for binary in "$BUILD"/sanitize/unit/test_*; do
            [ -x "$binary" ] && [ -f "$root/tests/unit/$(basename "$binary").c" ] && run_unit "$binary" "unit/$(basename "$binary"), sanitized" -san
        done
        ;;
    static | e2e | report | page | faults | accuracy | stress)
        for file in tests/"$1"/*.sh; do
            [ -f "$file" ] && run_file "$file"
        done
        ;;
    *.sh) run_file "$1" ;;
    *) echo "tests/run.sh: no group or file '$1'" >&2; exit 2 ;;
    esac
}

for what in "${@:-all}"; do
    if [ "$what" = all ]; then
        for g in static unit e2e report page faults stress accuracy; do
            group $g
        done
    else
        group "$what"
    fi
done
[ -z "$failures" ] || echo "failed:$failures"
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
