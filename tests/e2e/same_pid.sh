# A pid that comes round is another process: with an end, a status and images of its own.
record "$PROGRAMS/same_pid" 30011 60
[ $status != 77 ] || skip "pids cannot be chosen here"
equal "status" 0 $status
sound
equal "forks" "60|60" \
    "$(sql "SELECT count(*) || '|' || sum(parent_id = 1) FROM process WHERE start_kind = 'fork' AND pid = 30011")"
equal "of them executed something" 20 "$(value "SELECT count(*) FROM process WHERE end_kind = 'exec'")"
equal "each status once" "60|1770" \
    "$(sql "SELECT count(DISTINCT exit_status) || '|' || sum(exit_status) FROM process
    WHERE pid = 30011 AND end_kind = 'exit'")"
equal "images of each" 20 \
    "$(value "SELECT count(*) FROM process p JOIN process f ON f.process_id = p.parent_id
    WHERE p.start_kind = 'exec' AND f.start_kind = 'fork' AND f.end_kind = 'exec' AND f.end_ns <= p.start_ns")"
equal "child_work" "600|60000" "$(by_function child_work | cut -d'|' -f1,2)"
contains "closing line" run.err "from 61 processes"
"$MEMPROF" info out.db >info.txt
contains "info" info.txt "Processes: 61 in 81 images"
"$MEMPROF" report out.db >report.txt
contains "report" report.txt "61 processes"
