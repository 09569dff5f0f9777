# v_event: every event, in order; through memprof and through the sqlite3 shell with the extension; it adds up to the
# totals.
record_ok "$SAMPLES/cache"
event() { "$MEMPROF" sql --csv out.db "$1" | tail -n 1 | tr ',' '|' | tr -d '\r'; }
equal "allocations" "25008|2541120" \
    "$(event "SELECT count(*), sum(size_bytes) FROM v_event WHERE op IN ('alloc', 'realloc')")"
equal "frees" "25008|2541120" \
    "$(event "SELECT count(*), sum(size_bytes) FROM v_event WHERE op IN ('free', 'realloc_free')")"
equal "in order" 0 \
    "$(event "SELECT count(*) FROM (SELECT time_ns, lag(time_ns) OVER () AS before FROM v_event)
    WHERE time_ns < before")"
peak_ns=$(total peak_active_ns)
equal "live at the peak, from the events" "$(total peak_active_bytes)" \
    "$(event "SELECT sum(CASE WHEN op IN ('alloc', 'realloc') THEN size_bytes WHEN op IN ('free', 'realloc_free') THEN
    -size_bytes ELSE 0 END) FROM v_event WHERE time_ns <= $peak_ns")"
equal "columns" 1 \
    "$(event "SELECT count(*)
    FROM (SELECT time_ns, op, device, address, size_bytes, thread_id, stack_id FROM v_event LIMIT 1)")"
equal "the sqlite3 shell" 25008 \
    "$(sqlite3 -readonly out.db ".load $BUILD/memprof_events.so" \
    "SELECT count(*) FROM v_event WHERE op IN ('alloc', 'realloc')")"

RUN_OPTIONS=--aggregate
record_ok "$SAMPLES/cache"
equal "aggregate: totals" 25008 "$(total alloc_count)"
equal "aggregate: peak" 1131136 "$(total peak_active_bytes)"
equal "aggregate: events kept" 0 "$(value "SELECT count(*) FROM event_chunk")"
equal "aggregate: said" none "$(sql "SELECT value FROM meta WHERE key = 'events_kept'")"

RUN_OPTIONS="--max-events 100000"
record_ok "$SAMPLES/churn"
equal "max-events: totals" 300000 "$(total alloc_count)"
kept=$(value "SELECT sum(event_count) FROM event_chunk")
at_least "max-events: kept" 100000 "$kept"
at_most "max-events: kept" 231072 "$kept"
equal "max-events: said" last "$(sql "SELECT value FROM meta WHERE key = 'events_kept'")"

# the number that is said everywhere is that of v_event's rows, samples of the heap not among them
record_ok "$SAMPLES/leak"
all=$("$MEMPROF" sql --csv out.db "SELECT count(*) AS n FROM v_event" | tail -n 1)
equal "events that the file says" "$all" "$(value "SELECT value FROM meta WHERE key = 'event_count'")"
"$MEMPROF" report out.db >report.txt
contains "in the report" report.txt " seen, $(printf '%s' "$all" | sed 's/\(.*[0-9]\)\([0-9]\{3\}\)$/\1,\2/') events"
at_least "samples beside them" 1 "$(value "SELECT sum(value) FROM counter WHERE name = 'heap_sample'")"
