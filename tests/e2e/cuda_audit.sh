# --cuda-delivery=audit: libraries loaded with RTLD_DEEPBIND look into the driver before any preloaded library. The
# loader's auditor reaches them, and changes nothing for the others.
need nm readelf
CALLS=$BUILD/programs/calls
HOOKS=$BUILD/cuda/hooks
AUDIT=$BUILD/libmemprof_audit.so
equal "libraries that the auditor needs" "" "$(readelf -d "$AUDIT" | grep NEEDED || true)"
equal "symbols that it needs" "" "$(nm -D --undefined-only "$AUDIT")"
LD_LIBRARY_PATH=$BUILD/cuda/13000
export LD_LIBRARY_PATH

named() { awk -f "$ROOT/tests/cuda/hooks/named.awk" "$1"; }
for plugin in linked runpath default; do
    "$CALLS" "$BUILD/libmemprof.so" "$HOOKS/host" "$HOOKS/plugin_$plugin.so" deep >out 2>&1 || fail "$plugin"
    equal "$plugin, deep: missed by default, and said" "counter cuda_missed 1" "$(grep -v '^= \|^status' out)"
    LD_AUDIT=$AUDIT "$CALLS" "$BUILD/libmemprof.so" "$HOOKS/host" "$HOOKS/plugin_$plugin.so" deep >out 2>&1 ||
        fail "$plugin"
    named out >records
    diff "$ROOT/tests/cuda/hooks/every.expected" records ||
        fail "$plugin, deep, with the auditor: other records than tests/cuda/hooks/every.expected"
done
for program in every every_dlsym every_proc; do
    LD_AUDIT=$AUDIT "$CALLS" "$BUILD/libmemprof.so" "$HOOKS/$program" >out 2>&1 || fail "$program"
    named out >records
    diff "$ROOT/tests/cuda/hooks/every.expected" records || fail "$program with the auditor: other records"
done
"$HOOKS/lookups" >plain
LD_AUDIT=$AUDIT "$CALLS" "$BUILD/libmemprof.so" "$HOOKS/lookups" 2>&1 | sed 's/libmemprof\.so/libcuda.so.1/' |
    grep -vE ' malloc:|^[0-9]+ none UNTRACKED|^counter|^status' >profiled
grep -v ' malloc:' plain | diff - profiled >difference || {
    head -20 difference
    fail "look-ups differ under the auditor"
}

# the option
RUN_OPTIONS=--cuda-delivery=audit
record "$HOOKS/host" "$HOOKS/plugin_linked.so" deep
equal "status" 0 "$status"
equal "missed" 0 "$(value "SELECT sum(value) FROM counter WHERE name = 'cuda_missed'")"
RUN_OPTIONS=--cuda-delivery=preload
record "$HOOKS/host" "$HOOKS/plugin_linked.so" deep
equal "missed without the auditor" 1 "$(value "SELECT sum(value) FROM counter WHERE name = 'cuda_missed'")"
"$MEMPROF" run --cuda-delivery=ldpreload true 2>err && fail "a wrong value was taken" || equal "exit status" 2 $?
contains "usage" err "memprof: run: --cuda-delivery 'ldpreload': did you mean 'preload'?"
# the auditor of the user's own stays, after ours
LD_AUDIT=/nonexistent.so "$MEMPROF" run --cuda-delivery=audit -o env.db sh -c 'echo "audit $LD_AUDIT"' >out 2>/dev/null
contains "the user's auditor" out "audit $AUDIT:/nonexistent.so"
