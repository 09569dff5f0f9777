# SIGKILL of the collector in mid-run: the program's output and status are as ever, the file opens, says that it is
# partial, and is no older than 2 s at the kill. One that comes early finds something too; how much may be missing is
# said.
"$PROGRAMS/busy" 0.05 7 >/dev/null || true
"$MEMPROF" run -o out.db -- sh -c "'$PROGRAMS/busy' 6 7 500; echo status \$? >status" >out 2>err &
runner=$!
sleep 3.5
kill -KILL $runner
wait $runner 2>/dev/null || true
for i in 1 2 3 4 5 6 7 8 9 10; do
    [ -f status ] && break
    sleep 1
done
equal "the program's status" "status 7" "$(cat status)"
equal "the program's last line" done "$(tail -n 1 out)"
at_least "the program's lines" 30 "$(wc -l <out)"
cp out.db killed.db
[ ! -f out.db-wal ] || cp out.db-wal killed.db-wal
code=0
"$MEMPROF" report out.db >report 2>report.err || code=$?
equal "report" 0 $code
grep -q "peak RSS >= [0-9.]* MiB (sampled[;)]" report || fail "report does not say that more may have been resident"
grep -q "^host  *heap .* \(>=\|~\) [0-9.]* [KM]iB" report || fail "report does not say that more may have been reserved"
grep -q -i partial report report.err || { cat report report.err; fail "report does not say partial"; }
equal "keep" "1000|1000000" "$(by_function keep | cut -d'|' -f1-2)"
at_least "recorded, ns" 1500000000 "$(value "SELECT value FROM meta WHERE key = 'duration_ns'")"
partial=$(sql "SELECT value FROM meta WHERE key = 'partial'")
[ -n "$partial" ] || fail "meta has no 'partial'"
echo "  partial: $partial"
"$MEMPROF" info out.db >info
grep -q -i partial info || fail "info does not say partial"
"$MEMPROF" leaks out.db >/dev/null
"$MEMPROF" lines out.db --func keep >lines
contains "lines" lines malloc

# From the first second on, four commits a second: what a reader sees of a running recording moves as often.
"$MEMPROF" run -q -o early.db -- "$PROGRAMS/busy" 30 0 500 >out 2>err &
runner=$!
for i in 1 2 3 4 5 6 7 8 9 10; do
    sleep 0.1
    [ ! -f early.db ] || [ -z "$(DB=early.db sql "SELECT 1 FROM process" 2>&1 | grep -x 1)" ] || break
done
at_most "tenths of a second until there is a process" 7 $i
began=$(date +%s%N)
for i in $(seq 40); do
    DB=early.db sql "SELECT value FROM meta WHERE key = 'duration_ns'"
    sleep 0.05
done >seen
took=$((($(date +%s%N) - began) / 1000000))
at_least "commits in $took ms" $((took * 3 / 1000)) "$(sort -u seen | wc -l)"
kill -KILL $runner
killed=$(date +%s%N)
wait $runner 2>/dev/null || true
"$MEMPROF" report early.db >report 2>report.err
# what the report says, in nanoseconds
said_ns() {
    sed -n 's/.*; what came after \([0-9.]*\) s is missing (memprof saves four times a second)$/\1/p' report |
        awk '{ printf "%.0f", $1 * 1e9 }'
}
began_ns=$(DB=early.db value "SELECT value FROM meta WHERE key = 'start_unix_ns'")
missing=$(((killed - began_ns - $(said_ns)) / 10000000))
at_least "hundredths of a second that are missing" 0 $missing
at_most "hundredths of a second that are missing" 200 $missing # 25 where nothing is slow
pid=$(DB=early.db value "SELECT pid FROM process")
[ "$pid" = 0 ] || kill -INT "$pid"

# What is said is when the last commit was, and no guess at the time since: of a program that sleeps nothing else is
# missing, and of a collector that got no processor all since then.
"$MEMPROF" run -q -o out.db -- sleep 60 >out 2>err &
runner=$!
for i in $(seq 200); do
    sleep 0.1
    [ -z "$(sqlite3 -readonly out.db "SELECT 1 FROM process" 2>/dev/null)" ] || break
done
sleep 4
pid=$(value "SELECT pid FROM process")
kill -STOP $runner
stopped=$(date +%s%N)
sleep 2
kill -KILL $runner
wait $runner 2>/dev/null || true
kill -KILL "$pid"
"$MEMPROF" report out.db >report 2>report.err
began_ns=$(value "SELECT value FROM meta WHERE key = 'start_unix_ns'")
at_least "ms that are there, of a program that sleeps" 1500 $(($(said_ns) / 1000000))
at_most "and none of when the collector stood" $(((stopped - began_ns) / 1000000 + 500)) $(($(said_ns) / 1000000))
