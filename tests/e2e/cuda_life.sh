# Programs that fork after cuInit, close the driver, come with many threads or an old driver: they behave as without us,
# and what was not seen is told.
CALLS=$BUILD/programs/calls
HOOKS=$BUILD/cuda/hooks
LD_LIBRARY_PATH=$BUILD/cuda/13000
export LD_LIBRARY_PATH
# both WHAT: the program's own output is the same with and without us; the records go to WHAT.calls
both() {
    "$HOOKS/life" "$1" >plain 2>&1 && status=0 || status=$?
    "$CALLS" "$BUILD/libmemprof.so" "$HOOKS/life" "$1" >all 2>&1 || { cat all; fail "$1"; }
    contains "$1" all "status $status"
    grep -vE '^[0-9]+ (none|cu[A-Za-z0-9]+) [A-Z_]+ |^counter |^status ' all >own || true
    cmp -s plain own || { diff plain own; fail "$1: the program says something else"; }
    grep -E '^[0-9]+ (none|cu[A-Za-z0-9]+) [A-Z_]+ |^counter ' all >"$1.calls" || true
    echo "  $1: $(wc -l <"$1.calls") records"
}
both fork
equal "fork: allocations, all of the parent" 2 "$(grep -c ' ALLOC 0 s' fork.calls)"
equal "fork: frees" 2 "$(grep -c ' FREE ? -' fork.calls)"
both close
equal "close: allocations" 4 "$(grep -c ' ALLOC 0 s' close.calls)"
both threads
equal "threads: allocations" 400 "$(grep -c ' POOL_ALLOC 0 s' threads.calls)"
equal "threads: frees" 400 "$(grep -c ' POOL_FREE ? -' threads.calls)"
equal "threads: streams" 20 "$(awk '$3 == "POOL_ALLOC" { print $NF }' threads.calls | sort -u | wc -l)"
equal "threads: allocated and freed on the same stream" "" \
    "$(awk '$3 == "POOL_ALLOC" { stream[$1 " " $6] = $NF } $3 == "POOL_FREE" && stream[$1 " " $6] != $NF' \
    threads.calls)"
both unused
equal "unused: nothing was missed" "" "$(cat unused.calls)"
both missed
equal "missed: said at the end" "counter cuda_missed 1" "$(cat missed.calls)"

# A driver that is newer than cuda.def: what is not known is passed through and told once; what is known has its hook.
LD_LIBRARY_PATH=$HOOKS/newer
both newer
equal "newer: not tracked, told once" '0 none UNTRACKED ? s 36b0 "cuMemAlloc"' "$(grep UNTRACKED newer.calls)"
equal "newer: counted" "counter cuda_untracked 1" "$(grep counter newer.calls)"
equal "newer: the known variant" 1 "$(grep -c 'cuMemAlloc ALLOC ? s 100003 3 0' newer.calls)"
equal "newer: a known function that is not exported" 1 \
    "$(grep -c 'cuMemAllocAsync POOL_ALLOC ? s 300014 4 0 10' newer.calls)"

# Libraries of profilers call for themselves.
LD_LIBRARY_PATH=$BUILD/cuda/13000
cp "$HOOKS/plugin_linked.so" libcupti.so.13
"$CALLS" "$BUILD/libmemprof.so" "$HOOKS/host" ./libcupti.so.13 >all 2>&1
equal "a profiler's own calls" "status 0" "$(grep -v '^= ' all)"

# A driver that is older than a function does not get it from us.
LD_LIBRARY_PATH=$BUILD/cuda/10020
"$HOOKS/every_dlsym" >plain 2>&1 && status=0 || status=$?
"$CALLS" "$BUILD/libmemprof.so" "$HOOKS/every_dlsym" >all 2>&1
contains "old driver" all "status $status"
equal "old driver: what it says" "$(cat plain)" "$(grep -v '^status' all)"
# No driver at all.
unset LD_LIBRARY_PATH
"$HOOKS/every_dlsym" >plain 2>&1 && status=0 || status=$?
"$CALLS" "$BUILD/libmemprof.so" "$HOOKS/every_dlsym" >all 2>&1
contains "no driver" all "status $status"
equal "no driver: what it says" "$(cat plain)" "$(grep -v '^status' all)"
