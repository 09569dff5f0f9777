# However a program reaches the driver, the same calls are recorded, and every look-up gives what it gives without us.
LIBRARY=$BUILD/libmemprof.so
CALLS=$BUILD/programs/calls
HOOKS=$BUILD/cuda/hooks
driver() { LD_LIBRARY_PATH=$BUILD/cuda/$1; export LD_LIBRARY_PATH; }

named() { awk -f "$ROOT/tests/cuda/hooks/named.awk" "$1"; }
# run NAME COMMAND...: the records of a program into NAME
run() {
    name=$1
    shift
    "$CALLS" "$LIBRARY" "$@" >"$name.out" 2>"$name.err" || { cat "$name.err"; fail "$name: calls failed"; }
    named "$name.out" >"$name"
    contains "$name" "$name" 'status 0'
}
same() {
    diff "$ROOT/tests/cuda/hooks/every.expected" "$1" >difference || {
        head -20 difference
        cat "$1.err"
        fail "$1: other records than tests/cuda/hooks/every.expected"
    }
    echo "  $1: $(wc -l <"$1") lines as expected"
}

driver 13000
run direct "$HOOKS/every"
same direct
run by_dlsym "$HOOKS/every_dlsym"
same by_dlsym
run by_proc_v2 "$HOOKS/every_proc"
same by_proc_v2
PROC_V1=1 run by_proc_v1 "$HOOKS/every_proc"
same by_proc_v1
run plugin_default "$HOOKS/host" "$HOOKS/plugin_default.so"
same plugin_default

# Another preloaded library in front of the driver: every call is recorded once, wherever it stands, and it sees what it
# did.
for order in BEFORE AFTER; do
    for program in every every_dlsym; do
        export "CALLS_$order=1" SHIM=1 LD_PRELOAD="$HOOKS/shim.so"
        run "shim_$order.$program" "$HOOKS/$program"
        unset "CALLS_$order" SHIM LD_PRELOAD
        same "shim_$order.$program"
    done
done
contains "the shim's calls" shim_AFTER.every.err 'shim: 3'
lacks "the shim's calls" shim_AFTER.every_dlsym.err 'shim: 3' # without us a pointer from dlsym goes past it too

unset LD_LIBRARY_PATH
run plugin_runpath "$HOOKS/host" "$HOOKS/plugin_runpath.so"
same plugin_runpath

# Look-ups, for every version of the driver: the same lines with and without us but for whose function it is.
for version in 10020 11020 11080 12040 13000; do
    driver $version
    "$HOOKS/lookups" >plain
    "$CALLS" "$LIBRARY" "$HOOKS/lookups" >profiled 2>profiled.err || fail "lookups"
    # malloc is ours to give; the records of what is not tracked come at the end
    sed 's/libmemprof\.so/libcuda.so.1/' profiled | grep -vE ' malloc:|^[0-9]+ none UNTRACKED|^counter|^status' >a
    grep -v ' malloc:' plain >b
    diff b a >difference || { head -20 difference; fail "driver $version: look-ups differ"; }
    echo "  driver $version: $(wc -l <b) look-ups alike, $(grep -c libmemprof.so profiled) hooked"
    # nothing that we have a hook for may come back unhooked: cuCtxCreate is the one name asked for that has none, and
    # cuInit
    grep 'libcuda\.so\.1' profiled | grep -vE 'cuCtxCreate|cuInit' >unhooked || true
    [ ! -s unhooked ] || { head unhooked; fail "driver $version: look-ups that gave the driver's own function"; }
done

# Python reaches it by ctypes: dlopen and dlsym from C code of its own.
if command -v python3 >/dev/null; then
    driver 13000
    cat >ctypes_user.py <<'P'
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
context, p = ctypes.c_void_p(), ctypes.c_uint64()
assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
assert cuda.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(123456)) == 0
print("= p %x" % p.value)
assert cuda.cuMemFree_v2(p) == 0
P
    run python python3 ctypes_user.py
    equal "ctypes: allocations" 1 "$(grep -cE '^[0-9]+ cuMemAlloc ALLOC 0 s p 1e240 ' python)"
    equal "ctypes: frees" 1 "$(grep -cE '^[0-9]+ cuMemFree FREE [?] - p$' python)"
fi
