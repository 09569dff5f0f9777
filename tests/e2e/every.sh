# report --every: a row an execution, against a walk through v_event (every.py); a planted leak and its twin; the same
# growth as check --max-growth-per.
need python3
compare() { # WHAT NAME
    compared=$(python3 "$ROOT/tests/e2e/every.py" "$MEMPROF" out.db "$2") || fail "$1: $compared"
    at_least "numbers compared of $1" 100 "$compared"
}
record_ok "$SAMPLES/net"
compare 'the steps of net' step
RUN_OPTIONS=-q
record "$PROGRAMS/executions" 3 # nested, overlapping, never ended, and of a child
compare 'executions of threads' work
"$MEMPROF" report out.db --every work --top 4 >got
contains 'how many' got 'work: 153 executions, host'
grep -q '^nth  *pid  *thread  *start  *lasted ' got || fail 'its columns'
contains 'what never ended' got '! 2 never ended'
equal 'rows, with the gap' 5 "$(grep -cE '^( *[0-9]+ |\.\.\.)' got)"
equal 'all rows' 153 "$("$MEMPROF" report out.db --every work --top 0 | grep -cE '^ *[0-9]+ ')"
equal 'CSV' 154 "$("$MEMPROF" report out.db --every work --csv | wc -l)"

# a leak of 1,024 bytes in each of 10,000 executions, and its twin
record "$PROGRAMS/steps" 10000 1024
"$MEMPROF" report out.db --every step >got
contains 'how many' got 'step: 10,000 executions, host'
contains 'the leak' got 'Steady growth: +1024.0 B an execution, by line:'
grep -A1 'Steady growth' got | grep -q '^  +1024.0 B  hold  .*steps.c:' || { cat got; fail 'its line comes first'; }
growth() { # JSON PATH
    sqlite3 :memory: "SELECT CAST(json_extract(CAST(readfile('$1') AS TEXT), '$2') AS REAL)"
}
for warmup in 3 500; do
    "$MEMPROF" report out.db --every step --warmup $warmup --json >every.json
    "$MEMPROF" check out.db --max-growth-per step=0 --warmup $warmup --json >check.json || :
    equal "as check, warmup $warmup" "$(growth check.json '$.rules[0].growth_per_execution')" \
        "$(growth every.json '$.growth[0].growth_per_execution')"
    equal 'of the line' 1024.0 "$(growth every.json '$.growth[0].lines[0].growth_per_execution')"
done
"$MEMPROF" lines out.db --every step --json >lines.json
equal 'lines: growth and allocations each' '1024.0|1.0' "$(sqlite3 :memory: "SELECT l.value ->> 'growth_per_execution',
    l.value ->> 'allocs_per_execution' FROM json_each(CAST(readfile('lines.json') AS TEXT), '$.lines') l
    WHERE l.value ->> 'function' = 'hold'")"
"$MEMPROF" lines out.db --every step --func hold >got
contains 'lines: of which executions' got 'Window: step, all 10,000'
grep -q ' 1024.0     1.0 .*malloc(size);' got || { cat got; fail 'lines: the columns'; }
# what is freed just behind each of them: the mean of the rows' net growth, by line
record "$PROGRAMS/steps" 100 0 0 5000
"$MEMPROF" lines out.db --every step --json >lines.json
"$MEMPROF" report out.db --every step --json >every.json
in_lines() { # EXPRESSION FUNCTION: %: of all that allocate
    sqlite3 :memory: "SELECT $1 FROM json_each(CAST(readfile('lines.json') AS TEXT), '$.lines') l
        WHERE l.value ->> 'function' LIKE '$2'"
}
equal 'growth each of what is freed later' '5000.0|1.0|5000' "$(in_lines "l.value ->> 'growth_per_execution',
    l.value ->> 'allocs_per_execution', l.value ->> 'net_growth_bytes'" keep)"
equal 'growth each: the mean of the rows' "$(sqlite3 :memory: "SELECT round(avg(r.value ->> 'net_growth_bytes'), 2)
    FROM json_each(CAST(readfile('every.json') AS TEXT), '$.executions') r")" \
    "$(in_lines "round(sum(l.value ->> 'growth_per_execution'), 2)" %)"
record "$PROGRAMS/steps" 300 0 2
"$MEMPROF" report out.db --every step >got
contains 'the twin' got 'Nothing grows steadily.'
# from the 261st execution of 1,000 on
record "$PROGRAMS/steps" 1000 2000 0 0 260
"$MEMPROF" report out.db --every step >got
contains 'late' got 'Steady growth: +2000.0 B an execution, by line:'
grep -qE '^  \+2000\.0 B  hold  .*steps\.c:[0-9]+  from execution 2[56][0-9] or so on$' got ||
    { cat got; fail 'from where on'; }
equal 'JSON: from where on' 1 "$("$MEMPROF" report out.db --every step --json >every.json
    growth every.json '$.growth[0].lines[0].from_execution' | grep -cE '^2[56][0-9]')"
"$MEMPROF" advise out.db >got || :
grep -qE 'holds 1.95 KiB more .* over 7[34][0-9] of them' got || { cat got; fail 'advise: over how many'; }
# a cache that is full after 600 of 1,000 is most of what grows at exit, and no line grows throughout
record "$PROGRAMS/steps" 1000 2000 0 0 0 600
"$MEMPROF" report out.db --every step >got
contains 'in part only' got 'Nothing grows steadily.'
contains 'what to do' got 'which no stack does throughout. --warmup 501 looks at the second half alone.'
record "$PROGRAMS/steps" 7 48
"$MEMPROF" report out.db --every step >got
contains 'too few' got 'Too few to tell what grows: 7 executions ended; the first 3 do not count, and 5 more are'
"$MEMPROF" report out.db --every step --warmup 2 >got
contains 'enough: parcels of 37 bytes more each time, too' got 'Steady growth: +85.0 B'

# of several names each row says which one of its name it is, as --during takes it
"$MEMPROF" report out.db --every '*' --csv >rows.csv
python3 - rows.csv <<'END' || fail 'numbers of their names'
import collections, csv, sys
rows = [r for r in csv.DictReader(open(sys.argv[1])) if r["device"] == "host"]
seen = collections.Counter()
for number, row in enumerate(rows, 1):
    seen[row["name"]] += 1
    assert (int(row["nth"]), int(row["nth_of_name"])) == (number, seen[row["name"]]), row
assert len(seen) > 1, seen
END
"$MEMPROF" report out.db --every '*' --top 0 >got
contains 'the third of its name' got ' rest#3 '

bad 2 'no range of that name; this recording has: rest (7), step (7)' report out.db --every stp
bad 2 'no range of that name; this recording has: rest (7), step (7)' lines out.db --every stp
bad 2 'leave out --from, --to and --during' lines out.db --every step --during step
bad 2 'leave out --by' report out.db --every step --by line
bad 2 '--warmup belongs to --every' report out.db --warmup 3
bad 2 "--warmup 'x'" report out.db --every step --warmup x
RUN_OPTIONS='-q --aggregate'
record "$PROGRAMS/steps" 7 48
bad 2 '--every needs the events' report out.db --every step
