# One process of several is stopped, at any place, perhaps in the middle of a record: the others go on.
cat >jobs <<'END'
"$PROGRAMS/stress" 1 2000000000 9 >/dev/null & one=$!
sleep 0.2
for i in 1 2 3 4 5 6 7 8; do
    kill -STOP $one
    timeout 20 "$PROGRAMS/stress" 1 100000 $i >/dev/null || {
        echo "stuck in round $i"
        kill -CONT $one
        kill $one
        exit 1
    }
    kill -CONT $one
    sleep 0.05
done
kill $one
wait $one
exit 0
END
export PROGRAMS
record_ok sh jobs
equal "those that went on" 8 \
    "$(value "SELECT count(*) FROM process WHERE exe LIKE '%stress' AND end_kind = 'exit' AND exit_status = 0")"
equal "the one that was stopped" 15 \
    "$(value "SELECT exit_signal FROM process WHERE exe LIKE '%stress' AND end_kind = 'signal'")"
