# The tests' own declarations of the CUDA interface against a toolkit's, and what each simulated driver exports against
# its table.
. "$ROOT/tests/cuda/lib.sh"
for version in 10020 11020 11080 12040 13000; do
    awk -v V=$version -F '[(), ]+' '/^X\(/ && $4 <= V { print $5 }' "$ROOT/tests/cuda/driver/symbols.def" | sort >want
    nm -D --defined-only "$SIM/$version/libcuda.so.1" | awk '{ print $3 }' | sort >have
    cmp -s want have || { diff want have | head; fail "driver $version exports other symbols than its table says"; }
    echo "  driver $version: $(wc -l <have) symbols"
done
include=${CUDA_HOME:-/usr/local/cuda}/include
[ -f "$include/cudaTypedefs.h" ] || skip "no cuda.h under $include to compare with"
$CC -DHEADER='<cuda.h>' -DTOOLKIT -D__CUDA_API_VERSION_INTERNAL -isystem "$include" -o theirs \
    "$ROOT/tests/cuda/abi_layout.c"
$CC -DHEADER='"include/cuda_abi.h"' -o ours "$ROOT/tests/cuda/abi_layout.c"
./theirs >theirs.txt
./ours >ours.txt
diff theirs.txt ours.txt || fail "tests/cuda/include/cuda_abi.h differs from the toolkit's cuda.h"
at_least "facts compared" 150 "$(wc -l <ours.txt)"
