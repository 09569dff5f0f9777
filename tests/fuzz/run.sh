#!/bin/sh
# tests/fuzz/run.sh SECONDS: builds the readers with clang's fuzzer and sanitizers and fuzzes each for its share of the
# time. The corpus grows in $BUILD/fuzz/corpus-NAME; kept inputs (tests/fuzz/corpus-NAME, see keep.sh) always run first.
# A finding is left in $BUILD/fuzz.
# Environment: FUZZ_NAMES (default: every tests/fuzz/fuzz_NAME.c).
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root"
names=${FUZZ_NAMES:-$(find tests/fuzz -name 'fuzz_*.c' | sed 's/.*fuzz_//;s/\.c$//' | sort)}
seconds=$((${1:-600} / $(echo "$names" | wc -w)))
BUILD=$(realpath "${BUILD:-build}")
work=$BUILD/fuzz
command -v clang >/dev/null || { echo "fuzz: clang is not installed" >&2; exit 77; }
[ -x "$BUILD/memprof" ] || "${MAKE:-make}" -s BUILD="$BUILD" all
"${MAKE:-make}" -s BUILD="$BUILD" samples programs
mkdir -p "$work"
make -s CC=clang CFLAGS='-fsanitize=fuzzer-no-link' SANITIZE=address,undefined OPT=-O1 BUILD="$work/build" fuzz-programs
FUZZ_DATABASE=$(MEMPROF="$BUILD/memprof" BUILD="$BUILD" sh tests/fuzz/seeds.sh "$work")
echo "$FUZZ_DATABASE" >"$work/seeds"
export FUZZ_DATABASE ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1

# seeds: real chunks, real programs
for name in $names; do mkdir -p "$work/corpus-$name"; done
mkdir -p "$work/corpus-chunk" "$work/corpus-elf"
"$BUILD/memprof" run -q -o "$work/chunks.db" -- "$BUILD/samples/leak" 2>/dev/null
if command -v sqlite3 >/dev/null; then
    sqlite3 "$work/chunks.db" \
        "SELECT writefile('$work/corpus-chunk/events', CAST(x'00' || data AS BLOB)),
        writefile('$work/corpus-chunk/deltas', CAST(x'01' || site_delta AS BLOB)) FROM event_chunk LIMIT 1;
        SELECT writefile('$work/corpus-chunk/live', CAST(x'02' || data AS BLOB)) FROM keyframe LIMIT 1" >/dev/null
fi
rm -f "$work"/chunks.db*
printf 'int f(int x) { return x + 1; }\nint main(void) { return f(2); }\n' >"$work/tiny.c"
${CC:-gcc} -O1 -g -ffile-prefix-map="$work"=. -nostdlib -r -o "$work/corpus-elf/tiny" "$work/tiny.c" 2>/dev/null || true
${CC:-gcc} -O1 -g -ffile-prefix-map="$work"=. -shared -nostdlib -o "$work/corpus-elf/shared" \
    "$work/tiny.c" 2>/dev/null || true
# functions that gcc inlines and gives no linkage name, and two of one name
cat >"$work/local.cpp" <<'END'
extern "C" int take(int);
namespace a
{
namespace
{
struct S {
    int f(int x) { return take(x + 1); }
};
} // namespace
static int g(int x) { return take(x); }
int (*volatile again)(int) = g;
} // namespace a
int h(int x)
{
    auto l = [x](int y) { return take(x + y); };
    return a::S().f(x) + a::g(x + 1) + l(x + 2);
}
END
${CXX:-g++} -O2 -g -ffile-prefix-map="$work"=. -c -o "$work/local.o" "$work/local.cpp" 2>/dev/null || true
${CC:-gcc} -shared -nostdlib -o "$work/corpus-elf/local" "$work/local.o" "$work/corpus-elf/tiny" 2>/dev/null || true
mkdir -p "$work/corpus-pickle" "$work/corpus-heaptrack" "$work/corpus-pprof"
sed -n '/^    printf .v 10400 3/,/strings: 5/p' tests/report/heaptrack_import.sh >"$work/heaptrack.sh"
sh "$work/heaptrack.sh" >"$work/corpus-heaptrack/plain"
gzip -9 -c "$work/corpus-heaptrack/plain" >"$work/corpus-heaptrack/gzip"
if command -v python3 >/dev/null; then
    for kind in all live odd; do python3 tests/report/pprof_profile.py $kind "$work/corpus-pprof/$kind"; done
    python3 tests/report/pprof_profile.py all "$work/pprof-all.gz"
    gzip -dc "$work/pprof-all.gz" >"$work/corpus-pprof/plain"
fi
if command -v python3 >/dev/null; then
    for shape in all ring old cut; do
        python3 tests/torch/make_snapshot.py $shape "$work/corpus-pickle/$shape" --events 12
        python3 tests/torch/make_snapshot.py $shape "$work/corpus-pickle/$shape-cpp" --events 12 --cpp
    done
fi

failed=0
for name in $names; do
    echo "fuzz: $name, $seconds s"
    kept=tests/fuzz/corpus-$name
    [ -d "$kept" ] || kept=
    words=$root/tests/fuzz/$name.dict
    [ -f "$words" ] || words=
    # shellcheck disable=SC2086
    if (cd "$work" &&
        "./build/fuzz/fuzz_$name" -max_total_time="$seconds" -timeout=30 -rss_limit_mb=3000 -close_fd_mask=1 \
        -print_final_stats=1 -max_len=65536 ${words:+"-dict=$words"} \
        -artifact_prefix="found-$name-" "corpus-$name" ${kept:+"$root/$kept"} >"log-$name" 2>&1); then
        grep -e '^stat::number_of_executed_units' -e '^stat::average_exec_per_sec' "$work/log-$name" || true
    else
        tail -n 40 "$work/log-$name"
        echo "fuzz: $name found something; log: $work/log-$name" >&2
        failed=1
    fi
done
exit $failed
