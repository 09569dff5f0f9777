# Which bytes of each line were in memory: by arithmetic, by what the program asked the kernel, and to the byte by what
# the looks at its pages saw.
page=4096
of_function() { # FUNCTION COLUMN
    value "SELECT r.$2 FROM resident_account r JOIN function f ON f.function_id = r.key_id
        WHERE r.scope = 'function' AND r.inclusive = 1 AND r.kind = 'all' AND f.plain_name = '$1'"
}
# of each look: blocks and rests are all that was there
sums() {
    for column in resident:present shared:shared swapped:swapped; do
        equal "sums of ${column%:*}" 0 "$(value "SELECT count(*) FROM resident_scan c WHERE c.${column#*:}_bytes <>
            (SELECT total(${column%:*}_bytes) FROM resident_site s WHERE s.scan_id = c.scan_id) +
            (SELECT total(${column%:*}_bytes) FROM resident_rest s WHERE s.scan_id = c.scan_id)")"
    done
    # what another process may have written of shared memory is not known: one site
    equal "sizes" 0 "$(value "SELECT sum(live_bytes < resident_bytes + swapped_bytes + untouched_bytes) +
        max(0, sum(live_bytes > resident_bytes + swapped_bytes + untouched_bytes) - count(DISTINCT scan_id))
        FROM resident_site")"
    equal "rows without a look" 0 "$(value "SELECT (SELECT count(*) FROM resident_site WHERE scan_id NOT IN
        (SELECT scan_id FROM resident_scan)) + (SELECT count(*) FROM resident_rest WHERE scan_id NOT IN
        (SELECT scan_id FROM resident_scan))")"
}
near() { # WHAT EXPECTED ACTUAL: the kernel counts a process's pages with a delay of some dozens a thread
    at_least "$1" $(($2 - 1048576)) "$3"
    at_most "$1" $(($2 + 1048576)) "$3"
}

record_ok "$PROGRAMS/resident"
sums
equal "sizes of one process, shared memory too" 0 "$(value "SELECT count(*) FROM resident_site WHERE live_bytes <>
    resident_bytes + swapped_bytes + untouched_bytes")"
contains "by mincore" run.out "touched 3000"
contains "by mincore" run.out "returned 1500"
contains "by mincore" run.out "shared 300"
equal "touched" $((3000 * page)) "$(of_function touched resident_bytes)"
equal "touched, not there" $(((16384 - 3000) * page)) "$(of_function touched untouched_bytes)"
equal "returned" $((1500 * page)) "$(of_function returned resident_bytes)"
equal "returned, not there" $((500 * page)) "$(of_function returned untouched_bytes)"
equal "shared" "$((300 * page))|$((300 * page))" \
    "$(of_function shared resident_bytes)|$(of_function shared resident_shared_bytes)"
equal "shared with nobody, not there" $((400 * page)) "$(of_function shared untouched_bytes)"
equal "reserved" "0|$((64 << 30))" "$(of_function reserved resident_bytes)|$(of_function reserved untouched_bytes)"
equal "small" "10000000|0" "$(of_function small resident_bytes)|$(of_function small untouched_bytes)"
# malloc's own header is on the first page
at_most "zeroed" $page "$(of_function zeroed resident_bytes)"
equal "zeroed, all" $((8192 * page)) \
    $(($(of_function zeroed resident_bytes) + $(of_function zeroed untouched_bytes)))
# the kernel's zero page is told apart from Linux 6.7 on
if [ "$(value "SELECT count(*) FROM resident_scan WHERE zero_bytes IS NULL")" = 0 ]; then
    equal "read only" "0|$((1000 * page))" \
        "$(of_function read_only resident_bytes)|$(of_function read_only untouched_bytes)"
    at_least "zero pages" $((1000 * page)) "$(value "SELECT zero_bytes FROM resident_scan WHERE is_peak")"
fi
near "against RSS" "$(value "SELECT rss_bytes FROM resident_scan WHERE is_peak")" \
    "$(value "SELECT present_bytes FROM resident_scan WHERE is_peak")"
near "against the peak RSS" "$(value "SELECT peak_rss_bytes FROM process")" \
    "$(value "SELECT present_bytes FROM resident_scan WHERE is_peak")"
equal "looks that were kept" "1|1" \
    "$(sql "SELECT sum(is_peak), sum(is_last) FROM resident_scan")"
equal "before the end" 1 \
    "$(value "SELECT max(time_ns + duration_ns) <= (SELECT end_ns FROM process) FROM resident_scan")"

# every table adds up to what blocks had
blocks=$(value "SELECT resident_bytes FROM v_resident WHERE what = 'blocks'")
for by in line function file module stack process device; do
    "$MEMPROF" report --by $by --sort resident --json out.db >by.json
    "$MEMPROF" report --by $by --sort resident --csv out.db >by.csv
    sqlite3 :memory: ".import --csv by.csv r" "SELECT sum(resident_bytes) FROM r" >sum.txt
    equal "by $by" "$blocks" "$(cat sum.txt)"
    sqlite3 :memory: "CREATE TABLE j(t); INSERT INTO j VALUES(CAST(readfile('by.json') AS TEXT));
        SELECT sum(e.value ->> 'resident_bytes') - (SELECT sum(s.value ->> 'present_bytes') FROM j, json_each(t,
        '\$.resident_scans') s WHERE s.value ->> 'is_peak') FROM j, json_each(t, '\$.resident') e" >sum.txt
    equal "by $by, with what is no block's" 0 "$(cat sum.txt)"
done
"$MEMPROF" report --by line --sort resident --skip map out.db >skip.txt
contains "with --skip" skip.txt "returned"
"$MEMPROF" report --by line --sort resident out.db >by.txt
contains "the instant" by.txt "Resident at "
contains "what took how long" by.txt "(took "
contains "the last look" by.txt "before the end)"
contains "rests" by.txt "beside live blocks on their pages"
"$MEMPROF" report out.db >report.txt
contains "a column of the peak" report.txt "resident  function"
contains "a finding" report.txt "Asked for, and never there"
contains "its line" report.txt "reserved (resident.c:"
# 64 GiB, 13,384 + 8,192 + 500 + 1,000 pages: what is never freed is for the most part not there
grep '^\* Never freed' report.txt >never.txt
contains "never freed, and never there" never.txt "Of this, 64.09 GiB "
contains "... for certain" never.txt "took no memory"
# the instant stands on the column, and is that of the text below the table
look=$(sed -n 's/^Resident \(at [0-9.]* [a-z]*\), the highest .*/\1/p' report.txt)
equal "the instant on the column" "$look" "$(grep -A 1 'resident  function' report.txt | sed -n '2s/^ *//p')"
equal "on both columns of a table of its own" "$look$look" \
    "$(grep -A 1 '^ *resident  .*function' by.txt | sed -n '2{s/  *at [0-9.]* [a-z]*$//;s/^ *//;s/   *//gp}')"
# a look at another time than the peak's says nothing of what was never there
cp out.db late.db
sqlite3 late.db "UPDATE total SET peak_active_bytes = peak_active_bytes * 5 / 4"
"$MEMPROF" report late.db >late.txt
lacks "a finding from a look when much less was live" late.txt "never there"
lacks "the column of the peak" late.txt "resident  function"
"$MEMPROF" report late.db --sort resident >late-by.txt
contains "a table of its own all the same" late-by.txt "on no page"
cp out.db late.db
sqlite3 late.db "UPDATE timeline SET rss_max_bytes = rss_max_bytes * 5 / 4"
"$MEMPROF" report late.db >late.txt
lacks "the column of the peak from a look before more was touched" late.txt "resident  function"
contains "how far it is from the peak" late.txt ", of a peak RSS of "
# 64 GiB are more than what was touched later, as in a server whose processes' sum swings; but not where all of that was
contains "a finding all the same" late.txt "Asked for, and never there"
contains "what may have been touched" late.txt " more at another time than at this look"
sqlite3 late.db "UPDATE timeline SET rss_max_bytes = 64 << 30"
"$MEMPROF" report late.db >late.txt
lacks "a finding of what may all have been touched" late.txt "Asked for, and never there"
# as far as a look shortly before the end saw it; what was touched after it, or may have been, took memory
last() {
    cp out.db late.db
    sqlite3 late.db "UPDATE process SET end_ns = (SELECT max(time_ns) + 20000000 FROM resident_scan),
        peak_rss_bytes = (SELECT max(present_bytes) FROM resident_scan); $1"
    "$MEMPROF" report late.db >late.txt
}
last ""
contains "never freed, as far as a look saw it" late.txt "were on no page at the last look"
last "UPDATE resident_site SET untouched_bytes = min(untouched_bytes, 100000)"
lacks "never freed, in little that came during a look" late.txt "were on no page at the last look"
last "UPDATE process SET end_ns = 2 * end_ns + 100000000"
lacks "never freed, as a look long before the end saw it" late.txt "were on no page at the last look"
last "UPDATE process SET peak_rss_bytes = peak_rss_bytes + 2097152"
lacks "never freed, and 2 MiB touched since" late.txt "were on no page at the last look"
last "UPDATE process SET peak_rss_bytes = peak_rss_bytes * 2"
contains "never freed, of which more may have been written" late.txt "* Never freed"
lacks "... after the last look" late.txt "were on no page at the last look"
contains "... but it was never all there" late.txt " or more took no memory: the peak RSS was "
"$MEMPROF" report --json out.db >report.json
contains "for programs" report.json '"what": "blocks"'
# what another allocator mapped is told of the look's own instant: 100 GiB of the 160 that were the most
cp out.db late.db
sqlite3 late.db "INSERT INTO segment(device_id, kind, process_id, address, size_bytes, alloc_ns)
    SELECT 0, 'heap', process_id, 4096, 4096, 0 FROM process;
    UPDATE total SET peak_reserved_bytes = 160 << 30 WHERE kind = 'all';
    UPDATE timeline SET reserved_max_bytes = 100 << 30, reserved_last_bytes = 100 << 30"
"$MEMPROF" report --html=late.html late.db >html.out
sqlite3 late.db "SELECT printf('100.00 GiB was reserved: %.2f MiB of that was on present pages, and %.2f GiB on
    none: never touched', sum(resident_bytes) / 1048576.0, 100 - sum(resident_bytes) / 1073741824.0) FROM v_resident
    WHERE what IN ('blocks', 'beside', 'heap', 'segment')" | tr -s '\n ' ' ' | sed 's/ $//' >mapped.txt
contains "mapped, at the look" late.html "$(cat mapped.txt)"
contains "mapped, the most" late.html "An allocator mapped 160.00 GiB by "
# an instant or a thread has no such figure
"$MEMPROF" report --by thread --sort resident --csv out.db >thread.csv
sqlite3 :memory: ".import --csv thread.csv r" "SELECT sum(resident_bytes <> '') FROM r" >sum.txt
equal "by thread" 0 "$(cat sum.txt)"

# a child shares what neither has written since: 2,800 pages of `touched`
record_ok "$PROGRAMS/resident" fork
sums
# the child reads what its parent has
equal "shared with a child: what neither has" $((400 * page)) "$(of_function shared untouched_bytes)"
equal "looks at the peak" 2 "$(value "SELECT sum(is_peak) FROM resident_scan")"
equal "touched by both" "$((3000 * page))|$((2800 * page))" \
    "$(of_function touched resident_bytes)|$(of_function touched resident_shared_bytes)"
equal "blocks of the child" 0 "$(value "SELECT sum(s.resident_bytes) FROM resident_site s JOIN resident_scan c
    USING(scan_id) JOIN process p USING(process_id) WHERE p.start_kind = 'fork'")"
at_least "the child's pages" $((3000 * page)) "$(value "SELECT present_bytes FROM resident_scan c JOIN process p
    USING(process_id) WHERE p.start_kind = 'fork' AND is_peak")"
# of one process alone it is not known
pid=$(sql "SELECT pid FROM process WHERE start_kind = 'exec'")
"$MEMPROF" report --by line --process "$pid" --csv out.db >process.csv
sqlite3 :memory: ".import --csv process.csv r" "SELECT count(*) > 0, sum(resident_bytes <> '') FROM r" >sum.txt
equal "of one process" "1|0" "$(cat sum.txt)"
"$MEMPROF" report --by process --sort resident --csv out.db >process.csv
sqlite3 :memory: ".import --csv process.csv r" "SELECT sum(resident_bytes) FROM r" >sum.txt
equal "by process" "$(value "SELECT resident_bytes FROM v_resident WHERE what = 'blocks'")" "$(cat sum.txt)"

# the shared memory that its parent mapped is a column of the child's, and rows add up to what the looks saw
"$MEMPROF" report --by process --sort resident --json out.db >process.json
sqlite3 :memory: "CREATE TABLE j(t); INSERT INTO j VALUES(CAST(readfile('process.json') AS TEXT));
    SELECT count(*), sum(e.value ->> 'shared_memory_bytes'), sum((e.value ->> 'resident_bytes') -
    (e.value ->> 'block_bytes') - (e.value ->> 'shared_memory_bytes') - (e.value ->> 'inherited_bytes') -
    (e.value ->> 'file_bytes') - (e.value ->> 'other_bytes')), sum(e.value ->> 'resident_bytes')
    FROM j, json_each(t, '\$.resident_processes') e" >sum.txt
equal "of each process" "2|$((300 * page))|0|$(value "SELECT sum(resident_bytes) FROM v_resident")" "$(cat sum.txt)"
"$MEMPROF" report --by process --sort resident out.db >process.txt
contains "a table of each process" process.txt "Resident memory of each process"

# one that ends at once may be gone before any look: what was seen adds up all the same
record_ok "$PROGRAMS/resident" exit
sums

# one that lets nobody look has no figure, and a counter says so
if [ "$(id -u)" = 0 ]; then
    mkdir open && chmod 777 open && chmod 755 .
    as_user() {
        setpriv --reuid=65534 --regid=65534 --clear-groups env HOME="$PWD/open" XDG_CACHE_HOME="$PWD/open" "$@"
    }
else
    mkdir open
    as_user() { "$@"; }
fi
if as_user test -x "$MEMPROF" 2>/dev/null && as_user test -w open; then
    as_user "$MEMPROF" run -q -o open/out.db "$PROGRAMS/resident" hidden >run.out 2>run.err || fail "$(cat run.err)"
    DB=open/out.db
    at_least "looks that failed" 1 "$(value "SELECT sum(value) FROM counter WHERE name = 'resident_unreadable'")"
    at_most "what was seen before" 1 "$(value "SELECT sum(is_peak) FROM resident_scan")"
    at_least "recorded all the same" 10000000 "$(total alloc_bytes)"
    sums
fi

# Shared memory that a child has written where its parent did not: on no page is what neither has.
cat >handed.c <<'EOF'
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline)) static char *handed(void)
{
    return mmap(NULL, 32 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

__attribute__((noinline)) static char *alone(void)
{
    return mmap(NULL, 8 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

int main(void)
{
    char *shared = handed(), *private = alone();
    memset(shared, 1, 2 << 20);
    memset(private, 1, 2 << 20);
    if (fork() == 0) {
        memset(shared, 1, 6 << 20);
        usleep(200000);
        _exit(0);
    }
    wait(NULL);
    return 0;
}
EOF
"$CC" -g -O1 -o handed handed.c
record_ok ./handed
for by in line function stack; do
    "$MEMPROF" report --by $by --sort resident --csv out.db >unknown.csv
    sqlite3 :memory: ".import --csv unknown.csv r" "SELECT group_concat(untouched_bytes, '|') FROM (SELECT
        untouched_bytes FROM r WHERE resident_bytes = 2097152 ORDER BY 1)" >unknown.txt
    equal "on no page, by $by" "$((26 << 20))|$((6 << 20))" "$(cat unknown.txt)"
done
"$MEMPROF" report out.db >handed.txt
contains "a finding of it" handed.txt "32.00 MiB (80 %) were on no page"
contains "its line, of both processes" handed.txt "The largest part: handed (handed.c:8), 26.00 MiB."
# where not all processes were looked at nobody knows, as in older files
sqlite3 out.db "UPDATE resident_site SET untouched_bytes = 0 WHERE untouched_bytes = 26 << 20;
    UPDATE resident_account SET untouched_bytes = 0 WHERE untouched_bytes = 26 << 20"
"$MEMPROF" report --by line --sort resident --csv out.db >unknown.csv
sqlite3 :memory: ".import --csv unknown.csv r" "SELECT group_concat(untouched_bytes, '|') FROM (SELECT
    untouched_bytes FROM r WHERE resident_bytes = 2097152 ORDER BY 1)" >unknown.txt
equal "nobody knows" "|$((6 << 20))" "$(cat unknown.txt)"
