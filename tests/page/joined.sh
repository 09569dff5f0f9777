# The page of segments that lie one behind the other, with blocks that go on from one in the next.
. "$ROOT/tests/page/page.inc"
record_ok env LD_PRELOAD="$PROGRAMS/lib_joined.so" "$PROGRAMS/joined"
"$MEMPROF" report out.db --segments --csv >segments.csv
check_page joined --basic --segments segments.csv
