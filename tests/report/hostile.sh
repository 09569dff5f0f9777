# Files that are not ours, cut, newer or traps: one clear line, or a report without what is damaged; never a crash or a
# hang.
. "$ROOT/tests/report/setup.inc"
sum=$(md5sum <net.db)

# refused TEXT FILE: every reader ends with status 1 and one line
refused() {
    for command in report lines leaks info advise 'sql'; do
        status=0
        if [ $command = sql ]; then set -- "$1" "$2" 'SELECT 1'; else set -- "$1" "$2"; fi
        timeout 20 "$MEMPROF" $command "$2" ${3:+"$3"} >got 2>got.err || status=$?
        equal "status of $command $2" 1 $status
        contains "$command $2" got.err "$1"
        [ "$(wc -l <got.err)" = 1 ] || fail "$command $2: $(cat got.err)"
    done
    for files in "net.db $2" "$2 net.db" "net.db net.db --new net.db $2"; do
        status=0
        # shellcheck disable=SC2086
        timeout 20 "$MEMPROF" diff $files >got 2>got.err || status=$?
        equal "status of diff $files" 1 $status
        contains "diff $files" got.err "$1"
        [ "$(wc -l <got.err)" = 1 ] || fail "diff $files: $(cat got.err)"
    done
}
: >empty.db
refused 'empty file' empty.db
cp "$ROOT/LICENSE" text.db 2>/dev/null || echo text >text.db
refused 'not a memprof file' text.db
sqlite3 other.db 'CREATE TABLE t(a)'
refused 'not a memprof file (application_id 0)' other.db
cp net.db newer.db && sqlite3 newer.db 'PRAGMA user_version = 99'
refused 'newer memprof' newer.db
refused 'not a regular file' .
cp net.db nometa.db && sqlite3 nometa.db 'DELETE FROM meta'
refused damaged nometa.db
cp net.db zero.db && sqlite3 zero.db 'PRAGMA user_version = 0'
refused 'damaged (its format is said to be 0)' zero.db
# memprof was killed before its first commit
sqlite3 begun.db "PRAGMA application_id = $(sqlite3 net.db 'PRAGMA application_id')" \
    "PRAGMA user_version = $(sqlite3 net.db 'PRAGMA user_version')" 'CREATE TABLE meta(key, value)' \
    'CREATE TABLE process(process_id)'
refused 'nothing is in it: memprof was killed before it had recorded anything' begun.db
sqlite3 begun.db 'DROP TABLE meta; DROP TABLE process'
refused 'nothing is in it' begun.db
cp net.db view.db &&
    sqlite3 view.db \
    'DROP TABLE account;
    CREATE VIEW account AS WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r) SELECT x FROM r'
refused "'account' is not a table" view.db
for table in meta process; do # which are read before anything else
    cp net.db view.db
    columns=$(sqlite3 view.db "SELECT group_concat('x AS ' || name) FROM pragma_table_info('$table')")
    sqlite3 view.db "DROP TABLE $table; CREATE VIEW $table AS
        WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r) SELECT $columns FROM r"
    refused "'$table' is not a table" view.db
done

# views in the file that would never end are not the ones that are used
cp net.db trap.db
sqlite3 trap.db \
    'DROP VIEW v_total;
    CREATE VIEW v_total AS WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r) SELECT x AS device FROM r'
timeout 20 "$MEMPROF" report trap.db >got || fail "a report on trap.db: $?"
"$MEMPROF" report net.db | sed 's/net\.db/trap.db/' | cmp - got || fail 'a view in the file changed the report'

# cut files: any end but a signal, within time; they are ours all the same
cp net.db whole.db
sqlite3 whole.db "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20)
    INSERT INTO mark(process_id, name, start_ns, end_ns, is_range) SELECT 1, 'step', i * 50000000,
    i * 50000000 + 40000000, 1 FROM n"
"$MEMPROF" report whole.db --every step >got
contains 'executions to be cut' got 'step: 20 executions'
size=$(wc -c <whole.db)
for part in 100 4096 5000; do
    head -c $part whole.db >cut.db
    refused 'cut.db: damaged' cut.db
done
for part in 100 4096 5000 20000 70000 $((size / 2)) $((size - 4096)) $((size - 1)); do
    head -c $part whole.db >cut.db
    for command in report leaks lines info 'report --by stack' 'report --at 1s' 'report --segments' \
        'report --transfers' 'report --every step' 'report --skip main' 'leaks --process 4713' 'diff net.db' \
        'diff --by stack net.db' 'diff --by file net.db' 'diff net.db --html=-'; do
        set -- $command
        first=$1
        shift
        status=0
        timeout 20 "$MEMPROF" $first cut.db "$@" >got 2>&1 || status=$?
        [ $status -lt 3 ] || { cat got; fail "$command on $part bytes: status $status"; }
    done
done

# names cannot reach the terminal's controls
cp net.db esc.db
sqlite3 esc.db \
    "UPDATE function SET name = char(27) || ']0;owned' || char(7) || name, plain_name = char(27) || '[2J' || plain_name;
    UPDATE file SET path = path || char(10) || 'x', source = replace(source, '*', char(27));
    UPDATE meta SET value = char(27) || 'c' WHERE key = 'command'; UPDATE module SET path = char(155) || path;
    UPDATE process SET command_line = char(13); UPDATE thread SET name = char(8)"
for command in report lines leaks info 'report --by function' 'report --by stack' 'report --by thread' \
    'report --by file' 'report --segments' 'report --transfers'; do
    set -- $command
    first=$1
    shift
    "$MEMPROF" $first esc.db "$@" >got 2>&1 || fail "$command on esc.db"
    ! LC_ALL=C tr -d '\n' <got | LC_ALL=C grep -q '[[:cntrl:]]' || fail "$command lets control characters through"
done

# a damaged chunk is named and skipped
cp net.db chunk.db
sqlite3 chunk.db 'UPDATE event_chunk SET data = zeroblob(length(data)) WHERE chunk_id = 3'
"$MEMPROF" sql chunk.db --csv 'SELECT count(*) FROM v_event' >got 2>got.err
equal 'events beside the damaged chunk' $(($(sqlite3 net.db 'SELECT sum(event_count) FROM event_chunk') - 100)) \
    "$(sed -n 2p got)"
contains 'a damaged chunk' got.err 'chunk 3 of the events is damaged and was skipped'
"$MEMPROF" report chunk.db --at 40ms >/dev/null || fail '--at beside a damaged chunk'

# a cycle of callers ends
cp net.db cycle.db
sqlite3 cycle.db 'UPDATE stack SET parent_id = stack_id WHERE parent_id IS NULL'
timeout 20 "$MEMPROF" leaks cycle.db >got || fail 'leaks on cycle.db'
timeout 20 "$MEMPROF" report cycle.db --by stack >got || fail 'stacks on cycle.db'
for lens in '--skip forward' --native '--skip *ward'; do
    timeout 20 "$MEMPROF" report cycle.db $lens >got || fail "report $lens on cycle.db"
    timeout 20 "$MEMPROF" leaks cycle.db $lens >got || fail "leaks $lens on cycle.db"
done

# nulls and wrong types wherever SQLite lets them be
sqlite3 net.db .dump |
    sed 's/ STRICT//; s/\(INTEGER\|TEXT\|BLOB\) NOT NULL/\1/g; s/PRAGMA foreign_keys=OFF;//' >dump.sql
sqlite3 loose.db <dump.sql
sqlite3 loose.db "PRAGMA application_id = $(sqlite3 net.db \
    'PRAGMA application_id'); PRAGMA user_version = 1;
    UPDATE function SET plain_name = NULL; UPDATE line SET line = 'x';
    UPDATE account SET alloc_bytes = 'many', own_peak_bytes = x'00';
    UPDATE site SET end_bytes = 9223372036854775807, end_count = -5; UPDATE total SET peak_active_bytes = 1e300;
    UPDATE file SET path = NULL WHERE file_id = 2; UPDATE device SET name = NULL WHERE device_id = 1;
    UPDATE frame SET line = -1;
    UPDATE process SET start_ns = -9223372036854775807, end_ns = 9223372036854775807, parent_id = process_id;
    UPDATE meta SET value = x'ff' WHERE key = 'cwd';
    UPDATE event_chunk SET first_event = -9223372036854775807 WHERE chunk_id = 2"
for command in report lines leaks info 'report --by line' 'report --by function -i' 'report --by stack' \
    'report --by thread' 'report --at 1s' 'report --segments' 'report --transfers' 'leaks --by line' \
    'report --skip main' 'lines --native' 'leaks --process 4711' 'report --by process' 'report --at 1s --by module' \
    'report --callers 3'; do
    set -- $command
    first=$1
    shift
    for format in '' --json; do
        status=0
        timeout 20 "$MEMPROF" $first loose.db "$@" $format >got 2>&1 || status=$?
        [ $status -lt 3 ] || { cat got; fail "$command on loose.db: status $status"; }
    done
done
cp net.db most.db
sqlite3 most.db "INSERT INTO counter(process_id, name, value, text)
    SELECT process_id, 'no_room', 9223372036854775807, '' FROM process UNION ALL SELECT NULL, 'no_room', 9, ''"
"$MEMPROF" report most.db --html -o most.html >/dev/null 2>got.err || { cat got.err; fail 'a sum beyond 64 bits'; }
# a site of a number that would take 4 GiB to count up to
cp net.db far.db
sqlite3 far.db "UPDATE site SET site_id = 4294967290 WHERE site_id = (SELECT max(site_id) FROM site);
    UPDATE meta SET value = 1 << 60 WHERE key = 'event_count'"
(ulimit -v 3000000 && "$MEMPROF" report --segments far.db) >got 2>&1 || { cat got; fail 'a site far away'; }
equal 'net.db is unchanged' "$sum" "$(md5sum <net.db)"
