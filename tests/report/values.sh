# The reports agree with each other and with the events, by SQLite's own shell and Python's parsers.
. "$ROOT/tests/report/setup.inc"
need python3 sqlite3
q() { sqlite3 -cmd ".load $BUILD/memprof_events" net.db "$1"; }

equal "allocations in v_event" "$(q "SELECT sum(alloc_count) FROM total WHERE kind <> 'all'")" \
    "$(q "SELECT count(*) FROM v_event WHERE op IN ('alloc', 'realloc')")"
equal "frees in v_event" "$(q "SELECT sum(free_count) FROM total WHERE kind <> 'all'")" \
    "$(q "SELECT count(*) FROM v_event WHERE op = 'free'")"
equal "bytes in v_event" "$(q "SELECT sum(alloc_bytes) FROM total WHERE kind <> 'all'")" \
    "$(q "SELECT sum(size_bytes) FROM v_event WHERE op IN ('alloc', 'realloc')")"
equal "the extension and memprof sql" "$(q 'SELECT count(*), sum(time_ns), sum(address) FROM v_event')" \
    "$("$MEMPROF" sql net.db --csv 'SELECT count(*), sum(time_ns), sum(address) FROM v_event' | sed -n '2s/,/|/gp')"

# what is live at any instant, from key frames and deltas, against all events up to it
for t in 0 1500000 2000000 15000000 16500000 105000001 300000000 999999999 1004000000 1115000000 1115500000 1136000000 \
    1249000000 1250000000; do
    live=$(q "SELECT group_concat(v)
        FROM (SELECT device || ' ' ||
        sum(CASE WHEN op IN ('alloc', 'realloc') THEN size_bytes WHEN op = 'free' THEN -size_bytes END) AS v
        FROM v_event WHERE time_ns <= $t AND op <> 'oom' GROUP BY device HAVING v NOT LIKE '% 0' ORDER BY device)")
    at=$("$MEMPROF" report net.db --by device --at ${t}ns --csv | tail -n +2 |
        awk -F, 'NF > 3 { print $1, $(NF - 1) }' | sort | paste -sd,)
    equal "live at $t" "$live" "$at"
done
# ... at the peak it is the peak, and by line it is what the accounts say
peak=$(q "SELECT peak_active_ns FROM total WHERE device_id = 0 AND kind = 'all'")
"$MEMPROF" report net.db --device host --at ${peak}ns --by line --top 0 --csv | tail -n +2 |
    awk -F'"' '{ gsub(/,/, ";", $2); print $0 }' | sed 's/"//g' | awk -F, '{ print $4, $(NF - 3), $(NF - 2) }' |
    sort >at-instant
"$MEMPROF" sql net.db --csv \
    "SELECT line_id || ' ' || at_peak_bytes || ' ' || at_peak_count FROM v_line
    WHERE device = 'host' AND kind = 'all' AND at_peak_bytes > 0" | tail -n +2 | sort >at-peak
cmp at-instant at-peak || fail "live at the peak by line: $(diff at-instant at-peak)"

# ... and by module, the self line's: what libz allocated for main() is main()'s
"$MEMPROF" report net.db --device host --at 1249ms --by module --csv | tail -n +2 |
    awk -F, '{ print $8, $(NF - 1), $NF }' | sort >at-instant
"$MEMPROF" sql net.db --csv \
    "SELECT module || ' ' || end_bytes || ' ' || end_count FROM v_module
    WHERE device = 'host' AND kind = 'all' AND inclusive = 0 AND end_bytes > 0" | tail -n +2 | sort >at-end
cmp at-instant at-end || fail "live by module: $(diff at-instant at-end)"

# v_stack: the frames that a report shows of each stack; and one stack is found without looking at the others
"$MEMPROF" report net.db --by stack --json | python3 -c 'import json, sys
for r in json.load(sys.stdin)["rows"]:
    for depth, f in enumerate(r["frames"]):
        print(r["key_id"], depth, f["function"], f["file"], f["line"], f["module"], f["is_inline"],
              f["is_allocator"], sep="|")' | sed 's/None//g' | sort >frames
q "SELECT stack_id, depth, CASE WHEN function LIKE '0x%' THEN '' ELSE function END, file, line, module, is_inline,
    is_allocator FROM v_stack WHERE stack_id IN (SELECT stack_id FROM site)" | sort >v-stack
cmp frames v-stack || fail "v_stack: $(diff frames v-stack)"
cp net.db many.db
sqlite3 many.db "WITH RECURSIVE r(x) AS (SELECT 100001 UNION ALL SELECT x + 1 FROM r WHERE x < 200000) INSERT INTO stack
    SELECT x, CASE x % 50 WHEN 1 THEN 102 ELSE x - 1 END, 3, 4, 0 FROM r"
equal "frames of one of 100,000 stacks" 53 "$(sqlite3 many.db 'SELECT count(*) FROM v_stack WHERE stack_id = 150050')"
at_most "steps for one stack" 20000 \
    "$(sqlite3 many.db '.stats vmstep' 'SELECT max(depth) FROM v_stack WHERE stack_id = 150050' |
    sed -n 's/VM-steps: *//p')"
at_most "steps for a join of one stack" 20000 \
    "$(sqlite3 many.db '.stats vmstep' \
    'SELECT max(depth) FROM site s JOIN v_stack USING(stack_id) WHERE s.site_id = 2' | sed -n 's/VM-steps: *//p')"

# --sort takes the title of a column, and a beginning that is one name's only
for pair in 'own own.peak' 'peak active.at_peak' 'allocated alloc.bytes' 'lifetime lifetime.total' \
    'allocs alloc.count'; do
    equal "sorted by ${pair% *}" "$("$MEMPROF" report net.db --by line --sort "${pair#* }" | md5sum)" \
        "$("$MEMPROF" report net.db --by line --sort "${pair% *}" | md5sum)"
done
# for programs nothing is left out unless they ask: 21 frames of 15 functions, on two devices
equal "rows of --csv" \
    "$(sqlite3 net.db "SELECT count(*) FROM account WHERE scope = 'line' AND inclusive = 1 AND kind = 'all'")" \
    "$("$MEMPROF" report net.db --by line -i --csv | tail -n +2 | wc -l)"
equal "rows of --csv --top 3" 3 "$("$MEMPROF" report net.db --by line -i --csv --top 3 | tail -n +2 | wc -l)"

# every JSON is JSON, every CSV has as many fields in each row
for c in 'report' 'report --by line' 'report --by stack' 'report --by module -i' 'report --at 1s' 'lines' 'leaks' \
    'leaks --by line' 'info' 'report --by thread'; do
    set -- $c
    command=$1
    shift
    "$MEMPROF" $command net.db "$@" --json | python3 -c 'import json, sys; json.load(sys.stdin)' ||
        fail "$c --json is not JSON"
    [ $command = info ] && continue
    "$MEMPROF" $command net.db "$@" --csv |
        python3 -c 'import csv, sys; rows = list(csv.reader(sys.stdin))
assert len(rows) > 1 and len({len(r) for r in rows}) == 1, rows' || fail "$c --csv is not CSV"
done

# CSV without a row has its heading, the same as with rows
for key in line stack function; do
    "$MEMPROF" report net.db --csv --by $key --at 1s >full
    "$MEMPROF" report net.db --csv --by $key --at 0ns >none
    equal "nothing is live at the beginning, by $key: the heading alone" "$(head -n 1 full)" "$(cat none)"
done
"$MEMPROF" run -q -o nothing.db true
says="no allocation was recorded: 'memprof info' says what was"
for option in --top=5 --func=main; do
    ! "$MEMPROF" lines nothing.db "$option" 2>none || fail "lines without an allocation, $option"
    equal "lines without an allocation, $option" "memprof: $says" "$(cat none)"
done
equal "the report's next step without one" "Nothing: ${says%%:*}; ${says#*: }." \
    "$("$MEMPROF" report nothing.db | tail -n 1)"
"$MEMPROF" leaks nothing.db --csv >none
"$MEMPROF" leaks net.db --csv >full
equal "no leaks" "$(head -n 1 full)" "$(cat none)"

# a table that older files lack is empty in them
cp net.db older.db
sqlite3 older.db 'DROP TABLE oom_had'
"$MEMPROF" report older.db | sed 's/older\.db/net.db/' >older || fail "a file without a table that came later"
"$MEMPROF" report net.db >newer
equal "the report of an older file" "" "$(diff older newer)"
equal "failed allocations, none known to be handled" "$(sqlite3 older.db 'SELECT count(*) FROM oom')|0" \
    "$("$MEMPROF" sql older.db --csv 'SELECT count(*), sum(is_handled) FROM v_oom' | tail -n 1 | tr , '|')"
