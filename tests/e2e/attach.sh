# memprof attach: ten times in a row into a program of 32 threads, whose own ledger says what is to be recorded.
need python3 readelf
[ "$(cat /proc/sys/kernel/yama/ptrace_scope 2>/dev/null || echo 0)" = 0 ] || [ "$(id -u)" = 0 ] ||
    skip "this user may not trace"
. "$ROOT/tests/e2e/attach.inc"

start_target "$PROGRAMS/attach" 32
ask "go 1000" >/dev/null
slots slots.before
for i in 1 2 3 4 5 6 7 8 9 10; do
    attach_to "$target"
    [ $i != 1 ] || at_least "slots that lead to the hooks" 6 "$(slots slots.on)"
    ledger=$(ask "go 100")
    "$MEMPROF" detach "$target" || fail "detach failed"
    wait $collector || { cat attach.err; fail "attach ended with $?"; }
    equal "ledger, time $i" "$ledger" \
        "$(sql "SELECT alloc_count || ' ' || alloc_bytes || ' ' || (free_count + (SELECT coalesce(sum(value), 0)
        FROM counter WHERE name = 'inherited_free')) FROM v_total WHERE device = 'host' AND kind = 'heap'")"
    equal "partial" "" "$(sql "SELECT value FROM meta WHERE key = 'partial'")"
    equal "lost" 0 "$(value "SELECT sum(value) FROM counter WHERE name IN ('lost_event', 'unmatched_free')")"
    equal "by its function" 1 "$(value "SELECT count(*) FROM account a JOIN function f ON f.function_id = a.key_id
        WHERE a.scope = 'function' AND a.inclusive = 0 AND a.kind = 'heap' AND f.plain_name = 'replace'
        AND a.alloc_count = $(echo "$ledger" | cut -d' ' -f1)")"
    equal "slots that still lead to the hooks" 0 "$(slots slots.after)"
    cmp slots.before slots.after || fail "slots differ from before"
    "$MEMPROF" report out.db >report.txt
    contains "since when" report.txt "recorded since memprof attached to it at $(sql "SELECT
        strftime('%Y-%m-%d %H:%M:%S', value / 1000000000, 'unixepoch', 'localtime')
        FROM meta WHERE key = 'start_unix_ns'")"
done
end_target good
