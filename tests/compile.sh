#!/bin/sh
# The compilers of tests (run.sh makes `cc` and `c++` links to this file). Tests write and compile small programs, each
# time the same, which takes longer than what the programs then do. What came of it is kept in KEPT_COMPILED, and taken
# as long as nothing has changed: the compiler, the directory, the arguments and their files, the headers of the tree,
# and all sources, objects and libraries of the test's directory. What the compiler spoke of is not kept.
# Environment: COMPILER_CC, COMPILER_CXX, KEPT_COMPILED, TREE_HEADERS (any text that changes with them), TEST_DIR.
case $0 in *c++) compiler=$COMPILER_CXX ;; *) compiler=$COMPILER_CC ;; esac
out='' last=''
for arg; do
    [ "$last" != -o ] || out=$arg
    last=$arg
done
case $PWD in *CMake*) out='' ;; esac # tries things in directories with random names
[ -n "$out" ] || exec "$compiler" "$@"

inputs() {
    echo "$TREE_HEADERS $PWD"
    stat -L -c '%n %s %Y' "$(command -v "$compiler")"
    printf '%s\n' "$@"
    for arg; do [ "$arg" = "$out" ] || [ ! -f "$arg" ] || sha256sum "$arg"; done
    find "$TEST_DIR" -type f \( -name '*.[chSsoa]' -o -name '*.cc' -o -name '*.cpp' -o -name '*.so*' \) \
        ! -path "$(realpath -m "$out")" -print0 | sort -z | xargs -0r sha256sum
}
key=$(inputs "$@" | sha256sum)
kept=$KEPT_COMPILED/${key%% *}
if [ -f "$kept" ]; then
    touch "$kept" && rm -f "$out" && exec cp "$kept" "$out"
fi
said=$(mktemp)
"$compiler" "$@" 2>"$said"
status=$?
cat "$said" >&2
[ $status != 0 ] || [ -s "$said" ] || [ ! -f "$out" ] || { cp "$out" "$kept.$$" && mv "$kept.$$" "$kept"; }
rm -f "$said"
exit $status
