#!/bin/sh
# tests/run.sh [GROUP | FILE]...: runs tests; without arguments all groups. Of each it says how long it took, and how
# much processor time its processes took. Environment: BUILD, CC, CXX, KEEP=1 (keep the directories of passed tests),
# TEST_TIMEOUT (seconds, 600), JOBS (how many at a time; two more than there are processors, as tests wait for the
# browser, and for programs that sleep), CHANGED_ONLY=1 (unit tests whose program is older than its last pass count as
# passed, and are not run: make links one again when an object changed that it has).
#
# A test is one shell file, tests/GROUP/NAME.sh, run by `sh` with tests/lib.sh in front, in an empty directory of its
# own. It passes when it exits 0, is skipped on 77 (its last line says why), fails otherwise. Unit tests are the
# binaries of
# $BUILD/unit and $BUILD/sanitize/unit; each of their cases counts. A test with a line "# alone: WHY" (of a unit test,
# "/* alone: WHY") runs after all others, with none beside it.
# A test that failed runs once more when all others have ended, with none beside it: where it passes then, it was held
# up, or something came in another order. Its line says "shaky", the end of its first log is printed and the log kept;
# more than SHAKY_MOST of them (2; 0: no second runs) fail the run. A test that timed out has no second run, nor has one
# whose log tells of a signal or a sanitizer: what can hang or crash has failed.
# The last line is "N passed, N failed, N skipped"; exit status 0 when nothing failed.
set -u
if [ "${1:-}" != --one ]; then
    ROOT=$(cd "$(dirname "$0")/.." && pwd)
    cd "$ROOT" || exit 2
    BUILD=$(realpath "${BUILD:-build}")
    mkdir -p "$BUILD/test-work"
fi
root=$ROOT work=$BUILD/test-work
export BUILD ROOT CC="${CC:-gcc}" CXX="${CXX:-g++}"
export MEMPROF="$BUILD/memprof" LC_ALL=C
unset LD_PRELOAD MEMPROF_SESSION NO_COLOR DEBUGINFOD_URLS PREFIX
limit=${TEST_TIMEOUT:-600}
tab=$(printf '\t')
# where the tests of the page keep the browsers that they use in turn, and the process that these do not outlive
export BROWSERS="${BROWSERS:-$work/browsers-$$}" BROWSERS_OF="${BROWSERS_OF:-$$}"

# --- one test: `tests/run.sh --one TEST` writes one line about it for summary() ------------------------------------

# A process costs more than most unit tests: what runs for each of them has few.
uptime_s() { # sets $now
    read -r now _ </proc/uptime
    now=${now%%.*}
}
add_used() { # 1m2.345s, in hundredths of a second
    rest=${1#*m} fraction=${1#*.}
    fraction=1${fraction%"${fraction#??}"} # 08 were octal
    used=$((used + ${1%%m*} * 6000 + ${rest%%.*} * 100 + fraction - 100))
}
said() { # outcome, cases passed, failed and skipped, name, text
    uptime_s
    times >"$RUN_FILES/$$.times" # of what this shell waited for: not in a subshell, which has waited for nothing
    { read -r _ && read -r user sys; } <"$RUN_FILES/$$.times"
    used=0
    add_used "$user"
    add_used "$sys"
    [ ! -f "$T/browser_used" ] || used=$((used + $(cat "$T/browser_used"))) # tests/page/page.inc
    printf '%s\t%d\t%d\t%d\t%d\t%d\t%s\t%s\t%s\n' "$1" $((now - began)) "$used" "$2" "$3" "$4" "$test" \
        "$5" "$6"
}

# Is a second run left to the test that failed? Then $AGAIN has it, and its log a place beside the second one's. A unit
# test that fails does not reach the line that would give its memory back: that it leaks is no fault of its own.
hurt='timed out after|Sanitizer|runtime error:|Segmentation|SIGSEGV|SIGABRT|SIGBUS|Aborted|core dumped|smashing'
leaks='^==[0-9]+==ERROR: LeakSanitizer: |^SUMMARY: AddressSanitizer: [0-9]+ byte\(s\) leaked'
may_run_again() {
    [ -n "${AGAIN:-}" ] || return
    if grep -q '^\[  FAILED  \]' "$T/log"; then grep -vE "$leaks" "$T/log"; else cat "$T/log"; fi |
        grep -qE "$hurt" && return 1
    cp "$T/log" "$T.first.log" && printf '%s\n' "$test" >>"$AGAIN"
}
# passed CASES SKIPPED NAME: said so; of a second run, with the log of the first
passed() {
    if [ -f "$T.first.log" ] && [ -n "${SECOND:-}" ]; then
        said shaky "$1" 0 "$2" "$3" "$T.first.log"
    else
        said ok "$1" 0 "$2" "$3" ''
    fi
}

run_file() { # tests/GROUP/NAME.sh
    name=$(basename "$(dirname "$1")")/$(basename "$1" .sh)
    T=$work/$(printf %s "$name" | tr / -)
    rm -rf "$T" && mkdir -p "$T/dir"
    [ -n "${SECOND:-}" ] || rm -f "$T.first.log"
    case $1 in tests/static/*) CC=${COMPILER_CC:-$CC} CXX=${COMPILER_CXX:-$CXX} ;; esac # they build the tree
    (cd "$T/dir" && TEST="$root/$1" TEST_DIR="$T/dir" timeout -k 10 "$limit" sh \
        -c '. "$ROOT/tests/lib.sh"; . "$TEST"') >"$T/log" 2>&1 </dev/null
    status=$?
    case $status in
    0) passed 1 0 "$name"; [ -n "${KEEP:-}" ] || rm -rf "$T" ;;
    77) said skip 0 0 1 "$name" "$(tail -n 1 "$T/log")"; rm -rf "$T" ;;
    *)
        [ $status = 124 ] && echo "timed out after $limit s" >>"$T/log"
        may_run_again || said FAIL 0 1 0 "$name" "$T/log"
        ;;
    esac
}

# Freed memory that a sanitizer keeps from being used again: of its own 256 MiB each page is a new one, which is slow.
UNIT_ASAN=quarantine_size_mb=32

run_unit() { # binary
    case $1 in
    "$BUILD"/sanitize/*) name="unit/${1##*/}, sanitized" T=$work/unit-${1##*/}-san ;;
    *) name=unit/${1##*/} T=$work/unit-${1##*/} ;;
    esac
    stamp=$T.passed
    if [ -n "${CHANGED_ONLY:-}" ] && [ -f "$stamp" ] && [ "$stamp.begun" -nt "$1" ]; then
        read -r cases not_run <"$stamp"
        said same "$cases" 0 "$not_run" "$name" ''
        return
    fi
    files=$RUN_FILES/$$
    rm -rf "$T" "$stamp"
    mkdir -p "$T" "$files" || exit
    [ -n "${SECOND:-}" ] || [ ! -f "$T.first.log" ] || rm "$T.first.log"
    : >"$stamp.begun" # not newer than what make links meanwhile
    CMOCKA_MESSAGE_OUTPUT=STDOUT TMPDIR=$files ASAN_OPTIONS=${ASAN_OPTIONS:-$UNIT_ASAN} \
        timeout -k 10 "$limit" "$1" >"$T/log" 2>&1 </dev/null
    status=$?
    rm -rf "$files"
    awk '/^\[       OK \]/ { ok++ } /^\[  FAILED  \] [^0-9]/ { bad++ } /^\[  SKIPPED \] [^0-9]/ { not_run++ }
         END { print ok + 0, bad + 0, not_run + 0 }' "$T/log" >"$T/counts"
    read -r cases bad not_run <"$T/counts"
    if [ $status = 0 ] && [ "$cases" -gt 0 ]; then
        echo "$cases $not_run" >"$stamp"
        passed "$cases" "$not_run" "$name ($cases)"
    else
        case $status in
        124) echo "timed out after $limit s" >>"$T/log" ;;
        1[3-9]?) echo "Aborted by signal $((status - 128))" >>"$T/log" ;;
        esac
        echo "exit status $status, $cases cases passed" >>"$T/log"
        [ "$bad" -gt 0 ] || bad=1
        may_run_again || said FAIL "$cases" "$bad" 0 "$name" "$T/log"
    fi
}

if [ "${1:-}" = --one ]; then
    test=$2
    uptime_s
    began=$now
    case $test in *.sh) run_file "$test" ;; *) run_unit "$test" ;; esac
    exit 0
fi

# --- which, in which order -----------------------------------------------------------------------------------------

group() { # the tests of a group or file, one a line
    case $1 in
    all) for g in static page accuracy e2e unit report faults stress; do group $g; done ;;
    unit)
        for binary in "$BUILD"/unit/test_* "$BUILD"/sanitize/unit/test_*; do
            [ -x "$binary" ] && [ -f "$root/tests/unit/$(basename "$binary").c" ] && echo "$binary"
        done
        ;;
    static | e2e | report | page | faults | accuracy | stress)
        for file in tests/"$1"/*.sh; do
            [ -f "$file" ] && echo "$file"
        done
        ;;
    *.sh) realpath -m --relative-to=. -- "$1" ;;
    */test_*.c)
        echo "tests/run.sh: a unit test: make build/unit/$(basename "$1" .c) && build/unit/$(basename "$1" .c)" >&2
        exit 2
        ;;
    *) echo "tests/run.sh: no group or file '$1'" >&2; exit 2 ;;
    esac
    return 0
}

is_alone() {
    case $1 in
    *.sh) grep -q '^# alone:' "$1" 2>/dev/null ;;
    *) grep -q '^/\* alone:' "tests/unit/$(basename "$1").c" ;;
    esac
}

# Those that took longest the last time first, so that none of them is left for the end; new ones before all.
seconds=$work/seconds
touch "$seconds"
longest_first() {
    awk -F "$tab" 'FILENAME != "-" { took[$2] = $1; next }
                   !seen[$0]++ { print ($0 in took ? took[$0] : 10000) "\t" $0 }' "$seconds" - | sort -s -rn -k 1,1 |
                   cut -f 2
}

tests=$(for what in "${@:-all}"; do group "$what" || exit; done) || exit 2
beside='' alone='' count=0
IFS='
'
for test in $(printf '%s\n' "$tests" | longest_first); do
    if is_alone "$test"; then alone="$alone$test$IFS"; else beside="$beside$test$IFS"; fi
    count=$((count + 1))
done

# --- what they say -------------------------------------------------------------------------------------------------

# Reads the tests' lines as they come. A test that left none has failed.
summary() {
    passed=0 failed=0 skipped=0 failures='' heard=0 processor=0 shaky='' same=0
    new=$seconds.$$ # another run may be going on
    : >"$new"
    while IFS=$tab read -r outcome took used good bad not_run test name text; do
        heard=$((heard + 1)) passed=$((passed + good)) failed=$((failed + bad)) skipped=$((skipped + not_run))
        processor=$((processor + used)) used=$(printf '%d.%02d' $((used / 100)) $((used % 100)))
        [ "$outcome" = same ] || printf '%s\t%s\n' "$took" "$test" >>"$new"
        case $outcome in
        same) same=$((same + 1)) ;;
        ok) printf 'ok    %-40s %4d s %7s s\n' "$name" "$took" "$used" ;;
        skip) printf 'skip  %-40s                  %s\n' "$name" "$text" ;;
        shaky)
            shaky="$shaky $name"
            printf 'shaky %-40s %4d s %7s s   passed the second time; the first: %s\n' "$name" "$took" "$used" "$text"
            tail -n 40 "$text" | sed 's/^/      | /'
            ;;
        *)
            failures="$failures $name"
            printf 'FAIL  %-40s %4d s %7s s   %s\n' "$name" "$took" "$used" "$text"
            tail -n 40 "$text" | sed 's/^/      | /'
            ;;
        esac
    done
    awk -F "$tab" '{ took[$2] = $1 } END { for (test in took) print took[test] "\t" test }' "$seconds" "$new" \
        >"$new.all" && mv "$new.all" "$seconds"
    rm -f "$new"
    if [ $heard != $count ]; then
        failed=$((failed + count - heard)) failures="$failures $((count - heard)) that ended without a word"
    fi
    if [ "$(printf %s "$shaky" | wc -w)" -gt "$shaky_most" ]; then
        failed=$((failed + 1)) failures="$failures more than $shaky_most shaky ones"
    fi
    [ -z "$failures" ] || echo "failed:$failures"
    [ -z "$shaky" ] || echo "passed the second time alone:$shaky"
    [ "$same" = 0 ] || echo "not run again, as their programs are those that passed: $same unit tests"
    echo "$((processor / 100)) s of processor time"
    echo "$passed passed, $failed failed, $skipped skipped"
    [ $failed = 0 ]
}

each() { # how many at a time; the tests on standard input
    xargs -r -d '\n' -n 1 -P "$1" sh tests/run.sh --one
}
# Tests start python3 hundreds of times: the system's where it has one, which is optimized, as one that a version
# manager built need not be (half as fast; a script that looks for the interpreter takes five times as long to start,
# too), in an environment of its own, as packages that are loaded at each start (.pth files) make it slow. What needs
# some asks /usr/bin/python3 for them; $FIRST_PYTHON is the one in the machine's PATH, for tests of interpreters.
make_python() {
    interpreter=/usr/bin/python3
    [ -x "$interpreter" ] ||
        interpreter=$(python3 -c 'import sys; print(getattr(sys, "_base_executable", sys.executable))') || return
    ln -s "$interpreter" "$1/bin/python3" &&
        printf 'home = %s\ninclude-system-site-packages = false\n' "$(dirname "$interpreter")" >"$1/pyvenv.cfg"
}
# Tests compile some 200 small programs: compile.sh keeps those that have not changed, two weeks long.
make_compilers() {
    export KEPT_COMPILED="$work/compiled" COMPILER_CC="$CC" COMPILER_CXX="$CXX" TREE_HEADERS
    TREE_HEADERS=$(find . -path ./build -prune -o -type f \( -name '*.h' -o -name '*.inc' -o -name '*.def' \) -print0 |
        sort -z | xargs -0 sha256sum | sha256sum)
    mkdir -p "$KEPT_COMPILED" && find "$KEPT_COMPILED" -type f -mtime +14 -delete
    for name in cc c++; do ln -s "$root/tests/compile.sh" "$1/$name"; done
    CC=$1/cc CXX=$1/c++
}
# Where unit tests make their files: in memory where there is much room. ext4 looks for a free inode among all that were
# deleted in the last seconds, which takes longer than what the tests do.
in_memory() {
    room=$(df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 { print $4 }')
    if [ "${room:-0}" -ge 1048576 ] && [ -w /dev/shm ]; then echo /dev/shm; else echo "${TMPDIR:-/tmp}"; fi
}
RUN_FILES=$(mktemp -d "$(in_memory)/memprof-tests-XXXXXX") || exit
export RUN_FILES
shaky_most=${SHAKY_MOST:-2}
again=''
if [ "$shaky_most" != 0 ]; then
    again=$work/again-$$
    : >"$again"
fi
tools=$work/tools-$$
clean_up() {
    for pid in "$BROWSERS"/*.pid; do
        [ ! -f "$pid" ] || kill "$(cat "$pid")" 2>/dev/null || true
    done
    rm -rf "$BROWSERS" "$tools" "$RUN_FILES" ${again:+"$again"}
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
mkdir -p "$tools/bin"
export FIRST_PYTHON="${FIRST_PYTHON:-$(command -v python3)}"
make_compilers "$tools"
if make_python "$tools" && "$tools/bin/python3" -c pass; then
    PATH=$tools/bin:$PATH
fi
{
    export AGAIN="$again"
    printf %s "$beside" | each "${JOBS:-$(($(nproc) + 2))}"
    printf %s "$alone" | each 1
    [ ! -s "$again" ] || AGAIN='' SECOND=1 each 1 <"$again"
} | summary
