#!/bin/sh
# tests/unwind/run.sh [PERCENT]: compares the unwinder's stacks with libunwind's on real programs, PERCENT (20) of the
# inputs of docs/performance.md, and checks libraries that come and go. Environment: BUILD, CC, STACKS: stacks that at
# least five
# programs must have had checked (100000). Exit status 0 when every stack is identical. Needs libunwind-dev.
set -eu
percent=${1:-20} stacks=${STACKS:-100000}
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${BUILD:-$root/build}/unwind
CC=${CC:-gcc}
mkdir -p "$build"
build=$(cd "$build" && pwd)
flags='-std=gnu17 -O2 -g -Wall -Wextra -D_GNU_SOURCE -fPIC -fvisibility=hidden -ftls-model=initial-exec'
flags="$flags -fno-stack-protector -fasynchronous-unwind-tables -fno-builtin-malloc -fno-builtin-calloc"

# --- libraries that come and go
objects=
for source in "$root"/profiler/preload/unwind/*.c "$root"/profiler/preload/python/*.c; do
    object=$build/$(basename "$source" .c).o
    # shellcheck disable=SC2086
    $CC $flags -c -o "$object" "$source"
    objects="$objects $object"
done
# shellcheck disable=SC2086
{
    $CC $flags -o "$build/reload" "$root/tests/unwind/reload.c" $objects -lunwind -ldl
    $CC $flags -o "$build/threads" "$root/tests/unwind/threads.c" $objects -lpthread -ldl
    $CC -O2 -fPIC -shared -Wl,--build-id -o "$build/a.so" "$root/tests/unwind/plugin.c"
    $CC -O2 -fPIC -shared -Wl,--build-id -DFRAME_BYTES=104 -o "$build/b.so" "$root/tests/unwind/plugin.c"
    $CC -O2 -fPIC -shared -Wl,--build-id -DFRAME_BYTES=104 -DSHIFTED -o "$build/c.so" "$root/tests/unwind/plugin.c"
    $CC $flags -shared -o "$build/compare.so" "$root/tests/unwind/compare.c" $objects -lunwind -ldl
}
printf 'libraries that come and go: '
"$build/reload" "$build/a.so" "$build/b.so" "$build/c.so"
printf 'the same in threads that fork: '
"$build/threads" "$build/a.so" "$build/b.so" $((percent * 100))

# --- real programs
sh "$root/tests/bench/inputs.sh" "$build/inputs" "$percent"
out=$build/compare.txt
rm -f "$out"
compare() { # every-nth command...
    every=$1
    shift
    env COMPARE_OUT="$out" COMPARE_EVERY="$every" LD_PRELOAD="$build/compare.so" "$@" >/dev/null 2>&1 ||
        echo "  exit status $? from $*" >>"$out"
}
compare 13 "$build/inputs/run-gawk"
compare 3 "$build/inputs/run-sqlite3"
compare 5 "$build/inputs/run-xmllint"
compare 3 "$build/inputs/run-perl"
compare 2 "$build/inputs/run-cc1"
compare 1 "$build/inputs/run-git"
rare=1 # Python makes many more stacks than the others of the least inputs
[ "$percent" -ge 10 ] || rare=4
for python in /usr/bin/python3 "$("${FIRST_PYTHON:-python3}" -c 'import sys; print(sys.executable)')"; do
    [ -x "$python" ] || continue
    echo "  $python" >>"$out"
    compare $((31 * rare)) env PYTHONMALLOC=malloc "$python" -S "$build/inputs/objects.py"
    compare $((2 * rare)) env PYTHONMALLOC=malloc "$python" -c 'import json, re, decimal, sqlite3, email.message, ctypes
class A:
    def __del__(self): pass
import sys
for i in range(15 * int(sys.argv[1])):
    json.loads(json.dumps([{"a": [i, str(i)] * 9, "b": None}] * 5)); re.compile("a(b|c)*d%d" % i).search("x" * i)
    sorted(range(50), key=lambda x: (x * 7919) % 101); str(decimal.Decimal(i) / 7)
    sqlite3.connect(":memory:").execute("select ?", (i,)).fetchall(); A()' "$percent"
done
[ -x /usr/bin/bash ] &&
    compare 1 /usr/bin/bash -c 'for i in 1 2 3; do x=$(echo $i | tr 1 2); done; a=(1 2 3); echo "${a[@]/1/2}"'
cat "$out"

awk -v want="$stacks" '
    function field(name) { match($0, name " [0-9]+");
    return substr($0, RSTART + length(name) + 1, RLENGTH - length(name) - 1) + 0 }
    / checked / {
        sub(/^[^:]*: /, "", $0); n = field("checked"); all += n
        if (n >= want) enough++
        bad += 4 * n - field("without memory") - field("with memory") - field("full CFI") - field("hash")
    }
    /exit status/ { broken++ }
    END {
        printf "%d stacks checked, %d programs with at least %d, %d differences, %d programs failed\n", all, enough,
        want, bad, broken
        exit !(enough >= 5 && bad == 0 && broken == 0)
    }' "$out"
