# Memory that was asked for and never there: a layer, a column, and their sums. Reserved bytes are marked as in the
# report's table.
. "$ROOT/tests/page/page.inc"
record_ok "$PROGRAMS/resident"
"$MEMPROF" report out.db >report.txt
marked=$(sed -n 's/^host *all .* \(>= [0-9.]* [KMG]iB\) .*/\1/p' report.txt)
[ "$marked" ] || fail "no mark in the report's table"
check_page resident --basic --resident --says "Asked for and there" --says "Asked for, and never there" \
    --says "Peak reserved$marked" --says "peak $marked" --says "Reserved >= "
