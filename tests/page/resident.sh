# Memory that was asked for and never there: a layer, a column, and their sums.
. "$ROOT/tests/page/page.inc"
record_ok "$PROGRAMS/resident"
check_page resident --basic --resident --says "Asked for and there" --says "Asked for, and never there"
