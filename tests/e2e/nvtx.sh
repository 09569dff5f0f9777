# NVTX: marks, ranges, domains, categories, with and without a tool of the user's own; with NVIDIA's headers where they
# are.
headers=/usr/local/cuda/include
programs=$PROGRAMS/nvtx
if [ -f $headers/nvtx3/nvToolsExtMem.h ] &&
    $CC -DREAL_NVTX -isystem $headers -g -O1 -o real "$ROOT/tests/programs/nvtx.c" -pthread -ldl 2>log; then
    programs="$programs $PWD/real"
else
    echo "NVIDIA's headers are not here: with the stand-in alone"
fi
for program in $programs; do
    record_ok "$program"
    equal "instants" 'plain,wide ü€😀,with category' \
        "$(sql "SELECT group_concat(name) FROM (SELECT name FROM mark WHERE is_range = 0 ORDER BY start_ns)")"
    equal "domain and category" 'library|io' "$(sql "SELECT domain, category FROM mark WHERE name = 'with category'")"
    equal "ranges" 'forward||1,registered|library|1,across||1,never ended||0' \
        "$(sql "SELECT group_concat(name || '|' || coalesce(domain, '') || '|' || (end_ns IS NOT NULL))
        FROM (SELECT * FROM mark WHERE is_range = 1 ORDER BY start_ns)")"
    # the ranges of a thread nest by domain: forward ends before registered, which began after it
    equal "overlap" 1 \
        "$(value "SELECT a.end_ns <= b.end_ns AND a.end_ns >= b.start_ns FROM mark a, mark b
        WHERE a.name = 'forward' AND b.name = 'registered'")"

    NVTX_INJECTION64_PATH=$PROGRAMS/lib_nvtx_tool.so "$program" >out 2>err || fail "the tool alone"
    equal "the tool alone" "tool: 1 marks, 1 pushes, 1 pops, 1 heaps, 1 registrations" "$(cat err)"
    NVTX_INJECTION64_PATH=$PROGRAMS/lib_nvtx_tool.so "$MEMPROF" run -q -o both.db -- "$program" >out 2>err ||
        fail "both tools"
    equal "the tool under memprof" "tool: 1 marks, 1 pushes, 1 pops, 1 heaps, 1 registrations" "$(cat err)"
    equal "memprof with the tool" 'plain,wide ü€😀,with category|4' \
        "$(sqlite3 both.db \
        "SELECT (SELECT group_concat(name) FROM (SELECT name FROM mark WHERE is_range = 0 ORDER BY start_ns)),
        (SELECT count(*) FROM mark WHERE is_range = 1)")"
done
# a child that is not followed, and one whose tool is missing, run as they would
NVTX_INJECTION64_PATH=/nonexistent.so "$MEMPROF" run -q -o missing.db -- "$PROGRAMS/nvtx" >out || fail "a missing tool"
equal "a missing tool" done "$(cat out)"
"$MEMPROF" run -q --no-follow -o parent.db -- sh -c '"$1"; :' sh "$PROGRAMS/nvtx" >out || fail "not followed"
equal "not followed" done "$(cat out)"
