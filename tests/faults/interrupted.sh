# ^C: the signal goes to the whole foreground group; the program ends as it likes, the report is written.
"$PROGRAMS/group" "$MEMPROF" run -o out.db -- "$PROGRAMS/busy" 30 >out 2>err &
sleep 1.5
kill -INT -$!
status=0
wait $! || status=$?
equal "status" 3 $status
equal "the program's last line" interrupted "$(tail -n 1 out)"
equal "process" "exit|3" "$(sql "SELECT end_kind, exit_status FROM process")"
equal "keep" "1000|1000000" "$(by_function keep | cut -d'|' -f1-2)"
sound

"$PROGRAMS/group" "$MEMPROF" run -o out.db -- sleep 30 >out 2>err &
sleep 1
kill -INT -$!
status=0
wait $! || status=$?
equal "a program that dies of it: status" 130 $status
equal "process" "signal|2" "$(sql "SELECT end_kind, exit_signal FROM process")"
equal "state" complete "$(sql "SELECT value FROM meta WHERE key = 'state'")"
