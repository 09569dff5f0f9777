# The exact text of every report on the synthetic recording. UPDATE=1 writes the expected files anew, to be read before
# they are committed.
. "$ROOT/tests/report/setup.inc"
expected=$ROOT/tests/report/expected

# same NAME COMMAND...: output and exit status
same() {
    name=$1
    shift
    status=0
    "$@" >got 2>got.err || status=$?
    cat got.err >>got
    [ $status = 0 ] || echo "exit status $status" >>got
    if [ -n "${UPDATE:-}" ]; then cp got "$expected/$name.txt"; fi
    diff -u "$expected/$name.txt" got || fail "$name: the output is not expected/$name.txt;\
 where it shall change: UPDATE=1 sh tests/run.sh tests/report/output.sh, then read git diff tests/report/expected"
    echo "  $name"
}
# terminal WIDTH COMMAND: on a pseudo-terminal that wide, in UTF-8
terminal() { COLUMNS=$1 LC_ALL=C.UTF-8 TERM=xterm script -qec "$MEMPROF $2" /dev/null </dev/null | tr -d '\r'; }

same report "$MEMPROF" report net.db
same report-top "$MEMPROF" report net.db --top 2
same report-kind "$MEMPROF" report net.db --device host --kind map
same report-inclusive "$MEMPROF" report net.db --inclusive --device host
same report-csv "$MEMPROF" report net.db --csv
same report-json "$MEMPROF" report net.db --json --top 1 --device cuda:0
for by in line function file module thread device stack; do
    same by-$by "$MEMPROF" report net.db --by $by
done
# the same program later: src/net.c is three lines longer at its beginning, src/worker.c is another directory's, and
# what held most on the host holds 100 KiB more
cp net.db later.db
sqlite3 later.db "
    UPDATE line SET line = line + 3 WHERE file_id IN (SELECT file_id FROM file WHERE path LIKE '%/net.c');
    UPDATE function SET line = line + 3 WHERE file_id IN (SELECT file_id FROM file WHERE path LIKE '%/net.c');
    UPDATE file SET path = replace(path, '/src/worker.c', '/lib/src/worker.c');
    UPDATE account SET at_peak_bytes = at_peak_bytes + 102400 WHERE inclusive = 0 AND kind = 'all' AND device_id = 0 AND
        (scope, key_id) IN (SELECT scope, key_id FROM (SELECT scope, key_id, max(at_peak_bytes) FROM account
        WHERE inclusive = 0 AND kind = 'all' AND device_id = 0 GROUP BY scope));
    UPDATE account SET end_bytes = end_bytes + 100 WHERE scope = 'file' AND kind = 'all' AND key_id IN
        (SELECT file_id FROM file WHERE path LIKE '%worker.c');
    UPDATE site SET at_peak_bytes = at_peak_bytes + 102400
        WHERE site_id = (SELECT site_id FROM site WHERE device_id = 0 ORDER BY at_peak_bytes DESC LIMIT 1);
    UPDATE total SET peak_active_bytes = peak_active_bytes + 102400 WHERE device_id = 0 AND kind = 'all'"
for by in line function file module device stack op; do
    same diff-$by "$MEMPROF" diff net.db later.db --by $by
done
same diff-json "$MEMPROF" diff net.db later.db --json --top 1
same diff-csv "$MEMPROF" diff later.db net.db --csv --by function --device host
same diff-nothing "$MEMPROF" diff net.db net.db
same diff-narrow terminal 80 'diff net.db later.db'
same by-size "$MEMPROF" report net.db --by size
same by-size-kind "$MEMPROF" report net.db --by size --kind map --csv
same by-process "$MEMPROF" report net.db --by process
same by-process-csv "$MEMPROF" report net.db --by process --csv
same process "$MEMPROF" report net.db --process 4711 --top 2
same skip "$MEMPROF" report net.db --skip pool_alloc --skip 'stats::*' --by line
same skip-function "$MEMPROF" report net.db --skip pool_alloc --by function --device host --top 3
same skip-address "$MEMPROF" report net.db --skip 'libplugin.so+0x1110' --by line --kind map
same callers "$MEMPROF" report net.db --callers 2 --device host --top 4
same segments "$MEMPROF" report net.db --segments
same segments-csv "$MEMPROF" report net.db --segments --at peak --csv
same top-once "$MEMPROF" top --once net.db
same top-once-device terminal 60 'top --once --by function --sort count -d cuda net.db'
same top-once-json "$MEMPROF" top --once --json --top 2 net.db
same log "$MEMPROF" log --min-size 80K net.db
same frees "$MEMPROF" report net.db --frees
same frees-csv "$MEMPROF" report net.db --frees --csv
same transfers "$MEMPROF" report net.db --transfers
same transfers-json "$MEMPROF" report net.db --transfers --json
same callers-json "$MEMPROF" report net.db --callers 2 --device cuda:0 --json --top 1
for by in line function file module stack; do
    same native-$by "$MEMPROF" report python.db --native --by $by
    same python-only-$by "$MEMPROF" report python.db --python-only --by $by
done
same python "$MEMPROF" report python.db --by line
same native-inclusive "$MEMPROF" report python.db --native --by line -i
same python-only-inclusive "$MEMPROF" report python.db --python-only --by line -i
same native-leaks "$MEMPROF" leaks python.db --native --top 3
same python-only-leaks "$MEMPROF" leaks python.db --python-only --by line
same python-only-lines "$MEMPROF" lines python.db --python-only
same python-only-at "$MEMPROF" report python.db --python-only --at 300ms
same by-line-csv "$MEMPROF" report net.db --by line --csv --top 0
same by-function-inclusive "$MEMPROF" report net.db --by function -i --sort alloc.bytes
same by-stack-json "$MEMPROF" report net.db --by stack --json --top 1
same at-peak "$MEMPROF" report net.db --at peak --device host
same at-end "$MEMPROF" report net.db --at end --by stack --top 2
same at-time "$MEMPROF" report net.db --at 300ms
same at-time-json "$MEMPROF" report net.db --at 0.3s --by device --json
same lines "$MEMPROF" lines net.db
same lines-forward "$MEMPROF" lines net.db --func forward
same lines-template "$MEMPROF" lines net.db --func 'stats::push'
same lines-file "$MEMPROF" lines net.db --file 'src/*.c' --columns alloc.count,alloc.bytes,own.peak --device host \
    --top 2
same lines-csv "$MEMPROF" lines net.db --func main --csv
same lines-help "$MEMPROF" lines --columns help
same leaks "$MEMPROF" leaks net.db
same leaks-all "$MEMPROF" leaks net.db --all --by line
same leaks-line "$MEMPROF" leaks net.db --by line
printf '# not ours\nleak:libplugin.so\nleak:^push$\n' >suppressions
same leaks-suppressed "$MEMPROF" leaks net.db --suppressions suppressions --top 1 --error-exitcode 9
same leaks-csv "$MEMPROF" leaks net.db --csv
same sql "$MEMPROF" sql net.db \
    "SELECT op, count(*), sum(size_bytes) FROM v_event GROUP BY op; SELECT * FROM v_leak
    ORDER BY end_bytes DESC LIMIT 2"
same sql-json "$MEMPROF" sql net.db --json "SELECT * FROM v_event WHERE device = 'cuda:0' LIMIT 2"
same terminal-80 terminal 80 'report net.db --color=never'
same terminal-200-color terminal 200 'report net.db --top 1'
same terminal-60-lines terminal 60 'lines net.db --func backward'
# titles of tables are broken as sentences are, commands are not
for command in 'report net.db' 'diff net.db later.db'; do
    terminal 60 "$command --color=never" | grep -E '^(Peak |Most |Live |What |Layers )' | grep -v ': memprof ' >titles
    at_most "titles of $command" 60 "$(wc -L <titles)"
    at_least "titles of $command" 1 "$(wc -l <titles)"
done
same terminal-100-by terminal 100 'report net.db --by line --color=never'
# the file's size and name are the only things in it that may differ
"$MEMPROF" info net.db | grep -v '^file size' | sed 's/ ([0-9.]* with the whole file)//' >info
same info cat info
for command in run report lines leaks check info sql; do
    same help-$command "$MEMPROF" $command --help
done
same usage "$MEMPROF"
