# What every test starts with. Run by tests/run.sh: MEMPROF, BUILD, ROOT, CC, CXX; the current directory is empty and
# the test's own.
set -eu
PROGRAMS=$BUILD/programs
SAMPLES=$BUILD/samples
command -v sqlite3 >/dev/null || { echo 'sqlite3 is not installed'; exit 77; }

fail() { echo "FAIL: $*"; exit 1; }
skip() { echo "$*"; exit 77; }
need() { for tool; do command -v "$tool" >/dev/null 2>&1 || skip "$tool is not installed"; done; }

# has_modules PYTHON MODULE...: are they installed? To find PyTorch takes a hundredth of what it takes to import it.
has_modules() {
    "$1" -c 'import sys, importlib.util as u; sys.exit(not all(u.find_spec(m) for m in sys.argv[2:]))' "$@"
}

# equal WHAT EXPECTED ACTUAL
equal() { [ "$2" = "$3" ] || fail "$1: expected '$2', got '$3'"; echo "  $1 = $3"; }
# at_most WHAT LIMIT ACTUAL, at_least WHAT LIMIT ACTUAL (integers)
at_most() { [ "$3" -le "$2" ] || fail "$1: at most $2 expected, got $3"; echo "  $1 = $3 (<= $2)"; }
at_least() { [ "$3" -ge "$2" ] || fail "$1: at least $2 expected, got $3"; echo "  $1 = $3 (>= $2)"; }
# contains WHAT FILE TEXT, lacks WHAT FILE TEXT (fixed strings)
contains() { grep -qF -- "$3" "$2" || { cat "$2"; fail "$1: '$3' is not in $2"; }; }
lacks() { if grep -qF -- "$3" "$2"; then cat "$2"; fail "$1: '$3' is in $2"; fi; }

# record PROGRAM [ARG]...: profiles it into out.db, keeps its status in $status; messages to run.err
record() {
    rm -f out.db out.db.old
    status=0
    "$MEMPROF" run -o out.db $RUN_OPTIONS -- "$@" >run.out 2>run.err || status=$?
    if [ ! -f out.db ]; then cat run.err; fail "no database from: $*"; fi
}
RUN_OPTIONS=
# The same, and the program must have exited 0 and the recording be sound.
record_ok() {
    record "$@"
    [ $status = 0 ] || { cat run.out run.err; fail "exit status $status from: $*"; }
    sound
}
# sql QUERY: the value or rows of out.db, columns separated by |. By SQLite's own shell: it knows nothing of memprof.
sql() { sqlite3 -readonly "${DB:-out.db}" "$1" || fail "sql: $1"; }
# sites QUERY: one integer of a recording that may have packed sites, which only memprof reads
sites() { "$MEMPROF" sql --csv "${DB:-out.db}" "SELECT coalesce(($1), 0)" | tail -n 1 | tr -d '\r'; }
# value QUERY: one integer, 0 for NULL or nothing
value() { v=$(sql "$1"); echo "${v:-0}"; }

# How many accounts are not those of the totals
accounts="(SELECT count(*) FROM total t JOIN (VALUES('line'), ('function'), ('file'), ('module')) v
    LEFT JOIN (SELECT scope, device_id, kind, sum(alloc_count) a, sum(alloc_bytes) b, sum(end_bytes) e FROM account
    WHERE inclusive = 0 GROUP BY 1, 2, 3) s ON s.scope = v.column1 AND s.device_id = t.device_id AND s.kind = t.kind
    WHERE coalesce(a, 0) <> alloc_count OR coalesce(b, 0) <> alloc_bytes OR coalesce(e, 0) <> end_active_bytes)"
# Nothing lost, nothing inconsistent: what must hold for every program that does not misuse its heap. It is one
# statement of SQLite's and one of memprof's: tests make hundreds of recordings, and to start a program takes longer.
sound() {
    equal "state|partial|lost events|unmatched frees|negative balances|accounts against totals" "complete||0|0|0|0" \
        "$(sql "SELECT (SELECT value FROM meta WHERE key = 'state'), (SELECT value FROM meta WHERE key = 'partial'),
        (SELECT coalesce(sum(value), 0) FROM counter WHERE name IN ('lost_event', 'map_refused')),
        (SELECT coalesce(sum(value), 0) FROM counter WHERE name = 'unmatched_free'),
        (SELECT count(*) FROM total WHERE end_active_bytes < 0 OR end_count < 0 OR free_count > alloc_count),
        $accounts")"
    balance_of_sites
}
# Totals, sites, events and the lines' accounts all tell the same.
balance() {
    equal "accounts against totals" 0 "$(sql "SELECT $accounts")"
    balance_of_sites
}
balance_of_sites() {
    equal "balance of counts,sites against totals,live at the peak" 0,0,0 \
        "$("$MEMPROF" sql --csv "${DB:-out.db}" "SELECT
        (SELECT count(*) FROM (SELECT t.*, coalesce(sum(x.freed_bytes), 0) b, coalesce(sum(x.freed_count), 0) c
        FROM total t LEFT JOIN (site_teardown x JOIN site s USING(site_id)) ON s.device_id = t.device_id
        AND t.kind IN ('all', s.kind) GROUP BY t.device_id, t.kind) LEFT JOIN total_start i USING(device_id, kind)
        WHERE coalesce(start_count, 0) + alloc_count - free_count <> end_count - c
        OR coalesce(start_bytes, 0) + alloc_bytes - free_bytes <> end_active_bytes - b),
        (SELECT count(*)
        FROM (SELECT device_id, kind, sum(alloc_count) a, sum(alloc_bytes) b, sum(free_count) c, sum(end_bytes) e,
        sum(temporary_count) t FROM site GROUP BY 1, 2) s JOIN total t USING(device_id, kind)
        WHERE a <> alloc_count OR b <> alloc_bytes OR c <> free_count OR e <> end_active_bytes
        OR t <> temporary_count),
        (SELECT count(*) FROM (SELECT device_id, sum(at_peak_bytes) p FROM site GROUP BY 1) s
        JOIN total t USING(device_id) WHERE t.kind = 'all' AND p <> peak_active_bytes)" | tail -n 1 | tr -d '\r')"
}

# Sums over the lines of a function by plain name, self:
# alloc_count|alloc_bytes|free_count|temporary_count|end_count|end_bytes
by_function() {
    sql "SELECT sum(a.alloc_count) || '|' || sum(a.alloc_bytes) || '|' || sum(a.free_count) || '|' ||
        sum(a.temporary_count) || '|' || sum(a.end_count) || '|' || sum(a.end_bytes)
         FROM account a JOIN function f ON f.function_id = a.key_id
         WHERE a.scope = 'function' AND a.inclusive = ${2:-0} AND a.kind = '${3:-heap}' AND f.plain_name = '$1'"
}
total() { value "SELECT $1 FROM v_total WHERE device = 'host' AND kind = '${2:-heap}'"; }

# same_counts PROGRAM [ARG]...: memprof and libcount.so in the same process must agree to the byte.
same_counts() {
    COUNT_OUT=$PWD/counts LD_PRELOAD=$BUILD/accuracy/libcount.so
    export COUNT_OUT LD_PRELOAD
    status=0
    rm -f out.db counts
    "$MEMPROF" run -o out.db $RUN_OPTIONS -- "$@" >run.out 2>run.err || status=$?
    unset COUNT_OUT LD_PRELOAD
    [ $status = 0 ] || { tail run.err; fail "exit status $status from: $*"; }
    [ -s counts ] || fail "no independent counts from: $*"
    sound
    counted=$(od -An -v -t u8 -w48 counts)
    set -- $counted
    equal "alloc_count" "$1" "$(total alloc_count)"
    equal "free_count" "$2" "$(total free_count)"
    equal "alloc_bytes" "$3" "$(total alloc_bytes)"
    equal "end_active_bytes" "$5" \
        "$(total "end_active_bytes - (SELECT coalesce(sum(freed_bytes), 0) FROM site_teardown JOIN site USING(site_id)
        WHERE kind = 'heap')")"
    [ -n "${ANY_PEAK:-}" ] || equal "peak_active_bytes" "$4" "$(total peak_active_bytes)"
    equal "frees of unknown addresses" "$6" "$(value "SELECT sum(value) FROM counter WHERE name = 'unmatched_free'")"
}
# same_findings [OPTION]...: of out.db; leaves report.txt, report.json, advise.json and page.html
same_findings() {
    "$MEMPROF" report out.db "$@" >report.txt
    "$MEMPROF" report out.db "$@" --json >report.json
    "$MEMPROF" advise out.db "$@" --json >advise.json
    "$MEMPROF" report out.db "$@" --html=page.html >page.out
    python3 "$ROOT/tests/e2e/same_findings.py" || fail "the findings of page, JSON and terminal differ"
}
# bad STATUS TEXT ARGUMENTS...: of memprof: that status, one line with the text, and no output
bad() {
    want=$1 text=$2
    shift 2
    status=0
    "$MEMPROF" "$@" >got 2>got.err </dev/null || status=$?
    equal "status of '$*'" "$want" $status
    [ "$(wc -l <got.err)" = 1 ] || { cat got.err; fail "'$*': one line expected"; }
    grep -q '^memprof: ' got.err || fail "'$*': $(cat got.err)"
    contains "'$*'" got.err "$text"
    [ ! -s got ] || fail "'$*': output in spite of the error: $(cat got)"
}
# cache_sources OLD NEW: two versions of a program whose cache grows from 10 x 5000 to 10 x 8000 bytes, all live at the
# peak; in the new one three lines stand above its make()
cache_sources() {
    cat >"$1" <<'END'
#include <stdlib.h>
static char *make(size_t size) {
    char *p = malloc(size);
    p[0] = 1;
    return p;
}
int main(void) {
    char *cache[10];
    for (int i = 0; i < 10; i++)
        cache[i] = make(5000);
    for (int i = 0; i < 10; i++)
        free(cache[i]);
}
END
    {
        sed -n 1p "$1"
        printf '// one\n// two\n// three\n'
        sed '1d; s/5000/8000/' "$1"
    } >"$2"
}
# eval "$(command_of FILE)": "$@" becomes the command that a run-NAME file of tests/bench/inputs.sh executes, without
# its shell
command_of() { sed '1d; s/^exec /set -- /' "$1"; }
# The same of its python3 with one round of the three, 1.6 million blocks, which is objects.py here
command_of_python() {
    sed 's/^for round in range(.*/for round in range(1):/' "$BUILD/inputs-small/objects.py" >objects.py
    command_of "$BUILD/inputs-small/run-python3" | sed "s|'[^']*/objects.py'|objects.py|"
}
