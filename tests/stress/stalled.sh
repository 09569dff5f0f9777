# The collector is stopped and continued, at any place of its rounds, while programs fork, execute others and end:
# nothing hangs, nothing is lost, and every image has its row, its end and its parent.
# alone: 60 programs at once, and stops of a few milliseconds
cat >jobs <<'END'
collector=$PPID
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do
    kill -STOP $collector
    sleep 0.0$((i % 5 + 1))
    kill -CONT $collector
    sleep 0.00$((i % 10))
done &
for j in 1 2 3; do
    (for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        /bin/true
        (exec /bin/true)
        "$PROGRAMS/stress" 1 3000 $i >/dev/null &
    done
    wait) &
done
kill -STOP $collector
sleep 1.3
kill -CONT $collector
wait
exit 0
END
export PROGRAMS
RUN_OPTIONS=-q
record_ok sh jobs
equal "work" "$((60 * 3000))" "$(by_function work | cut -d'|' -f1)"
equal "programs" "60 exit 0" \
    "$(sql "SELECT count(*) || ' ' || group_concat(DISTINCT end_kind || ' ' || exit_status) FROM process
    WHERE exe LIKE '%/stress'")"
equal "others" "120 exit 0" \
    "$(sql "SELECT count(*) || ' ' || group_concat(DISTINCT end_kind || ' ' || exit_status) FROM process
    WHERE exe LIKE '%/true'")"
equal "images without a parent" 1 "$(value "SELECT count(*) FROM process WHERE parent_id IS NULL")"
equal "parents that began later" 0 \
    "$(value "SELECT count(*) FROM process p JOIN process q ON q.process_id = p.parent_id
    WHERE q.start_ns > p.start_ns")"
equal "images whose successor is another process" 0 \
    "$(value "SELECT count(*) FROM process p JOIN process q ON q.process_id = p.parent_id
    WHERE p.start_kind = 'exec' AND q.end_kind = 'exec' AND p.pid <> q.pid")"
equal "blocks taken over unseen" 0 "$(value "SELECT sum(value) FROM counter WHERE name = 'replaced_block'")"
