# pymalloc's arenas are segments: as many, and as much at their highest, as pymalloc's own statistics say; by the line
# that made it take them; and no blocks. The program's own maps of the same size are blocks.
need python3
python=$(command -v python3)
script=$ROOT/tests/programs/python_arenas.py
line() { grep -nF -- "$1" "$script" | cut -d: -f1; }
own() { sed -n "s/^# $1 *= *\([0-9,]*\)\$/\1/p" run.err | tr -d ,; } # a figure of pymalloc's
root=${PYENV_ROOT:-$HOME/.pyenv}/versions
for python in "$python" "$root"/3.9.*/bin/python3 "$root"/3.1[0-4].*/bin/python3; do
    [ -x "$python" ] || continue
    echo "  $("$python" --version)"
    record_ok "$python" "$script"
    equal "output" "200000 3" "$(cat run.out)"
    size=$((1 << 20))
    [ "$("$python" -c 'import sys; print(sys.version_info[1])')" != 9 ] || size=$((256 << 10))
    equal "arenas" "$(own 'arenas allocated total')" \
        "$(value "SELECT count(*) FROM segment WHERE kind = 'arena' AND size_bytes = $size")"
    equal "of another size" 0 "$(value "SELECT count(*) FROM segment WHERE kind = 'arena' AND size_bytes <> $size")"
    equal "most at one time" $(($(own 'arenas highwater mark') * size)) "$(total peak_reserved_bytes arena)"
    at_least "given back" "$(own 'arenas reclaimed')" \
        "$(value "SELECT count(*) FROM segment WHERE kind = 'arena' AND free_ns IS NOT NULL")"
    equal "as blocks" "0|0|0" \
        "$(sql "SELECT alloc_count || '|' || peak_active_bytes || '|' || end_active_bytes FROM v_total
        WHERE kind = 'arena'")"
    # a tuple of two takes 56 bytes and the collector's 16, an integer 28 of 32; arenas from before have room for a
    # quarter
    at_least "taken by the function" $((200000 * (72 + 32) / size * 3 / 4)) \
        "$(value "SELECT count(*) FROM segment g JOIN site s USING(stack_id) JOIN site_line USING(site_id)
        JOIN line l USING(line_id) JOIN file f USING(file_id)
        WHERE g.kind = 'arena' AND s.kind = 'arena' AND f.path = '$script'
        AND l.line IN ($(line 'keep.append'), $(($(line 'keep.append') - 1)))")"
    equal "the program's own maps" "3|$((3 << 20))" \
        "$(sql "SELECT alloc_count || '|' || alloc_bytes FROM v_line
        WHERE kind = 'map' AND file = '$script' AND line = $(line 'mmap.mmap')")"
    equal "not understood" 0 "$(value "SELECT sum(value) FROM counter WHERE name = 'python_unknown'")"
done
"$MEMPROF" report --segments --at peak >segments.txt
contains "by line" segments.txt "python_arenas.py:$(line 'keep.append')"
lacks "code without a symbol" segments.txt "??"
contains "what is inside" segments.txt "Small objects are inside them"
"$MEMPROF" report >report.txt
contains "said" report.txt "small objects are inside its arenas"
contains "where they are shown" report.txt "by line at the peak with 'memprof report --segments --at peak'"
contains "what to do" report.txt "--python-allocators"
"$MEMPROF" info >info.txt
contains "said by info" info.txt "small objects are inside"
"$MEMPROF" report --segments --json >segments.json
python3 -c 'import json
for s in json.load(open("segments.json")):
    assert s["kind"] == "arena" and s["live_bytes"] is None and s["size_bytes"] > 0, s'
"$MEMPROF" report --html=page.html >/dev/null
contains "the page's advice" page.html "small objects are inside its arenas"
equal "arenas as memory that is not in use, by the page's findings" 0 \
    "$(grep -cF "lay idle or in fragments" page.html || true)"
# two programs, one after the other: at an instant of the second one the first one's are gone; without one all are
# listed, each program's at its own end
RUN_OPTIONS=
record_ok sh -c "for n in 200000 400000; do '$python' -c 'import os, sys
keep = [(i,) for i in range(int(sys.argv[1]))]; os._exit(0)' \$n; done"
second="(SELECT max(process_id) FROM segment WHERE kind = 'arena')"
of_one() {
    value "SELECT sum(size_bytes) FROM segment
        WHERE kind = 'arena' AND process_id $1 $second AND alloc_ns <= $at AND coalesce(free_ns > $at, 1)"
}
at=$(value "SELECT max(alloc_ns) FROM segment WHERE kind = 'arena'")
at_least "left by the first one" $((200000 * 56)) "$(of_one '<>')"
sum_of() {
    "$MEMPROF" report --segments --json "$@" |
        python3 -c 'import json, sys; print(sum(s["size_bytes"] for s in json.load(sys.stdin)))'
}
equal "at an instant" "$(of_one '=')" "$(sum_of --at ${at}ns)"
equal "at the end of each" "$(value "SELECT sum(size_bytes) FROM segment WHERE kind = 'arena' AND free_ns IS NULL")" \
    "$(sum_of)"
mib() { awk -v n="$1" 'BEGIN { printf "%.2f MiB", n / 1048576 }'; }
in_table() {
    "$MEMPROF" report --segments --top 0 "$@" |
        sed -n "/^Python's arenas/,\$p" | awk '/^ *[0-9.]+ MiB +[0-9,]+ +/ { n += $1 } END { printf "%.2f MiB", n }'
}
equal "in the table, at an instant" "$(mib "$(of_one '=')")" "$(in_table --at ${at}ns)"
equal "in the table, at the end of each" \
    "$(mib "$(value "SELECT sum(size_bytes) FROM segment WHERE kind = 'arena' AND free_ns IS NULL")")" "$(in_table)"
# the page's finding counts the second one's alone at the peak, and all that there ever were where some have no row;
# where nobody knows what was there, as so much never was
idle() { "$MEMPROF" report "$1" --html=page.html >/dev/null && grep -cF "lay idle or in fragments" page.html || true; }
equal "nothing idle" 0 "$(idle out.db)"
cp out.db more.db
sqlite3 more.db \
    "UPDATE total SET peak_reserved_bytes = peak_reserved_bytes + $(of_one '<>') WHERE device_id = 0 AND kind = 'all';
    DELETE FROM resident_scan; UPDATE timeline SET rss_max_bytes = 0"
equal "idle beside the second one's arenas" 1 "$(idle more.db)"
cp out.db full.db
sqlite3 full.db "UPDATE segment SET free_ns = alloc_ns WHERE kind = 'arena';
    WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 65536)
    INSERT INTO segment(segment_id, device_id, kind, process_id, address, size_bytes, alloc_ns, free_ns)
    SELECT 100000 + x, 0, 'arena', 1, 4096, 4096, 0, 0 FROM n"
equal "nothing idle where arenas have no row" 0 "$(idle full.db)"
# without pymalloc there are none
RUN_OPTIONS=--python-allocators
record_ok "$python" "$script"
equal "arenas with --python-allocators" 0 "$(value "SELECT count(*) FROM segment WHERE kind = 'arena'")"
at_least "its objects" 200000 \
    "$(value "SELECT sum(alloc_count) FROM v_line
    WHERE kind = 'heap' AND file = '$script' AND line = $(line 'keep.append')")"
"$MEMPROF" report >report.txt
lacks "nothing to say" report.txt "inside its arenas"
