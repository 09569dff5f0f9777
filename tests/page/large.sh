# Limits of size and time: 10^7 events (`make check-large`: 10^8), and 10^5 stacks. Each page takes 1.7 s of processor
# time (docs/page.md). What may take how long is said in terms of reading all events on the same machine.
. "$ROOT/tests/page/page.inc"
many "${PAGE_ALLOCATIONS:-5000000}"
events=$(value "SELECT value FROM meta WHERE key = 'event_count'")
echo "  $events events"
# read_events: milliseconds of processor time to read all events of out.db
read_events() { cpu_ms "$MEMPROF" sql out.db 'SELECT count(*) FROM v_event' || fail 'no events'; }
unit=$(read_events)
took=$(cpu_ms "$MEMPROF" report out.db --html=page.html) || fail "no page"
at_most "milliseconds of processor time to write the page" $((unit * 10)) "$took"
export READY_MS=$((unit * 3 / 2))
check_written_page large --limits --hands
# windows of three fifths of the run (docs/windows.md); before these were computed from sums: 3.2, 1.5 times what
# reading all events takes
from=$(value "SELECT value / 5 FROM meta WHERE key = 'duration_ns'")
for what in 'report --by thread' 'report --by process' leaks; do
    # shellcheck disable=SC2086
    took=$(cpu_ms "$MEMPROF" $what out.db --from "${from}ns" --to "$((4 * from))ns") || fail "$what"
    at_most "milliseconds of processor time of $what of a window" $((unit * 12 / 10)) "$took"
done
rm -f out.db

synthetic 3000000 100000
[ -z "${PAGE_ALLOCATIONS:-}" ] || unit=$((unit * 5000000 / PAGE_ALLOCATIONS))
took=$(cpu_ms "$MEMPROF" report out.db --html=page.html) || fail "no page"
at_most "milliseconds of processor time to write the page of 100,000 stacks" $((unit * 10)) "$took"
check_written_page stacks --basic --hostile --says "stacks are folded"
