# Pages of recordings that are not whole: no events, the last events only, a killed program, damaged chunks.
. "$ROOT/tests/page/page.inc"

RUN_OPTIONS=--aggregate
record "$PROGRAMS/many" 100000
check_page aggregate --basic --says "No events are kept in the file"

RUN_OPTIONS='--max-events 50000'
record "$PROGRAMS/many" 100000
check_page last-events

RUN_OPTIONS=
record sh -c "'$PROGRAMS/many' 100000000 & sleep 0.6; kill -9 \$!; wait" || true
check_page killed --basic

record "$PROGRAMS/many" 100000
sqlite3 out.db \
    "UPDATE event_chunk SET data = x'00', site_delta = x'00' WHERE chunk_id = (SELECT max(chunk_id) / 2 FROM
        event_chunk)"
check_page damaged --hands --says "could not be read"
record "$PROGRAMS/many" 16000
sqlite3 out.db \
    "UPDATE stack SET parent_id = stack_id; UPDATE frame SET line = -5, file_id = 99999999; UPDATE timeline SET
        width_ns = 0;
    UPDATE site SET at_peak_bytes = 9223372036854775807, alloc_bytes = -9223372036854775807; UPDATE block SET
        free_ns = -1, address = -1, stack_id = 77;
    UPDATE meta SET value = 1 WHERE key = 'duration_ns'; UPDATE keyframe SET data = x'ff'; DELETE FROM line; UPDATE
        device SET name = '</script>'"
"$MEMPROF" report out.db --html=page.html >page.out 2>&1 || { cat page.out; fail "a page of a damaged file"; }
