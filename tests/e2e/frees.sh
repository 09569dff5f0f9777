# run --free-stacks: who freed what of whose, against the program's own ledger; C++, Python, the reports.
. "$ROOT/tests/lib.sh"
need python3
cat >pairs.py <<'END'
"""pairs.py FILE.json NAME...: the pairs of functions of those names, as the programs write them."""
import json, sys
sums = {}
for row in json.load(open(sys.argv[1])):
    pair = row['function'].split('(')[0], row['alloc_function'].split('(')[0]
    if pair[0] in sys.argv[2:]:
        numbers = [row[k] for k in ('free_count', 'free_bytes', 'thread_count', 'thread_bytes', 'realloc_count')]
        sums[pair] = [a + b for a, b in zip(sums.get(pair, [0] * 5), numbers)]
for pair in sorted(sums):
    print(*pair, *sums[pair])
END
# frees FILE NAME...: report --frees of out.db, by these functions
frees() {
    into=$1
    shift
    "$MEMPROF" report --frees --json out.db >frees.json
    python3 pairs.py frees.json "$@" | LC_ALL=C sort >"$into"
}
freers="here there nothing drop_map grow"

for seed in 1 2 3; do
    RUN_OPTIONS=--free-stacks=0
    record_ok "$PROGRAMS/frees" $seed 6000
    LC_ALL=C sort run.out >wanted
    frees got $freers
    diff wanted got || fail "the ledger of seed $seed"
    at_least 'pairs' 12 "$(wc -l <got)"
done
equal 'each free of the heap is told' "$(sites "SELECT sum(free_count) FROM site WHERE kind = 'heap'")" \
    "$(sites "SELECT sum(f.free_count) FROM free_site f JOIN site USING(site_id) WHERE kind = 'heap'")"
equal 'and so are its events' 0 "$(sites "SELECT count(*) FROM v_event e WHERE op = 'free' AND kind = 'heap' AND
    free_stack_id IS NULL")"
equal 'events and sums' "$(sites "SELECT sum(free_bytes) FROM free_site")" \
    "$(sites "SELECT sum(size_bytes) FROM v_event WHERE free_stack_id IS NOT NULL AND op IN ('free', 'cut')")"
equal 'events by stack' 0 "$(sites "SELECT count(*) FROM (SELECT free_stack_id, sum(size_bytes) b FROM v_event WHERE
    free_stack_id IS NOT NULL GROUP BY 1) e LEFT JOIN (SELECT stack_id, sum(free_bytes) b FROM free_site GROUP BY 1) s
    ON s.stack_id = e.free_stack_id WHERE s.b IS NOT e.b")"

# large blocks alone; the default
for least in 10000 ''; do
    RUN_OPTIONS=--free-stacks${least:+=$least}
    record_ok "$PROGRAMS/frees" 5 6000 ${least:-4096}
    LC_ALL=C sort run.out >wanted
    frees got $freers
    diff wanted got || fail "the ledger of $RUN_OPTIONS"
    at_least 'frees that nobody asked for' 100 "$(sites "SELECT (SELECT sum(free_count) FROM site) -
        (SELECT sum(free_count) FROM free_site)")"
done
"$MEMPROF" report --frees -n 3 out.db >table
contains 'the table' table 'Frees, by line (3 of'
contains 'its pairs' table 'Frees of what another line, thread or device allocated (3 of'
"$MEMPROF" report --frees --csv out.db >table.csv
equal 'rows of CSV' \
    $(($(python3 -c 'import json; print(len(json.load(open("frees.json"))))') + 1)) "$(wc -l <table.csv)"

# nothing of it without the option
RUN_OPTIONS=
record_ok "$PROGRAMS/frees" 5 500
equal 'no rows' '0|0' "$(sql 'SELECT (SELECT count(*) FROM free_site), (SELECT count(*) FROM chunk_free)')"
"$MEMPROF" report --frees out.db >table
contains 'what to do' table "record with 'memprof run --free-stacks'"
status=0
"$MEMPROF" run --free-stacks=many true 2>err || status=$?
equal 'a bad number' 2 $status
contains 'why' err "--free-stacks='many': expected bytes"

# totals alone have the sums too
RUN_OPTIONS='--free-stacks=0 --aggregate'
record_ok "$PROGRAMS/frees" 7 3000
LC_ALL=C sort run.out >wanted
frees got $freers
diff wanted got || fail 'the ledger of totals'

RUN_OPTIONS=--free-stacks
record_ok "$PROGRAMS/frees_cxx"
frees got drop_one drop_many drop_container
printf '%s\n' 'drop_container make 10 3000000 0 0 0' 'drop_many make 10 700000 0 0 0' \
    'drop_one make 10 50000 0 0 0' >wanted
diff wanted got || fail 'C++'

python=$(command -v python3)
record_ok "$python" "$ROOT/tests/programs/frees_python.py"
frees got drop
equal 'Python: freed by drop what make made' "drop make 20 $((20 * 100001 + 190)) 0 0 0" "$(cat got)"
