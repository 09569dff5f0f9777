# The whole tree compiles without a warning with gcc and with clang. gcc finds some only as it optimizes; clang finds
# all before. Without debug information, which says nothing here and takes a third of the time. What compiled without
# one stays in $BUILD/warnings, and make compiles what has changed. Of the tests' headers, its own file and the compiler
# make does not know: all is compiled again when one of these has changed.
headers() {
    find "$ROOT/Makefile" "$ROOT/include" "$ROOT/samples" "$ROOT/tests" \
        -name Makefile -o -name '*.h' -o -path '*/programs/*.inc' -o -name '*.def' -o -name '*.mk'
}
for compiler in gcc clang; do
    command -v $compiler >/dev/null || { missing=$compiler; continue; }
    case $compiler in gcc) level=-O1 ;; *) level=-O0 ;; esac
    kept=$BUILD/warnings/$compiler
    { $compiler --version; headers | sort | xargs -d '\n' cat; } | cksum >inputs
    cmp -s inputs "$kept/inputs" || { rm -rf "$kept"; mkdir -p "$kept"; cp inputs "$kept"; }
    make -s -k -j"$(nproc)" -C "$ROOT" CC=$compiler WERROR=1 OPT=$level CFLAGS=-g0 NVCC= BUILD="$kept" \
        all samples programs bench-programs unit >log 2>&1 || { cat log; fail "$compiler warns"; }
    echo "  $compiler: clean"
done
[ -z "${missing:-}" ] || skip "$missing is not installed"
