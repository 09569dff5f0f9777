# libmemprof.so: what it takes from others is a checked list, what it gives is hooks and memprof.h only; no text
# relocations; thread-local state without calls.
need nm readelf
# what cuda.def gives a wrapper
cuda_symbols() {
    printf '%s\n' '#define CUDA(symbol, ...) SYMBOL symbol' '#define CUDA_SPECIAL(symbol, ...) SYMBOL symbol' \
        '#include "cuda.def"' |
        ${CC:-cc} -E -P -I "$ROOT/profiler/preload/gpu" - | grep -o 'SYMBOL [A-Za-z0-9_]*' | sed 's/SYMBOL //'
}
library=$BUILD/libmemprof.so
nm -D --undefined-only "$library" | awk '{ print $2 }' | sed 's/@.*//' | sort -u >undefined
grep -v '^#' "$ROOT/tests/static/undefined.txt" | sed 's/[[:space:]].*//' | sort -u >allowed
extra=$(comm -23 undefined allowed)
[ -z "$extra" ] || fail "undefined symbols that tests/static/undefined.txt does not name: $(echo $extra)"
nm -D --defined-only "$library" | awk '{ print $3 }' | sed 's/@.*//' | sort -u >defined
{ grep -v '^#' "$ROOT/tests/static/exported.txt" | sed 's/[[:space:]].*//'
  cuda_symbols; } | sort -u >allowed
extra=$(comm -23 defined allowed)
[ -z "$extra" ] || fail "exported symbols that tests/static/exported.txt does not name: $(echo $extra)"
gone=$(comm -13 defined allowed)
[ -z "$gone" ] || fail "symbols that should be exported and are not: $(echo $gone)"
readelf -d "$library" >dynamic
lacks "text relocations" dynamic TEXTREL
equal "needed libraries" "libc.so.6" \
    "$(sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' dynamic | grep -v ld-linux | tr '\n' ' ' | sed 's/ $//')"
lacks "dynamic thread-local storage" undefined __tls_get_addr
readelf -lW "$library" >segments
lacks "executable stack" segments 'RWE'
