# The whole tree compiles without a warning with gcc and with clang.
for compiler in gcc clang; do
    command -v $compiler >/dev/null || { missing=$compiler; continue; }
    make -s -k -C "$ROOT" CC=$compiler WERROR=1 OPT=-O1 NVCC= BUILD="$PWD/$compiler" all samples programs bench-programs unit >log 2>&1 || { cat log; fail "$compiler warns"; }
    echo "  $compiler: clean"
    rm -rf "$compiler"
done
[ -z "${missing:-}" ] || skip "$missing is not installed"
