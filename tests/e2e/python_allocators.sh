# With --python-allocators each object is a block: the counts are libcount.so's, as in tests/accuracy/python3.sh, where
# the variable itself is set.
need python3
sh "$ROOT/tests/bench/inputs.sh" "$BUILD/inputs-small" 20
eval "$(command_of_python | sed '/^export/d')"
unset PYTHONMALLOC
export PYTHONHASHSEED=0
record_ok "$@"
without=$(total alloc_count)
"$MEMPROF" report >report.txt
contains "hint" report.txt "--python-allocators"
arenas=$("$MEMPROF" report --json | python3 -c '
import json, sys
print([t["peak_reserved_bytes"] for t in json.load(sys.stdin)["totals"] if t["kind"] == "arena"][0] // 1024 // 1024)')
"$MEMPROF" diff out.db out.db >diff.txt
contains "what diff cannot see" diff.txt "$arenas.00 MiB at most before, $arenas.00 MiB at most now; record with"
"$MEMPROF" check --max-peak 1G >check.txt || fail "check"
contains "what check cannot see" check.txt "active bytes: $arenas.00 MiB at most; record with"
RUN_OPTIONS=--python-allocators
same_counts "$@"
at_least "allocations more than without" $((10 * without)) "$(total alloc_count)"
"$MEMPROF" report >report.txt
lacks "no hint" report.txt "--python-allocators"
"$MEMPROF" diff out.db out.db >diff.txt
"$MEMPROF" check --max-peak 1G >check.txt || fail "check"
lacks "no hint of diff" diff.txt "--python-allocators"
lacks "no hint of check" check.txt "--python-allocators"
