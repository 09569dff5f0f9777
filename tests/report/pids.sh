# A pid that comes round is a process of its own; the images that follow each other under one pid are one process.
. "$ROOT/tests/report/setup.inc"
need sqlite3
sqlite3 net.db "
    INSERT INTO process(process_id, pid, parent_id, start_kind, exe, command_line, start_ns, end_ns, end_kind,
        exit_status, exit_signal) VALUES(4, 4713, 1, 'fork', '/home/ada/net/net', './net again', 1241000000,
        1242000000, 'exec',
        NULL, NULL), (5, 4713, 4, 'exec', '/usr/bin/xz', 'xz -9', 1242000000, 1244000000, 'exit', 0, NULL);
    INSERT INTO thread VALUES(3, 3, 4713, 'gzip', 1203000000, NULL), (4, 4, 4713, 'net', 1241000000, NULL),
        (5, 5, 4713, 'xz', 1242000000, NULL);
    CREATE TEMP TABLE a AS SELECT * FROM account WHERE scope = 'thread' AND key_id = 1 AND device_id = 0;
    UPDATE a SET key_id = 3; INSERT INTO account SELECT * FROM a;
    UPDATE a SET key_id = 4; INSERT INTO account SELECT * FROM a;
    UPDATE a SET key_id = 5; INSERT INTO account SELECT * FROM a;"
equal 'images of each process' '1|1 2|2 2|3 4|4 4|5' \
    "$(sqlite3 net.db 'SELECT first_id, process_id FROM v_image ORDER BY process_id' | paste -sd' ')"
"$MEMPROF" report net.db --by process --device host --csv >got
equal 'rows by process' 3 "$(tail -n +2 got | wc -l)"
contains 'the first that had the pid, by its last command' got "gzip -9 'train log'"
contains 'the second, by its last command' got 'xz -9'
one=$("$MEMPROF" sql net.db --csv \
    "SELECT alloc_count FROM v_thread WHERE thread_id = 3 AND device = 'host' AND kind = 'all'" | tail -n 1)
equal 'the images of the second sum up' "$((2 * one))" \
    "$("$MEMPROF" report net.db --by process --device host --json |
        sed -n 's/.*"process_id": *4,.*"alloc_count": *\([0-9]*\),.*/\1/p')"
"$MEMPROF" report net.db >got
contains 'how many processes' got ' 3 processes, '
"$MEMPROF" info net.db >got
contains 'how many images' got 'Processes: 3 in 5 images'
"$MEMPROF" report net.db --html=page.html
grep -q '>3, 4 threads seen<' page.html || fail 'the page counts the processes otherwise'
