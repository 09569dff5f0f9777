# Files that are not ours, damaged, newer, or hostile: one line, exit 1, never a crash.
"$MEMPROF" run -q -o good.db -- "$SAMPLES/leak" 2>/dev/null
every() { # file, what: every reader refuses it with one line that names it
    for command in report lines leaks info "sql"; do
        code=0
        if [ "$command" = sql ]; then
            timeout 60 "$MEMPROF" sql "$1" 'SELECT count(*) FROM v_total' >out 2>err </dev/null || code=$?
        else
            timeout 60 "$MEMPROF" $command "$1" >out 2>err </dev/null || code=$?
        fi
        equal "$2, $command: status" 1 $code
        equal "$2, $command: lines" 1 "$(wc -l <err)"
        contains "$2, $command" err "memprof: "
        contains "$2, $command" err "$1"
    done
}
every missing.db "missing"
: >empty.db
every empty.db "empty"
echo 'just some text, and more of it, long enough to be read as a header if anybody tried that, which they should not' \
    >text.db
every text.db "text"
head -c 100000 /dev/urandom >random.db
every random.db "random"
# it is whole, but what is beside it is in SQLite's way
for beside in journal wal; do
    cp good.db beside.db
    mkdir beside.db-$beside
    every beside.db "a directory as its $beside"
    contains "a directory as its $beside" err "beside.db: cannot be read with the beside.db-$beside that is beside it ("
    lacks 'it is whole' err damaged
    rmdir beside.db-$beside
done
mkdir directory.db
every directory.db "a directory"
sqlite3 foreign.db 'CREATE TABLE t(a); INSERT INTO t VALUES(1)'
every foreign.db "foreign"
cp good.db newer.db
sqlite3 newer.db 'PRAGMA user_version = 999'
every newer.db "newer"
contains "newer" err 999
head -c 5000 good.db >truncated.db
every truncated.db "truncated to 5,000 bytes"
for bytes in 16 50 60 99 100 200; do
    head -c $bytes good.db >truncated.db
    every truncated.db "truncated to $bytes bytes"
    contains "truncated to $bytes bytes" err "truncated.db: damaged"
done
cp good.db tableless.db
sqlite3 tableless.db 'PRAGMA writable_schema = ON; DROP VIEW v_total; DROP TABLE total'
code=0
"$MEMPROF" report tableless.db >out 2>err || code=$?
equal "without a table, report: status" 1 $code
contains "without a table" err tableless.db

# damage that need not be noticed by all: any status but a signal's, and no output but text
size=$(wc -c <good.db)
for at in 4096 8192 $((size / 4)) $((size / 2)) $((size - 5000)); do
    for command in report lines leaks info; do
        cp good.db bad.db
        head -c 4000 /dev/urandom | dd of=bad.db bs=1 seek=$at conv=notrunc 2>/dev/null
        code=0
        timeout 60 "$MEMPROF" $command bad.db >out 2>err </dev/null || code=$?
        at_most "$command with 4,000 random bytes at $at: status" 1 $code
    done
done
# a chunk of events that is damaged is named and skipped
"$MEMPROF" run -q -o chunks.db -- "$SAMPLES/churn" 2>/dev/null
at_least "chunks" 3 "$(DB=chunks.db value "SELECT count(*) FROM event_chunk")"
sqlite3 chunks.db \
    "UPDATE event_chunk SET data = CAST(substr(data, 1, 100) || zeroblob(50) || substr(data, 151) AS BLOB)
    WHERE chunk_id = 2"
code=0
"$MEMPROF" sql --csv chunks.db "SELECT count(*) FROM v_event" >out 2>err || code=$?
kept=$(tail -n 1 out)
lost=$(DB=chunks.db value "SELECT event_count FROM event_chunk WHERE chunk_id = 2")
all=$(DB=chunks.db value "SELECT sum(event_count) FROM event_chunk")
equal "events left" $((all - lost)) "$kept"
contains "the damaged chunk is named" err 'chunk 2'
# values that nobody would write
cp good.db hostile.db
sqlite3 hostile.db \
    "UPDATE site SET stack_id = 1 WHERE 1; UPDATE stack SET parent_id = stack_id;
    UPDATE function SET name = char(27) || '[31m<script>' || hex(zeroblob(3000)), plain_name = name;
    UPDATE line SET line = -9223372036854775808; UPDATE file SET path = '/etc/shadow' WHERE file_id = 1;
    UPDATE total SET alloc_bytes = 9223372036854775807, end_active_bytes = -9223372036854775807;
    UPDATE timeline SET width_ns = 0; UPDATE account SET at_peak_bytes = 9223372036854775807"
for command in report leaks info lines; do
    code=0
    timeout 60 "$MEMPROF" $command hostile.db >out 2>err </dev/null || code=$?
    at_most "hostile, $command: status" 1 $code
    if grep -q "$(printf '\033')" out err; then
        fail "$command: control characters of the database reach the terminal"
    fi
done
