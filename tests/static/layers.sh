# The layers of docs/design.md: who may include what. Headers of the project are included by relative path, in quotes.
cd "$ROOT"
bad=0
check() { # directory, allowed targets (an extended regular expression on the path inside the tree)
    for file in $(find "$1" -name '*.c' -o -name '*.h'); do
        directory=$(dirname "$file")
        for included in $(sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*"\([^"]*\)".*/\1/p' "$file"); do
            target=$(realpath -m --relative-to=. "$directory/$included")
            if ! printf '%s\n' "$target" | grep -qE "^($2)"; then
                echo "$file includes $target"
                bad=1
            fi
        done
    done
}
check common 'common/'
check profiler/preload 'profiler/preload/|profiler/wire\.h$'
check profiler/audit 'profiler/preload/elf_find\.h$'
check profiler/collect 'profiler/collect/|profiler/wire\.h$|common/'
check report 'report/|common/'
check cli 'cli/|profiler/collect/|profiler/wire\.h$|report/|common/'
check samples 'samples/'
[ -z "$(sed -n 's/^#include "\([^"]*\)".*/\1/p' profiler/wire.h include/memprof.h)" ] || { echo "wire.h and memprof.h include nothing of the project"; bad=1; }
[ $bad = 0 ] || fail "layers"
# the library inside the program: no stdio, no locale, none of its own allocation by malloc
if grep -nE '#include <(stdio|locale|wchar|iconv|sqlite3|zstd)' profiler/preload/*.[ch]; then fail "preload includes what it must not use"; fi
