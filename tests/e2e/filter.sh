# A seccomp filter that kills a process for a system call which recording could do without: it ends as it would
# unrecorded.
run() { # STATUS HOW WHAT NUMBER
    wanted=$1
    shift
    status=0
    "$PROGRAMS/filter" "$@" || status=$?
    equal "filter $*, unrecorded" "$wanted" "$status"
    record "$PROGRAMS/filter" "$@"
    equal "filter $*, recorded" "$wanted" "$status"
}
# one that a recorder needs: what killed the process is said
record "$PROGRAMS/filter" prctl work 39 # getpid
equal "a recorder's call" 159 "$status"
"$MEMPROF" report out.db >report.out
contains "a recorder's call" report.out '! a seccomp filter killed a process for a system call that it does not allow'
# one that only fails: of a child that cannot ask who it is nobody would see the end
run 7 prctl refused 39
run 7 prctl work 56   # clone: the heap's samples
run 7 prctl work 228  # clock_gettime, beyond the vdso
run 7 prctl work 257  # openat: the peak RSS, at the exit
run 0 prctl exec 439  # faccessat2: what an exec may reach
export MALLOC_ARENA_MAX=1 # for more, glibc asks how many processors there are, by openat
run 7 prctl threads 257 # openat: the rings of threads
run 7 prctl threads 2   # open
RUN_OPTIONS=--no-heap-sample # such a filter is known when the collector has looked, and a sample may come sooner
run 7 syscall threads 257
RUN_OPTIONS=
# Few addresses: each thread maps its own ring, the second one behind the filter.
(
    ulimit -v 110000
    run 7 prctl work 257
) || exit
equal "its threads" 2 "$(value "SELECT count(*) FROM v_thread WHERE kind = 'all'")"
equal "a ring that was refused" 0 "$(value "SELECT count(*) FROM counter WHERE name LIKE 'map_refused%' AND value")"
