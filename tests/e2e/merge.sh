# Recordings of several ranks as one: sums that arithmetic knows, and what does not change them.
. "$ROOT/tests/lib.sh"
need python3 gawk

merge() { "$MEMPROF" merge "$@" 2>merge.err || { cat merge.err; fail "merge $*"; }; }
# dump FILE: all that is in it but how long the names took
dump() { sqlite3 -readonly "$1" .dump | grep -v "'symbolize_ns'" | LC_ALL=C sort; }
same_dump() { dump "$2" >dump.1; dump "$3" >dump.2; cmp dump.1 dump.2 || fail "$1: $2 and $3 differ"; echo "  $1"; }

for rank in 0 1 2 3; do
    RANK=$rank "$MEMPROF" run -q -o 'rank%q{RANK}.db' -- "$PROGRAMS/ranks" $rank
done

# --- sums: with r = 1..4 the sum of r is 10 -------------------------------------------------------------------------
merge -o all.db rank3.db rank0.db rank2.db rank1.db
contains note merge.err '4 recordings merged into all.db'
DB=all.db
sound
equal 'kept' '10|10000|0|0|10|10000' "$(by_function keep)"
equal 'passed' '1000|64000|1000|1000|0|0' "$(by_function pass)"
equal 'held' '4|1000000|4|4|0|0' "$(by_function hold)"
equal 'totals' '1014|1074000|1004|10000' \
    "$(sql "SELECT alloc_count, alloc_bytes, free_count, end_active_bytes FROM v_total WHERE kind = 'all'")"
equal 'sum of peaks' 1010000 "$(total peak_active_bytes all)"
# one after the other: at one instant there was the last one's peak, and what the others kept went with them
equal 'common peak' '404000|404000' "$(sql 'SELECT least_bytes, most_bytes FROM common_peak')"
equal 'recordings' '0 rank0.db 101000,1 rank1.db 202000,2 rank2.db 303000,3 rank3.db 404000' \
    "$(sql "SELECT group_concat(rank || ' ' || path || ' ' || peak_active_bytes) FROM v_recording")"
equal 'no events' '0|none' \
    "$(sql "SELECT (SELECT count(*) FROM event_chunk), value FROM meta WHERE key = 'events_kept'")"
equal 'of a file of its own' 0 "$(DB=rank0.db sql 'SELECT count(*) FROM recording')"
python3 "$ROOT/tests/e2e/merge.py" "$MEMPROF" all.db rank?.db || fail 'sums'

# --- what the reports say -------------------------------------------------------------------------------------------
"$MEMPROF" report all.db >got
contains 'sum of peaks' got 'Sum of peaks of host: 986.33 KiB in 14 blocks of 4 recordings, held by'
contains 'note' got '! merged from 4 recordings: peaks, and what was live at them, are sums'
contains 'one instant' got 'At one instant all together held at most: host 394.53 KiB'
"$MEMPROF" report --by process --json all.db >got
equal 'ranks of processes' '0 rank0.db 101000,1 rank1.db 202000,2 rank2.db 303000,3 rank3.db 404000' \
    "$(python3 -c 'import json
rows = json.load(open("got"))["rows"]
print(",".join(sorted("%d %s %d" % (r["rank"], r["recording"], r["at_peak_bytes"]) for r in rows)))')"
"$MEMPROF" report --by process all.db >got
contains 'recording' got ' rank  recording '
"$MEMPROF" info all.db >got
contains 'info' got 'Recordings that it was made of'
equal 'info --json' 4 "$("$MEMPROF" info --json all.db | python3 -c 'import json, sys
print(len(json.load(sys.stdin)["recordings"]))')"
"$MEMPROF" leaks all.db >got
contains 'leaks' got 'keep'
"$MEMPROF" lines all.db -f keep >got
contains 'lines' got 'malloc(1000)'
"$MEMPROF" report --html=page.html all.db >got
contains 'page' page.html 'merged from 4 recordings'
contains 'sum on the page' page.html 'Sum of peaks'
equal 'diff with itself' 0 "$("$MEMPROF" diff all.db all.db --json | python3 -c 'import json, sys
print(len(json.load(sys.stdin)["rows"]))')"
status=0
"$MEMPROF" check all.db --max-leak 9999 >got || status=$?
equal 'check' 1 $status
contains 'measured' got '10,000'
status=0
"$MEMPROF" check all.db --max-leak 10000 --max-allocs 1014 >got || status=$?
equal 'kept' 0 $status
# one after the other: 404,000 at one instant, though the peaks' sum is 1,010,000
"$MEMPROF" check all.db --max-peak 404000 >got || { cat got; fail 'a common peak that is kept'; }
contains 'the sum beside it' got 'of 4 recordings together; the sum of their peaks is 986.33 KiB'
status=0
"$MEMPROF" check all.db --max-peak 403999 >got || status=$?
equal 'status of a common peak' 1 $status
contains 'what was checked' got 'broken  max-peak host  394.53 KiB (404,000)'
"$MEMPROF" check all.db --write-baseline budget.txt
contains 'as a rule' budget.txt 'max-peak host=404000'
# keep is one stack, but its own peak is a sum of what each of the four had: it is no more, and may be less
status=0
"$MEMPROF" check all.db --max-line keep=9999 >got || status=$?
equal 'status of an own peak of several' 1 $status
contains 'a sum is a bound' got 'unknown  max-line keep'
"$MEMPROF" check all.db --max-line keep=10000 >got || { cat got; fail 'an own peak below its bound'; }
# refuses TEXT COMMAND...: what needs events says so
refuses() {
    text=$1
    shift
    status=0
    "$MEMPROF" "$@" >got 2>&1 || status=$?
    [ $status != 0 ] || { cat got; fail "$*: status 0"; }
    contains "$*" got "$text"
}
refuses 'a merged file has no events' report --at 1ms all.db
refuses 'a merged file has no events' leaks --at 1ms all.db
refuses 'a merged file has no events' report --from 1ms all.db
refuses 'a merged file has no events' lines --from 1ms all.db
refuses 'a merged file has no events' report --every x all.db
refuses 'has none (memprof merge)' report --segments all.db
refuses '(memprof merge)' report -p "$(sql 'SELECT min(pid) FROM process')" all.db
refuses 'a merged file' export --format torch-snapshot -o - all.db

# --- order, one, merged again ---------------------------------------------------------------------------------------
merge -o order.db rank0.db rank1.db rank2.db rank3.db
same_dump 'order does not matter' all.db order.db
mkdir few && cp rank?.db few
(cd few && merge -o ../glob.db 'rank?.db' rank2.db)
equal 'a pattern, and one of its files' 10000 "$(DB=glob.db; total end_active_bytes all)"
merge -o one.db rank2.db
cmp one.db rank2.db || fail 'the merge of one file is another'
merge -o 01.db rank0.db rank1.db
merge -o 0123.db rank3.db 01.db rank2.db
equal 'merged again' "$(sql 'SELECT * FROM v_total ORDER BY 1, 2' | cut -d'|' -f1-8,10-12)" \
    "$(DB=0123.db; sql 'SELECT * FROM v_total ORDER BY 1, 2' | cut -d'|' -f1-8,10-12)"
equal 'its recordings' 'rank0.db,rank1.db,rank2.db,rank3.db' \
    "$(DB=0123.db; sql 'SELECT group_concat(path) FROM (SELECT path FROM recording ORDER BY path)')"
equal 'its common peak' '404000|404000' "$(DB=0123.db; sql 'SELECT least_bytes, most_bytes FROM common_peak')"

# --- together: 100,000 * (1 + 2 + 3) and what they keep, at one instant ----------------------------------------------
rm -f ready.*
for rank in 0 1 2; do
    RANK=$rank "$MEMPROF" run -q -o 'together%q{RANK}.db' -- "$PROGRAMS/ranks" $rank ready 3 &
done
wait
merge -o together.db 'together?.db'
equal 'common peak of all' '606000|606000' "$(DB=together.db; sql 'SELECT least_bytes, most_bytes FROM common_peak')"

# --- clocks ---------------------------------------------------------------------------------------------------------
cp together1.db elsewhere.db
sqlite3 elsewhere.db "UPDATE meta SET value = 'elsewhere' WHERE key IN ('host', 'boot_id');
    UPDATE meta SET value = value - 3600000000000 WHERE key = 'start_unix_ns'"
merge -o clocks.db together0.db elsewhere.db
equal 'clocks differ' '0|several' \
    "$(DB=clocks.db; sql "SELECT (SELECT count(*) FROM common_peak), value FROM meta WHERE key = 'merged_clock'")"
"$MEMPROF" report clocks.db >got
contains 'clocks differ' got "their machines' clocks may differ (memprof merge --align MARK)"
# 101,000 and 202,000: at least the latter, at most both
for bound in 201999:broken 202000:unknown 302999:unknown 303000:kept; do
    "$MEMPROF" check clocks.db --max-peak ${bound%:*} >got || true
    contains "a peak between bounds, $bound" got "${bound#*:}  max-peak host"
done
"$MEMPROF" check clocks.db --write-baseline budget.txt
contains 'what it is at most' budget.txt 'max-peak host=303000'
"$MEMPROF" check clocks.db --baseline budget.txt >got || { cat got; fail 'a merged file as its own baseline'; }
merge -o aligned.db together0.db elsewhere.db --align begin
equal 'aligned' 1 "$(DB=aligned.db; value "SELECT count(DISTINCT start_ns) FROM mark WHERE name = 'begin'")"
equal 'what all held then' '303000|303000' "$(DB=aligned.db; sql 'SELECT least_bytes, most_bytes FROM common_peak')"
refuses 'no mark of that name' merge -o no.db together0.db elsewhere.db --align nowhere
[ ! -e no.db ] || fail 'an output without a mark'
