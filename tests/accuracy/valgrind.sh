# A second independent source: valgrind's "total heap usage" of the samples and of sqlite3.
need valgrind
usage() { # "allocs frees bytes" of a program under valgrind
    # shellcheck disable=SC2016
    sh "$ROOT/tests/kept.sh" "$(command -v "$1")" "$(command -v valgrind)" -- sh -c '
        valgrind --undef-value-errors=no --run-libc-freeres=no --run-cxx-freeres=no "$@" 2>&1 >/dev/null |
            sed -n "s/.*total heap usage: \([0-9,]*\) allocs, \([0-9,]*\) frees, \([0-9,]*\) bytes.*/\1 \2 \3/p" |
            tr -d ,' "$(valgrind --version)" "$@"
}
agree() {
    set -- "$(usage "$@")" "$@"
    expected=$1
    shift
    record "$@"
    equal "$(basename "$1")" "$expected" \
        "$(sql "SELECT alloc_count || ' ' || free_count || ' ' || alloc_bytes FROM v_total
        WHERE device = 'host' AND kind = 'heap'")"
}
for sample in net leak cache churn templates; do
    agree "$SAMPLES/$sample"
done
# glibc gives each new thread a table of 16 bytes per loaded module with thread-local data: libmemprof.so is one more
set -- $(usage "$SAMPLES/threads")
record "$SAMPLES/threads"
equal "threads" "$1 $2 $(($3 + 4 * 16))" \
    "$(sql "SELECT alloc_count || ' ' || free_count || ' ' || alloc_bytes FROM v_total
    WHERE device = 'host' AND kind = 'heap'")"
need sqlite3
# its allocations do not depend on the environment's size
agree sqlite3 -init /dev/null :memory: \
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) SELECT count(*),
    sum(length(printf('%d', i))) FROM n ORDER BY 1"
