# So many stacks of Python's that their table is large, and some of them again: in the same order, which the trail
# (record_trail.h) foresees, in a fork's child, which has told none of them, and in another order. Each size has one
# stack, which no other size has, and each stack its own lines.
need python3
python=$(python3 -c 'import sys; print(sys.executable)')
stacks=16384
[ "$("$python" -c 'import sys; print(sys.version_info >= (3, 9))')" = True ] || skip "no Python frames before 3.9"
record_ok "$python" "$ROOT/tests/programs/python_trail.py" "$PROGRAMS/lib_take.so"
own="own AS (SELECT size_bytes, stack_id, count(*) AS n FROM v_event WHERE op = 'alloc' AND size_bytes >= 5000000 AND
    size_bytes < 5000000 + $stacks GROUP BY size_bytes, stack_id)"
equal "sizes and stacks, blocks of a size, blocks" "$stacks,$stacks,$stacks,2,6,49152" \
    "$(sites "SELECT count(*) || ',' || count(DISTINCT size_bytes) || ',' || count(DISTINCT stack_id) || ',' ||
        min(n) || ',' || max(n) || ',' || sum(n) FROM (WITH $own SELECT * FROM own)" | tr -d '"')"
# The line of a level says whether its bit is set: 16 is, 18 is not.
bits() { # of the size 5000000 + $1: the lines of call's frames, outermost first
    "$MEMPROF" sql --csv out.db "WITH $own SELECT group_concat(line, '') FROM (SELECT line FROM v_stack WHERE function =
        'call' AND language = 'python' AND stack_id = (SELECT stack_id FROM own WHERE size_bytes = 5000000 + $1)
        ORDER BY depth DESC)" | tail -n 1 | tr -d '\r"'
}
equal "lines of the first" 181818181818181818181818181814 "$(bits 0)"
equal "lines of the last" 161616161616161616161616161614 "$(bits 16383)"
equal "lines of 0x2aaa" 161816181618161816181618161814 "$(bits 10922)"
