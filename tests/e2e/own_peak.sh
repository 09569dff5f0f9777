# Where a row has no own peak, a line under its table says why: in the report, by line, in `memprof lines`.
said='(own peaks are not known of what several stacks make'
tables() {
    "$MEMPROF" report out.db >report.txt
    "$MEMPROF" report out.db --by line >line.txt
    "$MEMPROF" report out.db --by process >process.txt
    "$MEMPROF" lines out.db --func forward >lines.txt
}
record_ok "$SAMPLES/net"
tables
for file in report.txt line.txt process.txt lines.txt; do lacks "all are known" $file "$said"; done
RUN_OPTIONS=--aggregate
record_ok "$SAMPLES/net"
tables
for file in report.txt line.txt lines.txt; do
    contains "without events" $file "$said: not all events were kept)"
    equal "said once in $file" 1 "$(grep -cF "$said" $file)"
done
lacks "of one thread it is known" process.txt "$said"
"$MEMPROF" report out.db --by line --json >rows.json
lacks "in JSON" rows.json "$said"
# a recording of which the sums were too much work, as many small objects of Python make it
RUN_OPTIONS=
record_ok "$SAMPLES/net"
sqlite3 out.db "INSERT INTO meta VALUES('own_peak_incomplete', 'a reason'); UPDATE account SET own_peak_bytes = NULL"
tables
contains "why" line.txt "$said: a reason)"
# a pool on malloc's memory: its 1,000 bytes were a block before they were the pool's. Then 500 of the pool, 300 and 400
# are live together, all from several stacks of take()
cat >pool.c <<'END'
#include <memprof.h>
#include <stdlib.h>
static memprof_pool pool;
static __attribute__((noinline)) char *take(char *at, int size) {
    if (!at)
        return malloc(size);
    memprof_pool_alloc(pool, at, size);
    return at;
}
int main(void) {
    char *memory = take(NULL, 1000), *block, *other;
    pool = memprof_pool_create("pool");
    memprof_pool_segment(pool, memory, 1000);
    take(memory, 500);
    block = take(NULL, 300);
    other = take(NULL, 400);
    free(other);
    free(block);
    memprof_pool_free(pool, memory);
    memprof_pool_segment_end(pool, memory);
    free(memory);
}
END
"$CC" -g -O0 -I"$ROOT/include" -o pool pool.c
record_ok ./pool
equal "own peaks beside a pool" '1200 all,1000 heap,500 sub' "$(sql "SELECT group_concat(own_peak_bytes || ' ' || kind)
    FROM (SELECT a.own_peak_bytes, a.kind FROM account a JOIN function f ON f.function_id = a.key_id
    WHERE a.scope = 'function' AND a.inclusive = 0 AND f.plain_name = 'take' ORDER BY a.kind)")"
