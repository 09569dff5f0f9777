# A program with more stacks than rows are written for: packed, and all that reads them sees what plain rows would say.
packed_sql() { "$MEMPROF" sql --csv "${DB:-out.db}" "$1" | tail -n +2 | tr -d '\r'; }
"$PROGRAMS/many_stacks" 36000 >expected
# It lives until its pages were looked at while it held all that it keeps: looks are rationed by the time of the run.
mkfifo input
"$MEMPROF" run -o out.db -- "$PROGRAMS/many_stacks" 36000 read <input >run.out 2>run.err &
run=$!
exec 9>input
tries=0
until [ "$(sites "SELECT count(*) FROM resident_site" 2>/dev/null)" -ge 400 ] 2>/dev/null; do
    tries=$((tries + 1))
    [ $tries -lt 3000 ] || fail "nobody looked at its pages"
    sleep 0.1
done
exec 9>&-
wait $run
sound
equal "same as alone" "$(cat expected)" "$(cat run.out)"
# the table of their ids, 16 bytes each, is memprof's memory and none of the program's
at_least "memprof itself" $((36000 * 16)) "$(packed_sql "SELECT resident_bytes FROM v_resident WHERE what = 'memprof'")"
at_most "the program's own" $((36000 * 8)) \
    "$(packed_sql "SELECT total(resident_bytes) FROM v_resident WHERE what = 'anonymous'" | cut -d. -f1)"
equal "packed" "resident_site site stack" "$(sql "SELECT DISTINCT table_name FROM packed ORDER BY 1" | xargs)"
equal "parts left at the end" 0 "$(value "SELECT max(part) FROM packed WHERE table_name <> 'resident_site'")"
equal "packed looks see what there was" "0,0" "$(packed_sql "SELECT total(c.present_bytes) - total(s.b) - total(r.b),
    count(*) = 0 FROM resident_scan c LEFT JOIN (SELECT scan_id, sum(resident_bytes) b FROM resident_site GROUP BY 1) s
    USING(scan_id) LEFT JOIN (SELECT scan_id, sum(resident_bytes) b FROM resident_rest GROUP BY 1) r USING(scan_id)")"
at_least "their rows" 400 "$(packed_sql "SELECT count(*) FROM resident_site")"
equal "what the program counted" "$(tr '|' ',' <expected)" "$(packed_sql "SELECT sum(alloc_count), sum(alloc_bytes),
    sum(end_count), sum(end_bytes) FROM site WHERE alloc_bytes / alloc_count BETWEEN 16 AND 415")"
equal "each site has a line" 0 "$(packed_sql "SELECT count(*) FROM site LEFT JOIN site_line USING(site_id) LEFT JOIN
    line USING(line_id) WHERE line.line_id IS NULL")"
equal "callers are above" 0 "$(packed_sql "SELECT count(*) FROM stack c LEFT JOIN stack p ON p.stack_id = c.parent_id
    WHERE c.depth <> coalesce(p.depth, 0) + 1")"
equal "no stack twice" 0 "$(packed_sql "SELECT count(*) FROM (SELECT 1 FROM stack GROUP BY parent_id, address_id
    HAVING count(*) > 1)")"

# What plain sqlite3 sees: few rows, leaks with their whole stacks among them.
at_most "plain sites" 9000 "$(value "SELECT count(*) FROM site")"
equal "v_leak" "$(cut -d'|' -f3-4 expected)" \
    "$(sql "SELECT sum(end_count), sum(end_bytes) FROM v_leak WHERE end_bytes / end_count BETWEEN 16 AND 415")"
equal "v_leak, all of it" "$(packed_sql "SELECT sum(end_bytes), count(*) FROM v_leak" | tr ',' '|')" \
    "$(sql "SELECT sum(end_bytes), count(*) FROM v_leak")"
equal "plain stacks are whole" 0 "$(value "SELECT count(*) FROM stack c LEFT JOIN stack p ON p.stack_id = c.parent_id
    WHERE c.depth <> coalesce(p.depth, 0) + 1")"
equal "plain sites have theirs" 0 \
    "$(value "SELECT count(*) FROM site WHERE stack_id NOT IN (SELECT stack_id FROM stack)")"
equal "the loadable extension" "$(packed_sql "SELECT count(*), sum(depth) FROM stack")" \
    "$(sqlite3 -csv out.db -cmd ".load $BUILD/memprof_events" 'SELECT count(*), sum(depth) FROM stack')"
equal "... v_stack" "$(packed_sql "SELECT count(*), sum(line) FROM v_stack WHERE stack_id % 1000 = 7")" \
    "$(sqlite3 -csv out.db -cmd ".load $BUILD/memprof_events" 'SELECT count(*), sum(line) FROM v_stack
        WHERE stack_id % 1000 = 7')"

# The same recording as plain rows: a file of before.
cp out.db plain.db
sqlite3 plain.db -cmd ".load $BUILD/memprof_events" "BEGIN;
    DELETE FROM main.stack; INSERT INTO main.stack SELECT * FROM packed_stack;
    DELETE FROM main.site; INSERT INTO main.site SELECT * FROM packed_site;
    DELETE FROM main.site_line; INSERT INTO main.site_line SELECT * FROM packed_site_line;
    DELETE FROM main.resident_site; INSERT INTO main.resident_site SELECT * FROM packed_resident_site;
    DROP TABLE main.packed; PRAGMA user_version = 1; COMMIT"
# Finished again: plain rows in place, packed ones beside the symbols.
accounts() {
    DB=$1 sql "SELECT * FROM account; SELECT * FROM resident_account; SELECT * FROM line;
        SELECT path, build_id FROM module_key" | sort
}
accounts out.db >accounts.packed
at_least "accounts" 100 "$(wc -l <accounts.packed)"
for file in plain out; do
    cp $file.db again.db
    sqlite3 again.db "UPDATE meta SET value = 'recorded' WHERE key = 'state'; DELETE FROM frame; DELETE FROM function"
    rm -f slept
    # the thread that reads ahead and who writes what is known never wait for each other's locks
    LD_PRELOAD=$PROGRAMS/lib_sleeps.so "$MEMPROF" info again.db >/dev/null
    [ ! -e slept ] || fail "$file.db, finished again: SQLite waited for a lock"
    accounts again.db >accounts.again
    cmp accounts.packed accounts.again || fail "accounts of $file.db, finished again"
done
# same COMMAND...: a report's text from both
same() {
    rm -f a b
    cp out.db it.db && "$MEMPROF" "$@" it.db >a 2>&1
    cp plain.db it.db && "$MEMPROF" "$@" it.db >b 2>&1
    sed -i '/^file size/d; /with the whole file/d; /^opened/d; /"file_bytes"/d' a b
    [ -s a ] || fail "$*: nothing"
    cmp a b || { diff a b | head -20; fail "$*: differs from plain rows"; }
    echo "  $* is the same ($(wc -l <a) lines)"
}
same report
same report --json
same report --by line --csv -n 0
same report --by line --inclusive --csv -n 0
same report --by function --csv -n 0
same report --by stack --csv -n 200
same report --at peak
same report --by line --skip main --csv -n 0
same report --skip take --json
same report --by line --sort resident.at_peak --csv -n 0
same report --by stack --sort untouched.at_peak --csv -n 200
same leaks
same lines
# A stack has all its frames: programs that do not say how many get the first thousand, and how many there are.
for rows in 1000 1500; do
    "$MEMPROF" report --by stack --json $([ $rows = 1000 ] || echo --top $rows) out.db >stacks.json
    equal "rows of $rows, of how many" "$rows|$(packed_sql "SELECT count(DISTINCT stack_id) FROM site")" \
        "$(grep -c '"stack_id\|"frames"' stacks.json)|$(sed -n 's/^"row_count": \([0-9]*\),*$/\1/p' stacks.json)"
done
# Where hidden frames make two stacks one, all are looked at: the sums of what a program reads hold.
"$MEMPROF" report --by stack --native --top 2 --json out.db >stacks.json
at_least "stacks merged" 36000 "$(sed -n 's/^"row_count": \([0-9]*\),*$/\1/p' stacks.json)"
echo 'SELECT op, count(*), sum(stack_id), sum(site_id) FROM v_event GROUP BY op; SELECT * FROM v_leak;
    SELECT * FROM site JOIN site_line USING(site_id) WHERE site_id % 50 = 3;
    SELECT * FROM resident_site ORDER BY 1, 2; SELECT * FROM v_resident;
    SELECT s.* FROM block b LEFT JOIN site s ON s.stack_id = b.stack_id' >queries
rm -f a b
"$MEMPROF" sql --csv out.db <queries >a
"$MEMPROF" sql --csv plain.db <queries >b
cmp a b || fail "rows differ"
equal "symbolized again, the same" "$(packed_sql "SELECT count(*), sum(line_id) FROM site_line")" "$(
    sqlite3 out.db "UPDATE meta SET value = 'recorded' WHERE key = 'state'"
    packed_sql "SELECT count(*), sum(line_id) FROM site_line")"
same report --by function --inclusive --csv -n 0

# A collector that is killed: what it had committed is told, with newer values of sites over older ones.
"$MEMPROF" run -o killed.db -- "$PROGRAMS/many_stacks" 36000 wait >killed.out 2>killed.err &
until [ -s killed.out ]; do sleep 0.1; done
collector=$(sqlite3 -readonly killed.db "SELECT value FROM meta WHERE key = 'collector_pid'")
tries=0
until [ "$(DB=killed.db packed_sql "SELECT sum(alloc_bytes) FROM site
    WHERE alloc_bytes / alloc_count BETWEEN 16 AND 415" 2>/dev/null)" = "$(cut -d'|' -f2 expected)" ]; do
    tries=$((tries + 1))
    [ $tries -lt 300 ] || fail "the running file lacks sites"
    sleep 0.1
done
# While it runs: tables of what rows allocated themselves, summed column by column, say what the whole accounts say.
figures='alloc_count alloc_bytes free_count free_bytes at_peak_bytes at_peak_count own_peak_bytes end_bytes end_count
    active_peak_bytes reserved_peak_bytes largest_bytes lifetime_ns'
figures=$(echo $figures)
for by in line function file module; do
    "$MEMPROF" report --by $by --csv -n 0 killed.db | tr -d '\r' | awk -F, -v figures="$figures" '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; n = split(figures, names, " "); next }
        { for (i = 1; i <= n; i++) printf "%s%s", $at[names[i]], i < n ? "," : "\n" }' | sort >selves
    where=$([ $by = line ] || echo 'AND inclusive = 0')
    DB=killed.db packed_sql "SELECT $(echo "$figures" | tr ' ' ',') FROM v_$by WHERE kind = 'all' $where" | sort >whole
    cmp selves whole || { diff selves whole | head; fail "a running file by $by"; }
    equal "a running file by $by: what the program took" "$(cut -d'|' -f1-2 expected)" \
        "$(awk -F, '$2 >= 8000000 { print $1 "|" $2 }' selves)"
done
"$MEMPROF" report --by function --inclusive killed.db >running.txt
contains "why own peaks are not known" running.txt 'it is still being recorded'
program=$(sqlite3 -readonly killed.db "SELECT pid FROM process")
kill -9 "$collector"
wait || true
kill -9 "$program" 2>/dev/null || true
"$MEMPROF" report killed.db >killed.txt 2>&1
contains "it says so" killed.txt "cut off"
equal "parts of the killed one" 0 \
    "$(DB=killed.db value "SELECT max(part) FROM packed WHERE table_name <> 'resident_site'")"
equal "sites of the killed one" "$(cut -d'|' -f1-2 expected | tr '|' ',')" "$(DB=killed.db packed_sql "SELECT
    sum(alloc_count), sum(alloc_bytes) FROM site WHERE alloc_bytes / alloc_count BETWEEN 16 AND 415")"

# Damage is one line.
for damage in "UPDATE packed SET data = zeroblob(40) WHERE column_name = 'alloc_bytes'" \
    "DELETE FROM packed WHERE column_name = 'parent_id' AND first_row = 1" \
    "UPDATE packed SET first_row = -1 WHERE column_name = 'stack_id' AND first_row = 1"; do
    cp out.db damaged.db
    sqlite3 damaged.db "$damage; UPDATE meta SET value = 'recorded' WHERE key = 'state'"
    status=0
    "$MEMPROF" report --by stack -n 5 damaged.db >damaged.txt 2>&1 || status=$?
    contains "damage" damaged.txt "the packed rows of 'stack' or 'site' are damaged"
    equal "exit status" 1 $status
done

# Blocks of more sites than a chunk has room for are live where Python's interpreter begins to end.
if command -v python3 >/dev/null; then
    cat >many.py <<'END'
import random
random.seed(1)
kept = []
for i in range(32):
    exec(f"def f{i}(depth):\n    call(depth)")
functions = [globals()[f"f{i}"] for i in range(32)]
def call(depth):
    if len(kept) >= 80000:
        return
    if random.random() < 0.3:
        kept.append(bytearray(700))
    for _ in range(2 + (depth < 12) if depth < 40 else 0):
        if random.random() < (0.6 if depth < 25 else 0.5):
            functions[random.randrange(32)](depth + 1)
while len(kept) < 80000:
    call(0)
print("ready", flush=True)
input()
END
    mkfifo more
    "$MEMPROF" run -o out.db -- python3 many.py <more >run.out 2>run.err &
    run=$!
    exec 9>more
    until [ -s run.out ]; do sleep 0.1; done
    tries=0
    while
        "$MEMPROF" report out.db >running.txt 2>err
        ! grep -q 'memprof lines --file many.py' running.txt
    do
        tries=$((tries + 1))
        [ $tries -lt 300 ] || { cat run.err err running.txt; fail "what called all of it is not the script"; }
        sleep 0.5
    done
    echo >&9
    wait $run
    equal "state" complete "$(sql "SELECT value FROM meta WHERE key = 'state'")"
    at_least "sites that hold one" 66000 "$(sites "SELECT count(*) FROM site
        WHERE end_count > 0 AND alloc_bytes = 701 * alloc_count")"
    equal "what was kept" 80000 "$(sites "SELECT sum(end_count) FROM site WHERE alloc_bytes = 701 * alloc_count")"
    # all of it leaves as the interpreter ends, which plain rows say of the sites that plain sqlite3 has
    equal "what the teardown freed of that" "80000|56080000" "$(packed_sql "SELECT sum(freed_count), sum(freed_bytes)
        FROM site_teardown JOIN site USING(site_id) WHERE alloc_bytes = 701 * alloc_count" | tr ',' '|')"
    balance
    at_most "plain rows of it" 9000 "$(value "SELECT count(*) FROM site_teardown")"
    equal "v_leak of them" "$(packed_sql "SELECT sum(torn_down_bytes), sum(torn_down_count) FROM v_leak WHERE site_id IN
        (SELECT site_id FROM main.site)" | tr ',' '|')" "$(sql "SELECT sum(torn_down_bytes), sum(torn_down_count)
        FROM v_leak")"
fi
