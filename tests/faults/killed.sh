# SIGKILL of the program in mid-run: everything recorded up to then is there.
"$MEMPROF" run -o out.db -- "$PROGRAMS/busy" 30 >out 2>err &
runner=$!
sleep 1.5
kill -KILL "$(cat /proc/$runner/task/$runner/children)" || fail "the program is not running"
status=0
wait $runner || status=$?
equal "status" 137 $status
equal "process" "signal|9" "$(sql "SELECT end_kind, exit_signal FROM process")"
equal "keep" "1000|1000000|0|0|1000|1000000" "$(by_function keep)"
churned=$(by_function churn | cut -d'|' -f1)
at_least "churn" 10000 "$churned"
at_most "churn, not freed" 1 $((churned - $(by_function churn | cut -d'|' -f3)))
equal "state" complete "$(sql "SELECT value FROM meta WHERE key = 'state'")"
balance
