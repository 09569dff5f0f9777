# What the wrappers believe of the driver's ABI against NVIDIA's own header, where there is one.
header=${CUDA_HOME:-/usr/local/cuda}/include
[ -f "$header/cuda.h" ] || skip "no cuda.h under $header"
${CXX:-c++} -std=c++17 -Wall -Wno-deprecated-declarations -I "$header" -fsyntax-only \
    "$ROOT/tests/cuda/abi.cpp" >errors 2>&1 || {
    grep -E 'error' errors | head -40
    fail "cuda_abi.h or cuda.def differ from cuda.h"
}
