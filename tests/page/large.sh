# Limits of size and time: 10^7 events (`make check-large`: 10^8), and 10^5 stacks. Each page takes 1.7 s of processor
# time (docs/page.md).
. "$ROOT/tests/page/page.inc"
many "${PAGE_ALLOCATIONS:-5000000}"
events=$(value "SELECT value FROM meta WHERE key = 'event_count'")
echo "  $events events"
took=$(cpu_ms "$MEMPROF" report out.db --html=page.html) || fail "no page"
at_most "milliseconds of processor time to write the page" 3200 "$took"
check_page large --limits
rm -f out.db

synthetic 3000000 100000
took=$(cpu_ms "$MEMPROF" report out.db --html=page.html) || fail "no page"
at_most "milliseconds of processor time to write the page of 100,000 stacks" 3200 "$took"
check_page stacks --basic --hostile --says "stacks are folded"
