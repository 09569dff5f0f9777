# Misaligned stacks, images without an environment, allocations after a thread's end, seccomp's strict mode, and an environment that is
# larger than the stack of the thread that starts a program.
record_ok "$PROGRAMS/strange"
equal "images" 3 "$(value "SELECT count(*) FROM process")"
equal "misaligned calls" 1 "$(by_function misaligned | cut -d'|' -f1)"
equal "calls of the threads" 50 "$(by_function thread | cut -d'|' -f1)"
record "$PROGRAMS/strict"
[ $status != 77 ] || skip "seccomp is not permitted here"
equal "strict: status" 0 $status
equal "strict: calls before it" 1 "$(by_function before | cut -d'|' -f1)"
