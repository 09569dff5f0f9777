# Misaligned stacks, images without an environment, allocations after a thread's end, seccomp's strict mode.
record_ok "$PROGRAMS/strange"
equal "images" 3 "$(value "SELECT count(*) FROM process")"
equal "misaligned calls" 1 "$(by_function misaligned | cut -d'|' -f1)"
equal "calls of the threads" 50 "$(by_function thread | cut -d'|' -f1)"
record "$PROGRAMS/strict"
[ $status != 77 ] || skip "seccomp is not permitted here"
equal "strict: status" 0 $status
equal "strict: recording stopped" 1 "$(value "SELECT sum(value) FROM counter WHERE name = 'stopped'")"
equal "strict: a malloc and a free are missing" 2 "$(value "SELECT sum(value) FROM counter WHERE name = 'lost_event'")"
contains "strict: on the terminal" run.err "not whole: 1 time that recording stopped"
"$MEMPROF" report out.db >report
contains "strict: in the report" report "partial recording: 1 time that recording stopped"
equal "strict: calls before it" 1 "$(by_function before | cut -d'|' -f1)"
