# The collector's memory runs out: one line says so, no abort; the program keeps its parent, output and status; what was
# stored is read.
need prlimit gcc
cat >grow.c <<'EOF'
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void *one(size_t size) { return malloc(size); }
int main(int argc, char **argv)
{
    long blocks = atol(argv[1]);
    (void)argc;
    for (long i = 0; i < 1000; i++)
        if (!one(100))
            return 1;
    puts("begun");
    fflush(stdout);
    while (access("go", F_OK))
        usleep(10000);
    for (long i = 0; i < blocks; i++)
        if (!one(16))
            return 1;
    puts("done");
    return 7;
}
EOF
gcc -g -O1 grow.c -o grow

# Early, where chunks are encoded, and later, where the live blocks' table grows: so many MiB more than at its 1,000th
# block.
for mib in 8 150; do
    rm -f go out out.db*
    "$MEMPROF" run -o out.db -- ./grow 20000000 >out 2>err &
    runner=$!
    while ! grep -q begun out 2>/dev/null; do sleep 0.1; done
    sleep 2.5 # two commits
    pages=$(cut -d' ' -f1 "/proc/$runner/statm")
    prlimit --pid $runner --as=$((pages * $(getconf PAGESIZE) + mib * 1048576))
    : >go
    code=0
    wait $runner || code=$?
    cat err
    equal "the program's status" 7 $code
    equal "the program's output" "begun done" "$(tr '\n' ' ' <out | sed 's/ $//')"
    equal "lines" 1 "$(wc -l <err)"
    contains "message" err "memprof: out of memory"
    contains "message" err "memprof report out.db"
    "$MEMPROF" report out.db >report 2>report.err
    contains "why it is partial" report "partial recording: the collector was killed or out of memory"
    at_least "blocks stored before" 1000 "$(total alloc_count)"
    at_least "their bytes" 100000 "$(total alloc_bytes)"
done

# From the start, with all limits between too little to begin with and enough: at most one line, and either something of
# it is kept or there is no file of it and the older one is set aside whole.
"$MEMPROF" run -q -o older.db -- ./grow 0 >/dev/null || true # ends with 7
for kib in $(seq 40000 2000 64000) 47250 47500 128000 250000; do
    rm -f out.db*
    cp older.db out.db
    code=0
    (ulimit -v "$kib" && exec "$MEMPROF" run -o out.db -- ./grow 1000) >out 2>err || code=$?
    equal "$kib KiB: the program's status" 7 $code
    at_most "$kib KiB: lines" 1 "$(wc -l <err)"
    cmp older.db out.db.old || fail "$kib KiB: the older recording"
    if [ -e out.db ]; then
        equal "$kib KiB: processes" 1 "$(value "SELECT count(*) FROM process")"
    else
        ls out.db-* 2>/dev/null && fail "$kib KiB: files without their database"
        contains "$kib KiB: message" err "record"
    fi
done
