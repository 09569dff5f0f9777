# The whole tree compiles without a warning with gcc and with clang. gcc finds some only as it optimizes; clang finds
# all before. Without debug information, which says nothing here and takes a third of the time.
for compiler in gcc clang; do
    command -v $compiler >/dev/null || { missing=$compiler; continue; }
    case $compiler in gcc) level=-O1 ;; *) level=-O0 ;; esac
    make -s -k -j"$(nproc)" -C "$ROOT" CC=$compiler WERROR=1 OPT=$level CFLAGS=-g0 NVCC= BUILD="$PWD/$compiler" \
        all samples programs bench-programs unit >log 2>&1 || { cat log; fail "$compiler warns"; }
    echo "  $compiler: clean"
    rm -rf "$compiler"
done
[ -z "${missing:-}" ] || skip "$missing is not installed"
