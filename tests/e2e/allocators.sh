# Other allocators, preloaded and linked: the same counts as on glibc.
found=0
for name in libjemalloc.so.2 libtcmalloc_minimal.so.4 libmimalloc.so.2.0 libmimalloc.so.2; do
    path=$(ldconfig -p | sed -n "s|.*$name .*=> ||p" | head -n 1)
    [ -n "$path" ] || continue
    found=$((found + 1))
    echo "$name, preloaded"
    LD_PRELOAD=$path
    export LD_PRELOAD
    record_ok "$SAMPLES/cache"
    unset LD_PRELOAD
    equal "remember" "5008|1261120|5008" "$(by_function remember | cut -d'|' -f1-3)"
    [ $name = libtcmalloc_minimal.so.4 ] ||
        at_least "reserved by the heap" "$(total peak_active_bytes)" "$(total peak_reserved_bytes)"
    equal "kinds but the heap" 0 "$(value "SELECT count(*) FROM total WHERE kind NOT IN ('all', 'heap')")"
    equal "answer" "20000|1280000|20000|15000" "$(by_function answer | cut -d'|' -f1-4)"
    echo "$name, linked"
    "$CC" -O1 -g -fno-builtin -o linked "$ROOT/samples/threads.c" -pthread -Wl,--no-as-needed "$path" 2>/dev/null
    record_ok ./linked
    equal "produce" "100000|25600000|100000" "$(by_function produce | cut -d'|' -f1-3)"
done
[ $found -gt 0 ] || skip "no other allocator is installed"
