# Rotation: each part of a recording in a file of its own. The events of all files together are the program's ledger,
# each once, and so are the totals; what was live at each boundary is in the file that ends there, and what the next one
# inherited. replay.py tells totals and peaks of each part from its events.
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
        [ $tries -lt 600 ] || fail "$what: not within a minute"
        sleep 0.1
    done
}
has_lines() { [ "$(wc -l <ledger)" -ge $lines ]; }
# order LINE: done when it is answered
order() {
    echo "$1" >&7
    lines=$((lines + 1))
    wait_for "$1" has_lines
}
rotated() {
    set -- out.2*.db
    [ -e "$1" ] || set --
    echo $#
}
has_files() { [ "$(rotated)" -ge "$1" ]; }
# rotate: asks, and waits for one more file
rotate() {
    wanted=$(($(rotated) + 1))
    "$MEMPROF" rotate out.db 2>said
    wait_for "file $wanted" has_files $wanted
    equal "rotate says which file" "memprof: $(ls out.2*.db | tail -n 1): what was recorded up to now; out.db goes on" \
        "$(cat said)"
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
# less A B: of both numbers
less() { echo "$1|$2" | awk -F'|' '{ print $1 - $3 "|" $2 - $4 }'; }
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
before=$(tail -n 1 ledger | cut -d'|' -f1,2)
order 'child 50'
childs=$(less "$(tail -n 1 ledger | cut -d'|' -f1,2)" "$before") # which ended with it, in part 2
order 'drop 800'
order 'name second'
at_2=$(tail -n 1 ledger)
rotate
order 'take 2000'
at_3=$(tail -n 1 ledger)
rotate
first=$(ls out.2*.db | head -n 1)
"$MEMPROF" report "$first" >first.report
grep -q "^rotated: the recording goes on in .*out.db$" first.report || { cat first.report; fail "where it goes on"; }
lacks "a part: nothing of it is missing" first.report "!"
"$MEMPROF" report "$first" --html=first.html >/dev/null
lacks "a part: its page" first.html "Not whole"
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
    expected=$(left_of "$at")
    [ $i -lt 3 ] || expected=$(less "$expected" "$childs")
    equal "live at the end of part $i" "$expected" "$(live "$1")"
    equal "totals of part $i" "$(events "$1" "'alloc'")" "$(DB=$1 sql "SELECT sum(alloc_count) || '|' ||
        sum(alloc_bytes) FROM v_function WHERE function = 'take' AND inclusive = 0 AND kind = 'heap'")"
    equal "frees of part $i" "$(events "$1" "'free'")" "$(DB=$1 sql "SELECT sum(free_count) || '|' ||
        sum(free_bytes) FROM v_function WHERE function = 'take' AND inclusive = 0 AND kind = 'heap'")"
    equal "part $i is told" "$i" "$(DB=$1 sql "SELECT value FROM meta WHERE key = 'part'")"
    code=0
    "$MEMPROF" report --segments "$1" >segments 2>err || code=$?
    if [ $i -gt 1 ]; then
        contains "part $i: segments" err "this is part $i of a rotated recording: those before it are in the files of"
    else
        equal "part 1: segments" 0 $code
    fi
    DB=$1
    balance
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
equal 'live at the end' "$(less "$(left_of "$end")" "$childs")" "$(live out.db)"
DB=out.db
balance
parts=$(python3 "$ROOT/tests/e2e/rotate.py" "$MEMPROF" out.2*.db out.db) || fail 'totals, peaks and what is inherited'
printf '  %s\n' "$parts"
second=$(ls out.2*.db | sed -n 2p)
# of 900 inherited blocks 800 were freed; the child left 50, and 500 were taken
"$MEMPROF" leaks --json "$second" >leaks.json
equal 'leaks: of the part alone, inherited ones apart' '550|100' "$(python3 -c 'import json
d = json.load(open("leaks.json")); print("%d|%d" % (d["end_count"], d["inherited_count"]))')"
"$MEMPROF" leaks "$second" >leaks.txt
contains 'and says so' leaks.txt 'in 100 blocks inherited from before this part'
"$MEMPROF" report "$second" >report.txt
contains 'a column of what was there' report.txt 'inherited'
"$MEMPROF" check --max-leak-blocks 550 "$second" >check.txt || fail "check: $(cat check.txt)"
"$MEMPROF" check --max-leak-blocks 549 "$second" >check.txt && fail 'check counts less'
"$MEMPROF" merge -o all.db out.2*.db out.db 2>merge.err
equal 'merged: allocations and frees of the run' "$(echo "$end" | cut -d'|' -f1,3)" "$(DB=all.db sql "SELECT
    sum(alloc_count) || '|' || sum(free_count) FROM v_function WHERE function = 'take' AND inclusive = 0 AND
    kind = 'heap'")"
equal 'the last file has its last part alone' last "$(sql "SELECT value FROM meta WHERE key = 'events_kept'")"
equal 'the running file is whole' '' "$(sql "SELECT value FROM meta WHERE key = 'partial'")"
equal 'a range over all boundaries' 1 "$(value "SELECT start_ns < m.value AND end_ns > m.value FROM mark, meta m
    WHERE name = 'whole' AND key = 'part_start_ns'")"
DB=$(ls out.2*.db | head -n 1)
equal 'is open in the first' '|1' "$(sql "SELECT end_ns, is_range FROM mark WHERE name = 'whole'")"
equal 'a name' first "$(sql 'SELECT name FROM block_name')"
DB=out.db
equal 'its block went in the first part, one of the second part later' second "$(sql 'SELECT name FROM block_name')"
cd ..

echo 'times before the part, and what is said of it'
second=$(ls work/out.2*.db | sed -n 2p)
start_ns=$(DB=$second sql "SELECT value FROM meta WHERE key = 'part_start_ns'")
before=$((start_ns - 1))ns
for what in 'report --at' 'report --to' 'report --from' 'leaks --from' 'leaks --at'; do
    "$MEMPROF" $what $before "$second" >text 2>&1 && fail "$what: of a time before the part"
    contains "$what" text 'this part of the recording begins at'
    equal 'its lines' 1 "$(wc -l <text)"
done
"$MEMPROF" report "$second" | tr -d , >text
contains 'its own events' text "$(DB=$second sql 'SELECT sum(event_count) FROM event_chunk') events"
for what in report lines leaks info; do
    "$MEMPROF" $what "$second" >text 2>&1
    contains "memprof $what" text "part 2 of a rotated recording, from $("$MEMPROF" info "$second" |
        sed -n 's/^part  *2, from \([^(]*\) (.*/\1/p') to"
    contains 'what was there' text 'in 900 blocks, live when it began, are in what is live and in peaks'
done
# a range that began before the part: what is known of it is the part
"$MEMPROF" report --during whole --by function --json "$second" >during.json
equal 'allocated in the part of the range' 550 "$(python3 -c 'import json
print(sum(r["alloc_count"] for r in json.load(open("during.json"))["rows"] if r["function"].startswith("take")))')"

echo 'without events, or with the last ones alone'
for kept in --aggregate '--max-events 100'; do
    begin $kept
    order 'take 1000'
    order 'drop 100'
    rotate
    order 'take 500'
    order 'drop 300'
    rotate
    order 'take 7'
    finish
    set -- work/out.2*.db work/out.db
    for part in '1000|0|100|900' '500|900|300|1100' '7|1100|0|1107'; do
        "$MEMPROF" report "$1" >text 2>&1 || fail "$kept: $(cat text)"
        equal "$kept: allocated, inherited, freed, live" "$part" "$(DB=$1 sql "SELECT sum(a.alloc_count) || '|' ||
            coalesce(sum(start_count), 0) || '|' || sum(free_count) || '|' || sum(end_count) FROM account_stat a JOIN
            function f ON f.function_id = a.key_id WHERE a.scope = 'function' AND a.inclusive = 0 AND a.kind = 'heap'
            AND f.name = 'take'")"
        equal 'as it says' "$([ "$kept" = --aggregate ] && echo none || echo last)" \
            "$(DB=$1 sql "SELECT value FROM meta WHERE key = 'events_kept'")"
        shift
    done
done

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
at_least 'rotations' 5 "$(value "SELECT value FROM meta WHERE key = 'part'")"
equal 'marks of the last part alone' 1 "$(value "SELECT count(*) FROM mark WHERE domain = 'rotate'")"

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
