# Limits of size and time: 10^8 events, and 10^5 stacks.
. "$ROOT/tests/page/page.inc"
many "${PAGE_ALLOCATIONS:-50000000}"
events=$(value "SELECT value FROM meta WHERE key = 'event_count'")
echo "  $events events"
began=$(date +%s%N)
"$MEMPROF" report out.db --html=page.html >/dev/null
took=$((($(date +%s%N) - began) / 1000000))
at_most "milliseconds to write the page" 5000 $took
check_page large
rm -f out.db

synthetic 3000000 100000
began=$(date +%s%N)
"$MEMPROF" report out.db --html=page.html >/dev/null
took=$((($(date +%s%N) - began) / 1000000))
at_most "milliseconds to write the page of 100,000 stacks" 5000 $took
check_page stacks --hostile --says "stacks are folded"
