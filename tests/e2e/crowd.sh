# alone: it has more processes than memprof has room for.
# Processes beyond that room are counted, and so are those that they start.
record "$PROGRAMS/crowd" 1050 20 10
equal "status" 0 $status
equal "recorded" 1024 "$(value "SELECT count(*) FROM process")"
equal "not recorded" 227 "$(value "SELECT value FROM counter WHERE name = 'processes_refused'")"
contains "closing line" run.err "227 processes not recorded"
