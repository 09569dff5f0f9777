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
run 7 prctl work 56   # clone: the heap's samples
run 7 prctl work 228  # clock_gettime, beyond the vdso
run 7 prctl work 257  # openat: the peak RSS, at the exit
run 0 prctl exec 439  # faccessat2: what an exec may reach
