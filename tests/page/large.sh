# Limits of size and time: 10^7 events (`make check-large`: 10^8), and 10^5 stacks. Each page takes 1.7 s of processor
# time (docs/page.md).
. "$ROOT/tests/page/page.inc"
many "${PAGE_ALLOCATIONS:-5000000}"
events=$(value "SELECT value FROM meta WHERE key = 'event_count'")
echo "  $events events"
took=$(cpu_ms "$MEMPROF" report out.db --html=page.html) || fail "no page"
at_most "milliseconds of processor time to write the page" 4500 "$took"
check_page large --limits
# windows of three fifths of the run (docs/windows.md); before these were computed from sums: 1.5 s and 0.7 s
from=$(value "SELECT value / 5 FROM meta WHERE key = 'duration_ns'")
for what in 'report --by thread' 'report --by process' leaks; do
    # shellcheck disable=SC2086
    took=$(cpu_ms "$MEMPROF" $what out.db --from "${from}ns" --to "$((4 * from))ns") || fail "$what"
    at_most "milliseconds of processor time of $what of a window" 500 "$took"
done
rm -f out.db

synthetic 3000000 100000
took=$(cpu_ms "$MEMPROF" report out.db --html=page.html) || fail "no page"
at_most "milliseconds of processor time to write the page of 100,000 stacks" 4500 "$took"
check_page stacks --basic --hostile --says "stacks are folded"
