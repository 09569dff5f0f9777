# Maps that lose parts are one block until the last part is gone: every reader against the program's ledger by page.
MIB=1048576
# of NAME COLUMNS: of a function's line, over its sites
of() {
    sql "SELECT alloc_count || '|' || alloc_bytes || '|' || free_count || '|' || free_bytes || '|' || own_peak_bytes ||
        '|' || largest_bytes FROM v_function WHERE kind = 'map' AND inclusive = 0 AND function LIKE '$1%'"
}
for seed in 1 2 3; do
    record_ok "$PROGRAMS/cut_maps" $seed 40000
    at_least "events" 70000 "$(sites "SELECT count(*) FROM v_event WHERE kind = 'map'")"
    at_least "parts" 5000 "$(sites "SELECT count(*) FROM v_event WHERE op = 'cut'")"
    while IFS='|' read -r name rest; do
        [ "$name" = peak ] || equal "$name" "$rest" "$(of "$name")"
    done <run.out
    live_count=0 live_bytes=0
    while IFS='|' read -r name allocs bytes frees freed _; do
        [ "$name" != peak ] || continue
        live_count=$((live_count + allocs - frees)) live_bytes=$((live_bytes + bytes - freed))
    done <run.out
    equal "live" "$((live_count + 2))|$((live_bytes + 255 * MIB))" \
        "$(sql "SELECT end_count || '|' || end_active_bytes FROM v_total WHERE device = 'host' AND kind = 'map'")"
    equal "the fixed case" "1|$((256 * MIB))|0|$((2 * MIB))|$((256 * MIB))|$((256 * MIB))" "$(of large)"
    equal "the map over it" "1|$MIB|0|0|$MIB|$MIB" "$(of overlaid)"
    equal "its blocks and bytes" "1|$((254 * MIB)) 1|$MIB" "$(sql "SELECT end_count || '|' || end_bytes FROM v_function
        WHERE kind = 'map' AND inclusive = 0 AND (function LIKE 'large%' OR function LIKE 'overlaid%')
        ORDER BY function" | xargs)"
    equal "reserved of maps" "$(value "SELECT peak_active_bytes FROM v_total WHERE device = 'host' AND kind = 'map'")" \
        "$(value "SELECT peak_reserved_bytes FROM v_total WHERE device = 'host' AND kind = 'map'")"
    equal "sizes" "0" "$(value "SELECT count(*) FROM size_class WHERE free_count > alloc_count")"
    equal "sizes: what is left" "$((live_count + 2))" \
        "$(value "SELECT sum(alloc_count - free_count) FROM size_class WHERE kind = 'map'")"
    equal "lifetimes" "$(sql "SELECT free_count || '|' || free_bytes FROM v_total WHERE device = 'host' AND
        kind = 'map'")" \
        "$(sql "SELECT sum(free_count) || '|' || sum(free_bytes) FROM lifetime_class WHERE kind = 'map'")"
    equal "the largest block" "$((256 * MIB))" "$(value "SELECT max(size_bytes) FROM block WHERE kind = 'map'")"
    # the readers of events: by event, by chunk, by key frame, one process alone
    for at in $(sql "SELECT printf('%.6fs %.6fs', value * 0.3e-9, value * 0.7e-9) FROM meta
        WHERE key = 'duration_ns'") peak end; do
        "$MEMPROF" report --at $at --by line --csv -n 0 out.db >at.short
        cp out.db other.db
        sqlite3 other.db "UPDATE event_chunk SET site_delta = NULL; DELETE FROM keyframe WHERE reason <> 'end'"
        [ $at != end ] || sqlite3 other.db "DELETE FROM keyframe"
        "$MEMPROF" report --at $at --by line --csv -n 0 other.db >at.events
        cmp at.short at.events || { diff at.short at.events | head; fail "--at $at"; }
        at_least "lines at $at" 3 "$(wc -l <at.short)"
    done
    peak=$(sed -n 's/peak|//p' run.out)
    equal "the peak of the random part, by events" "$peak" "$("$MEMPROF" sql --csv out.db "SELECT max(live) FROM
        (SELECT sum(CASE WHEN op IN ('alloc', 'realloc') THEN size_bytes WHEN op IN ('free', 'cut') THEN -size_bytes
        ELSE 0 END) OVER (ORDER BY event_number) AS live FROM v_event WHERE kind = 'map' AND event_number <
        (SELECT event_number FROM v_event WHERE kind = 'map' AND size_bytes = $((256 * MIB)) LIMIT 1))" | tail -n 1)"
done
equal "what it needs" 3 "$(sql "PRAGMA user_version")"

# one process of several is counted again from the events
record sh -c "'$PROGRAMS/cut_maps' 7 30000; true"
pid=$(sql "SELECT pid FROM process WHERE process_id = 2")
"$MEMPROF" report --process "$pid" --by function --csv -n 0 out.db >one
# row NAME COLUMN...: of that report
row() {
    python3 - "$@" <<'PYTHON'
import csv, sys
for r in csv.DictReader(open("one")):
    if r["function"].startswith(sys.argv[1]):
        print("|".join(r[name] for name in sys.argv[2:]))
PYTHON
}
while IFS='|' read -r name allocs bytes frees freed own largest; do
    [ "$name" != peak ] || continue
    equal "--process: $name" "$allocs|$bytes|$frees|$freed|$own|$largest|$((allocs - frees))|$((bytes - freed))" \
        "$(row "$name" alloc_count alloc_bytes free_count free_bytes own_peak_bytes largest_bytes end_count end_bytes)"
    equal "... as the collector counted it" "$(sql "SELECT temporary_count || '|' || temporary_bytes || '|' ||
        lifetime_ns FROM v_function WHERE kind = 'map' AND inclusive = 0 AND function LIKE '$name%'")" \
        "$(row "$name" temporary_count temporary_bytes lifetime_ns)"
done <run.out
balance
