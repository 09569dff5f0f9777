# Rotation: each part of a recording in a file of its own. The events of all files together are the program's ledger,
# each once; what was live at each boundary is in the file that ends there, and in the next one from its beginning.
. "$ROOT/tests/lib.sh"
need python3
# begin OPTION...: a recording of the program that obeys; its answers are in ledger
begin() {
    rm -rf work && mkdir work && cd work && mkfifo orders
    "$MEMPROF" run -o out.db "$@" -- "$PROGRAMS/rotate" <orders >ledger 2>run.err &
    collector=$!
    exec 7>orders
    lines=0
}
# wait_for WHAT COMMAND...: until it is true, 60 s at most
wait_for() {
    what=$1 tries=0
    shift
    until "$@"; do
        tries=$((tries + 1))
        [ $tries -lt 1200 ] || fail "$what: not within a minute"
        sleep 0.05
    done
}
has_lines() { [ "$(wc -l <ledger)" -ge $lines ]; }
# order LINE: done when it is answered
order() {
    echo "$1" >&7
    lines=$((lines + 1))
    wait_for "$1" has_lines
}
rotated() { ls out.2*.db 2>/dev/null | wc -l; }
has_files() { [ "$(rotated)" -ge "$1" ]; }
# rotate: asks, and waits for one more file
rotate() {
    wanted=$(($(rotated) + 1))
    "$MEMPROF" rotate out.db
    wait_for "file $wanted" has_files $wanted
}
finish() {
    exec 7>&-
    wait $collector || fail "the run ended with status $?"
    cd ..
}
# events FILE OPS: of blocks of `take`: how many|bytes
events() {
    "$MEMPROF" sql --csv "$1" "SELECT count(*) || '|' || coalesce(sum(size_bytes), 0) FROM v_event WHERE op IN ($2) AND
        stack_id IN (SELECT stack_id FROM v_stack WHERE function = 'take')" | tail -n 1 | tr -d '\r'
}
# live FILE: of take's blocks at the file's end
live() {
    "$MEMPROF" report "$1" >/dev/null 2>&1 # which closes its books
    DB=$1 sql "SELECT coalesce(sum(end_count), 0) || '|' || coalesce(sum(end_bytes), 0) FROM v_function WHERE
        function = 'take' AND inclusive = 0 AND kind = 'heap'"
}
left_of() { echo "$1" | awk -F'|' '{ print $1 - $3 "|" $2 - $4 }'; }
sum() { awk -F'|' '{ n += $1; b += $2 } END { print n "|" b }'; }

echo 'three rotations that were asked for'
begin
order 'push whole'
order 'take 1000'
order 'name first'
order 'drop 100'
at_1=$(tail -n 1 ledger)
rotate
order 'take 500'
order 'child 50'
order 'drop 800'
at_2=$(tail -n 1 ledger)
rotate
order 'take 2000'
at_3=$(tail -n 1 ledger)
rotate
order 'drop 300'
order 'pop'
order 'take 7'
finish
cd work
"$MEMPROF" report out.db >/dev/null
set -- out.2*.db
equal 'files' 3 $#
equal 'no half ones' 0 "$(ls | grep -c part || true)"
end=$(tail -n 1 ledger)
equal 'allocations over all files' "$(echo "$end" | cut -d'|' -f1,2)" \
    "$(for f in "$@" out.db; do events "$f" "'alloc'"; done | sum)"
equal 'frees over all files' "$(echo "$end" | cut -d'|' -f3,4)" \
    "$(for f in "$@" out.db; do events "$f" "'free'"; done | sum)"
equal 'allocations of each' '1000 550 2000 7' \
    "$(for f in "$@" out.db; do events "$f" "'alloc'" | cut -d'|' -f1; done | xargs)"
for i in 1 2 3; do
    eval at=\$at_$i
    equal "live at the end of part $i" "$(left_of "$at")" "$(live "$1")"
    equal "totals up to there" "$(echo "$at" | cut -d'|' -f1,2)" "$(DB=$1 sql "SELECT sum(alloc_count) || '|' ||
        sum(alloc_bytes) FROM v_function WHERE function = 'take' AND inclusive = 0 AND kind = 'heap'")"
    "$MEMPROF" report --during "rotate:part $i" --by function --json "$1" >part.json
    equal "part $i: allocated in it" "$(echo '1000 550 2000' | cut -d' ' -f$i)" \
        "$(python3 -c 'import json
print(sum(r["alloc_count"] for r in json.load(open("part.json"))["rows"] if r["function"].startswith("take")))')"
    "$MEMPROF" advise "$1" >text 2>&1 || fail "memprof advise: $(cat text)"
    for what in report leaks lines "report --by thread" info; do
        "$MEMPROF" $what "$1" >text 2>&1 || fail "memprof $what $1: $(cat text)"
        contains 'and says so' text 'rotated: the recording goes on in out.db'
    done
    shift
done
equal 'live at the end' "$(left_of "$end")" "$(live out.db)"
equal 'the last file has its last part alone' last "$(sql "SELECT value FROM meta WHERE key = 'events_kept'")"
equal 'the running file is whole' '' "$(sql "SELECT value FROM meta WHERE key = 'partial'")"
equal 'a range over all boundaries' 1 "$(value "SELECT end_ns > (SELECT max(end_ns) FROM mark WHERE name = 'part 3')
    FROM mark WHERE name = 'whole'")"
DB=$(ls out.2*.db | head -n 1)
equal 'is open in the first' '|1' "$(sql "SELECT end_ns, is_range FROM mark WHERE name = 'whole'")"
equal 'a name' first "$(sql 'SELECT name FROM block_name')"
DB=out.db
equal 'goes on' first "$(sql 'SELECT name FROM block_name')"
cd ..

echo 'by size, and the last two alone'
begin --rotate 60K --keep 2
for i in 1 2 3 4 5; do
    before=$(rotated) newest=$(ls out.2*.db 2>/dev/null | tail -n 1)
    order 'take 90000'
    order 'drop 90000'
    changed() { [ "$(ls out.2*.db 2>/dev/null | tail -n 1)" != "$newest" ]; }
    wait_for "rotation $i" changed
done
finish
equal 'files' 2 "$(ls work/out.2*.db | wc -l)"
DB=work/out.db
at_least 'rotations' 5 "$(value "SELECT count(*) FROM mark WHERE domain = 'rotate'")"

echo 'by time; the collector killed after it'
begin --rotate 1s
order 'take 1000'
at_1=$(tail -n 1 ledger)
wait_for 'the first one' has_files 1
kill -9 $collector
exec 7>&-
wait $collector 2>/dev/null || true
equal 'what was live then' "$(left_of "$at_1")" "$(live "$(ls out.2*.db | head -n 1)")"
equal 'and when it was killed' "$(left_of "$at_1")" "$(live out.db)"
cd ..

status=0
"$MEMPROF" run --rotate 5 true 2>err || status=$?
equal 'neither time nor bytes' 2 $status
contains 'why' err "--rotate '5': expected a time"
"$MEMPROF" run --keep 5 true 2>err && fail '--keep alone'
contains 'why' err '--keep belongs to --rotate'
