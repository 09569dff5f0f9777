# cuda.def against the list of the driver's memory functions (from cudaTypedefs.h): each variant has a wrapper or is
# passed through on purpose, with the name, version and kind of stream of the list; each name is in wire_hooks.def.
list=$ROOT/tests/static/cuda_driver.csv
{
    printf '%s\n' '#define CUDA(symbol, name, version, per_thread, ...) ROW symbol name version per_thread END' \
        '#define CUDA_SPECIAL(symbol, name, version) ROW symbol name version 0 END' \
        '#define CUDA_PASSED(symbol, name, version) PASSED symbol name version 0 END' '#include "cuda.def"'
} | ${CC:-cc} -E -P -I "$ROOT/profiler/preload/gpu" - | tr '\n' ' ' | sed 's/ END */\n/g' | grep -E '^ *(ROW|PASSED) ' |
    sed 's/^ *//' >rows
at_least "rows in cuda.def" 280 "$(wc -l <rows)"
equal "symbols that cuda.def has twice" "" "$(awk '{ print $2 }' rows | sort | uniq -d | tr '\n' ' ')"
# per_thread of a passed variant is its suffix's matter
awk '{ thread = $5; if ($1 == "PASSED") thread = $2 ~ /_pt[sd][sz]$/ ? 1 : 0; print $2, $3, $4, thread }' rows |
    sort >have
tail -n +2 "$list" | awk -F, '{ print $4, $1, $3, $2 == "" ? 0 : 1 }' | sort >want
missing=$(comm -13 have want)
[ -z "$missing" ] || fail "not in cuda.def, or otherwise there: $missing"
# what moves, gives or takes bytes may not be passed through
wrong=$(awk '$1 == "PASSED" { print $2 }' rows | grep -E '^cuMem(cpy|set|Alloc|Free|Create|Release|Map$|Unmap)' || true)
[ -z "$wrong" ] || fail "passed through, but they should be recorded: $wrong"
awk '$1 == "ROW" { print $3 }' rows | grep -v '^cuGetProcAddress$' | sort -u >names
grep -oE 'X\(cu[A-Za-z0-9]+, ' "$ROOT/profiler/wire_hooks.def" | sed 's/X(//; s/, //' | sort >hooks
equal "names without a hook in wire_hooks.def, or the reverse" "" "$(comm -3 names hooks | tr -d '\t' | tr '\n' ' ')"
