# With --python-allocators each object is a block: the counts are libcount.so's, as in tests/accuracy/python3.sh, where
# the variable itself is set.
need python3
sh "$ROOT/tests/bench/inputs.sh" "$BUILD/inputs-small" 20
eval "$(command_of "$BUILD/inputs-small/run-python3" | sed '/^export/d')"
unset PYTHONMALLOC
export PYTHONHASHSEED=0
record_ok "$@"
without=$(total alloc_count)
"$MEMPROF" report >report.txt
contains "hint" report.txt "--python-allocators"
RUN_OPTIONS=--python-allocators
same_counts "$@"
at_least "allocations more than without" $((10 * without)) "$(total alloc_count)"
"$MEMPROF" report >report.txt
lacks "no hint" report.txt "--python-allocators"
