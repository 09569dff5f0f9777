# --min-size: what is exported is as if there had been no smaller blocks. Against a replay of v_event by other means, of
# a C program, one that forks, and one whose mappings are cut; and of a process and a window of it.
. "$ROOT/tests/report/setup.inc"
need python3
# large SIZE [EXPORT OPTION]...: of out.db: allocations, bytes, live at the end, peak
large() {
    size=$1
    shift
    for stat in alloc.count alloc.bytes end.bytes active.at_peak; do
        "$MEMPROF" export --format folded out.db --min-size "$size" --stat $stat "$@" -o - 2>err |
            awk '{ n += $NF } END { print n + 0 }'
    done | tr '\n' ' '
}
replayed() { # SIZE [PID [FROM TO]]
    "$MEMPROF" sql --csv out.db "SELECT e.time_ns, op, address, size_bytes, e.process_id, kind, pid FROM v_event e
        JOIN process USING(process_id) WHERE device = 'host'" | python3 "$ROOT/tests/report/replay_large.py" "$@"
}
each() { # SIZE...
    for size; do
        equal "blocks from $size bytes on" "$(replayed "$size")" "$(large "$size")"
    done
}
record_ok gawk 'BEGIN { for (i = 0; i < 2000; i++) a[i] = i "x"; print length(a) }' >/dev/null
each 30 1000
pid=$(value 'SELECT pid FROM process')
equal "of a process" "$(replayed 100 "$pid")" "$(large 100 --process "$pid")"
half=$(value "SELECT value / 2 FROM meta WHERE key = 'duration_ns'")
equal "of a window" "$(replayed 100 0 "$half" $((2 * half)))" "$(large 100 --from "${half}ns")"
record_ok "$SAMPLES/net" >/dev/null
each 20481
bad 2 '--min-size does not go with --at TIME' export out.db --format folded --min-size 3 --at 1ms -o -
RUN_OPTIONS=--aggregate record "$SAMPLES/net"
bad 2 '--min-size needs all events' export out.db --format folded --min-size 3 -o -
for program in forks cut_maps; do
    record "$PROGRAMS/$program"
    each 50 70000
done
