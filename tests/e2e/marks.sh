# memprof.h
"$PROGRAMS/marks" || fail "alone"
record_ok "$PROGRAMS/marks"
equal "instants" "begin,middle,end" \
    "$(sql "SELECT group_concat(name) FROM (SELECT name FROM mark WHERE is_range = 0 ORDER BY start_ns)")"
equal "ranges" 'outer,inner,second "inner" <&>,open' \
    "$(sql "SELECT group_concat(name) FROM (SELECT name FROM mark WHERE is_range = 1 ORDER BY start_ns)")"
equal "closed" 3 "$(value "SELECT count(*) FROM mark WHERE is_range = 1 AND end_ns >= start_ns")"
equal "nested" 2 "$(value "SELECT count(*) FROM mark a
    JOIN mark b ON a.name = 'outer' AND b.name LIKE '%inner%' AND b.start_ns >= a.start_ns AND b.end_ns <= a.end_ns")"
