# SIGKILL of the collector at any moment: what was live at the last commit is what the recovered file shows as live at
# the end.
. "$ROOT/tests/faults/collector_end.inc"
LEAST=1
for after in 0 0.3; do
    killed $after "$PROGRAMS/busy" 30 0 500
    agrees
done
killed 0.4 "$PROGRAMS/fork_load" 100000
agrees
if command -v python3 >/dev/null; then # an interpreter that took itself down before
    keeps="x = [bytearray(5000) for i in range(1000)]"
    busy="SELECT max(c.last_ns) > p.start_ns + 200000000 FROM event_chunk c, process p WHERE exe LIKE '%/busy'"
    killed "$busy" sh -c "python3 -c '$keeps'; '$PROGRAMS/busy' 30 0 500"
    at_least "bytes that the teardown freed" 5000000 "$(sites "SELECT sum(freed_bytes) FROM site_teardown")"
    agrees
fi
killed packed "$PROGRAMS/many_stacks" 100000000
equal "packed" "site stack" \
    "$(sql "SELECT DISTINCT table_name FROM packed WHERE table_name <> 'resident_site' ORDER BY 1" | xargs)"
equal "parts" 0 "$(value "SELECT max(part) FROM packed WHERE table_name = 'site'")"
agrees
