# A process that the collector takes for ended while it runs: it must not wait for room in a ring that nobody reads, and
# the report says it.
record timeout 60 "$PROGRAMS/disowned" 300000
equal "exit status" 0 $status
contains "what is said" run.err '1 process that was taken for ended while it ran'
equal "counted" 1 "$(value "SELECT value FROM counter WHERE name = 'processes_disowned'")"
contains "partial" run.err 'not whole'
