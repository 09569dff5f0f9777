# Pauses and marks of a recording that goes on: from inside, from outside, from the beginning. What was recorded before,
# in between and after is held to the program's own ledger, though addresses are used again and blocks cross pauses.
. "$ROOT/tests/lib.sh"
taken() {
    sql "SELECT sum(a.alloc_count) || '|' || sum(a.alloc_bytes) || '|' || sum(a.free_count) || '|' || sum(a.end_count)
        || '|' || sum(a.end_bytes) FROM account a JOIN function f ON f.function_id = a.key_id
        WHERE a.scope = 'function' AND a.inclusive = 0 AND a.kind = 'heap' AND f.plain_name = 'take'"
}
unseen() { value "SELECT sum(value) FROM counter WHERE name = 'unseen_free'"; }
pauses() { value "SELECT count(*) FROM mark WHERE domain = 'pause' AND is_range = 1 AND end_ns > start_ns"; }

for seed in 1 2 3; do
    echo "four threads, seed $seed"
    record_ok "$PROGRAMS/pause" threads $seed
    equal 'the ledger' "$(cat run.out)" "$(taken)"
    equal 'pauses' 3 "$(pauses)"
    at_least 'frees of blocks that were left out' 1 "$(unseen)"
    lacks 'a pause loses nothing' run.err 'not whole'
    "$MEMPROF" report out.db --json >report.json # 200,000 bytes at a time that are nobody's, of up to 30 MiB reserved
    lacks 'what is not known to be free' report.json 'Reserved, but not in use'
    "$MEMPROF" report out.db >report.txt
    contains 'several' report.txt 'the recording was paused 3 times, for '
done
RUN_OPTIONS=--no-heap-sample
record_ok "$PROGRAMS/pause" threads 4
equal 'without samples of the heap' "$(cat run.out)" "$(taken)"
RUN_OPTIONS=--aggregate
record_ok "$PROGRAMS/pause" threads 5
equal 'without events' "$(cat run.out)" "$(taken)"

# begin [OPTION]...: the program that waits for orders; $pid, and $runner, which is memprof
begin() {
    rm -f in said out.db
    mkfifo in
    "$MEMPROF" run -o out.db "$@" -- "$PROGRAMS/pause" orders <in >said 2>run.err &
    runner=$!
    exec 3>in
    await '^pid'
    pid=$(sed -n 's/^pid //p' said)
    orders=0
}
await() {
    for _ in $(seq 600); do
        ! grep -q "$1" said || return 0
        sleep 0.05
    done
    fail "'$1' is not in: $(cat said run.err)"
}
order() {
    echo "$@" >&3
    orders=$((orders + 1))
    for _ in $(seq 600); do
        [ "$(grep -c '^done' said)" -lt $orders ] || return 0
        sleep 0.05
    done
    fail "no answer to '$*': $(cat said run.err)"
}
end() {
    exec 3>&-
    wait $runner || fail "$(cat run.err)"
    lacks 'all is well' said 'done -'
    sound
}

echo 'from outside'
begin
order take 10
"$MEMPROF" mark $pid 'ten are taken'
"$MEMPROF" pause $pid
order take 1000
order drop 4
"$MEMPROF" pause $runner 2>err
contains 'twice' err 'was paused already'
order drop 500
"$MEMPROF" resume out.db
order take 3
order drop 100
order child
"$MEMPROF" resume $pid 2>err
contains 'twice' err 'was not paused'
"$MEMPROF" mark out.db 'the end'
end
# 13 and the child's 5; all of the first 10 are dropped, the child drops its parent's 3
equal 'the ledger' '18|1800|10|8|800' "$(taken)"
# the 94 that were freed after the pause; the 500 in it only where the program had not noticed it by then
at_least 'left out' 94 "$(unseen)"
at_most 'left out' 594 "$(unseen)"
equal "a parent's" 3 "$(value "SELECT sum(value) FROM counter WHERE name = 'inherited_free'")"
equal 'marks' 'ten are taken|outside|1|0 the end|outside|0|0' \
    "$(sql "SELECT group_concat(name || '|' || domain || '|' || (process_id IS NOT NULL) || '|' ||
    is_range, ' ') FROM (SELECT * FROM mark WHERE domain = 'outside' ORDER BY start_ns)")"
equal 'pauses' 1 "$(pauses)"
"$MEMPROF" report out.db --by function --from 'mark:ten are taken' --to 'mark:the end' --csv >report.csv
equal 'allocated between the marks' 8 "$(python3 -c 'import csv
print(sum(int(r["alloc_count"]) for r in csv.DictReader(open("report.csv")) if r["function"] == "take"))')"

for report in report leaks info; do
    "$MEMPROF" $report out.db >report.txt
    contains "$report" report.txt 'the recording was paused from '
done
"$MEMPROF" report out.db --json >report.json
equal 'among the notes' 1 "$(python3 -c 'import json
print(sum("was paused from" in note for note in json.load(open("report.json"))["notes"]))')"

echo 'a pause from the beginning to the end'
begin --paused
order take 100
order drop 50
order child
end
equal 'nothing was born' 0 "$(value "SELECT alloc_count FROM v_total WHERE device = 'host' AND kind = 'heap'")"
equal 'nor died' 0 "$(unseen)"
equal 'pauses' 1 "$(pauses)"

echo 'a pause from the beginning'
begin --paused
order take 100
order child
order resume
order take 7
order drop 102
order child
end
equal 'the ledger' '12|1200|2|10|1000' "$(taken)"

echo 'a child of a paused recording'
begin
order take 4
order pause
order child
order resume
order child
end
equal 'the ledger' '9|900|0|9|900' "$(taken)"

echo 'vfork, exec, another user and a setuid program, in a pause and behind it'
begin
order take 4
order pause
order vfork
order exec
order take 6
order vfork
order resume
order take 3
order vfork
order nobody
[ ! -u /bin/su ] || order setuid
order pause
order take 2
[ ! -u /bin/su ] || order setuid
order resume
order take 1
"$MEMPROF" pause $pid
order take 9
order vfork
"$MEMPROF" resume $pid
order take 1
end
# 4 + 3 + 5 + 1 + 1, of which the child that is recorded drops 3
equal 'the ledger' '14|1400|3|11|1100' "$(taken)"
equal 'pauses' 3 "$(pauses)"
[ ! -u /bin/su ] || equal 'a setuid program is not recorded' 0 \
    "$(value "SELECT count(*) FROM process WHERE command_line LIKE 'su %' AND not_recorded IS NULL")"

echo 'who asks in vain'
begin
kill -STOP $runner
bad 1 'does not answer' mark $pid one
bad 1 'does not answer' pause $pid
kill -CONT $runner
order take 2
end
equal 'not done later' '2|200|0|2|200' "$(taken)"
equal 'nor this' 0 "$(value "SELECT count(*) FROM mark WHERE domain = 'pause'")"
bad 1 'has ended' pause out.db
bad 1 'no such process' pause 4194305
bad 1 'not recorded' pause $$
bad 2 'expected' pause
bad 2 'expected' mark $$

echo 'many at once, some of them killed'
begin
for i in $(seq 40); do
    "$MEMPROF" mark $pid "mark $i" 2>>err.many &
    echo $! >>askers
done
for i in $(seq 8); do
    "$MEMPROF" mark $pid killed 2>err.killed &
    kill -KILL $!
done
while read -r asker; do
    wait "$asker" || fail "an asker: $(cat err.many)"
done <askers
"$MEMPROF" mark $pid last
end
equal 'each of them once' '40|40' "$(sql "SELECT count(*) || '|' || count(DISTINCT name) FROM mark
    WHERE name LIKE 'mark %'")"

[ -e "$BUILD/cuda/13000/libcuda.so.1" ] || skip 'the rest needs the simulated driver'
echo 'a GPU in a pause: all of it is recorded on'
export LD_LIBRARY_PATH="$BUILD/cuda/13000:$BUILD/cuda" SIM_CUDA_STATE="$PWD/state"
export SIM_CUDA_DEVICES=2 SIM_CUDA_BYTES=268435456 SIM_CUDA_CONTEXT_BYTES=16777216
of_devices() {
    sql "SELECT device, kind, alloc_count, alloc_bytes, free_count, peak_active_bytes, peak_reserved_bytes,
        end_active_bytes FROM v_total WHERE device <> 'host' OR kind IN ('pinned', 'managed') ORDER BY device, kind"
    sql "SELECT count(*) FROM segment JOIN device USING(device_id) WHERE name <> 'host'"
}
for mode in plain pool sub reuse two; do
    RUN_OPTIONS=
    record_ok "$PROGRAMS/cuda_layers" $mode >sound.txt
    of_devices >want
    RUN_OPTIONS=--paused
    record_ok "$PROGRAMS/cuda_layers" $mode >sound.txt
    of_devices >got
    cmp -s want got || { diff want got; fail "$mode in a pause"; }
    equal "the heap of $mode" 0 "$(value "SELECT alloc_count FROM v_total WHERE kind = 'heap'")"
done
at_least 'rows of a GPU' 5 "$(wc -l <got)"
