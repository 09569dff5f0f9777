# C++ under allocators that bring their own operator new and delete, preloaded and linked: every form, totals, lines,
# failures by exception, new-handlers that free and allocate.
found=0
# how often a failed allocation has the function in its stack
failures() {
    value "SELECT count(DISTINCT o.oom_id) FROM oom o JOIN v_stack v USING(stack_id) WHERE v.function LIKE '$1%'"
}
check_forms() {
    for f in plain array nothrow array_nothrow aligned array_aligned aligned_nothrow array_aligned_nothrow; do
        equal "new, $f" "10|1280|10|10|0|0" "$(by_function new_$f)"
    done
}
check_blocks() {
    equal "fill" "3000|3000000|3000|0|0|0" "$(by_function fill)"
    equal "after failures" "100|1000|100|100|0|0" "$(by_function after)"
    equal "failures without exception" 40 "$(failures refused_nothrow)"
    equal "lines of the recorder" 0 "$(value "SELECT count(*) FROM v_line WHERE file LIKE '%hooks_new%'")"
}
check_throws() {
    equal "its new-handlers and exceptions" "handled 1 caught 22" "$(cat run.out)"
    equal "failures by exception" 20 "$(failures refused_throwing)"
    equal "in the new-handler" "1|5000|1" "$(by_function make_reserve | cut -d'|' -f1-3)"
    equal "by the new-handler" "1|77|0" "$(by_function handler_keeps | cut -d'|' -f1-3)"
    equal "by the new-handler, malloc" "1|33|1" "$(by_function handler | cut -d'|' -f1-3)"
    equal "a failure within a failure" 1 "$(failures refused_in_handler)"
    equal "failures with a new-handler" 2 "$(failures refused_with_handler)"
    equal "failures" 62 "$(value 'SELECT count(*) FROM oom')"
}
for name in libjemalloc.so.2 libtcmalloc_minimal.so.4 libmimalloc.so.2.0 libmimalloc.so.2; do
    path=$(ldconfig -p | sed -n "s|.*$name .*=> ||p" | head -n 1)
    [ -n "$path" ] || continue
    found=$((found + 1))
    throws=throws
    case $name in libmimalloc*) throws= ;; esac # Debian's is built as C: it ends the program instead
    for how in preloaded linked; do
        echo "$name, $how"
        forms=$PROGRAMS/cxx_new blocks=$PROGRAMS/cxx_allocator LD_PRELOAD=$path
        if [ $how = linked ]; then
            forms=./forms blocks=./blocks LD_PRELOAD=
            for p in "$forms new" "$blocks allocator"; do
                "$CXX" -std=c++17 -O1 -g -fno-builtin -o "${p% *}" "$ROOT/tests/programs/cxx_${p#* }.cpp" -pthread \
                    -Wl,--no-as-needed "$path"
            done
        fi
        export LD_PRELOAD
        record_ok "$forms"
        unset LD_PRELOAD
        check_forms
        LD_PRELOAD=$path
        [ $how = preloaded ] || LD_PRELOAD=
        export LD_PRELOAD
        record_ok "$blocks" $throws
        unset LD_PRELOAD
        check_blocks
        [ -z "$throws" ] || check_throws
    done
done
[ $found -gt 0 ] || skip "no other allocator is installed"
