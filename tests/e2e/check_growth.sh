# A leak of 48 bytes an execution is found in 200 executions, every time, on a loaded machine and beside threads that
# fill and empty places at random; its twin without the leak never breaks the rule. ROUNDS=10: 20 times of each.
. "$ROOT/tests/lib.sh"
load=
for i in 1 2; do
    (while :; do :; done) &
    load="$load $!"
done
trap 'kill $load 2>/dev/null' EXIT

# run STATUS LEAK THREADS: the verdict of 200 executions, in got
run() {
    status=0
    "$MEMPROF" check --max-growth-per step=0 --warmup 3 -q -- "$PROGRAMS/steps" 200 "$2" "$3" >got 2>got.err ||
        status=$?
    [ "$status" = "$1" ] || { cat got got.err; fail "leak $2, threads $3: status $1 expected, not $status"; }
}
for round in $(seq "${ROUNDS:-2}"); do
    for threads in 0 3; do
        run 1 48 $threads
        grep -q '+48 B  hold ' got || { cat got; fail 'its line'; }
        [ $threads = 0 ] || [ -n "${ROUNDS:-}" ] || continue # of threads that hardly run one in some hundred may rise
        grep -q '^broken  max-growth-per step  *48 B  at most 0 B an execution' got || { cat got; fail 'the slope'; }
        run 0 0 $threads
        grep -q '^kept  max-growth-per step  *0 B' got || { cat got; fail 'the twin'; }
    done
done
echo "  leak and twin: $((2 * ${ROUNDS:-2})) times each"
kill $load
trap - EXIT

# the bound itself is kept; other ranges, patterns, too few executions
"$MEMPROF" run -q -- "$PROGRAMS/steps" 200 48
"$MEMPROF" check --max-growth-per step=48 >got || fail 'the bound'
for bad in step=47 's*=47' rest=47; do
    status=0
    "$MEMPROF" check --max-growth-per "$bad" >got || status=$?
    equal "$bad" 1 $status
done
status=0
"$MEMPROF" check --max-growth-per stp=0 >got || status=$?
equal 'an unknown range' 1 $status
contains 'an unknown range' got 'unknown  max-growth-per stp'
contains 'what there is' got 'this recording has: rest (200), step (200)'
echo 'leak:^hold$' >suppressions
"$MEMPROF" check --max-growth-per step=0 --suppressions suppressions >got || fail 'suppressed'
"$MEMPROF" check --max-growth-per step=0 --device host --json >got || :
equal 'JSON' '48.0|48|hold' "$(sqlite3 :memory: "SELECT j ->> '$.rules[0].growth_per_execution',
    j ->> '$.rules[0].culprits[0].growth_per_execution', j ->> '$.rules[0].culprits[0].function'
    FROM (SELECT CAST(readfile('got') AS TEXT) j)")"
"$MEMPROF" run -q -- "$PROGRAMS/steps" 7 48
status=0
"$MEMPROF" check --max-growth-per step=0 >got || status=$?
equal 'too few' 1 $status
contains 'too few' got '7 executions: the first 3 do not count, and at least 5 after them are needed'
"$MEMPROF" run -q -o one.db -- "$PROGRAMS/steps" 1 48
"$MEMPROF" check one.db --max-growth-per step=0 >got || status=$?
contains 'one' got '1 execution: the first 3 do not count, and at least 5 after them are needed'
"$MEMPROF" check --max-growth-per step=0 --warmup 2 >got || status=$?
contains 'just enough' got 'broken  max-growth-per step'
# what begins late is found with the slope it has from there on; what is filled late is not
for from in 200 260 500; do
    "$MEMPROF" run -q -o late.db -- "$PROGRAMS/steps" 1000 2000 0 0 $from
    "$MEMPROF" check late.db --max-growth-per step=2000 >got || { cat got; fail "from $from on: more than there is"; }
    status=0
    "$MEMPROF" check late.db --max-growth-per step=1999 >got || status=$?
    equal "from $from on" 1 $status
    contains "from $from on" got '  +1.95 KiB (2,000)  hold '
done
for filled in '200 500' '500 900' '0 300'; do
    "$MEMPROF" run -q -o filled.db -- "$PROGRAMS/steps" 1000 2000 0 0 $filled
    "$MEMPROF" check filled.db --max-growth-per step=0 >got || { cat got; fail "filled from and to: $filled"; }
done
"$MEMPROF" run -q -o short.db -- "$PROGRAMS/steps" 40 2000 0 0 28
"$MEMPROF" check short.db --max-growth-per step=0 >got || { cat got; fail 'only 12 executions of 40'; }
# of many bytes none has decimals
"$MEMPROF" run -q -o large.db -- "$PROGRAMS/steps" 20 10000
"$MEMPROF" check large.db --max-growth-per step=0 >got || :
contains 'much' got '  +9.77 KiB (10,000)  hold '
# many: as many as a sample of them tells
"$MEMPROF" run -q -- "$PROGRAMS/steps" 20000 16
"$MEMPROF" check --max-growth-per step=0 >got || :
contains 'many executions' got '16 B  at most 0 B an execution; 20,000 executions'
# spread over stacks that are each too random to tell: 1,000 bytes an execution in all
"$MEMPROF" run -q -- "$PROGRAMS/spread" 400
status=0
"$MEMPROF" check --max-growth-per step=900 >got || status=$?
cat got
equal 'spread' 1 $status
"$MEMPROF" check --max-growth-per step=1100 >got || fail 'spread: more than there is'
# without events nothing is known, which is not kept
"$MEMPROF" run -q --aggregate -- "$PROGRAMS/steps" 200 48
status=0
"$MEMPROF" check --max-growth-per step=0 >got || status=$?
equal 'without events' 1 $status
contains 'without events' got 'unknown  max-growth-per step'
