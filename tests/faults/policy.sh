# Orders of a policy (run --policy) that nobody takes, or whose end nobody sees: a program that never polls, one that is
# stopped, one that ends, or is killed, in the middle, and a collector that is killed or stopped while an order waits.
. "$ROOT/tests/lib.sh"
P=$PROGRAMS/policy
cat >holes.txt <<'END'
host 0-101 idle >= 16MiB malloc-trim
END
until_sql() { # QUERY VALUE: of the file while it is written
    for _ in $(seq 1200); do
        [ "$(sqlite3 -readonly out.db "$1" 2>sql.err || :)" != "$2" ] || return 0
        sleep 0.05
    done
    fail "'$1' is not '$2': $(cat sql.err run.err)"
}
# begin MODE: in the background, with a pipe for its input; $runner is memprof, $pid the program
begin() {
    rm -f in out.db*
    mkfifo in
    "$MEMPROF" run --policy holes.txt -o out.db -- "$P" "$1" <in >run.out 2>run.err &
    runner=$!
    exec 3>in
    until_sql "SELECT count(*) > 0 FROM policy_action" 1
    pid=$(sql 'SELECT pid FROM process')
}
end() { # STATUS
    exec 3>&-
    status=0
    wait $runner || status=$?
    equal "status" "$1" $status
}
taken() { sql "SELECT group_concat(status) FROM (SELECT DISTINCT status FROM policy_action)"; }

echo 'a program that polls once and never again'
begin never
end 0
equal 'the program' done "$(cat run.out)"
equal 'its order' 'process ended' "$(taken)"
equal 'is one' 1 "$(value 'SELECT count(*) FROM policy_action')"
"$MEMPROF" report --policy --csv out.db >report.csv
equal 'the report' '1 0 1' "$(python3 -c 'import csv
print(*[(r["times"], r["done_count"], r["not_taken_count"]) for r in csv.DictReader(open("report.csv"))][0])')"

echo 'a collector that is killed while an order waits'
begin never
kill -KILL $runner
wait $runner 2>wait.err || :
exec 3>&-
for _ in $(seq 1200); do
    kill -0 "$pid" 2>kill.err || break
    sleep 0.05
done
equal 'the program' done "$(cat run.out)"
"$MEMPROF" report --policy --csv out.db >report.csv
equal 'the file' 1 "$(python3 -c 'import csv
print(sum(r["not_taken_count"] == "1" for r in csv.DictReader(open("report.csv"))))')"

echo 'a program that is stopped'
begin never
kill -STOP "$pid"
"$MEMPROF" mark "$runner" 'while it is stopped'
kill -CONT "$pid"
end 0
equal 'the program' done "$(cat run.out)"

echo 'a collector that is stopped'
begin never
kill -STOP $runner
exec 3>&-
kill -CONT $runner
end 0
equal 'the program' done "$(cat run.out)"

echo 'a program that is killed'
begin never
kill -KILL "$pid"
end 137
equal 'its order' 'process ended' "$(taken)"

echo 'a program that ends in the middle'
for round in 1 2 3 4 5; do
    status=0
    "$MEMPROF" run -q --policy holes.txt -o "ends.$round.db" "$P" ends >run.out 2>run.err || status=$?
    equal "status $round" 7 $status
    equal "output $round" done "$(cat run.out run.err)"
done

echo 'text of an enemy, by a ring'
"$MEMPROF" run -q -o text.db "$P" text >run.out 2>run.err
equal 'nothing else' 0 "$(DB=text.db sql "SELECT coalesce(sum(value), 0) FROM counter WHERE name = 'bad_record'")"
