# Figures inside the program (memprof_figures, _now, _sync, _epoch of memprof.h) against its own ledger, and that nobody
# waits for ever: in a signal handler, after a fork, with a collector that is dead or stopped.
. "$ROOT/tests/lib.sh"
got() { paste -s -d '|' "${1:-run.out}"; }
field() { sed -n "s/^$1 //p" run.out; }

"$PROGRAMS/desk" alone >got || fail 'alone'
equal 'without memprof' '-1 -1 -1' "$(cat got)"

echo 'random calls'
record_ok "$PROGRAMS/desk" host 1000
cat run.err
equal 'figures of the host' 'asked 1000|failed 0|differs 0' "$(grep -v median run.out | got -)"
# two epochs of each of four threads, after the first one; without gaps, the last one open
equal 'epochs' 9 "$(value "SELECT count(*) FROM mark WHERE domain = 'epoch' AND is_range = 1")"
equal 'epochs that meet the next one' 8 \
    "$(value "SELECT count(*) FROM mark a JOIN mark b ON b.mark_id = a.mark_id + 1 WHERE a.domain = 'epoch'
    AND b.domain = 'epoch' AND a.end_ns = b.start_ns")"
equal 'the last one' 1 "$(value "SELECT count(*) FROM mark WHERE domain = 'epoch' AND end_ns IS NULL")"
# from its begin to the first thread's 100th call: 100 calls of a random walk among 300 places
"$MEMPROF" report out.db --during 'epoch:the first one' >report.txt
contains 'a window' report.txt 'Window: epoch:the first one'

echo 'beside two threads that do nothing but allocate'
record_ok "$PROGRAMS/desk" busy 1000
cat run.err
equal "the thread's own figures" 'asked 1000|failed 0|differs 0' "$(grep -v median run.out | got -)"
# What it is on a machine that does nothing else is in docs/live.md: where more threads want to run than there are
# processors, the collector waits for one.
at_most 'median, us' 99999 "$(field median_us)"

echo 'who allocates beside a question gives way to the collector'
way() { strace -f -qq -c -e trace=sched_yield -o calls "$MEMPROF" run -q -o way.db "$@" >run.out 2>run.err; }
yields() { awk '$NF == "sched_yield" { n = $4 } END { print n + 0 }' calls; }
if command -v strace >/dev/null && way "$PROGRAMS/desk" busy 1000; then
    at_least 'times beside 1,000 questions' 1 "$(yields)"
    way "$SAMPLES/net"
    equal 'times where nobody asks' 0 "$(yields)"
else
    cat run.err
    echo '  (no strace that can trace)'
fi

echo 'in a signal handler'
record_ok "$PROGRAMS/desk" handler
equal 'handlers' 'answered 1|refused 1|others 0|at the end 0|differs 0' "$(got)"

echo 'after a fork'
record_ok "$PROGRAMS/desk" fork
equal 'a child' 'parent 0|child 11' "$(got)"
"$MEMPROF" run -q --no-follow -o alone.db "$PROGRAMS/desk" fork >got
equal 'a child that is not followed (-1)' 'parent 0|child 1' "$(got got)"

echo 'in a thread that dies'
record_ok "$PROGRAMS/desk" dies
equal 'its destructors' 'rounds 4|others 0|differs 0' "$(got)"

echo 'what a reader of the file finds after memprof_sync'
"$MEMPROF" run -q -o live.db "$PROGRAMS/desk" sync live.db >got
equal 'the peak has the block' 'status 0|1' "$(got got)"

# with_collector SIGNAL EXPECTED: the collector gets a signal between two questions, and SIGCONT after a thousand more
with_collector() {
    rm -f said in
    mkfifo in
    "$MEMPROF" run -q -o end.db -- "$PROGRAMS/desk" end <in >said 2>err &
    runner=$!
    exec 3>in
    for _ in $(seq 600); do
        [ ! -s said ] || break
        sleep 0.1
    done
    kill "-$1" $runner
    echo go >&3
    for _ in $(seq 600); do
        ! grep -q '^after' said || break
        sleep 0.1
    done
    kill -CONT $runner 2>kill.err || true
    echo go >&3
    exec 3>&-
    for _ in $(seq 600); do
        ! grep -q '^again' said || break
        sleep 0.1
    done
    wait $runner || true
    equal "SIG$1" "$2" "$(got said)"
}
echo 'without a collector'
with_collector KILL 'before 0|after -1, first soon, a thousand more soon, sync -1|again -1'
with_collector STOP 'before 0|after -3, first soon, a thousand more soon, sync -3|again 0'
