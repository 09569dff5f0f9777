# NVIDIA's own runtime library, linked statically: it looks one driver function up by dlsym and all others by
# cuGetProcAddress_v2. It refuses a simulated driver in the end; until then every function of cuda.def that it asks for
# must come back as a hook.
runtime=${CUDA_HOME:-/usr/local/cuda}/lib64
[ -f "$runtime/libcudart_static.a" ] || skip "no libcudart_static.a under $runtime"
LD_LIBRARY_PATH=$BUILD/cuda/13000
export LD_LIBRARY_PATH
${CC:-cc} -o runtime "$ROOT/tests/cuda/hooks/runtime.c" -L"$runtime" -lcudart_static -lpthread -ldl -lrt ||
    fail "cannot link with libcudart_static.a"
./runtime >plain.out 2>plain.err && plain=0 || plain=$?
CALLS_AFTER=1 LD_PRELOAD=$BUILD/cuda/hooks/watch.so "$BUILD/programs/calls" "$BUILD/libmemprof.so" \
    ./runtime >run.out 2>run.err
contains "exit status as without us" run.out "status $plain"
equal "what cudaGetDeviceCount gave" "$(head -1 plain.out)" "$(grep -E '^[0-9]+$' run.out | head -1)"
equal "look-ups of cuGetProcAddress by dlsym" 1 "$(grep -c '^dlsym ' run.err)"
at_least "functions asked for" 400 "$(grep -c '^proc ' run.err)"
printf '%s\n' '#define CUDA(symbol, name, ...) ROW name' '#define CUDA_SPECIAL(symbol, name, ...) ROW name' \
    '#include "cuda.def"' |
    ${CC:-cc} -E -P -I "$ROOT/profiler/preload/gpu" - | grep -o 'ROW [A-Za-z0-9]*' | sed 's/ROW //' | sort -u >names
awk '$1 == "proc" && $5 != "libmemprof.so" && $5 != "none" { print $2 }' run.err | sort -u | comm -12 - names >unhooked
[ ! -s unhooked ] || fail "not hooked: $(tr '\n' ' ' <unhooked)"
at_least "functions hooked" 100 "$(grep -c '^proc .* libmemprof.so' run.err)"
# the hook is the one of the variant that the driver gives
awk '$1 == "proc" && $5 == "libmemprof.so" { print $2, $3, $4, $6 }' run.err | sort -u >hooked
LD_PRELOAD=$BUILD/cuda/hooks/watch.so ./runtime 2>plain.err >plain.out || true
awk '$1 == "proc" && $5 == "libcuda.so.1" { print $2, $3, $4, $6 }' plain.err | sort -u >genuine
equal "hooks of another variant than the driver's" "" "$(comm -23 hooked genuine | tr '\n' ';')"
equal "not tracked" "" "$(grep '^counter' run.out || true)"
